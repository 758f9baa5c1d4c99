// SPDX-License-Identifier: BSL-1.0
//
// Regions: stretches of code, such as an iteration of a solver, whose total time decides which
// versions the function sets inside use (railpass/function_set.hpp). The fastest version of one
// operation may be slower where operations overlap: a longer exchange may leave more time to the
// computation beside it.
//
//     railpass::region solve("solve", comm);
//     for (...) {
//       auto timed = solve.enter();
//       halo();
//       step(field);
//     }
#pragma once

#include "railpass/base/error.hpp"

#include <mpi.h>

#include <memory>
#include <string>

namespace railpass {

namespace internal {
class region_state;
}

namespace detail {

/// The regions that this thread has entered, the innermost first.
struct entered_region {
  std::shared_ptr<internal::region_state> region;
  entered_region* outer = nullptr;
  static thread_local entered_region* innermost;
};

}  // namespace detail

/// A region of code. Objects of one name on one communicator are the same region. A region is
/// entered by one thread at a time.
///
/// The region's time tunes the function sets called in the region whose communicators have the same
/// ranks; the sets' own call times are then not used. One set at a time tries versions, for a few
/// entries in a row, while the other sets use their current version. The cost of tuning is
/// therefore the sum over the sets. Tuning finds the best version beside the current versions of
/// the other sets; no search covers pairs of versions. Function sets of other communicators, and
/// collectives, are tuned by their own times.
class region {
 public:
  /// Creates a region that all ranks of `comm` enter together, with the same calls inside.
  /// Collective over `comm`.
  /// @param name as in function_set
  /// @param comm an intra-communicator
  /// @throws railpass::error on every rank if a name is invalid or the ranks' names differ
  region(std::string name, MPI_Comm comm);
  /// Creates a region of one rank, for the rank's own sets. Local, between MPI_Init and
  /// MPI_Finalize.
  explicit region(std::string name) : region(std::move(name), MPI_COMM_SELF) {}

  /// A stay in the region, from enter() until the object is destroyed, on the same thread. Nested
  /// regions end in the reverse order of their start. A stay that an exception ends is not timed.
  /// Entering a region again inside itself adds nothing; inside another region, the inner region
  /// tunes its sets.
  class [[nodiscard]] entry {
   public:
    ~entry();
    entry(const entry&) = delete;
    entry& operator=(const entry&) = delete;

   private:
    friend class region;
    explicit entry(const std::shared_ptr<internal::region_state>& of);
    detail::entered_region stay_;
    int exceptions_;
  };
  /// Starts a stay in the region.
  /// @throws railpass::error if another rank has left because a version threw an exception
  entry enter() { return entry(state_); }

 private:
  std::shared_ptr<internal::region_state> state_;
};

}  // namespace railpass
