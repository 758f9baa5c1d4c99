// SPDX-License-Identifier: BSL-1.0
//
// The transport of a communicator over real rails, shared by all who send over it, and how they
// wait.
#pragma once

#include "lib/rails/registry.hpp"
#include "railpass/transport/transport.hpp"

#include <mpi.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

namespace railpass {

/// Several threads may use it.
class open_transport {
 public:
  /// Opens the rails of the list between all ranks of `comm`, which nobody else uses and which must
  /// live until the end. Collective; throws error on all ranks alike.
  open_transport(MPI_Comm comm, const std::string& rails, const std::string& strategy);

  int num_ranks() const { return num_ranks_; }
  /// What it was opened with.
  const std::string& rails() const { return names_; }

  /// Works with the transport; nobody else does meanwhile.
  template <class Work>
  auto with(const Work& work) {
    const std::lock_guard lock(mutex_);
    return work(*transport_);
  }

  /// Blocks until `done` says so of the transport, or the deadline is over; which of these. Throws
  /// error if the rails have failed.
  template <class Done>
  bool wait(const Done& done, double deadline_s = 0) {
    for (int empty = 0;; ++empty) {
      {
        const std::lock_guard lock(mutex_);
        if (done(*transport_)) return true;
        if (transport_->progress()) empty = 0;
      }
      if (deadline_s > 0 && empty > 0 && steady_clock_s() > deadline_s) return false;
      give_way(empty);
    }
  }

  /// Nothing has moved `empty` times in a row: keeps on looking for a while, which is the shorter
  /// the less often that was worth it, then gives the core away, then sleeps until something comes,
  /// for at most 200 us, and lets MPI advance once.
  /// Others may need that; and a rail that advances only while it is polled keeps this from
  /// sleeping.
  void give_way(int empty);

  /// Ends it, as all ranks do: waits until they are all there and all messages have left. True once
  /// that is so. Throws error if it cannot end, or has not 10 s after all were there; then the
  /// communicator must not be freed.
  bool close_step();
  /// The same, blocking.
  void close();

 private:
  enum class phase { open, gathering, parting, closed };

  MPI_Comm comm_;
  int num_ranks_ = 1;
  std::string names_;
  std::mutex mutex_;
  std::optional<transport::transport> transport_;
  bool can_sleep_ = true;
  std::atomic<int> patience_{512};  // polls of which nothing came before it sleeps
  std::atomic<phase> phase_{phase::open};
  MPI_Request gathered_ = MPI_REQUEST_NULL;
  double deadline_s_ = 0;
};

}  // namespace railpass
