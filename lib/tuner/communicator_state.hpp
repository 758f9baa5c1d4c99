// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/runtime/process.hpp"
#include "lib/sets/function_sets.hpp"
#include "lib/sets/neighbor_set.hpp"
#include "lib/tuner/session.hpp"
#include "railpass/select/lockstep/beginning.hpp"

#include <array>
#include <memory>
#include <string>

namespace railpass::internal {

/// What railpass keeps with a communicator of the user, as its attribute: from its first call on
/// until it is freed. Made and destroyed without communication.
class communicator_state {
 public:
  /// The state of a communicator, made now if need be. Null if there is none: MPI is not running or
  /// ends, `comm` is being freed, or it is MPI_COMM_NULL or no communicator. Only then `code` is an
  /// error code, and the error handler has been called. Throws std::bad_alloc.
  static communicator_state* of(MPI_Comm comm, int& code);

  /// While one of these lives, the program is freeing a communicator: its last calls, which delete
  /// callbacks may make, are the MPI library's on all ranks, whichever attribute is deleted first.
  class freeing {
   public:
    explicit freeing(MPI_Comm comm);
    ~freeing();
    freeing(const freeing&) = delete;
    freeing& operator=(const freeing&) = delete;
    /// Whether this thread is just freeing that one.
    static bool now(MPI_Comm comm);

   private:
    MPI_Comm comm_;
    freeing* outer_;  // a delete callback may free another one
  };
  /// The delete callback of the attribute.
  static int on_free(MPI_Comm comm, int key, void* value, void* extra);

  /// Runs a call whose arguments have been checked. Returns an MPI error code after the error
  /// handler has been called.
  int run(const call& c, const call_options& options);
  /// The same of a call that this finds to be known: its arguments need not be checked.
  recent_call* recent(const call& c, const call_options& options) {
    return session_ ? session_->recent(c, options) : nullptr;
  }
  int run_again(call& c, recent_call& known) { return session_->run_again(c, known); }
  /// Runs a call between neighbours, right or wrong.
  int run(const neighbor_call& c) { return neighbor_sets_[std::size_t(c.op)].run(c, *this); }

  /// Whether all calls go to the MPI library, now and for ever.
  bool native() const { return native_; }
  int rank() const { return rank_; }
  int num_ranks() const { return num_ranks_; }

  /// After a failure on this rank in a call.
  void leave_others();
  void leave_others(neighbor_function in) { neighbor_sets_[std::size_t(in)].leave_others(); }

  /// Makes the session now. Collective.
  int start_tuning(MPI_Comm comm) { return agree(comm, true, true, 0, {}); }

  /// Function sets and regions over it; whoever adds one holds the statistics of the process.
  function_sets& sets() { return sets_; }
  const settings& values() const { return settings_; }
  /// Whether settings ask for more than what gains most: particular arms, other ways to choose
  /// them.
  bool is_particular() const;

  void configure(std::string_view setting, std::string_view value);
  std::string last_arm() const;

  /// The communicator or MPI ends: takes over what has been learnt. From now on all calls are
  /// native. Local.
  void leave();
  /// After leave().
  void drop_session();
  void add_statistics(select::statistics_dump& dump) const;
  /// Of contexts that say something of this problem; of a leader.
  void add_contexts_like(const knowledge::problem& of, select::statistics_dump& dump) const;

 private:
  communicator_state(MPI_Comm comm, process& owner);
  // Apart from of(), which every call goes through.
  [[gnu::noinline]] static communicator_state* find_or_make(MPI_Comm comm, process& owner,
                                                            int& code);
  ~communicator_state() = default;

  /// Whether so much is at stake in this call that the session is made at once: on all ranks, if
  /// their calls are alike. Once: later agreements are the usual ones.
  bool begins_at_once(const call& c);
  /// Makes the session if all ranks find that it pays; see session::create. Collective.
  int agree(MPI_Comm comm, bool pays, bool asked_for, double passed_s,
            std::optional<told_call> inside);

  process& process_;
  bool native_ = false;
  int rank_ = 0;
  int num_ranks_ = 1;
  select::beginning beginning_;
  bool agreed_ = false;
  bool began_at_once_ = false;
  std::unique_ptr<session> session_;
  settings settings_;
  function_sets sets_;
  std::array<neighbor_set, neighbor_function_names.size()> neighbor_sets_;
};

}  // namespace railpass::internal
