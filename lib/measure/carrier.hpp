// SPDX-License-Identifier: BSL-1.0
//
// How the messages that are measured travel: as MPI's own, or over the networks that collectives
// have (RAILPASS_RAILS), whose times are others.
#pragma once

#include "railpass/rails.hpp"

#include <mpi.h>

#include <string>
#include <vector>

namespace railpass::internal::measure {

/// Messages between the ranks of MPI_COMM_WORLD.
class carrier {
 public:
  /// `rails` is empty for MPI's own messages. Collective over MPI_COMM_WORLD; throws error on all
  /// ranks if the rails are not there.
  explicit carrier(const std::string& rails);
  carrier(const carrier&) = delete;
  carrier& operator=(const carrier&) = delete;
  ~carrier();

  bool over_rails() const { return over_rails_; }

  void send(const char* from, std::int64_t bytes, int to, int tag);
  void receive(char* into, std::int64_t bytes, int from, int tag);
  /// Ends when the receiver has asked for the message. Over rails that goes without saying, for
  /// messages beyond the eager limit.
  void send_synchronous(const char* from, std::int64_t bytes, int to, int tag);
  /// Sends and receives at once.
  void exchange(const char* out, int to, char* in, int from, std::int64_t bytes, int tag);

 private:
  friend class in_flight;
  MPI_Comm comm_ = MPI_COMM_WORLD;
  bool over_rails_ = false;
};

/// Messages under way.
class in_flight {
 public:
  explicit in_flight(carrier& c) : carrier_(c) {}
  void send(const char* from, std::int64_t bytes, int to, int tag);
  void receive(char* into, std::int64_t bytes, int from, int tag);
  /// Until all have ended.
  void wait();
  /// Whether all have ended.
  bool test();

 private:
  carrier& carrier_;
  std::vector<MPI_Request> requests_;
  std::vector<mpi::message> messages_;
};

}  // namespace railpass::internal::measure
