// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/halo/messages.hpp"
#include "lib/halo/plan.hpp"

#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

namespace railpass::internal::halo {

/// A group of ranks, without duplicates for ranks that are neighbours on several sides.
class rank_group {
 public:
  rank_group(MPI_Comm comm, std::vector<int> ranks);
  rank_group(rank_group&& other) noexcept;
  rank_group& operator=(rank_group&&) = delete;
  ~rank_group();

  bool empty() const { return handle_ == MPI_GROUP_EMPTY; }
  operator MPI_Group() const { return handle_; }

 private:
  MPI_Group handle_ = MPI_GROUP_EMPTY;
};

/// The memory of all ranks that other ranks write to and read from, and the transfers of each
/// shift. With derived datatypes: a window per field. Otherwise: one window for packed messages.
class windows {
 public:
  /// Collective. Throws unavailable; mpi_failure.
  windows(const plan& p, layout in);
  windows(const windows&) = delete;
  windows& operator=(const windows&) = delete;
  /// Collective.
  ~windows();

  const std::vector<MPI_Win>& all() const { return windows_; }
  /// Call between the synchronisations of all windows. Moves a shift's elements to the receiver, or
  /// from the sender. Does nothing without a neighbour.
  void put(std::size_t shift);
  void get(std::size_t shift);
  /// Call before the first synchronisation and after the last.
  void pack_all();
  void unpack_all();

 private:
  struct transfer {
    MPI_Win window;
    void* here;
    MPI_Aint there_bytes;
    datatype here_type, there_type;
  };
  void make_window(std::byte* begin, std::size_t bytes);
  void make_field_windows();
  void make_packed_window();
  std::vector<transfer> between_fields(const side& here, const remote_side& there) const;

  const plan& plan_;
  std::vector<MPI_Win> windows_;
  std::byte* slots_ = nullptr;                      // of packed messages
  std::vector<std::vector<transfer>> puts_, gets_;  // by shift
};

}  // namespace railpass::internal::halo
