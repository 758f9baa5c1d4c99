// SPDX-License-Identifier: BSL-1.0
//
// The tuned collectives of one communicator: how a call runs by its arm. Running calls is in
// session.cpp; the rest is in session_set_up.cpp, session_priors.cpp and session_reports.cpp.
// Which arm a call takes, and what is learnt, is in tuned_contexts.hpp.
#pragma once

#include "collectives/registry.hpp"
#include "lib/buffers/call_buffers.hpp"
#include "lib/buffers/device_memory.hpp"
#include "lib/call/call.hpp"
#include "lib/call/own_errors.hpp"
#include "lib/exec/cell_executor.hpp"
#include "lib/exec/phases.hpp"
#include "lib/exec/schedule_cache.hpp"
#include "lib/exec/transport_executor.hpp"
#include "lib/group/common_exclusions.hpp"
#include "lib/group/hosts.hpp"
#include "lib/runtime/halt_watch.hpp"
#include "lib/tuner/arm_table.hpp"
#include "lib/tuner/memory_slot.hpp"
#include "lib/tuner/plan_table.hpp"
#include "lib/tuner/recent_calls.hpp"
#include "lib/tuner/tuned_contexts.hpp"
#include "railpass/knowledge/quarantine.hpp"
#include "railpass/options.hpp"
#include "railpass/schedule/nodes.hpp"
#include "railpass/select/lockstep/exclusions.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace railpass {
struct settings;
}

namespace railpass::internal {

class checked_call;
class process;

class session final : slot_tenant {
 public:
  /// A session, or no session: the communicator then stays native, permanently or, if `postponed`,
  /// until it is asked again. If `error_code` is not MPI_SUCCESS, the user's call fails with this
  /// code (strict=on and settings that differ).
  struct outcome {
    std::unique_ptr<session> made;
    int error_code = MPI_SUCCESS;
    bool postponed = false;
  };

  /// Agrees on everything that must be equal on all ranks, and gets a lane of a base. Stays native
  /// unless `pays` is true on all ranks. `passed_s`: seconds per call so far on this rank; 0:
  /// unknown. `asked_for`: the program has called start_tuning, so any program may get a new base.
  /// `inside`: the call before which this happens, if any. Collective over `user`, an
  /// intra-communicator of at least 2 ranks. `values` must outlive the session.
  static outcome create(MPI_Comm user, const settings& values, process& owner, bool pays,
                        bool asked_for, double passed_s, std::optional<told_call> inside);

  session(const session&) = delete;
  session& operator=(const session&) = delete;
  ~session() = default;

  /// Runs a call that is eligible for tuning (see classify). Returns an MPI error code after the
  /// error handler has been called.
  int run(const call& c, const call_options& options);

  /// Earlier findings on calls with these arguments, which need no further checks; null: unknown.
  recent_call* recent(const call& c, const call_options& options) {
    if (!options.policy.empty()) return nullptr;
    return recent_.find(c, asks_for_arm(options) ? arms_.asked_by(options, c.op).number : 0);
  }
  /// Like run(), for a call that recent() has found.
  int run_again(call& c, recent_call& known);

  /// The arm of the last call; null before the first.
  const arm* last_arm() const { return last_arm_; }

  /// After a failure on this rank outside of a schedule: this rank does not know the call of the
  /// other ranks. Informs the other ranks; all calls fail from now on.
  void leave_others() { joint_.leave_others(); }
  bool has_failed() const { return joint_.has_failed(); }
  /// See joint_lockstep.
  bool conclude() { return joint_.conclude(); }
  /// The communicator ends on this rank. No call may follow. Local.
  void leave();

  /// No later call uses an algorithm in the calls that the exclusion names. On all ranks in the
  /// same call, or on no rank. Cannot fail.
  void exclude(const select::exclusion& e);

  /// From now on schedules run over rails instead of MPI's messages.
  void run_over(std::shared_ptr<rail_channel> messages);

  const tuned_contexts& contexts() const { return joint_; }

 private:
  // Makes everything that can fail on one rank alone.
  session(const settings& values, process& owner, int rank, int num_ranks, const std::string& name);

