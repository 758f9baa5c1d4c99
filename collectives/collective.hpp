// SPDX-License-Identifier: BSL-1.0
//
// The collectives there are. One line each; what a line means follows from the promise (see
// railpass/schedule/promise.hpp). A new one needs further only its native call and its arguments in
// lib/call, its declaration in railpass/mpi.hpp, and the line of its native arm.
#pragma once

#include "railpass/schedule/promise.hpp"

#include <array>
#include <string_view>

namespace railpass {

enum class collective : std::uint8_t {
  broadcast,
  all_reduce,
  reduce,
  reduce_scatter,
  reduce_scatter_block,
  gather,
  gatherv,
  scatter,
  scatterv,
  all_gather,
  all_gatherv,
  all_to_all,
  all_to_allv,
  all_to_allw,
  scan,
  exscan,
  barrier
};

/// Which ranks know the lengths of a message's blocks.
enum class block_lengths : std::uint8_t {
  equal,  ///< they are equal
  known,  ///< every rank knows all of them
  /// Only the two ranks that exchange a block know its length: algorithms send single blocks from
  /// the rank that has them to the one that wants them, unsegmented, through no scratch buffer; and
  /// no size may choose the arm.
  of_pair
};

struct collective_traits {
  std::string_view name;
  promise what;
  block_lengths lengths = block_lengths::equal;
};

inline constexpr std::array<collective_traits, 17> collectives_list{{
    {"broadcast", promise::root_to_all},
    {"all_reduce", promise::reduce_to_all},
    {"reduce", promise::reduce_to_root},
    {"reduce_scatter", promise::reduce_to_blocks, block_lengths::known},
    {"reduce_scatter_block", promise::reduce_to_blocks},
    {"gather", promise::blocks_to_root},
    {"gatherv", promise::blocks_to_root, block_lengths::of_pair},
    {"scatter", promise::root_to_blocks},
    {"scatterv", promise::root_to_blocks, block_lengths::of_pair},
    {"all_gather", promise::blocks_to_all},
    {"all_gatherv", promise::blocks_to_all, block_lengths::known},
    {"all_to_all", promise::blocks_to_blocks},
    {"all_to_allv", promise::blocks_to_blocks, block_lengths::of_pair},
    {"all_to_allw", promise::blocks_to_blocks, block_lengths::of_pair},
    {"scan", promise::prefix},
    {"exscan", promise::prefix_before},
    {"barrier", promise::all_arrive},
}};
inline constexpr std::size_t num_collectives = collectives_list.size();

/// To loop over.
inline constexpr auto all_collectives = [] {
  std::array<collective, num_collectives> all{};
  for (std::size_t i = 0; i < num_collectives; ++i) all[i] = collective(i);
  return all;
}();

constexpr const collective_traits& describe(collective op) {
  return collectives_list[std::size_t(op)];
}
constexpr const promise_traits& traits_of(collective op) { return traits_of(describe(op).what); }
constexpr std::string_view name_of(collective op) { return describe(op).name; }

/// Whether a collective's virtual ranks may be the physical ones in any order: not where that order
/// is part of what is promised.
constexpr bool takes_any_order(collective op, bool commutative) {
  switch (describe(op).what) {
    case promise::prefix:
    case promise::prefix_before:
    case promise::reduce_to_blocks:
      return false;
    default:
      return commutative || !traits_of(op).reduces;
  }
}

/// Size of the elements for measurements and predictions of reductions of `bytes`:
/// double if that divides the bytes, else float, else bytes. 1 for collectives that only move
/// data.
constexpr std::int64_t unit_bytes_of(collective op, std::int64_t bytes) {
  if (!traits_of(op).reduces) return 1;
  return bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : 1;
}

}  // namespace railpass
