// SPDX-License-Identifier: BSL-1.0
#include "lib/session/verify.hpp"

#include "lib/session/datatype.hpp"
#include "lib/session/process.hpp"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

namespace railpass {

namespace {

using bytes = std::vector<std::byte>;

// Sums may differ by rounding: each of p additions by half a unit in the last place of the largest
// partial result, which the numbers themselves do not tell; this is generous and still finds a
// contribution that is missing or counted twice.
template <class T>
bool close(const bytes& a, const bytes& b) {
  for (std::size_t at = 0; at + sizeof(T) <= a.size(); at += sizeof(T)) {
    T x, y;
    std::memcpy(&x, a.data() + at, sizeof(T));
    std::memcpy(&y, b.data() + at, sizeof(T));
    const T tolerance = std::sqrt(std::numeric_limits<T>::epsilon());
    const bool same = x == y || (std::isnan(x) && std::isnan(y)) ||
                      std::abs(x - y) <= tolerance * std::max(std::abs(x), std::abs(y));
    if (!same) return false;
  }
  return true;
}

bool agree(const call& c, const bytes& a, const bytes& b) {
  if (a == b) return true;
  if (!c.is_reduction()) return false;
  if (c.receive.type == MPI_FLOAT) return close<float>(a, b);
  if (c.receive.type == MPI_DOUBLE) return close<double>(a, b);
  if (c.receive.type == MPI_LONG_DOUBLE) return close<long double>(a, b);
  return false;
}

}  // namespace

int run_verified(const call& c, const call_place& at, process& owner,
                 const std::function<int(const call&)>& tuned) {
  std::vector<user_block> blocks;
  bytes before, ours, theirs;
  // What a call in place overwrites is put back for the second one.
  const bool in_place = c.send.in_place();
  if (in_place) {
    if (const int failure = result_blocks(c, at, true, blocks)) return failure;
    if (const int failure = pack_blocks(blocks, before)) return failure;
  }
  // If memory is short, then before the other ranks are in the middle of a call.
  if (const int failure = result_blocks(c, at, false, blocks)) return failure;
  ours.reserve(packed_bytes(blocks));
  theirs.reserve(packed_bytes(blocks));
  if (const int failure = tuned(c)) return failure;
  if (const int failure = result_blocks(c, at, false, blocks)) return failure;
  if (const int failure = pack_blocks(blocks, ours)) return failure;
  if (in_place) {
    if (const int failure = result_blocks(c, at, true, blocks)) return failure;
    if (const int failure = unpack_blocks(before, blocks)) return failure;
  }
  if (const int failure = run_native(c)) return failure;
  if (const int failure = result_blocks(c, at, false, blocks)) return failure;
  if (const int failure = pack_blocks(blocks, theirs)) return failure;
  if (!agree(c, ours, theirs))
    owner.record("RAILPASS_VERIFY: " + std::string(name_of(c.op)) + " of " +
                 std::to_string(c.message_bytes) +
                 " bytes differs from the MPI library's own result, which is used");
  return MPI_SUCCESS;
}

}  // namespace railpass
