// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/runtime/process.hpp"
#include "lib/sets/function_sets.hpp"
#include "lib/sets/neighbor_set.hpp"
#include "lib/tuner/session.hpp"
#include "railpass/select/lockstep/beginning.hpp"
#include "railpass/select/lockstep/standing.hpp"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace railpass::internal {

/// State of railpass for a communicator of the user, kept as its attribute from the first call
/// until the communicator is freed. Made and destroyed without communication.
class communicator_state final : public known_communicator {
 public:
  /// The state of a communicator, made now if necessary. Null if MPI is not running or ends, if
  /// `comm` is being freed, or if it is MPI_COMM_NULL or invalid. Only in these last two cases
  /// `code` is an error code, and the error handler has been called. Throws std::bad_alloc.
  static communicator_state* of(MPI_Comm comm, int& code);

  /// During its life, the program is freeing a communicator. Delete callbacks may make last calls,
  /// which go to the MPI library on all ranks, whichever attribute is deleted first.
  class freeing {
   public:
    explicit freeing(MPI_Comm comm);
    ~freeing();
    freeing(const freeing&) = delete;
    freeing& operator=(const freeing&) = delete;
    /// The error of an invalid communicator, after its error handler has been called.
    int invalid() const { return invalid_; }
    /// Whether this thread is freeing `comm`.
    static bool now(MPI_Comm comm);

   private:
    MPI_Comm comm_;
    int invalid_ = MPI_SUCCESS;
    freeing* outer_ = nullptr;  // a delete callback may free a further communicator
  };
  /// The delete callback of the attribute.
  static int on_free(MPI_Comm comm, int key, void* value, void* extra);

  /// Runs a call whose arguments have been checked. Returns an MPI error code after the error
  /// handler has been called.
  int run(const call& c, const call_options& options);
  /// Like run(), for a known call, whose arguments need no check.
  recent_call* recent(const call& c, const call_options& options) {
    return session_ ? session_->recent(c, options) : nullptr;
  }
  int run_again(call& c, recent_call& known) { return session_->run_again(c, known); }
  /// Runs a call between neighbours, with valid or invalid arguments.
  int run(const neighbor_call& c) { return neighbor_sets_[std::size_t(c.op)].run(c, sets_); }

  /// Whether all calls go to the MPI library permanently.
  bool native() const { return select::is_native(standing_); }
  int rank() const { return rank_; }
  int num_ranks() const override { return num_ranks_; }

  /// After a failure on this rank in a call.
  void leave_others();
  void leave_others(neighbor_function in) { neighbor_sets_[std::size_t(in)].leave_others(); }

  /// Makes the session now. Collective.
  int start_tuning(MPI_Comm comm) { return agree(comm, true, true, 0, {}); }

  /// Function sets and regions. A thread that adds a set or region holds the statistics of the
  /// process.
  function_sets& sets() { return sets_; }
  const settings& values() const { return settings_; }

  void configure(std::string_view setting, std::string_view value);
  std::string last_arm() const;

  bool conclude() override;
  void leave() override;
  void drop() override;
  void add_statistics(select::statistics_dump& dump) const override;
  void add_contexts_like(const knowledge::problem& of,
                         select::statistics_dump& dump) const override;
  void add_near(const knowledge::near_search& wanted,
                std::vector<knowledge::neighbour>& found) const override;

 private:
  communicator_state(MPI_Comm comm, process& owner);
  // Separate from of(), which is part of every call.
  [[gnu::noinline]] static communicator_state* find_or_make(MPI_Comm comm, process& owner,
                                                            int& code);
  ~communicator_state() = default;

  /// Calls `visit` with the contexts of the collectives, and of each set and region.
  template <class Visit>
  void for_each_tuning(const Visit& visit) const {
    if (session_) visit(session_->contexts());
    sets_.for_each_tuning(visit);
  }

  bool is_left_out_of_plan(MPI_Comm comm) const;
  /// Whether the stakes of this call make the session at once: on all ranks, if their calls are
  /// equal. Only once; later agreements follow the usual rules.
  bool begins_at_once(const call& c);
  /// In the first call: whether the session must be made at once because some rank must not use the
  /// MPI library's own collectives. Collective, unless all ranks know that. Returns an MPI error
  /// code.
  int ask_for_native(const call& c, bool& any_excludes);
  /// Makes the session if it pays on all ranks; see session::create. Collective.
  int agree(MPI_Comm comm, bool pays, bool asked_for, double passed_s,
            std::optional<told_call> inside);

  void take(select::turn what) { standing_ = select::after(standing_, what); }

  process& process_;
  // As the communicator; the ranks' standing while it is tuned is in the session's lockstep.
  select::standing standing_ = select::standing::undecided;
  int rank_ = 0;
  int num_ranks_ = 1;
  select::beginning beginning_;
  bool began_at_once_ = false;
  std::unique_ptr<session> session_;
  settings settings_;
  function_sets sets_{.values = settings_, .sets = {}, .regions = {}};
  std::array<neighbor_set, neighbor_function_names.size()> neighbor_sets_;
};

/// The state of a communicator that can have sets and regions. Otherwise throws error whose message
/// begins with `subject`.
communicator_state& state_of(MPI_Comm comm, const std::string& subject);

}  // namespace railpass::internal
