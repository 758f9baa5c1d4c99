// SPDX-License-Identifier: BSL-1.0
//
// The lockstep of a communicator's ranks with its MPI parts: a lane for messages of merges and
// first plans, and messages about failures. The rules are in railpass/select/lockstep.
#pragma once

#include "lib/call/call.hpp"
#include "lib/call/own_errors.hpp"
#include "lib/exec/mpi_executor.hpp"
#include "lib/group/base.hpp"
#include "lib/group/failure_words.hpp"
#include "lib/group/merge_messages.hpp"
#include "lib/tuner/agreement_round.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/select/lockstep/lockstep.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

namespace railpass {
struct settings;
}

namespace railpass::internal {

class host_ledger;
class process;

class joint_lockstep {
  // Like guard(), without the cost of a lock that is not needed.
  template <class Work>
  auto guarded(const Work& work) {
    if (!is_shared_) [[likely]]
      return work();
    const std::lock_guard lock(mutex_);
    return work();
  }

 public:
  /// `subject`: the owner of the calls, in records. Makes everything that can fail on one rank
  /// alone; connect() cannot fail. `values` must outlive this object.
  joint_lockstep(const settings& values, process& owner, int rank, int num_ranks,
                 std::string subject);
  joint_lockstep(const joint_lockstep&) = delete;
  joint_lockstep& operator=(const joint_lockstep&) = delete;

  /// Call once, before the first call, with a lane that has been taken. Not needed by a rank that
  /// is alone.
  void connect(base_mapping mapping, int lane_number, std::uint64_t name);

  /// Call once, after connect(). The cost of a call for the program can be measured if all ranks
  /// have the same clock or have agreed on a clock.
  void measure_together(bool same_clock);

  /// Call once, after measure_together(), on all ranks or on no rank: timed calls are entered into
  /// `kept`, which must outlive this object. The ranks must be all of MPI_COMM_WORLD.
  void keep_ledger(host_ledger& kept);

  int rank() const { return rank_; }
  int num_ranks() const { return num_ranks_; }
  const base_lane& lane() const { return *lane_; }
  /// For rails that are opened for these ranks and that may outlive this object.
  mpi_tags tags_of_rails() const {
    return {.comm = lane_->of().comm,
            .ranks = lane_->ranks(),
            .first_tag = lane_->first_tag() + base_lane::first_rails_tag,
            .owner = lane_};
  }

  // ---- a call

  /// Counts the call. Returns whether steps of a merge are due, which merge_steps() makes. After a
  /// failure, waits until the ranks know in which call they are native.
  [[gnu::hot]] bool begin_call() {
    if (steps_.standing() == select::standing::stopping) [[unlikely]]
      stop();
    return guarded([this] { return steps_.begin_call(); });
  }
  /// Describes the call for reports of a rank that waits inside.
  void tell(const call& c) {
    told_.add({.number = steps_.calls(), .bytes = c.message_bytes, .root = c.root, .op = c.op});
  }
  void merge_steps();
  [[gnu::hot]] select::timed_call next_call(const select::context_id& id) {
    return guarded([&] { return steps_.next_call(id); });
  }
  /// If next_call() asks for a first plan: takes over the plan, which is `message` on rank 0.
  /// Collective; returns an MPI error code.
  int begin_context(int context, select::plan_message message);
  /// Replaces at most most_agreed words by their AND over all ranks. Collective; ranks with
  /// failures take part, so that all ranks know the result. Returns an MPI error code if this rank
  /// or another rank has left.
  int agree(std::span<std::uint64_t> words);
  static constexpr std::size_t most_agreed = 16;
  /// Replaces words by the largest ones of all ranks. Otherwise like agree(). `doing`: for reports
  /// of a rank that waits.
  int find_largest(std::span<std::uint64_t> words, std::string_view doing);
  /// Replaces words by their sums over all ranks, modulo 2^64. Otherwise like agree().
  int add_up(std::span<std::uint64_t> words);
  /// See select::lockstep.
  bool asks_size(const select::context_id& of_all_sizes) {
    return guarded([&] { return steps_.asks_size(of_all_sizes); });
  }
  /// The size of a call that next_call() has chosen; call before record().
  void note_size(const select::timed_call& chosen, const select::rank_size& size) {
    guarded([&] { steps_.note_size(chosen, size); });
  }
  /// Records a call that next_call() has chosen and that has run.
  void record(const select::timed_call& chosen, double started_s, double ended_s, bool gave_core,
              select::rank_role role);

  /// Notes how much longer a call that next_call() has chosen took because it was checked; call
  /// after record().
  void note_check(const select::timed_call& chosen, double seconds) {
    guarded([&] { steps_.note_check(chosen, seconds); });
  }

  /// Call before begin_call() with its collective: the previous call's time may extend until now.
  [[gnu::hot]] void come_to(collective op) {
    if (steps_.awaits_next()) [[unlikely]]
      note_next(op);
  }

  // ---- failures

