// SPDX-License-Identifier: BSL-1.0
//
// The elements of an array that neighbours exchange, and how they are copied. No MPI calls here.
#pragma once

#include "railpass/array_view.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>
#include <type_traits>
#include <vector>

namespace railpass::internal::halo {

/// Elements at regular distances, as loops, the outermost loop first.
struct strided {
  std::byte* first = nullptr;
  std::vector<std::int64_t> counts{};
  std::vector<std::int64_t> strides_bytes{};

  std::int64_t elements() const {
    return std::accumulate(counts.begin(), counts.end(), std::int64_t(1), std::multiplies<>());
  }
};

/// The dimensions of an array, ordered by the distance of their elements in memory, the largest
/// first.
inline std::vector<int> memory_order(const array_layout& a) {
  std::vector<int> order(a.extents.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int i, int k) {
    return std::abs(a.strides_bytes[std::size_t(i)]) > std::abs(a.strides_bytes[std::size_t(k)]);
  });
  return order;
}

/// For each dimension: whether a side also carries the neighbours' elements at the lower end and at
/// the upper end.
using reach = std::vector<std::array<bool, 2>>;

namespace detail {

// `inside`: the part of the interior that a neighbour needs; else the position of the neighbour's
// elements.
inline strided part(const array_layout& a, std::span<const std::int64_t> widths,
                    std::span<const int> steps, std::span<const int> order, const reach& along,
                    bool inside) {
  strided result{.first = static_cast<std::byte*>(a.data)};
  for (const int dimension : order) {
    const std::size_t k = std::size_t(dimension);
    const std::int64_t w = widths[k], n = a.extents[k] - 2 * w;
    std::int64_t begin = w, count = steps[k] == 0 ? n : w;
    if (steps[k] < 0 && !inside) begin = 0;
    if (steps[k] > 0) begin = inside ? n : w + n;
    if (steps[k] == 0 && !along.empty()) {
      begin -= along[k][0] ? w : 0;
      count += (along[k][0] ? w : 0) + (along[k][1] ? w : 0);
    }
    result.first += begin * a.strides_bytes[k];
    result.counts.push_back(count);
    result.strides_bytes.push_back(a.strides_bytes[k]);
  }
  return result;
}

}  // namespace detail

/// The part of an array that the neighbour `steps` away (-1, 0 or 1 in each dimension) needs. The
/// array has `widths` elements of neighbours at each side. `order`: equal on all ranks.
inline strided sent_part(const array_layout& a, std::span<const std::int64_t> widths,
                         std::span<const int> steps, std::span<const int> order,
                         const reach& along = {}) {
  return detail::part(a, widths, steps, order, along, true);
}
/// The position of that neighbour's elements.
inline strided received_part(const array_layout& a, std::span<const std::int64_t> widths,
                             std::span<const int> steps, std::span<const int> order,
                             const reach& along = {}) {
  return detail::part(a, widths, steps, order, along, false);
}

/// Elements that are copied as they are in memory, in gapless runs of bytes.
class runs {
 public:
  runs(const strided& s, std::int64_t element_bytes) : first_(s.first), bytes_(element_bytes) {
    for (std::size_t k = 0; k < s.counts.size(); ++k)
      if (s.counts[k] != 1) loops_.push_back({s.counts[k], s.strides_bytes[k]});
    while (!loops_.empty() && loops_.back().stride == bytes_) {
      bytes_ *= loops_.back().count;
      loops_.pop_back();
    }
    for (std::size_t k = loops_.size(); k-- > 1;)
      if (loops_[k - 1].stride == loops_[k].stride * loops_[k].count) {
        loops_[k - 1] = {loops_[k - 1].count * loops_[k].count, loops_[k].stride};
        loops_.erase(loops_.begin() + std::ptrdiff_t(k));
      }
  }

  struct loop {
    std::int64_t count, stride;
  };
  std::byte* first() const { return first_; }
  std::int64_t run_bytes() const { return bytes_; }
  const std::vector<loop>& loops() const { return loops_; }
  std::int64_t count() const {  ///< of runs
    std::int64_t product = 1;
    for (const loop& l : loops_) product *= l.count;
    return product;
  }

  /// Copies all elements to consecutive bytes; returns the end of these bytes.
  std::byte* pack(std::byte* to) const {
    each([&to](std::byte* at, auto bytes) {
      std::memcpy(to, at, std::size_t(bytes));
      to += bytes;
    });
    return to;
  }
  /// Copies consecutive bytes to all elements; returns the end of these bytes.
  const std::byte* unpack(const std::byte* from) const {
    each([&from](std::byte* at, auto bytes) {
      std::memcpy(at, from, std::size_t(bytes));
      from += bytes;
    });
    return from;
  }

 private:
  // Copies of a length that the compiler knows take one move each.
  template <class F>
  void each(const F& copy) const {
    switch (bytes_) {
      case 4:
        return each(copy, std::integral_constant<std::int64_t, 4>());
      case 8:
        return each(copy, std::integral_constant<std::int64_t, 8>());
      case 16:
        return each(copy, std::integral_constant<std::int64_t, 16>());
      default:
        return each(copy, bytes_);
    }
  }
  template <class F, class Bytes>
  void each(const F& copy, Bytes bytes) const {
    if (loops_.empty()) return copy(first_, bytes);
    nested(copy, bytes, first_, 0);
  }
  template <class F, class Bytes>
  void nested(const F& copy, Bytes bytes, std::byte* at, std::size_t k) const {
    const auto [count, stride] = loops_[k];
    const bool innermost = k + 1 == loops_.size();
    for (std::int64_t i = 0; i < count; ++i, at += stride)
      if (innermost)
        copy(at, bytes);
      else
        nested(copy, bytes, at, k + 1);
  }

  std::byte* first_;
  std::int64_t bytes_;
  std::vector<loop> loops_;
};

}  // namespace railpass::internal::halo
