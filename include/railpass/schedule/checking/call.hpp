// SPDX-License-Identifier: BSL-1.0
//
// The checker's input and output, and the checked call: the schedules of all ranks, the memory of
// each rank, and the first fault.
#pragma once

#include "railpass/schedule/promise.hpp"
#include "railpass/schedule/schedule.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace railpass {

/// The purpose of a call's schedules.
struct check_case {
  promise what = promise::root_to_all;
  /// The physical rank of virtual rank 0, for messages only. For a reduce_to_root that does not
  /// commute, it is the rank that gets the result (shape::result_rank).
  std::int32_t root = 0;
  bool commutative = true;  ///< reductions: operands may be in any order
  bool in_place = false;    ///< input and output are the same memory, where the promise allows that
  message_size size{};
  bool prove_ending = true;  ///< false if known: the end does not depend on where data lie
  /// The first virtual rank of each node whose ranks share memory, then num_ranks; empty: all ranks
  /// share memory. Borrowed.
  std::span<const std::int32_t> nodes{};
  /// Only the two ranks that exchange a block know its length: steps may only name single blocks of
  /// their own or of a peer.
  bool lengths_of_pair = false;
  /// blocks_to_blocks with unequal blocks: num_ranks * num_ranks lengths, entry i * num_ranks + j
  /// of the block from rank i to rank j; empty: all are equal. size.units is then the longest sum
  /// of a row or column. Borrowed.
  std::span<const std::int64_t> lengths{};
};

struct check_result {
  bool ok = true;
  std::int64_t steps = 0;        ///< instances of steps with data in them, over all ranks
  std::size_t memory_bytes = 0;  ///< of the largest schedule
  bool all_ready_at_start = true;
  std::string message;  ///< the fault: rank, step, unit, expected value
};

namespace checking {

using index = std::int32_t;
inline constexpr index none = -1;

inline std::string buffer_text(buffer b) {
  static constexpr std::array<const char*, max_buffers> names{"input",    "output",   "scratch0",
                                                              "scratch1", "scratch2", "scratch3"};
  return names[std::size_t(b)];
}

// Ranks are virtual unless noted.
class checked_call : public check_case {
 public:
  std::span<const schedule> schedules;
  index num_ranks = 0;
  promise_traits traits{};
  index first_root = 0;  // with the root's memory
  std::string phase_text;
  check_result found;

  void set(std::span<const schedule> all, const check_case& c) {
    check_case::operator=(c);
    found = {};
    schedules = all;
    phase_text.clear();
    num_ranks = index(all.size());
    traits = traits_of(c.what);
    // Reductions in rank order use physical ranks.
    rotation_ = traits.reduces && !c.commutative ? 0 : c.root;
    first_root = rotation_ == c.root ? 0 : c.root;
    lay_out_blocks();
  }

  // --- error messages

  index physical(index v) const { return physical_rank(v, rotation_, num_ranks); }
  std::string rank_text(index v) const { return "rank " + std::to_string(physical(v)); }
  std::string step_text(const step& s, index peer) const {
    const std::string from = buffer_text(s.from), to = buffer_text(s.to), who = rank_text(peer);
    const std::string place = " at " + std::to_string(s.place);
    switch (s.kind) {
      case step_kind::send:
        return "send of " + from + " to " + who;
      case step_kind::receive:
        return "receive into " + to + " from " + who;
      case step_kind::reduce:
        return "reduce of " + from + " into " + to;
      case step_kind::publish:
        return "publish of " + from + place;
      case step_kind::fetch:
        return "fetch into " + to + " from " + who + place;
      case step_kind::combine:
        return "combine into " + to + " from " + who + place;
      case step_kind::offer:
        return "offer of " + from + " to " + who + place;
      case step_kind::get:
        return "get into " + to + " from " + who + place;
      case step_kind::invite:
        return "invite into " + to + " of " + who + place;
      case step_kind::put:
        return "put of " + from + " to " + who + place;
      default:
        return "copy of " + from + " to " + to;
    }
  }
  std::string form_text(index rank, std::size_t number) const {
    const step& s = schedules[std::size_t(rank)].steps[number];
    return rank_text(rank) + phase_text + " step " + std::to_string(number) + " (" +
           step_text(s, s.peer) + ")";
  }
  bool fail(std::string text) {
    if (found.message.empty()) found.message = std::move(text);
    return false;
  }

  // The first rank of a rank's node.
  index first_on_node(index v) const {
    return nodes.empty() ? 0 : *(std::ranges::upper_bound(nodes, v) - 1);
  }
  bool is_alone(index v) const {
    return nodes.empty() ? num_ranks == 1
                         : *std::ranges::upper_bound(nodes, v) == first_on_node(v) + 1;
  }

  // --- the memory of each rank

  message_size size_of(index v, buffer b) const {
    if (tables_.empty() || b >= buffer::scratch0) return size;
    message_size own = size;
    own.blocks = {tables_.data() + (std::size_t(v) * 2 + std::size_t(b)) * std::size_t(num_ranks),
                  std::size_t(num_ranks)};
    own.units = own.blocks.back().end;
    return own;
  }
  extent block_of(index v, buffer b, index k) const {
    return blocks_extent(k, 1, num_ranks, size_of(v, b));
  }
  bool aliased(index v) const {
    return in_place && (traits.in_place == in_place_ranks::all ||
                        (traits.in_place == in_place_ranks::root && v == first_root));
  }

  // The units of the output for which a rank has memory.
  extent output_of(index v) const {
    const extent all{0, size_of(v, buffer::output).units}, none_at_all{0, 0};
    switch (what) {
      case promise::reduce_to_root:  // rank 0 passes it on
        return v == first_root || v == 0 ? all : none_at_all;
      case promise::blocks_to_root:
        return v == 0 ? all : none_at_all;
      case promise::prefix_before:
        return v > 0 ? all : none_at_all;
      case promise::reduce_to_blocks:
      case promise::root_to_blocks:
        return block_of(v, buffer::output, v);
      default:
        return all;
    }
  }
  // In place, input and output are the same.
  std::size_t buffer_index(index v, buffer b) const {
    return b == buffer::input && aliased(v) ? std::size_t(buffer::output) : std::size_t(b);
  }

 private:
  void lay_out_blocks() {
    tables_.clear();
    if (lengths.empty()) return;
    // For each rank: its input blocks, then its output blocks.
    for (index v = 0; v < num_ranks; ++v)
      for (const bool out : {false, true}) {
        std::int64_t at = 0;
        for (index k = 0; k < num_ranks; ++k) {
          const std::int64_t length =
              lengths[std::size_t(out ? k * num_ranks + v : v * num_ranks + k)];
          tables_.push_back({at, at + length});
          at += length;
        }
      }
  }

  index rotation_ = 0;          // physical rank of virtual rank 0
  std::vector<extent> tables_;  // see lay_out_blocks
};

}  // namespace checking
}  // namespace railpass