  /// This rank's part of a call has failed. Other ranks wait for data that this rank did not send,
  /// now or in a later call. So all ranks are informed, and every call that needs all ranks fails
  /// wherever the failure is known. All ranks are native from the next call on that no rank has
  /// begun: see select/lockstep/fallback.hpp. `why`: the error of these calls, rank_failed or
  /// unlike.
  void fail(own_error why = own_error::rank_failed);
  /// This rank does not know the call of the other ranks, or makes no further calls with them.
  /// Informs the other ranks; all calls fail from now on.
  void leave_others();
  bool has_failed() const { return failure_.has_value(); }
  bool is_gone() const { return steps_.standing() == select::standing::apart; }
  /// The error of calls on this rank after a failure.
  own_error failure() const { return failure_.value_or(own_error::rank_failed); }
  /// Whether this rank can make no further call with the other ranks.
  bool is_lost() const {
    return is_gone() || (failure_ == own_error::unlike && !steps_.native_for_good());
  }
  /// Call while this rank waits: receives messages about failures, and the companion goes on.
  void keep_on();
  /// `companion` runs whenever this rank waits; false: the companion has failed.
  void accompany(std::function<bool()> companion) { companion_ = std::move(companion); }

  /// Call before leave(), on all ranks, until true or for as long as this rank is patient: makes
  /// the last merge, as far as messages have come, without waiting.
  bool conclude();

  /// Ends the communicator on this rank: takes over what a pending merge has brought, and waits for
  /// no other rank. No call may follow. Local.
  void leave();

  // ---- what is behind it

  /// Held while other threads might see a change; never during a wait for a message or a request to
  /// the process.
  std::unique_lock<std::mutex> guard() const {
    return is_shared_ ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }
  select::lockstep& steps() { return steps_; }
  const select::lockstep& steps() const { return steps_; }
  /// Runs schedules over MPI's messages, from connect() on.
  executor<mpi_rail>& over_mpi() { return over_mpi_->runs; }
  /// See mpi_rail::unlike().
  const std::string& unlike() const { return over_mpi_->rail.unlike(); }
  /// Seconds of a wait after which it is first reported, by tell_wait().
  double patience_s() const { return patience_s_; }
  /// This rank has waited `waited_s` seconds for `peers` in its present call while `doing`. Sends
  /// the peers a description of the call, and reports the wait after the time in the settings.
  void tell_wait(std::string_view doing, std::span<const awaited_peer> peers, double waited_s);
  /// This rank has found how the calls of the ranks differ.
  void differ(std::string how);
  /// How the calls differ, if failure() is `unlike` and this rank found the difference otherwise
  /// than by what another rank handed over.
  const std::string& why_unlike() const { return why_unlike_; }

 protected:
  process& owner() const { return process_; }
  const settings& values() const { return settings_; }

 private:
  struct mpi_of_schedules {
    mpi_rail rail;
    executor<mpi_rail> runs;
    explicit mpi_of_schedules(const base_lane& over)
        : rail(over.of().comm, &over.ranks(), over.first_tag(), over.has_core_per_rank()),
          runs(rail) {}
  };

  // From rank 0 to all ranks, with a tag of its own, which messages of failed schedules do not
  // have. The words live until the messages have left, even after a failure.
  int hand_down(std::span<std::int32_t> words, std::string_view doing);
  // Replaces the words by what `combine`, in any order, makes of the words of all ranks.
  template <class Combine>
  int reduce_to_all(std::span<std::uint64_t> words, std::string_view doing, const Combine& combine);
  int exchange(const agreement_round& round, std::size_t size, std::string_view doing);
  int send_to(int peer, std::span<std::int32_t> words, std::string_view doing);
  int start_send(int peer, std::span<std::int32_t> words, MPI_Request& request);
  int end_send(int peer, MPI_Request& request, std::string_view doing);
  int receive_from(int peer, std::span<std::int32_t> words, std::string_view doing);
  int start_receive(int peer, std::span<std::int32_t> words, MPI_Request& request);
  int end_receive(int peer, MPI_Request& request, std::string_view doing);
  [[gnu::noinline]] void note_next(collective op);
  void note_merge(int code, bool mismatch);
  void hear();
  void take(select::turn what);
  void note_failure(own_error why);
  [[gnu::noinline, gnu::cold]] void stop();
  // `told`: the peer that is informed of this wait; null: the peer is unknown.
  int wait_for(MPI_Request& request, MPI_Status& status, std::string_view doing,
               const awaited_peer* told = nullptr);
  void hear(std::int32_t from, const told_call& theirs);

  // Members that every call reads come first, on few cache lines.
  std::optional<own_error> failure_;  // the first: calls that need all ranks fail since
  bool is_shared_ = false;            // another thread may ask for statistics
  select::lockstep steps_;
  mutable std::mutex mutex_;
  process& process_;
  const settings& settings_;
  double patience_s_ = 0;
  int rank_ = 0, num_ranks_ = 1;
  std::string subject_;
  std::function<bool()> companion_;
  // Only with several ranks.
  std::shared_ptr<base_lane> lane_;
  std::unique_ptr<merge_messages> merges_;
  std::optional<mpi_of_schedules> over_mpi_;
  select::plan_message plan_{};  // the last first plan; MPI may write to it after a failure
  failure_words words_;
  select::tree_position tree_;
  using agreed_words = std::array<std::uint64_t, most_agreed>;
  // MPI may use all of them after a failure.
  agreed_words sent_{}, known_{};
  std::array<agreed_words, agreement_round::radix - 1> arrived_{};
  told_calls told_;
  std::string why_unlike_;
  host_ledger* ledger_ = nullptr;  // null: not kept
};

}  // namespace railpass::internal
