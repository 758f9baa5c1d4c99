// SPDX-License-Identifier: BSL-1.0
//
// A call that runs more than once on this rank, to find wrong results: its input, and how two
// results are compared. RAILPASS_VERIFY (verify.hpp) and checks (checked_call.hpp) use it.
#pragma once

#include "lib/buffers/call_buffers.hpp"

#include <cstddef>
#include <vector>

namespace railpass::internal {

/// All members but sum_magnitudes() are local. They return an MPI error code, and throw
/// std::bad_alloc. Buffers must be in host memory.
class kept_call {
 public:
  /// `c` must live as long as this object.
  kept_call(const call& c, const calling_rank& at);
  kept_call(const kept_call&) = delete;
  kept_call& operator=(const kept_call&) = delete;

  /// Before the first run: copies the input that a run may overwrite, and for a floating-point sum
  /// the magnitudes of the input.
  int keep_input();
  /// Before a further run.
  int restore_input();
  /// The packed length of this rank's result.
  int result_bytes(std::size_t& bytes);
  /// After a run: copies its result, packed.
  int keep_result(std::vector<std::byte>& result);
  /// Makes a kept result the call's result.
  int put_back(const std::vector<std::byte>& result);

  /// For a floating-point sum: the MPI library also sums the magnitudes. Every rank calls this,
  /// because each rank knows only for itself whether results are alike. Collective.
  int sum_magnitudes();
  /// Whether two kept results of this rank are equal or differ by rounding alone.
  int compare(const std::vector<std::byte>& a, const std::vector<std::byte>& b, bool& alike);

 private:
  int input_blocks();

  const call& call_;
  const calling_rank at_;
  bool is_sum_ = false;  // of floating-point numbers
  std::vector<user_block> blocks_;
  std::vector<std::byte> input_, terms_, magnitudes_;
};

/// Whether two packed copies of the blocks hold the same values. Bytes that belong to no value, as
/// those that fill up a long double, do not count. Local; returns an MPI error code.
int compare_values(const std::vector<user_block>& blocks, const std::vector<std::byte>& a,
                   const std::vector<std::byte>& b, bool& same);

}  // namespace railpass::internal
