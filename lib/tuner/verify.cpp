// SPDX-License-Identifier: BSL-1.0
#include "lib/tuner/verify.hpp"

#include "lib/buffers/sum_rounding.hpp"
#include "lib/call/datatype.hpp"
#include "lib/runtime/process.hpp"
#include "railpass/base/float_environment.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace railpass::internal {

namespace {

using bytes = std::vector<std::byte>;

// The kind of numbers that results of a floating-point type consist of.
enum class floating { none, single, twice, extended };

floating components_of(MPI_Datatype type) {
  const auto is_one_of = [&](auto... types) { return ((type == types) || ...); };
  if (is_one_of(MPI_FLOAT, MPI_REAL4, MPI_C_FLOAT_COMPLEX, MPI_CXX_FLOAT_COMPLEX, MPI_COMPLEX8))
    return floating::single;
  if (is_one_of(MPI_DOUBLE, MPI_REAL8, MPI_DOUBLE_PRECISION, MPI_C_DOUBLE_COMPLEX,
                MPI_CXX_DOUBLE_COMPLEX, MPI_COMPLEX16, MPI_DOUBLE_COMPLEX))
    return floating::twice;
  if (is_one_of(MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX, MPI_CXX_LONG_DOUBLE_COMPLEX))
    return floating::extended;
  if (is_one_of(MPI_REAL, MPI_COMPLEX)) {  // a compiler's option may make them longer
    int size = 0;
    PMPI_Type_size(MPI_REAL, &size);
    return size == sizeof(float)    ? floating::single
           : size == sizeof(double) ? floating::twice
                                    : floating::none;
  }
  return floating::none;
}

// Calls f with a number of the type.
template <class F>
void with_number(floating components, F f) {
  if (components == floating::single) f(float{});
  if (components == floating::twice) f(double{});
  if (components == floating::extended) f(static_cast<long double>(0));
}

// An element of a predefined MPI datatype in packed form: a number, then bytes that are compared
// exactly.
struct packed_value {
  floating number = floating::none;
  std::size_t other_bytes = 1;
};

packed_value value_of(MPI_Datatype type) {
  if (type == MPI_FLOAT_INT) return {floating::single, sizeof(int)};
  if (type == MPI_DOUBLE_INT) return {floating::twice, sizeof(int)};
  if (type == MPI_LONG_DOUBLE_INT) return {floating::extended, sizeof(int)};
  const floating number = type == MPI_2REAL               ? components_of(MPI_REAL)
                          : type == MPI_2DOUBLE_PRECISION ? floating::twice
                                                          : components_of(type);
  return {number, number == floating::none ? 1u : 0u};
}

template <class T>
bool is_same(T x, T y) {
  return x == y || (std::isnan(x) && std::isnan(y));
}

bool same_values(const packed_value& what, const std::byte* a, const std::byte* b,
                 std::size_t length) {
  if (std::memcmp(a, b, length) == 0) return true;
  bool same = what.number != floating::none;
  with_number(what.number, [&]<class T>(T) {
    const std::size_t step = sizeof(T) + what.other_bytes;
    for (std::size_t i = 0; same && i + step <= length; i += step) {
      T x, y;
      std::memcpy(&x, a + i, sizeof(T));
      std::memcpy(&y, b + i, sizeof(T));
      same =
          is_same(x, y) && std::memcmp(a + i + sizeof(T), b + i + sizeof(T), what.other_bytes) == 0;
    }
  });
  return same;
}

template <class T>
std::span<const T> numbers_in(const bytes& memory) {  // std::vector aligns for every T
  return {reinterpret_cast<const T*>(memory.data()), memory.size() / sizeof(T)};
}

void make_absolute(floating components, bytes& memory) {
  with_number(components, [&]<class T>(T) {
    T* const numbers = reinterpret_cast<T*>(memory.data());
    for (std::size_t i = 0; i < memory.size() / sizeof(T); ++i) numbers[i] = std::abs(numbers[i]);
  });
}

// For results other than sums, which may differ in their last digits. The tolerance is generous,
// but still finds a contribution that is missing or counted twice.
template <class T>
bool close(std::span<const T> a, std::span<const T> b) {
  const T tolerance = std::sqrt(std::numeric_limits<T>::epsilon());
  for (std::size_t i = 0; i < a.size(); ++i) {
    const T x = a[i], y = b[i];
    const bool same =
        is_same(x, y) || std::abs(x - y) <= tolerance * std::max(std::abs(x), std::abs(y));
    if (!same) return false;
  }
  return true;
}

}  // namespace

