// SPDX-License-Identifier: BSL-1.0
//
// Decides which versions calls of function sets take: on a communicator, for one set, or for all
// sets of a region. The lockstep, its messages and its policies are those of collectives.
#pragma once

#include "lib/group/hosts.hpp"
#include "lib/tuner/beginning.hpp"
#include "lib/tuner/joint_lockstep.hpp"
#include "railpass/base/settings.hpp"
#include "railpass/detail/set_call.hpp"
#include "railpass/knowledge/near.hpp"
#include "railpass/knowledge/set_kind.hpp"
#include "railpass/select/statistics/dump.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace railpass::internal {

class process;

/// What all ranks of a communicator know alike of a set.
struct set_definition {
  struct version {
    std::string name;
    std::vector<attribute_value> values;
  };
  std::string name;
  std::vector<std::string> attributes;
  std::vector<version> versions;
};

/// What calls share a decision.
struct set_context {
  std::shared_ptr<const set_definition> of;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> features;
  feature_distance distance;
  std::string policy;
  std::vector<std::string> without;  // names of versions
  std::vector<double> lags;          // of versions; empty: all are alike
  int pinned = -1;                   // the version that all calls take; -1: none

  /// How far apart features are is the set's, and no mark of its calls, nor are lags and the pinned
  /// version.
  bool operator==(const set_context& o) const {
    return of == o.of && shape == o.shape && features == o.features && policy == o.policy &&
           without == o.without;
  }
  bool can_take(int version) const {
    return std::ranges::find(without, of->versions[std::size_t(version)].name) == without.end();
  }
};

/// A choice, and what its time is recorded by.
struct set_choice {
  select::timed_call call;
  std::int64_t round = 0;
};

class set_decider {
 public:
  /// `subject`: what records call it. `region`: the one whose times teach; empty: calls teach.
  /// Local: nothing is decided before it has begun.
  set_decider(MPI_Comm comm, const settings& values, process& owner, std::string subject,
              std::string region);

  /// Begins. Collective over `comm`; throws error on all ranks alike.
  void begin(MPI_Comm comm);
  /// The same where more is made in the agreement `by`, of several ranks: what may fail on one rank
  /// alone, which throws; and, once they have agreed, the rest. Collective.
  void make_part();
  std::optional<beginning::refusal> take_place(beginning& by);

  /// Whether anything is learnt: not where railpass is switched off, or the ranks have no lane.
  bool tunes() const { return joint_ != nullptr; }
  /// If it tunes.
  joint_lockstep& joint() { return *joint_; }
  /// Whether calls of pinned versions are timed; the same on all ranks.
  bool times_pinned() const { return times_pinned_; }

  /// Counts a call, or an entry of a region, before it chooses. Throws error if a rank has left.
  void begin_call();
  /// The context's number, found or made; where there are too many the nearest one's, -1 if none is
  /// near. In the calls that make one all ranks are to be here. Throws error as begin_call().
  int context_of(const set_context& wanted);
  /// Makes what context_of() would allocate, before others may wait for this rank. Local; throws
  /// std::bad_alloc.
  void prepare(const set_context& wanted);
  /// Which version the context's next call takes.
  set_choice next_call(int context);
  /// What it takes where another context of the region has its turn.
  int incumbent(int context) const;
  /// Local.
  void record(const set_choice& chosen, double started_s, double ended_s);
  double share(int context, int version) const;

  /// The version that has settled; -1: none has.
  int settled(int context) const;

  /// A version has thrown here.
  void leave_others();
  /// As joint_lockstep's.
  void leave();
  bool has_failed() const { return joint_ && joint_->has_failed(); }
  void add_statistics(select::statistics_dump& dump) const;
  /// Of contexts that say something of this problem.
  void add_contexts_like(const knowledge::problem& of, select::statistics_dump& dump) const;
  /// What was learnt of near features, of the nearest ones if there are many; see
  /// knowledge::near().
  void add_near(const knowledge::problem& of, const feature_distance& by,
                std::vector<knowledge::neighbour>& found) const;
  const std::string& communicator() const { return communicator_; }

 private:
  std::optional<knowledge::set_kind> kind_here(const knowledge::problem& of) const;
  select::context_statistics statistics_of(int context) const;
  void know_machine();
  select::plan_message first_plan(int context);
  std::unique_ptr<select::policy> make_policy(int context) const;
  knowledge::problem problem_of(const set_context& c) const;
  std::uint32_t number_of(const set_context& c) const;
  /// What tells contexts of a set apart, in dumps and knowledge.
  std::string kind_of(const set_context& c) const {
    return knowledge::set_kind{c.shape, c.features, region_}.text();
  }
  const std::string& policy_of(const set_context& c) const {
    static const std::string fixed = "fixed";
    return c.pinned >= 0 ? fixed : c.policy.empty() ? settings_.policy : c.policy;
  }
  int nearest_context(const set_context& wanted) const;
  void check() const;

  process& process_;
  settings settings_;
  std::string subject_, region_, communicator_;
  int rank_ = 0, num_ranks_ = 1;
  host_counts hosts_;  // rank 0 only
  std::unique_ptr<joint_lockstep> joint_;
  bool times_pinned_ = false;
  std::vector<set_context> contexts_;  // in the lockstep's order
  std::vector<select::context_id> ids_;
  std::optional<set_context> prepared_;
  std::uint32_t prepared_number_ = 0;
  std::int64_t round_ = 0;  // of merges: samples chosen before one are not of the next
};

}  // namespace railpass::internal