  struct rails_of_schedules {
    transport_rail rail;
    executor<transport_rail> runs;
    explicit rails_of_schedules(std::shared_ptr<rail_channel> messages)
        : rail(std::move(messages)), runs(rail) {}
  };

  struct memory_of_schedules {
    memory_slot slot;
    cell_executor runs;
    phases_executor phases;
    bool single_copy;  // on this host
    memory_of_schedules(const base_lane& lane, int number, slot_tenant& tenant, cell_regions room)
        : slot(lane, number, tenant, std::move(room)),
          runs(slot.regions(), lane.rank(), lane.has_core_per_rank()),
          single_copy(lane.of().shared->has_single_copy()) {}
  };

  // Finds which ranks share hosts. Cannot fail.
  void know_nodes(const base_mapping& at);
  void follow_plan();
  void keep_room_for_regions();
  // Whether schedules may run in the memory that the ranks of each host share, given a slot. Equal
  // on all ranks.
  bool may_share_memory(const base& of) const { return of.shared && nodes_.facts().most_ranks > 1; }
  // Uses a slot that has been taken, or a slot that an idle communicator gives up. Otherwise a
  // later call asks again. Collective; cannot fail.
  void begin_in_memory(int slot);
  [[gnu::noinline]] void ask_for_memory();
  // `slot` is -1 without a slot.
  void share_memory(int slot);
  void stay_without_memory();
  std::uint64_t calls() const override { return std::uint64_t(call_number_); }
  bool may_give_up_slot() const override { return !joint_.has_failed(); }
  void give_up_slot() override;
  // If the settings name rails, schedules run over these rails. Collective over `user`.
  void open_rails(MPI_Comm user, bool all_name_rails, bool none_names_rails);
  static bool asks_for_arm(const call_options& options) {
    return !options.arm.empty() || options.segment_bytes >= 0;
  }
  // Whether the call goes to the MPI library: after a failure, or because settings leave it out.
  // Equal on all ranks.
  bool goes_to_mpi(const call& c, const call_options& options) const;
  // Counts the call, and makes the merge steps that are due. False: no rank may wait for other
  // ranks.
  bool begin_call(const call& c);
  [[gnu::noinline]] void merge_steps();
  // The kernel refuses single copies to some rank: from this call on, no rank uses any.
  void give_up_single_copies();
  void say_copies_refused();
  int run_tuned(const call& c, std::uint8_t policy);
  int run_pinned(const call& c, const arm& a, std::uint64_t asked);
  int run_planned(const call& c);
  int run_by(const arm& a, const call& c, recent_call& known);
  bool is_watched(const select::timed_call& chosen) const;
  // Determines how a call by this arm runs, if known beforehand.
  [[gnu::noinline]] void prepare(recent_call& known, const call& c, const arm& a);
  void prepare_timed(recent_call& known, const call& c, const arm& a);
  int run_ready(const call& c, const recent_call& known);
  int leave_to_mpi(const call& c);
  // Rare work is not inlined, so that a converged call runs through little code.
  // Gets the first plan from rank 0 and takes it over. Returns an MPI error code.
  [[gnu::noinline]] int begin_context(const select::context_key& key, int context, const call& c,
                                      std::int64_t bytes);
  // The result of asking all ranks of an all_to_allv or all_to_allw, and the time of asking.
  struct asked_size {
    std::int64_t bytes = 0;  // of the rank that sends or receives the most
    std::int64_t longest_block = 0;
    double took_s = 0;
  };
  // Collective. Returns an MPI error code.
  int ask_size(const call& c, asked_size& all);
  [[gnu::noinline]] int run_sized(const call& c, select::context_key key);
  int run_chosen(const select::context_key& key, const select::context_id& id, const call& c,
                 const asked_size* asked);
  // Runs a call that is checked, or of which a time is measured.
  [[gnu::noinline]] int run_watched(const call& c, const arm& a, const select::timed_call& chosen,
                                    const asked_size* asked);
  // Measures the time of the call, or when the call ended.
  int run_timed(const call& c, const arm& a, const select::timed_call& chosen,
                const asked_size* asked);
  // Whether the arm that runs for `a` is the arm that the context has chosen.
  static bool is_chosen(const select::timed_call& chosen, const arm& a, const arm& runs);
  bool is_lost(const algorithm& a, const call& c) const;
  // Also checks the result: collective. On all ranks in the same call.
  int run_checked(const call& c, const arm& a, const select::timed_call& chosen,
                  const asked_size* asked);
  int add_up(checked_call& check);
  int find_missed(checked_call& check);
  // Judges the first run; if its result is wrong, runs other arms, until it is clear which results
  // are right. Collective. `code` and the result: MPI error codes.
  int judge(const call& c, checked_call& check, int code);
  // The first arm of another algorithm that may run the call; null: there is none.
  const arm* another_arm(const call& c, std::span<const arm* const> before) const;
  // Which arms gave wrong results.
  struct verdict {
    std::span<const arm* const> arms{};
    const arm* reference = nullptr;  // gave the right result; null: unknown
    int first_run = 0;               // of the first of the arms
  };
  // A wrong result of an arm, on the lowest rank that had one.
  struct wrong_result {
    static constexpr std::size_t most_name = 64;
    using word_array = std::array<std::uint64_t, 2 + most_name / sizeof(std::uint64_t)>;
    collective of = collective::broadcast;
    const arm* by = nullptr;
    int rank = -1;  // -1: unknown
    std::uint64_t first_byte = 0, bytes = 0;
    std::array<char, most_name + 1> host{};
    bool is_kept = false;  // for later runs
  };
  // Collective; false after a failure.
  bool find_wrong_rank(checked_call& check, int run, wrong_result& where);
  // No later call uses the arm, unless other arms gave wrong results on the same host. Collective.
  void blame(const call& c, checked_call& check, const verdict& v);
  // Says that the MPI library's operation is wrong. On rank 0.
  void accuse_operation(const call& c);
  std::string tell(const call& c, const wrong_result& w, const verdict& v) const;
  static std::string place_of(const wrong_result& w);
  knowledge::quarantined record_of(const call& c, const wrong_result& w) const;
  // The size for predictions; from this rank's own data if the size is not known to all ranks.
  std::int64_t bytes_to_expect(const call& c) const;
  void watch_own_time(const select::timed_call& chosen, double seconds);
  // For an arm that needs the longest block: determines padded_bytes_, or makes `runs` native.
  // `asked` is null if the ranks have not been asked in this call. Collective. Returns an MPI error
  // code.
  [[gnu::noinline]] int pad_blocks(const call& c, const arm*& runs, const asked_size* asked);
  int run_arm(const call& c, const arm& a, const asked_size* asked = nullptr);
  int run_on_host(const call& c, const arm& a);
  // The physical rank that is the schedule's first rank.
  int first_of(const call& c) const;
  shape shape_of(const call& c, const algorithm& a, const node_order* order) const;
  // The order of ranks that the call's schedule is for; null: rank order, starting at the root.
  const node_order* order_for(const call& c, const algorithm& a);
  int run_schedule(const call& c, const arm& a);
  // Runs with the buffers that are bound.
  int run_bound(const schedule& s);
  int run_in_memory(const schedule& s, const wait_watch& watch);
  [[gnu::noinline]] int run_by_messages(const schedule& s, const wait_watch& watch);
  template <class Work>
  int code_of(const Work& work);
  void explain(std::string_view reason);
  void explain_unlike(const std::string& what);
  template <class Messages>
  int run_over_messages(Messages& messages, const schedule& s, const wait_watch& watch);
  int raise(const call& c, int code) { return code == MPI_SUCCESS ? code : report(c, code); }
  [[gnu::cold]] int report(const call& c, int code);
  int raise(const call& c, own_error e) { return raise(c, internal::code_of(e)); }
  calling_rank caller() const;
  std::uint8_t policy_index(std::string_view name);
  // On rank 0.
  select::plan_message first_plan(const select::context_key& key, int context, const call& c,
                                  std::int64_t bytes);
  // After a call of a context that has waited: makes its policy once the account allows tuning.
  void decide_at_last(int context, const call& c, std::int64_t bytes);
  context_start start_of(const select::context_key& key, const call& c, std::int64_t bytes) const;
  // Whether the context may stay native while the process' account allows no more tuning.
  bool may_wait(const select::context_key& key) const;
  std::vector<select::arm_prior> priors(const call& c, double bytes) const;
  bool eligible_here(const algorithm& a, const call& c) const;
  select::excludable_call excludable(const call& c) const;
  bool is_excluded(const algorithm& a, const call& c) const;
  [[gnu::noinline]] void say_nothing_is_left(const call& c) const;
  // Makes the exclusions those of all ranks. Collective. Returns an MPI error code.
  int unite_exclusions(const least_of_ranks& least);
  // After a synchronisation in which a rank told of exclusions from its other communicators.
  // Collective. After a failure, all later calls fail.
  void learn_exclusions();
  // The arm that runs a call for which `a` was chosen: `a`, or native if the call is not eligible
  // for `a`; if native is excluded, another arm. Equal on all ranks.
  const arm& arm_for(const call& c, const arm& a) const;
  [[gnu::noinline]] const arm& arm_without_exclusion(const call& c, const arm& a) const;
  // Without native: the arm that predictions say is fastest; null: no arm is eligible.
  std::optional<int> fastest_own_arm(const call& c, std::int64_t bytes) const;
  // Other ranks may wait for data that this rank still has to send over rails; false: rails failed.
  bool keep_rails_on();
  void record_failure_of_rails();
  void trace(const call& c, const select::timed_call& chosen, double started_s, double seconds);
  static void tell_wait(void* self, std::span<const awaited_peer> peers, double waited_s);

