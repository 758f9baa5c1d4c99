// SPDX-License-Identifier: BSL-1.0
//
// A call that can be measured, with its data.
#pragma once

#include "lib/call/call.hpp"
#include "lib/measure/job.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace railpass::internal::measure {

/// The length of a message of about `bytes` that can be measured: rounded up to whole elements, and
/// to equal blocks where ranks have such. A barrier's is a byte per rank. Throws error where MPI
/// could not count it.
std::int64_t whole_message_bytes(collective op, std::int64_t bytes, int num_ranks);

/// Arguments and data of calls of one collective, and whether what comes out is right. Blocks of
/// the v-forms are one, two and three times as long as each other, or empty. Every rank makes the
/// same one.
class workload {
 public:
  /// `bytes` as whole_message_bytes() returns it; `root` is looked at where there is one. `empty`:
  /// the share of empty blocks of a v-form, from 0 to 1. The other blocks share the bytes.
  workload(const job& j, collective op, std::int64_t bytes, int root, double empty = 0);
  workload(const workload&) = delete;
  workload& operator=(const workload&) = delete;

  /// Sets inputs and spoils outputs.
  void prepare();
  bool is_right() const;
  /// The arguments point into this object.
  call made_on(MPI_Comm comm) const;

 private:
  // A block in one of the buffers: what rank `from` has for rank `to`.
  struct block {
    int from, to;
    std::int64_t offset_bytes, length_bytes;
  };

  bool is_empty(int from, int to) const;
  std::int64_t weight_before(int from, int to) const;
  std::int64_t begin_units(int from, int to) const;
  std::int64_t length_units(int from, int to) const {
    return begin_units(from, to + 1) - begin_units(from, to);
  }
  std::vector<block> sent() const;
  std::vector<block> received() const;
  template <class F>
  void with_elements(F&& f) const;
  MPI_Datatype type() const;
  std::int64_t first_element() const;
  std::int64_t num_elements() const;
  std::pair<std::int64_t, std::int64_t> summands() const;
  void describe_side(call_side& side, std::vector<int>& counts, std::vector<int>& displacements,
                     const std::vector<block>& blocks, bool all) const;

  int rank_, num_ranks_;
  collective op_;
  int root_;
  std::int64_t unit_bytes_, units_;
  double empty_;
  std::vector<MPI_Datatype> types_;  // of an all_to_allw
  std::vector<unsigned char> in_, out_;
  std::vector<int> send_counts_, send_displacements_, receive_counts_, receive_displacements_;
  call call_{};
};

}  // namespace railpass::internal::measure
