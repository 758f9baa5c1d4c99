// SPDX-License-Identifier: BSL-1.0
//
// The lockstep of a communicator's ranks with all that it needs of MPI: a lane for the messages of
// its merges and first plans, and what ranks tell each other when one of them fails. Collectives
// and function sets decide by it.
#pragma once

#include "lib/call/call.hpp"
#include "lib/call/own_errors.hpp"
#include "lib/exec/mpi_executor.hpp"
#include "lib/group/base.hpp"
#include "lib/group/failure_words.hpp"
#include "lib/group/merge_messages.hpp"
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

class process;

std::string name_of_communicator(MPI_Comm comm);

class joint_lockstep {
  // As under guard(), but without a lock's own bookkeeping where there is none to take.
  template <class Work>
  auto guarded(const Work& work) {
    if (!is_shared_) [[likely]]
      return work();
    const std::lock_guard lock(mutex_);
    return work();
  }

 public:
  /// `subject`: what records call whose calls these are. Makes all that can fail on one rank alone;
  /// connect() does not. `values` must outlive it.
  joint_lockstep(const settings& values, process& owner, int rank, int num_ranks,
                 std::string subject);
  joint_lockstep(const joint_lockstep&) = delete;
  joint_lockstep& operator=(const joint_lockstep&) = delete;

  /// Once, before the first call: the lane of that number, which has been taken. A rank that is
  /// alone needs none.
  void connect(base_place place, int lane_number, std::uint64_t name);

  /// Once, after connect(): what a call costs the program can be told if all ranks have the same
  /// clock, or have agreed on one.
  void measure_together(bool same_clock);

  int rank() const { return rank_; }
  int num_ranks() const { return num_ranks_; }
  const base_lane& lane() const { return *lane_; }
  /// For rails that are opened for these ranks, which may outlive this.
  mpi_place place_of_rails() const {
    return {.comm = lane_->of().comm,
            .ranks = lane_->ranks(),
            .first_tag = lane_->first_tag() + base_lane::first_rails_tag,
            .owner = lane_};
  }

  // ---- a call

  /// Counts it: whether steps of a merge are due in it, which merge_steps() makes. After a failure
  /// it waits until the ranks know in which call they are native.
  [[gnu::hot]] bool begin_call() {
    if (stops_) [[unlikely]]
      stop();
    return guarded([this] { return steps_.begin_call(); });
  }
  /// What the call is, so that a rank which waits in it can tell.
  void tell(const call& c) {
    told_.add({.number = steps_.calls(), .bytes = c.message_bytes, .root = c.root, .op = c.op});
  }
  void merge_steps();
  [[gnu::hot]] select::timed_call next_call(const select::context_id& id) {
    return guarded([&] { return steps_.next_call(id); });
  }
  /// Where next_call() said that the context needs one: takes over the first plan, which is
  /// `message` on rank 0. Collective; returns an MPI error code.
  int begin_context(int context, select::plan_message message);
  /// Leaves the AND over all ranks in these words, at most most_agreed. Collective, of ranks with
  /// failures, too, so that all ranks know the same. Returns an MPI error code: this rank has left
  /// the others, or another one has.
  int agree(std::span<std::uint64_t> words);
  static constexpr std::size_t most_agreed = 16;
  /// Leaves the largest one of all ranks' values, which are not negative. Otherwise as agree().
  int find_largest(std::int64_t& value);
  /// As lockstep's.
  bool asks_size(const select::context_id& of_all_sizes) {
    return guarded([&] { return steps_.asks_size(of_all_sizes); });
  }
  /// Of a call that next_call() has chosen, before record().
  void note_size(const select::timed_call& chosen, const select::rank_size& size) {
    guarded([&] { steps_.note_size(chosen, size); });
  }
  /// What next_call() has chosen has run.
  void record(const select::timed_call& chosen, double started_s, double ended_s, bool gave_core,
              select::rank_role role);

  /// Before begin_call(), of that collective: the call before may count until now.
  [[gnu::hot]] void come_to(collective op) {
    if (steps_.awaits_next()) [[unlikely]]
      note_next(op);
  }

  // ---- failures

