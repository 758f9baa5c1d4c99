// SPDX-License-Identifier: BSL-1.0
//
// Helpers shared by the headers of the Boost.MPI facade.
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

/// Throws Boost.MPI's exception for a failed MPI call.
inline void check(const char* routine, int code) {
  if (code != MPI_SUCCESS) throw boost::mpi::exception(routine, code);
}

/// Stands for the input, or for the output of a scatter, in calls in place.
template <class T>
const T* in_place() {
  return static_cast<const T*>(MPI_IN_PLACE);
}

/// Returns the MPI datatype of T, made from one of the `n` values at `a` or else at `b`; either
/// pointer may be null or in place.
template <class T>
MPI_Datatype datatype_of(int n, const T* a, const T* b = nullptr) {
  const T* const example = a && a != in_place<T>() ? a : b && b != in_place<T>() ? b : nullptr;
  if constexpr (std::is_default_constructible_v<T>)
    if (n <= 0 || !example) return boost::mpi::get_mpi_datatype<T>();
  return example ? boost::mpi::get_mpi_datatype<T>(*example) : MPI_Datatype(MPI_BYTE);
}

/// Options for a call inside another collective, whose arm does not apply to the inner call.
inline call_options policy_of(const call_options& options) {
  return collect(policy(options.policy));
}

/// Checks the forms without the arguments that only the root has.
inline void require_not_root(const char* call, const boost::mpi::communicator& comm, int root) {
  if (comm.rank() == root)
    throw error(std::string("railpass::") + call +
                ": this form is for the other ranks; the root has more arguments");
}

/// Checks the forms in place, which only the root may call.
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

/// Returns `n` as the int with which MPI counts values, bytes and displacements.
inline int count_of(const char* call, std::int64_t n) {
  if (n > std::numeric_limits<int>::max())
    throw error(std::string("railpass::") + call + ": " + std::to_string(n) +
                " elements; MPI counts to 2147483647");
  return int(n);
}

/// The number of values of each rank, and where they start.
struct blocks {
  int n = 0;                           ///< of each rank, one after the other, if there are
  const int* sizes = nullptr;          ///< no sizes; else the number of each rank and
  const int* displacements = nullptr;  ///< where its values start

  int size(int rank) const { return sizes ? sizes[rank] : n; }
  std::ptrdiff_t begin(int rank) const {
    return displacements ? displacements[rank] : std::ptrdiff_t{rank} * n;
  }
};

/// Checked sizes and displacements of the ranks' values; without displacements the values are in
/// rank order. Borrows the vectors.
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
  /// The length of an array with all values.
  std::size_t extent() const { return extent_; }

 private:
  const std::vector<int>& sizes_;
  std::vector<int> made_;
  const std::vector<int>& displacements_;
  std::size_t extent_ = 0;
};

}  // namespace railpass::detail
