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

int packed(const call& c, const void* memory, bytes& result) {
  result.resize(std::size_t(c.bytes()));
  int position = 0;
  return PMPI_Pack(memory, c.count, c.type, result.data(), int(result.size()), &position,
                   MPI_COMM_SELF);
}

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
  if (c.type == MPI_FLOAT) return close<float>(a, b);
  if (c.type == MPI_DOUBLE) return close<double>(a, b);
  if (c.type == MPI_LONG_DOUBLE) return close<long double>(a, b);
  return false;
}

}  // namespace

int run_verified(const call& c, process& owner, const std::function<int(const call&)>& tuned) {
  call again = c;
  bytes input;
  if (c.is_reduction() && c.in_place()) {
    datatype_layout layout;
    if (const int failure = layout_of(c.type, owner.datatype_key(), layout)) return failure;
    const std::int64_t span = (c.count - 1) * layout.extent + layout.true_extent;
    input.resize(std::size_t(span));
    std::memcpy(input.data(), static_cast<const std::byte*>(c.receive) + layout.true_lower_bound,
                input.size());
    again.send = input.data() - layout.true_lower_bound;
  }
  bytes ours, theirs;
  if (const int failure = tuned(c)) return failure;
  if (const int failure = packed(c, c.receive, ours)) return failure;
  if (const int failure = run_native(again)) return failure;
  if (const int failure = packed(c, c.receive, theirs)) return failure;
  if (!agree(c, ours, theirs))
    owner.record("RAILPASS_VERIFY: " + std::string(name_of(c.op)) + " of " +
                 std::to_string(c.bytes()) +
                 " bytes differs from the MPI library's own result, which is used");
  return MPI_SUCCESS;
}

}  // namespace railpass
