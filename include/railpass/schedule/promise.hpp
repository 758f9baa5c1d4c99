// SPDX-License-Identifier: BSL-1.0
//
// The promises of collectives, independent of algorithms. The checker proves them; a table contains
// the consequences (memory of each rank, meaning of in place).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace railpass {

/// Block k of a message belongs to (virtual) rank k. `contribution` is a rank's input.
enum class promise : std::uint8_t {
  root_to_all,       ///< every output is the root's output
  reduce_to_all,     ///< every output is the reduction of all inputs, the same bits everywhere
  reduce_to_root,    ///< the root's output is the reduction of all inputs
  reduce_to_blocks,  ///< block v of rank v's output is that block of the reduction of all inputs
  prefix,            ///< rank v's output is the reduction of the inputs of ranks 0 to v
  prefix_before,     ///< the same without rank v's; rank 0's output stays untouched
  blocks_to_root,    ///< block k of the root's output is block k of rank k's input
  root_to_blocks,    ///< block v of rank v's output is block v of the root's input
  blocks_to_all,     ///< block k of every output is block k of rank k's input
  blocks_to_blocks,  ///< block k of rank v's output is block v of rank k's input
  all_arrive         ///< no rank ends before all have started; rank v may send block v of its input
};
inline constexpr std::size_t num_promises = 11;

/// The ranks on which a call may be in place: input and output are then the same memory. Other
/// buffers (the output of a reduce_scatter, the input of an all_to_all) are copied before or after.
enum class in_place_ranks : std::uint8_t { none, root, all };

struct promise_traits {
  bool reduces;  ///< has an operation; units are elements, which must not be cut
  bool rooted;
  bool blocks;  ///< the message is made of one block per rank
  in_place_ranks in_place;
};

inline constexpr std::array<promise_traits, num_promises> promises_list{{
    {false, true, false, in_place_ranks::none},  // root_to_all
    {true, false, false, in_place_ranks::all},   // reduce_to_all
    {true, true, false, in_place_ranks::root},   // reduce_to_root
    {true, false, true, in_place_ranks::none},   // reduce_to_blocks
    {true, false, false, in_place_ranks::all},   // prefix
    {true, false, false, in_place_ranks::all},   // prefix_before
    {false, true, true, in_place_ranks::root},   // blocks_to_root
    {false, true, true, in_place_ranks::root},   // root_to_blocks
    {false, false, true, in_place_ranks::all},   // blocks_to_all
    {false, false, true, in_place_ranks::none},  // blocks_to_blocks
    {false, false, true, in_place_ranks::none},  // all_arrive
}};

constexpr const promise_traits& traits_of(promise what) { return promises_list[std::size_t(what)]; }

}  // namespace railpass
