// SPDX-License-Identifier: BSL-1.0
//
// The tuning of a communicator's calls: the lockstep of its ranks, and what rank 0 knows about each
// context. Collectives, neighbourhood calls, function sets and regions all use it; their
// differences are data (tuned_context, context_start).
#pragma once

#include "lib/group/hosts.hpp"
#include "lib/tuner/joint_lockstep.hpp"
#include "lib/tuner/own_time.hpp"
#include "models/profile.hpp"
#include "railpass/knowledge/near.hpp"
#include "railpass/select/policy/policy.hpp"
#include "railpass/select/statistics/dump.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal {

/// The properties that all calls of a context share.
struct tuned_context {
  /// The owner of the calls sets `collective`, `operation` and `bytes`, the size of the first call.
  knowledge::problem of{};
  std::optional<knowledge::set_kind> kind{};  ///< of a function set; `of.operation` is its text
  std::string policy{};                       ///< its name in statistics
  std::string baseline = "native";            ///< the name of the arm that policies call native
  /// The name of an arm, by its number. Called as long as the context lives.
  std::function<std::string(int arm)> name_of{};
  std::int64_t from_bytes = 0, to_bytes = 0;  ///< sizes of its calls
  std::optional<int> octave{};                ///< log2 of from_bytes; empty: sizes decide nothing
  bool is_of_any_size = false;                ///< only merges report the sizes of calls
  bool watches_cores = false;                 ///< statistics say how often ranks lost their cores
};

/// The input of a context's policy.
struct context_start {
  tuned_context calls{};
  std::string policy{};  ///< the policy that decides
  /// The eligible arms for calls of this size. Called while the policy is made; in a context of any
  /// size also in later merges.
  std::function<std::vector<select::arm_prior>(double bytes)> priors{};
  std::optional<int> fixed_arm{};  ///< for policy `fixed`
  bool may_check = true;           ///< results of its calls can be checked
  bool may_wait = false;           ///< native until the process' account allows more tuning
  feature_distance distance{};     ///< between features of a function set
};

class tuned_contexts final : public joint_lockstep {
 public:
  /// Texts around the problem in a record that a context has no policy.
  struct complaint {
    std::string before{}, after{};
  };

  /// See joint_lockstep. `communicator`: its MPI name.
  tuned_contexts(const settings& values, process& owner, int rank, int num_ranks,
                 std::string subject, std::string communicator, complaint without_policy);

  /// On rank 0, after connect(): estimates costs by the profile that settings name, for these
  /// hosts and rails. `passed_s`: seconds per call so far on this rank; 0: unknown. Cannot fail.
  void know_machine(const host_counts& hosts, std::string_view rails, double passed_s);
  const std::string& communicator() const { return communicator_; }
  /// On rank 0.
  const machine_model& machine() const { return *machine_; }
  /// Null: unknown; machine() then has generic constants.
  const profile* known_profile() const { return profile_; }

  // ---- plans, on rank 0

  /// Pass a std::ref, which needs no memory. May throw error, std::bad_alloc.
  using describing = std::function<context_start()>;

  /// The context's first plan. Cannot fail, because the other ranks wait for it: without a policy,
  /// calls are native, and a record says why.
  select::plan_message first_plan(int context, const describing& describe);
  /// Whether the context waits until the process' account allows more tuning.
  bool waits(int context) const {
    return std::size_t(context) < contexts_.size() && contexts_[std::size_t(context)].waits;
  }
  /// All contexts wait, as more arms may be eligible from now on. Local.
  void reconsider() {
    for (led_context& c : contexts_) c.waits = true;
  }
  /// The context waits, because its call could not run this arm, unless its policy knows that.
  void leave_out(int context, int arm);
  /// Makes the policy of a context that waits. Cannot fail.
  void stop_waiting(int context, const describing& describe);

  // ---- reports; nothing on ranks other than 0

  /// The overhead of a call that was measured.
  void add_own_time(double seconds);
  /// Adds what has been learnt. With MPI_THREAD_MULTIPLE any thread may call this and the following
  /// functions, also while another thread is inside a call.
  void add_statistics(select::statistics_dump& dump) const;
  /// Adds contexts that are informative for this problem.
  void add_contexts_like(const knowledge::problem& of, select::statistics_dump& dump) const;
  /// Adds what was learnt for near features, or for the nearest features if there are many: see
  /// knowledge::near().
  void add_near(const knowledge::near_search& wanted,
                std::vector<knowledge::neighbour>& found) const;

 private:
  struct led_context : tuned_context {
    bool waits = false;
  };

  context_start described(const describing& describe) const;
  std::unique_ptr<select::policy> policy_of(const context_start& s, int context) const;
  int nearest_context(const tuned_context& c) const;
  std::vector<select::arm_prior> recalled(const context_start& s,
                                          const std::vector<select::arm_prior>& plain,
                                          double octaves_away) const;
  std::unique_ptr<select::policy> policy_of_all_sizes(const context_start& s,
                                                      select::policy_input plain,
                                                      std::unique_ptr<select::policy> first) const;
  void complain(std::string_view before, std::string_view problem, std::string_view after);
  std::int64_t bytes_of(int context) const;
  bool is_worth_telling(int context) const;
  select::context_statistics statistics_of(int context) const;

  std::string communicator_;
  complaint without_policy_;
  int ranks_per_node_ = 1;
  std::string rails_;
  const machine_model* machine_;
  const profile* profile_ = nullptr;
  // The guard protects these members.
  std::vector<led_context> contexts_;  // by number, if they have a policy
  own_time own_time_;
};

}  // namespace railpass::internal