  static constexpr std::size_t most_wrong_results = 8;
  static constexpr std::int64_t first_calls_without_memory = 1000;
  // For longer calls, the cost of determining everything again per call is negligible.
  static constexpr std::int64_t short_message_bytes = 16 * 1024;
  // The number of a pinned arm in contexts, as that arm may be missing in known_arms().
  static constexpr int pinned_arm = select::native_arm + 1;

  // Members that every call reads come first, on few cache lines, because other work empties the
  // cache between calls.
  std::int64_t call_number_ = 0;
  std::int64_t asks_for_memory_at_ = 0;  // number of a call; 0: never again
  const arm* last_arm_ = nullptr;
  process& process_;
  const settings& settings_;
  arm_table arms_;
  recent_calls recent_;
  bool times_pinned_ = false;         // times calls of pinned arms now and then; equal on all ranks
  std::unique_ptr<plan_table> plan_;  // null: the session learns
  tuned_contexts joint_;
  int rank_ = 0, num_ranks_ = 1;
  halt_watch::calls watched_;
  select::exclusions exclusions_;            // equal on all ranks
  std::vector<wrong_result> wrong_results_;  // so far, as all ranks know them
  node_order nodes_;
  node_order caches_;                                            // of one node
  std::shared_ptr<placement> room_for_nodes_, room_for_caches_;  // until nodes and caches are known
  std::uint32_t pins_run_ = 0;  // a bit for each collective whose arm of the setting `use` has run
  std::string reason_;          // of the last failure, if more is known than its code
  std::unique_ptr<rails_of_schedules> over_rails_;                  // none: over MPI's messages
  cell_regions room_for_regions_;                                   // needed by the next member
  std::optional<memory_of_schedules> in_memory_;                    // if all ranks share memory
  std::int64_t calls_without_memory_ = first_calls_without_memory;  // until the next request
  bool one_thread_ = false, was_evicted_ = false;                   // on all ranks
  schedule_cache schedules_;
  std::vector<std::string> policies_;  // 0: the setting's; other policies were named by calls
  call_buffers buffers_;
  std::int64_t padded_bytes_ = 0;  // of each block, in the call that runs
  host_copies host_copies_;
  std::int64_t last_timed_call_ = 0;  // rank 0 only
};

}  // namespace railpass::internal
