// SPDX-License-Identifier: BSL-1.0
//
// Collectives of values without an MPI datatype, sent as the bytes of archives by railpass' own
// calls, so that these calls are tuned. A first call gives the lengths to all ranks that must
// allocate memory; a second call with blocks of different lengths carries the bytes. A rank's own
// values are copied.
//
// If archives together are longer than MPI can count, all ranks throw the same railpass::error. In
// an all_to_all, only the receiving rank knows the length that it receives, and only that rank
// throws. If a rank cannot serialise its values, it throws what stopped it, once the other ranks
// know and throw a railpass::error.
#pragma once

#include "railpass/detail/boost_mpi.hpp"

#include <boost/mpi/packed_iarchive.hpp>
#include <boost/mpi/packed_oarchive.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <limits>
#include <numeric>

namespace railpass::detail {

/// The announced length of values that their rank could not serialise.
inline constexpr std::int64_t not_serialised = std::numeric_limits<std::int64_t>::min();

/// Serialises values on this rank alone, and keeps what that throws until the other ranks know.
class serialising {
 public:
  serialising() = default;
  template <class Work>
  explicit serialising(const Work& work) {
    try {
      work();
    } catch (...) {
      problem_ = std::current_exception();
    }
  }
  std::int64_t announced(std::size_t bytes) const {
    return problem_ ? not_serialised : std::int64_t(bytes);
  }
  bool failed() const { return problem_ != nullptr; }
  void rethrow() const {
    if (problem_) std::rethrow_exception(problem_);
  }

 private:
  std::exception_ptr problem_;
};

/// Returns the length of archives as MPI's int. archives::announced has turned lengths that are too
/// long into negative numbers.
inline int archive_count(std::int64_t bytes) {
  if (bytes == not_serialised) throw error("a rank could not serialise its values");
  if (bytes < 0 || bytes > std::numeric_limits<int>::max())
    throw error("serialised values have " + std::to_string(bytes < 0 ? -bytes : bytes) +
                " bytes; at most 2147483647 can be sent in one call");
  return int(bytes);
}

template <class T>
void save(boost::mpi::packed_oarchive& archive, const T* values, int n) {
  for (int i = 0; i < n; ++i) archive << values[i];
}

template <class T>
void load(boost::mpi::packed_iarchive& archive, T* values, int n) {
  for (int i = 0; i < n; ++i) archive >> values[i];
}

/// One archive per rank, one after the other in memory.
class archives {
 public:
  archives() = default;
  /// Creates archives of these lengths, still without bytes.
  explicit archives(std::vector<std::int64_t> lengths_bytes)
      : lengths_bytes_(std::move(lengths_bytes)) {
    set_tables();
  }

  /// Appends the archive of the next rank.
  template <class T>
  void add(const boost::mpi::communicator& comm, const T* values, int n) {
    boost::mpi::packed_oarchive archive(comm);
    save(archive, values, n);
    const char* const bytes = static_cast<const char*>(archive.address());
    bytes_.insert(bytes_.end(), bytes, bytes + archive.size());
    lengths_bytes_.push_back(std::int64_t(archive.size()));
  }
  /// Returns the length to announce to each of `ranks` ranks; the negative total length if the
  /// archives together are too long.
  std::vector<std::int64_t> announced(const serialising& by, int ranks) const {
    if (by.failed()) return std::vector<std::int64_t>(std::size_t(ranks), not_serialised);
    const std::int64_t all = std::reduce(lengths_bytes_.begin(), lengths_bytes_.end());
    if (all <= std::numeric_limits<int>::max()) return lengths_bytes_;
    return std::vector<std::int64_t>(lengths_bytes_.size(), -all);
  }
  /// Called after the last archive was added.
  void set_tables() {
    std::int64_t end = 0;
    for (const std::int64_t length : lengths_bytes_) {
      offsets_.push_back(archive_count(end));
      sizes_.push_back(archive_count(length));
      end += length;
    }
    archive_count(end);
  }
  void make_room() { bytes_.resize(std::size_t(std::reduce(sizes_.begin(), sizes_.end()))); }

  void* bytes() { return bytes_.data(); }
  const int* sizes() const { return sizes_.data(); }
  const int* offsets() const { return offsets_.data(); }

  template <class T>
  void unpack(const boost::mpi::communicator& comm, int from, T* values, int n) {
    boost::mpi::packed_iarchive archive(comm, bytes_, boost::archive::no_header,
                                        offsets_[std::size_t(from)]);
    load(archive, values, n);
  }