  /// This rank's part of a call has failed. What it did not send others wait for, in this call or
  /// in a later one: so all are told, and every call that needs all of them fails wherever that is
  /// known. From the next call on that no rank has begun, all are native; see
  /// select/lockstep/fallback.hpp. `why`: what these calls fail with, rank_failed or unlike.
  void fail(own_error why = own_error::rank_failed);
  /// What call the others are in is unknown, or this rank makes none any more in which others would
  /// need it: they are told, and all calls fail from now on.
  void leave_others();
  bool has_failed() const { return failed_; }
  bool is_gone() const { return gone_; }
  /// What calls fail with then, on this rank.
  own_error failure() const { return failure_; }
  /// Whether no call of this rank can be made with the others by now.
  bool is_lost() const {
    return gone_ || (failure_ == own_error::unlike && !steps_.native_for_good());
  }
  /// While this rank waits: what others have told is heard, and the companion goes on.
  void keep_on();
  /// Goes on whenever this rank waits; false: it has failed.
  void accompany(std::function<bool()> companion) { companion_ = std::move(companion); }

  /// The communicator ends, on each rank when it comes to that: takes over what a merge under way
  /// has brought, and waits for nobody. No call may follow. Local.
  void leave();

  // ---- what is behind it

  /// Held while others might see a change; never while a message is waited for, nor while the
  /// process is asked for something.
  std::unique_lock<std::mutex> guard() const {
    return is_shared_ ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }
  select::lockstep& steps() { return steps_; }
  const select::lockstep& steps() const { return steps_; }
  /// Runs schedules over MPI's messages, from connect() on.
  executor<mpi_rail>& over_mpi() { return over_mpi_->runs; }
  /// See mpi_rail, of these.
  const std::string& unlike() const { return over_mpi_->rail.unlike(); }
  /// When a wait is first to be told, as the next one does.
  double patience_s() const { return patience_s_; }
  /// This rank has waited for these so long in its present call, while it is doing that: tells them
  /// what call it is, and after the time of the setting says so.
  void tell_wait(std::string_view doing, std::span<const awaited_peer> peers, double waited_s);
  /// This rank has found out how the calls of the ranks differ.
  void differ(std::string how);
  /// How they differ, if failure() is `unlike` and this rank has found out otherwise than by what
  /// another one handed over.
  const std::string& why_unlike() const { return why_unlike_; }

 private:
  struct mpi_of_schedules {
    mpi_rail rail;
    executor<mpi_rail> runs;
    explicit mpi_of_schedules(const base_lane& over)
        : rail(over.of().comm, &over.ranks(), over.first_tag()), runs(rail) {}
  };

  // From rank 0 to all. Messages of a tag of their own: what schedules that failed have left behind
  // is none of them. The words live until the messages have left, whatever happens.
  int hand_down(std::span<std::int32_t> words, std::string_view doing);
  // Leaves in these words what `combine` makes of all ranks' words.
  template <class Combine>
  int reduce_to_all(std::span<std::uint64_t> words, std::string_view doing, const Combine& combine);
  int send_to(int peer, std::span<std::int32_t> words, std::string_view doing);
  int receive_from(int peer, std::span<std::int32_t> words, std::string_view doing);
  [[gnu::noinline]] void note_next(collective op);
  void note_merge(int code, bool mismatch);
  void hear();
  void note_failure(own_error why);
  [[gnu::noinline, gnu::cold]] void stop();
  // `told`: a rank of which it is said that this one waits for it; null: for whom is not known.
  int wait_for(MPI_Request& request, MPI_Status& status, std::string_view doing,
               const awaited_peer* told = nullptr);
  void hear(std::int32_t from, const told_call& theirs);

  // What every call reads comes first, on few cache lines.
  bool failed_ = false;  // what needs all ranks fails
  bool gone_ = false;    // so do all calls: a rank makes none any more
  bool stops_ = false;   // after a failure, before each call until all are native
  own_error failure_ = own_error::rank_failed;
  bool is_shared_ = false;  // another thread may ask for statistics
  select::lockstep steps_;
  mutable std::mutex mutex_;
  process& process_;
  const settings& settings_;
  double patience_s_ = 0;
  int rank_ = 0, num_ranks_ = 1;
  std::string subject_;
  std::function<bool()> companion_;
  // On several ranks.
  std::shared_ptr<base_lane> lane_;
  std::unique_ptr<merge_messages> merges_;
  std::optional<mpi_of_schedules> over_mpi_;
  select::plan_message plan_{};  // the last first plan; MPI may write to it after a failure
  failure_words words_;
  select::tree_place tree_;
  std::array<std::uint64_t, most_agreed> agreed_{}, childs_{};
  told_calls told_;
  std::string why_unlike_;
};

}  // namespace railpass::internal
