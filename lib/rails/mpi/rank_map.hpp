// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace railpass::internal {

/// Maps the ranks of a communicator to their ranks in a larger communicator. Programs mostly make
/// communicators of all ranks, rows and columns: then no table is kept.
class rank_map {
 public:
  /// Every rank is the same in both.
  rank_map() = default;
  /// `others[r]` is what the other communicator calls rank r.
  explicit rank_map(std::vector<int> others) {
    if (others.empty()) return;
    first_ = others[0];
    if (others.size() > 1) stride_ = others[1] - others[0];
    for (std::size_t r = 0; r < others.size(); ++r)
      if (others[r] != first_ + int(r) * stride_) {
        table_ = std::move(others);
        return;
      }
  }

  /// Whether every rank is the same in both.
  bool is_same() const { return table_.empty() && first_ == 0 && stride_ == 1; }
  int operator[](int rank) const {
    return table_.empty() ? first_ + rank * stride_ : table_[std::size_t(rank)];
  }

 private:
  int first_ = 0, stride_ = 1;
  std::vector<int> table_;  // empty: evenly spaced
};

}  // namespace railpass::internal