 private:
  boost::mpi::packed_oarchive::buffer_type bytes_;
  std::vector<std::int64_t> lengths_bytes_;
  std::vector<int> sizes_, offsets_;
};

inline void broadcast_bytes(const boost::mpi::communicator& comm, void* data, int bytes, int root,
                            const call_options& options) {
  check("MPI_Bcast", mpi::broadcast(data, bytes, MPI_BYTE, root, comm, options));
}

/// The root's part of the broadcast of an archive.
inline void broadcast_archive(const boost::mpi::communicator& comm,
                              const boost::mpi::packed_oarchive& archive, int root,
                              const call_options& options, const serialising& by = {}) {
  require_root("broadcast", comm, root);
  std::int64_t size = by.announced(archive.size());
  broadcast_bytes(comm, &size, sizeof size, root, options);
  by.rethrow();
  broadcast_bytes(comm, const_cast<void*>(archive.address()), archive_count(size), root, options);
}

/// The part of the other ranks in the broadcast of an archive.
inline void broadcast_archive(const boost::mpi::communicator& comm,
                              boost::mpi::packed_iarchive& archive, int root,
                              const call_options& options) {
  require_not_root("broadcast", comm, root);
  std::int64_t size = 0;
  broadcast_bytes(comm, &size, sizeof size, root, options);
  const int count = archive_count(size);
  archive.resize(std::size_t(count));
  broadcast_bytes(comm, archive.address(), count, root, options);
}

/// Returns archives with the lengths of all ranks' archives. All ranks learn all lengths, even if
/// only a root needs them, so that all ranks agree on whether the total is too long.
inline archives archives_of_all(const boost::mpi::communicator& comm,
                                const boost::mpi::packed_oarchive& own, const serialising& by,
                                const call_options& options) {
  const std::int64_t length = by.announced(own.size());
  std::vector<std::int64_t> lengths(std::size_t(comm.size()));
  check("MPI_Allgather", mpi::all_gather(&length, 1, MPI_INT64_T, lengths.data(), 1, MPI_INT64_T,
                                         comm, policy_of(options)));
  by.rethrow();
  return archives(std::move(lengths));
}

/// gather and gatherv. `in` may be in place at the root.
template <class T>
void gather_archives(const boost::mpi::communicator& comm, const T* in, int n, T* out,
                     const blocks& layout, int root, const call_options& options) {
  const bool at_root = comm.rank() == root;
  boost::mpi::packed_oarchive own(comm);
  const serialising by([&] {
    if (!at_root) save(own, in, n);
  });
  archives all = archives_of_all(comm, own, by, options);
  if (at_root) all.make_room();
  check("MPI_Gatherv", mpi::gatherv(own.address(), int(own.size()), MPI_BYTE, all.bytes(),
                                    all.sizes(), all.offsets(), MPI_BYTE, root, comm, options));
  if (!at_root) return;
  for (int k = 0; k < comm.size(); ++k)
    if (k != root) all.unpack(comm, k, out + layout.begin(k), layout.size(k));
  if (in != in_place<T>()) std::copy_n(in, n, out + layout.begin(root));
}

/// all_gather and all_gatherv. `in` may be in place.
template <class T>
void all_gather_archives(const boost::mpi::communicator& comm, const T* in, int n, T* out,
                         const blocks& layout, const call_options& options) {
  const int rank = comm.rank();
  T* const own_block = out + layout.begin(rank);
  boost::mpi::packed_oarchive own(comm);
  const serialising by([&] { save(own, in == in_place<T>() ? own_block : in, n); });
  archives all = archives_of_all(comm, own, by, options);
  all.make_room();
  check("MPI_Allgatherv", mpi::all_gatherv(own.address(), int(own.size()), MPI_BYTE, all.bytes(),
                                           all.sizes(), all.offsets(), MPI_BYTE, comm, options));
  for (int k = 0; k < comm.size(); ++k)
    if (k != rank) all.unpack(comm, k, out + layout.begin(k), layout.size(k));
  if (in != in_place<T>()) std::copy_n(in, n, own_block);
}

/// scatter and scatterv. `out` may be in place at the root.
template <class T>
void scatter_archives(const boost::mpi::communicator& comm, const T* in, const blocks& layout,
                      T* out, int n, int root, const call_options& options) {
  const bool at_root = comm.rank() == root;
  archives all;
  const serialising by([&] {
    for (int k = 0; at_root && k < comm.size(); ++k)
      all.add(comm, in + layout.begin(k), k == root ? 0 : layout.size(k));
  });
  const std::vector<std::int64_t> lengths = all.announced(by, comm.size());
  std::int64_t length = 0;
  check("MPI_Scatter", mpi::scatter(lengths.data(), 1, MPI_INT64_T, &length, 1, MPI_INT64_T, root,
                                    comm, policy_of(options)));
  by.rethrow();
  const int count = archive_count(length);
  all.set_tables();
  boost::mpi::packed_iarchive own(comm);
  own.resize(std::size_t(count));
  check("MPI_Scatterv", mpi::scatterv(all.bytes(), all.sizes(), all.offsets(), MPI_BYTE,
                                      own.address(), count, MPI_BYTE, root, comm, options));
  if (!at_root)
    load(own, out, n);
  else if (out != in_place<T>())
    std::copy_n(in + layout.begin(root), n, out);
}

/// all_to_all and all_to_allv. `in` may be in place.
template <class T>
void all_to_all_archives(const boost::mpi::communicator& comm, const T* in, const blocks& in_layout,
                         T* out, const blocks& out_layout, const call_options& options) {
  const int p = comm.size(), rank = comm.rank();
  const T* const from = in == in_place<T>() ? out : in;
  archives outgoing;
  const serialising by([&] {
    for (int k = 0; k < p; ++k)
      outgoing.add(comm, from + in_layout.begin(k), k == rank ? 0 : in_layout.size(k));
  });
  const std::vector<std::int64_t> told = outgoing.announced(by, p);
  std::vector<std::int64_t> lengths(told.size());
  check("MPI_Alltoall", mpi::all_to_all(told.data(), 1, MPI_INT64_T, lengths.data(), 1, MPI_INT64_T,
                                        comm, policy_of(options)));
  by.rethrow();
  archives incoming(std::move(lengths));
  outgoing.set_tables();
  incoming.make_room();
  check("MPI_Alltoallv", mpi::all_to_allv(outgoing.bytes(), outgoing.sizes(), outgoing.offsets(),
                                          MPI_BYTE, incoming.bytes(), incoming.sizes(),
                                          incoming.offsets(), MPI_BYTE, comm, options));
  for (int k = 0; k < p; ++k)
    if (k != rank) incoming.unpack(comm, k, out + out_layout.begin(k), out_layout.size(k));
  if (in != in_place<T>())
    std::copy_n(from + in_layout.begin(rank), in_layout.size(rank), out + out_layout.begin(rank));
}

}  // namespace railpass::detail
