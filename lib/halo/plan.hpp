// SPDX-License-Identifier: BSL-1.0
//
// The messages of an exchange, as all versions see them.
#pragma once

#include "lib/halo/datatypes.hpp"
#include "lib/halo/strided.hpp"
#include "railpass/halo_exchange.hpp"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace railpass::internal::halo {

/// Limit of the lengths that are an exchange's features. A function set has room for 16 sizes; two
/// of them are the exchange's shape: whether it has two parts, and whether it has corners.
inline constexpr std::size_t most_lengths = 14;

/// The elements of one side, for all fields.
class side {
 public:
  side() = default;
  /// `parts[f]` belongs to `fields[f]`. Throws mpi_failure.
  side(std::vector<strided> parts, const std::vector<array_layout>& fields, MPI_Comm comm);

  /// The type of all elements, relative to address().
  MPI_Datatype type() const { return type_; }
  std::byte* address() const { return parts_[0].first; }
  std::int64_t bytes() const { return bytes_; }  ///< packed
  /// The number of gapless stretches of memory.
  std::int64_t pieces() const;
  const strided& part(std::size_t field) const { return parts_[field]; }

  /// Copy all elements to `to` (bytes() long), or from `from`. Throw mpi_failure.
  void pack(std::byte* to) const;
  void unpack(const std::byte* from) const;

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<strided> parts_;
  std::vector<runs> plain_;  // empty where an element has a datatype of its own
  datatype type_;
  std::int64_t bytes_ = 0;
};

/// A side's elements in another rank's windows.
struct remote_side {
  std::vector<strided> parts{};               ///< by field; `first` is an offset
  std::vector<std::int64_t> offsets_bytes{};  ///< by field: in the window of the field
  std::int64_t packed_offset_bytes = 0;       ///< in the buffer of packed messages
};

/// All ranks send to the neighbour in one direction and receive from the opposite neighbour. Beyond
/// sides of the domain, either neighbour may be missing (MPI_PROC_NULL).
struct shift {
  int to = MPI_PROC_NULL, from = MPI_PROC_NULL;
  int tag = 0;  ///< distinguishes sides on which the same rank is the neighbour
  /// Of two consecutive ranks in this direction, one receives before it sends, except where an odd
  /// ring closes. So synchronous messages cannot form a cycle.
  bool receives_first = false;
  side sent{}, received{};
  std::int64_t sent_offset_bytes = 0;      ///< in a buffer of packed messages
  std::int64_t received_offset_bytes = 0;  ///< in the same buffer
  remote_side received_there{};            ///< `sent`, at `to`
  remote_side sent_there{};                ///< `received`, at `from`
};

/// The memory of an array.
struct memory_range {
  std::byte* begin = nullptr;
  std::byte* end = nullptr;
};

/// The same shifts on all ranks, in the same order. Shifts to the rank itself are separate.
class plan {
 public:
  /// Collective over `comm`, which must outlive the plan and return errors. Throws error on all
  /// ranks if arguments are wrong or contradictory; mpi_failure.
  plan(MPI_Comm comm, const mpi::halo_arguments& arguments);
  plan(const plan&) = delete;
  plan& operator=(const plan&) = delete;

  MPI_Comm comm() const { return comm_; }
  const std::vector<shift>& shifts() const { return shifts_; }
  /// The same exchange through face neighbours: two shifts per dimension, in order. Each shift
  /// carries along what earlier dimensions have brought. Corners take 2 D messages instead of 3^D -
  /// 1.
  const std::vector<shift>& forwarding() const { return forwarding_; }
  const std::vector<array_layout>& fields() const { return fields_; }
  memory_range range(std::size_t field) const { return ranges_[field]; }
  /// Size of a buffer for all packed messages of either list.
  std::int64_t packed_bytes() const { return packed_bytes_; }
  std::int64_t forwarding_bytes() const { return forwarding_bytes_; }

  /// The largest number of pieces in a message of this rank.
  std::int64_t most_pieces() const;

  /// Bytes of the longest messages of any rank, in the order of longest_by_side(). Collective.
  std::vector<std::int64_t> message_lengths() const;

  /// Returns a copy of all elements that neighbours send; put_back() restores them.
  std::vector<std::byte> received_elements() const;
  void put_back(const std::vector<std::byte>& received) const;

  /// Copies the sides on which this rank is its own neighbour.
  void copy_own_sides() const;

 private:
  void check_arguments(const mpi::halo_arguments& a) const;
  static std::vector<std::string> equal_on_all(const mpi::halo_arguments& a);
  shift make_shift(const mpi::halo_arguments& a, const std::vector<int>& steps,
                   const reach& along) const;
  void make_shifts(const mpi::halo_arguments& a);
  void make_forwarding(const mpi::halo_arguments& a, const std::vector<bool>& cut, int tag);
  std::string meet_neighbours(std::size_t dimensions);
  void agree_on_order();

  MPI_Comm comm_;
  int rank_ = 0;
  std::vector<array_layout> fields_;
  std::vector<std::vector<int>> orders_;  // by field: dimensions, the outermost loop first
  std::vector<memory_range> ranges_;
  std::vector<shift> shifts_, forwarding_, own_;
  std::int64_t packed_bytes_ = 0, forwarding_bytes_ = 0;
  mutable std::vector<std::byte> own_message_;
};

/// Whether `here` is true on all ranks. Collective.
bool on_all(MPI_Comm comm, bool here);

}  // namespace railpass::internal::halo
