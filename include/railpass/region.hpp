// SPDX-License-Identifier: BSL-1.0
//
// A stretch of code, such as an iteration of a solver, whose time as a whole decides which versions
// the function sets in it take (railpass/function_set.hpp). A version that is fastest alone may be
// slower where operations overlap: an exchange that takes longer may leave more of the time to the
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

/// The regions that this thread is in, the innermost first.
struct entered_region {
  std::shared_ptr<internal::region_state> region;
  entered_region* outer = nullptr;
  static thread_local entered_region* innermost;
};

}  // namespace detail

/// Regions of one name on one communicator are the same one. Sets that are called in it and whose
/// communicators have the same ranks are tuned by its time; their own calls teach nothing then.
/// One set at a time tries versions, for a few entries in a row, while the others take what is in
/// use: what learning costs is the sum over the sets. So a version is found that is the best one
/// beside what the other sets use; a pair of versions that only pays together is not looked for.
/// Sets of other communicators, and railpass' collectives, are tuned by themselves. A region is
/// entered by one thread at a time.
class region {
 public:
  /// All ranks of `comm`, an intra-communicator, enter it together and make the same calls in it.
  /// Collective; throws error on all ranks alike if the name is none (see function_set) or the
  /// ranks name different regions.
  region(std::string name, MPI_Comm comm);
  /// Of a rank by itself, for its own sets. Local, between MPI_Init and MPI_Finalize.
  explicit region(std::string name) : region(std::move(name), MPI_COMM_SELF) {}

  /// The region ends with this object, on its thread, and in the reverse order of other ones. Its
  /// time counts unless an exception ends it. A region within itself is part of the outer one;
  /// within another one, the inner one teaches its sets.
  class [[nodiscard]] entry {
   public:
    ~entry();
    entry(const entry&) = delete;
    entry& operator=(const entry&) = delete;

   private:
    friend class region;
    explicit entry(const std::shared_ptr<internal::region_state>& of);
    detail::entered_region place_;
    int exceptions_;
  };
  /// Throws error if another rank has left because a version threw an exception.
  entry enter() { return entry(state_); }

 private:
  std::shared_ptr<internal::region_state> state_;
};

}  // namespace railpass
