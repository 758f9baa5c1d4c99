// SPDX-License-Identifier: BSL-1.0
//
// The ledger of a rank: sums of the time around its timed calls, over batches that have the same
// calls on all ranks. host_statistics.hpp compares the ledgers of all ranks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace railpass::select {

/// A timed call on one rank, until the next call on its communicator. In seconds, by any clock.
struct timed_stay {
  double came_s = 0, left_s = 0;
  double next_s = 0;  ///< arrival at the next call
};

/// Sums of one rank over a batch of timed calls.
struct ledger_batch {
  std::int64_t calls = 0;
  double outside_s = 0;       ///< between the calls and the next calls
  double passed_s = 0;        ///< from the arrivals at the calls to the arrivals at the next calls
  double since_before_s = 0;  ///< since the end of the batch before; 0: starved_s is unknown
  double starved_s = 0;       ///< of that: the rank was ready to run, but had no core
  friend bool operator==(const ledger_batch&, const ledger_batch&) = default;
};

/// The size is fixed, because a ledger travels in one message. Once all batches are in use, each
/// two neighbours are joined, and later batches are twice as long.
class rank_ledger {
 public:
  static constexpr std::size_t most_batches = 16;
  static constexpr std::int64_t first_length = 4;  ///< timed calls of a batch

  /// Returns whether the batch has all its calls; end_batch() must follow then.
  bool add(const timed_stay& s) {
    ledger_batch& b = batches_[num_batches_];
    b.outside_s += s.next_s - s.left_s;
    b.passed_s += s.next_s - s.came_s;
    return ++b.calls == length_;
  }
  void end_batch(double since_before_s, double starved_s) {
    ledger_batch& b = batches_[num_batches_++];
    b.since_before_s = since_before_s;
    b.starved_s = starved_s;
    if (num_batches_ == most_batches) halve();
  }

  /// Batches that have all their calls.
  std::span<const ledger_batch> batches() const { return std::span(batches_).first(num_batches_); }
  /// The sums of these batches.
  ledger_batch total() const {
    ledger_batch sum;
    for (const ledger_batch& b : batches()) sum = joined(sum, b);
    return sum;
  }

 private:
  static ledger_batch joined(const ledger_batch& a, const ledger_batch& b) {
    return {.calls = a.calls + b.calls,
            .outside_s = a.outside_s + b.outside_s,
            .passed_s = a.passed_s + b.passed_s,
            .since_before_s = a.since_before_s + b.since_before_s,
            .starved_s = a.starved_s + b.starved_s};
  }
  void halve() {
    num_batches_ /= 2;
    length_ *= 2;
    for (std::size_t i = 0; i < num_batches_; ++i)
      batches_[i] = joined(batches_[2 * i], batches_[2 * i + 1]);
    std::fill(batches_.begin() + num_batches_, batches_.end(), ledger_batch{});
  }

  std::array<ledger_batch, most_batches> batches_{};
  std::size_t num_batches_ = 0;
  std::int64_t length_ = first_length;
};
static_assert(std::is_trivially_copyable_v<rank_ledger>);

}  // namespace railpass::select
