// SPDX-License-Identifier: BSL-1.0
//
// What the facade's headers share.
#pragma once

#include "railpass/mpi.hpp"

#include <boost/mpi/communicator.hpp>
#include <boost/mpi/datatype.hpp>
#include <boost/mpi/exception.hpp>
#include <boost/mpi/inplace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace railpass::detail {

/// A failed MPI call, as users of Boost.MPI know it.
inline void check(const char* routine, int code) {
  if (code != MPI_SUCCESS) throw boost::mpi::exception(routine, code);
}

/// In place of the input, or of a scatter's output: they are where the other one is.
template <class T>
const T* in_place() {
  return static_cast<const T*>(MPI_IN_PLACE);
}

/// The MPI datatype of T. It is made from one of the `n` values at `a` or else at `b`, of which
/// either may be null or in place.
template <class T>
MPI_Datatype datatype_of(int n, const T* a, const T* b = nullptr) {
  const T* const example = a && a != in_place<T>() ? a : b && b != in_place<T>() ? b : nullptr;
  if constexpr (std::is_default_constructible_v<T>)
    if (n <= 0 || !example) return boost::mpi::get_mpi_datatype<T>();
  return example ? boost::mpi::get_mpi_datatype<T>(*example) : MPI_Datatype(MPI_BYTE);
}

/// Options for a call inside another collective: an arm of that one means nothing to it.
inline call_options policy_of(const call_options& options) {
  return collect(policy(options.policy));
}

/// For the forms that have no argument for what only the root has.
inline void require_not_root(const char* call, const boost::mpi::communicator& comm, int root) {
  if (comm.rank() == root)
    throw error(std::string("railpass::") + call +
                ": this form is for the other ranks; the root has more arguments");
}

/// For the forms in place that only the root may take.
inline void require_root(const char* call, const boost::mpi::communicator& comm, int root) {
  if (comm.rank() != root)
    throw error(std::string("railpass::") + call +
                ": only the root can be in place; the other ranks take the form without");
}

inline void require_length(const char* call, const char* argument, std::size_t length,
                           std::size_t expected) {
  if (length < expected)
    throw error(std::string("railpass::") + call + ": '" + argument + "' has " +
                std::to_string(length) + " elements; expected at least " +
                std::to_string(expected));
}

/// As MPI counts values, bytes and displacements.
inline int count_of(const char* call, std::int64_t n) {
  if (n > std::numeric_limits<int>::max())
    throw error(std::string("railpass::") + call + ": " + std::to_string(n) +
                " elements; MPI counts to 2147483647");
  return int(n);
}

/// How many values there are of each rank, and where those of each begin.
struct blocks {
  int n = 0;                           ///< of every rank, one after the other, unless there are
  const int* sizes = nullptr;          ///< the number of each rank and
  const int* displacements = nullptr;  ///< where its values begin

  int size(int rank) const { return sizes ? sizes[rank] : n; }
  std::ptrdiff_t begin(int rank) const {
    return displacements ? displacements[rank] : std::ptrdiff_t{rank} * n;
  }
};

/// The arguments that say where each rank's values are: a number for each rank, checked, and
/// displacements, which stand one after the other if the user gave none. Borrows the vectors.
class block_arguments {
 public:
  block_arguments(const char* call, const boost::mpi::communicator& comm,
                  const std::vector<int>& sizes)
      : sizes_(sizes), made_(std::size_t(comm.size())), displacements_(made_) {
    require_length(call, "sizes", sizes.size(), made_.size());
    std::int64_t end = 0;
    for (std::size_t k = 0; k < made_.size(); ++k) {
      made_[k] = count_of(call, end);
      end += sizes[k];
    }
    extent_ = std::size_t(end);
  }
  block_arguments(const char* call, const boost::mpi::communicator& comm,
                  const std::vector<int>& sizes, const std::vector<int>& displacements)
      : sizes_(sizes), displacements_(displacements) {
    const auto p = std::size_t(comm.size());
    require_length(call, "sizes", sizes.size(), p);
    require_length(call, "displacements", displacements.size(), p);
    for (std::size_t k = 0; k < p; ++k)
      if (sizes[k] > 0)
        extent_ = std::max(extent_, std::size_t(displacements[k]) + std::size_t(sizes[k]));
  }
  block_arguments(const block_arguments&) = delete;
  block_arguments& operator=(const block_arguments&) = delete;

  blocks get() const { return {.sizes = sizes_.data(), .displacements = displacements_.data()}; }
  int size(int rank) const { return sizes_[std::size_t(rank)]; }
  /// How many values an array with all of them has.
  std::size_t extent() const { return extent_; }

 private:
  const std::vector<int>& sizes_;
  std::vector<int> made_;
  const std::vector<int>& displacements_;
  std::size_t extent_ = 0;
};

}  // namespace railpass::detail
