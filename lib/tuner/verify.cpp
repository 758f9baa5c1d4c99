// SPDX-License-Identifier: BSL-1.0
#include "lib/tuner/verify.hpp"

#include "lib/runtime/process.hpp"
#include "lib/tuner/kept_call.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace railpass::internal {

int run_verified(const call& c, const calling_rank& at, process& owner,
                 const std::function<int(const call&)>& tuned) {
  kept_call kept(c, at);
  std::vector<std::byte> ours, theirs;
  // Allocate now: if memory is short, no other rank is inside a call yet.
  std::size_t bytes = 0;
  if (const int failure = kept.keep_input()) return failure;
  if (const int failure = kept.result_bytes(bytes)) return failure;
  ours.reserve(bytes);
  theirs.reserve(bytes);
  // A failed rank still makes the MPI library's calls, because the other ranks are inside.
  const int tuned_failure = tuned(c);
  if (tuned_failure == MPI_SUCCESS)
    if (const int failure = kept.keep_result(ours)) return failure;
  if (const int failure = kept.restore_input()) return failure;
  if (const int failure = run_native(c)) return failure;
  if (const int failure = kept.keep_result(theirs)) return failure;
  if (const int failure = kept.sum_magnitudes()) return failure;
  if (tuned_failure != MPI_SUCCESS) return tuned_failure;
  bool alike = false;
  if (const int failure = kept.compare(ours, theirs, alike)) return failure;
  if (!alike)
    owner.record(
        "RAILPASS_VERIFY: " + std::string(name_of(c.op)) + " of " +
        std::to_string(c.message_bytes) +
        " bytes differs from the MPI library's own result; the call returns the library's");
  return MPI_SUCCESS;
}

}  // namespace railpass::internal
