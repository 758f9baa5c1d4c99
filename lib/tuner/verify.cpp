// SPDX-License-Identifier: BSL-1.0
#include "lib/tuner/verify.hpp"

#include "lib/runtime/process.hpp"
#include "lib/tuner/kept_call.hpp"

#include <cstddef>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace railpass::internal {

int run_verified(const call& c, const calling_rank& at, process& owner,
                 const std::function<int(const call&)>& tuned,
                 const std::function<int(std::span<std::uint64_t>)>& find_largest) {
  kept_call kept(c, at);
  std::vector<std::byte> ours, theirs;
  std::uint64_t lacks_memory = 1;
  try {
    std::size_t bytes = 0;
    if (kept.keep_input() == MPI_SUCCESS && kept.result_bytes(bytes) == MPI_SUCCESS) {
      ours.reserve(bytes);
      theirs.reserve(bytes);
      lacks_memory = 0;
    }
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  // All ranks make the MPI library's calls below, or no rank does.
  if (const int failure = find_largest({&lacks_memory, 1})) return failure;
  if (lacks_memory != 0) {
    owner.record("RAILPASS_VERIFY: a call is not compared, as a rank has no memory for copies");
    return tuned(c);
  }
  int failure = MPI_SUCCESS;  // the first one
  const auto note = [&](int code) { failure = failure == MPI_SUCCESS ? code : failure; };
  note(tuned(c));
  if (failure == MPI_SUCCESS) note(kept.keep_result(ours));
  note(kept.restore_input());
  note(run_native(c));
  if (failure == MPI_SUCCESS) note(kept.keep_result(theirs));
  note(kept.sum_magnitudes());
  if (failure != MPI_SUCCESS) return failure;
  bool alike = false;
  if (const int problem = kept.compare(ours, theirs, alike)) return problem;
  if (!alike)
    owner.record(
        "RAILPASS_VERIFY: " + std::string(name_of(c.op)) + " of " +
        std::to_string(c.message_bytes) +
        " bytes differs from the MPI library's own result; the call returns the library's");
  return MPI_SUCCESS;
}

}  // namespace railpass::internal
