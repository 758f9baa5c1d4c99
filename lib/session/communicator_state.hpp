// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/session/process.hpp"
#include "lib/session/session.hpp"
#include "railpass/select/beginning.hpp"

#include <memory>
#include <string>
#include <vector>

namespace railpass {

/// What railpass keeps with a communicator of the user, as its attribute: from its first call on
/// until it is freed. Made and destroyed without communication.
class communicator_state {
 public:
  /// The state of a communicator, made now if need be. Null if there is none: MPI is not running,
  /// or `comm` is MPI_COMM_NULL or no communicator. Only then `code` is an error code, and the
  /// error handler has been called. Throws std::bad_alloc.
  static communicator_state* of(MPI_Comm comm, int& code);
  /// The delete callback of the attribute.
  static int on_free(MPI_Comm comm, int key, void* value, void* extra);

  /// Runs a call whose arguments have been checked. Returns an MPI error code after the error
  /// handler has been called.
  int run(const call& c, const call_options& options);

  /// Whether all calls go to the MPI library, now and for ever.
  bool native() const { return native_; }
  int rank() const { return rank_; }
  int num_ranks() const { return num_ranks_; }

  /// After a failure on this rank.
  void stay_native() {
    native_ = true;
    if (session_) session_->abandon();
  }

  /// Makes the session now. Collective.
  int start_tuning(MPI_Comm comm) { return agree(comm, true, 0); }

  void configure(std::string_view setting, std::string_view value);
  std::string last_arm() const;

  void finish_merge() {
    if (session_) session_->finish_merge();
  }
  void add_statistics(select::statistics_dump& dump) const;

 private:
  communicator_state(MPI_Comm comm, process& owner);
  ~communicator_state() = default;

  /// Makes the session if all ranks find that it pays; see session::create. Collective.
  int agree(MPI_Comm comm, bool pays, double passed_s);

  process& process_;
  bool native_ = false;
  int rank_ = 0;
  int num_ranks_ = 1;
  select::beginning beginning_;
  /// Memory that is there before others may wait for this rank; see session::create.
  std::vector<std::int64_t> agreement_;
  bool agreed_ = false;
  std::unique_ptr<session> session_;
  settings settings_;
};

}  // namespace railpass
