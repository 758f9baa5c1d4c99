// SPDX-License-Identifier: BSL-1.0
#include "lib/tuner/kept_call.hpp"

#include "lib/buffers/sum_rounding.hpp"
#include "lib/call/datatype.hpp"
#include "railpass/base/float_environment.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

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

kept_call::kept_call(const call& c, const calling_rank& at) : call_(c), at_(at) {
  const bool may_round = c.is_reduction() && components_of(c.receive.type) != floating::none;
  is_sum_ = may_round && c.operation == MPI_SUM;
}

// A call in place overwrites its input, and a faulty broadcast perhaps that of its root.
int kept_call::input_blocks() {
  if (call_.send.in_place()) return result_blocks(call_, at_, true, blocks_);
  if (describe(call_.op).what == promise::root_to_all) return sent_blocks(call_, at_, blocks_);
  blocks_.clear();
  return MPI_SUCCESS;
}

int kept_call::keep_input() {
  if (is_sum_) {
    if (const int failure = sent_blocks(call_, at_, blocks_)) return failure;
    if (const int failure = pack_blocks(blocks_, terms_, at_.own)) return failure;
    make_absolute(components_of(call_.receive.type), terms_);
    magnitudes_.resize(terms_.size());
  }
  if (const int failure = input_blocks()) return failure;
  return pack_blocks(blocks_, input_, at_.own);
}

int kept_call::restore_input() {
  if (const int failure = input_blocks()) return failure;
  return unpack_blocks(input_, blocks_, at_.own);
}

int kept_call::result_bytes(std::size_t& bytes) {
  if (const int failure = result_blocks(call_, at_, false, blocks_)) return failure;
  bytes = packed_bytes(blocks_);
  return MPI_SUCCESS;
}

int kept_call::keep_result(std::vector<std::byte>& result) {
  if (const int failure = result_blocks(call_, at_, false, blocks_)) return failure;
  return pack_blocks(blocks_, result, at_.own);
}

int kept_call::put_back(const std::vector<std::byte>& result) {
  if (const int failure = result_blocks(call_, at_, false, blocks_)) return failure;
  return unpack_blocks(result, blocks_, at_.own);
}

int kept_call::sum_magnitudes() {
  if (!is_sum_) return MPI_SUCCESS;
  call of_magnitudes = call_;
  of_magnitudes.send.memory = terms_.data();
  of_magnitudes.receive.memory = magnitudes_.data();
  const own_float_environment own;  // the program has asked for no such sum
  return run_native(of_magnitudes);
}

int kept_call::compare(const bytes& a, const bytes& b, bool& alike) {
  if (const int failure = result_blocks(call_, at_, false, blocks_)) return failure;
  if (const int failure = compare_values(blocks_, a, b, alike)) return failure;
  if (alike || !call_.is_reduction()) return MPI_SUCCESS;
  with_number(components_of(call_.receive.type), [&]<class T>(T) {
    const own_float_environment own;
    const auto x = numbers_in<T>(a), y = numbers_in<T>(b);
    alike =
        is_sum_ ? differ_by_rounding(x, y, numbers_in<T>(magnitudes_), at_.num_ranks) : close(x, y);
  });
  return MPI_SUCCESS;
}

}  // namespace railpass::internal