int compare_values(const std::vector<user_block>& blocks, const bytes& a, const bytes& b,
                   bool& same) {
  same = a == b;
  if (same || a.size() != b.size()) return MPI_SUCCESS;
  same = true;
  const own_float_environment own;
  std::size_t at = 0;
  for (const user_block& block : blocks)
    if (block.bytes() > 0)
      if (const int failure =
              visit_packed(block.type, block.count, [&](MPI_Datatype type, std::int64_t length) {
                const auto n = std::size_t(length);
                same = same && same_values(value_of(type), a.data() + at, b.data() + at, n);
                at += n;
              }))
        return failure;
  return MPI_SUCCESS;
}

int run_verified(const call& c, const calling_rank& at, process& owner,
                 const std::function<int(const call&)>& tuned) {
  std::vector<user_block> blocks;
  bytes before, ours, theirs;
  // For a sum, the MPI library also sums the magnitudes. Every rank does so in every call, because
  // each rank knows only for itself whether the results are alike.
  const floating components = c.is_reduction() ? components_of(c.receive.type) : floating::none;
  const bool is_sum = components != floating::none && c.operation == MPI_SUM;
  bytes terms, magnitudes;
  if (is_sum) {
    if (const int failure = sent_blocks(c, at, blocks)) return failure;
    if (const int failure = pack_blocks(blocks, terms)) return failure;
    make_absolute(components, terms);
    magnitudes.resize(terms.size());
  }
  // A call in place overwrites its input, which is restored for the second call.
  const bool in_place = c.send.in_place();
  if (in_place) {
    if (const int failure = result_blocks(c, at, true, blocks)) return failure;
    if (const int failure = pack_blocks(blocks, before)) return failure;
  }
  // Allocate now: if memory is short, no other rank is inside a call yet.
  if (const int failure = result_blocks(c, at, false, blocks)) return failure;
  ours.reserve(packed_bytes(blocks));
  theirs.reserve(packed_bytes(blocks));
  // A failed rank still makes the MPI library's calls, because the other ranks are inside.
  const int tuned_failure = tuned(c);
  if (tuned_failure == MPI_SUCCESS) {
    if (const int failure = result_blocks(c, at, false, blocks)) return failure;
    if (const int failure = pack_blocks(blocks, ours)) return failure;
  }
  if (in_place) {
    if (const int failure = result_blocks(c, at, true, blocks)) return failure;
    if (const int failure = unpack_blocks(before, blocks)) return failure;
  }
  if (const int failure = run_native(c)) return failure;
  if (const int failure = result_blocks(c, at, false, blocks)) return failure;
  if (const int failure = pack_blocks(blocks, theirs)) return failure;
  if (is_sum) {
    call of_magnitudes = c;
    of_magnitudes.send.memory = terms.data();
    of_magnitudes.receive.memory = magnitudes.data();
    const own_float_environment own;  // the program has asked for no such sum
    if (const int failure = run_native(of_magnitudes)) return failure;
  }
  if (tuned_failure != MPI_SUCCESS) return tuned_failure;
  bool alike = false;
  if (const int failure = compare_values(blocks, ours, theirs, alike)) return failure;
  if (!alike)
    with_number(components, [&]<class T>(T) {
      const own_float_environment own;
      const auto a = numbers_in<T>(ours), b = numbers_in<T>(theirs);
      alike =
          is_sum ? differ_by_rounding(a, b, numbers_in<T>(magnitudes), at.num_ranks) : close(a, b);
    });
  if (!alike)
    owner.record(
        "RAILPASS_VERIFY: " + std::string(name_of(c.op)) + " of " +
        std::to_string(c.message_bytes) +
        " bytes differs from the MPI library's own result; the call returns the library's");
  return MPI_SUCCESS;
}

}  // namespace railpass::internal
