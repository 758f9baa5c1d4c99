// SPDX-License-Identifier: BSL-1.0
//
// Whether numbers are the minima or maxima of other numbers, without any operation of an MPI
// library: a result is right if it bounds each rank's input, and if for each element some rank's
// input attains it. No MPI here: lib/tuner/checked_call.hpp applies this to calls.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace railpass::internal {

enum class number_kind : std::uint8_t { other, signed_integer, unsigned_integer, floating };

/// A minimum or maximum of numbers of this kind. Its functions take packed elements, and vectors
/// that comparable() has returned.
class extreme {
 public:
  extreme() = default;
  extreme(bool is_largest, number_kind kind, std::int64_t width)
      : is_largest_(is_largest), kind_(kind), width_(std::size_t(width)) {}

  /// Whether the functions below know the type of the numbers.
  bool is_known() const {
    bool known = false;
    with_number([&](auto) { known = true; });
    return known;
  }

  /// A copy of the elements in which numbers that may count as equal are the same bits: programs
  /// may let processors treat the smallest floating-point numbers as zero.
  std::vector<std::byte> comparable(std::span<const std::byte> elements) const {
    std::vector<std::byte> copy(elements.begin(), elements.end());
    with_number([&]<class T>(T) {
      if constexpr (std::numeric_limits<T>::is_iec559)
        for (std::size_t i = 0; i * sizeof(T) < copy.size(); ++i)
          if (std::abs(at<T>(copy, i)) < std::numeric_limits<T>::min())
            std::memset(copy.data() + i * sizeof(T), 0, sizeof(T));
    });
    return copy;
  }

  /// MPI does not say which number is the extreme of a number and NaN.
  bool has_nan(const std::vector<std::byte>& elements) const {
    return count(elements, elements, []<class T>(T x, T) { return x != x; }) > 0;
  }
  /// How many elements of the result do not bound these of the input.
  std::uint64_t beyond(const std::vector<std::byte>& input,
                       const std::vector<std::byte>& result) const {
    return count(input, result, [this]<class T>(T x, T y) { return is_largest_ ? x > y : x < y; });
  }
  /// How many elements of `combined` are not the extreme of two numbers.
  std::uint64_t wrong(const std::vector<std::byte>& a, const std::vector<std::byte>& b,
                      const std::vector<std::byte>& combined) const {
    std::vector<std::byte> right = a;
    with_number([&]<class T>(T) {
      for (std::size_t i = 0; i * sizeof(T) < right.size(); ++i)
        if (is_largest_ ? at<T>(b, i) > at<T>(a, i) : at<T>(b, i) < at<T>(a, i))
          std::memcpy(right.data() + i * sizeof(T), b.data() + i * sizeof(T), sizeof(T));
    });
    return count(right, combined, []<class T>(T x, T y) { return x != y; });
  }
  /// Bits of the elements that this input does not attain.
  void mark_missed(const std::vector<std::byte>& input, const std::vector<std::byte>& result,
                   std::span<std::uint64_t> bits) const {
    std::size_t i = 0;
    count(input, result, [&]<class T>(T x, T y) {
      bits[i / 64] |= std::uint64_t{x != y} << i % 64;
      return ++i, false;
    });
  }

 private:
  template <class T>
  static T at(const std::vector<std::byte>& elements, std::size_t i) {
    T number;
    std::memcpy(&number, elements.data() + i * sizeof(T), sizeof(T));
    return number;
  }
  // Calls f with a number of the type, if the type is known.
  template <class F>
  void with_number(F f) const {
    const auto either = [&]<class Signed, class Unsigned>(Signed s, Unsigned u) {
      if (width_ != sizeof(Signed)) return;
      if (kind_ == number_kind::signed_integer) f(s);
      if (kind_ == number_kind::unsigned_integer) f(u);
    };
    either(std::int8_t{}, std::uint8_t{});
    either(std::int16_t{}, std::uint16_t{});
    either(std::int32_t{}, std::uint32_t{});
    either(std::int64_t{}, std::uint64_t{});
    if (kind_ == number_kind::floating && width_ == sizeof(float)) f(float{});
    if (kind_ == number_kind::floating && width_ == sizeof(double)) f(double{});
  }
  template <class Predicate>
  std::uint64_t count(const std::vector<std::byte>& a, const std::vector<std::byte>& b,
                      Predicate holds) const {
    std::uint64_t counted = 0;
    with_number([&]<class T>(T) {
      for (std::size_t i = 0; i * sizeof(T) < a.size(); ++i)
        counted += holds(at<T>(a, i), at<T>(b, i)) ? 1 : 0;
    });
    return counted;
  }

  bool is_largest_ = false;
  number_kind kind_ = number_kind::other;
  std::size_t width_ = 0;
};

}  // namespace railpass::internal
