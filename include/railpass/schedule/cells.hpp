// SPDX-License-Identifier: BSL-1.0
//
// How ranks that share memory take turns with it: what the executor does and the checker proves.
//
// Each rank has a ring of cells that it alone writes, and a word, its acknowledgement. All that is
// shown has a number, which all ranks know without asking: calls take numbers one behind the
// other, as many as they have places times segments, on all ranks alike, used or not. Number n is
// in cell n mod `cells` of its publisher, and the cell says so once it is there. Nobody reads
// numbers below a rank's acknowledgement any more on that rank; it grows with every segment that
// the rank is through with. A cell is used again once all ranks have acknowledged what is in it. So
// no call ends with a barrier, a publisher waits only for who is a whole ring behind, and it makes
// no difference who is the root.
//
// Memory that a rank opens to a peer has a ring of its own, of cells that only say where the memory
// is, and how long: so they can be many. At the end of the call the rank waits, behind its own
// acknowledgement, for the peer's.
#pragma once

#include "railpass/schedule/schedule.hpp"

#include <cstdint>

namespace railpass {

/// A rank's two rings: of what it publishes, and of memory that it opens.
enum class cell_ring : std::uint8_t { published, opened };
/// The one that a step in shared memory uses.
constexpr cell_ring ring_of(step_kind k) {
  return opens_memory(k) || is_single_copy(k) ? cell_ring::opened : cell_ring::published;
}

/// What the acknowledgements of all ranks must have reached before `number` may be written.
constexpr std::uint64_t acknowledged_before(std::uint64_t number, std::uint64_t cells) {
  return number < cells ? 0 : number - cells + 1;
}

/// Turns of a schedule in shared memory: segments of the steps that are, equal on all ranks. Of a
/// rank that is alone on its node, those of its local work.
constexpr std::int64_t shared_segments(const schedule& s, const message_size& size) {
  std::int64_t most = 0;
  for (const step& x : s.steps) {
    const std::int64_t segments = segments_per_round(x, size.segment_units(s.segment_bytes), size);
    if (is_shared(x.kind)) return segments;
    most = std::max(most, segments);
  }
  return s.places > 0 ? most : 0;
}

/// The number of what is published at a place, counted from the call's first one.
constexpr std::uint64_t number_in_call(const schedule& s, std::int32_t place,
                                       std::int64_t segment) {
  return std::uint64_t(segment) * std::uint64_t(s.places) + std::uint64_t(place);
}

/// Whether a step has anything to do in a turn of its schedule: each segment is one, in which the
/// steps run one after the other, all rounds of each. Steps that are not segmented run in the
/// first.
constexpr bool runs_in(const step& x, std::int64_t segment) { return x.segmented || segment == 0; }

}  // namespace railpass
