// SPDX-License-Identifier: BSL-1.0
//
// The protocol of shared memory, which the executor runs and the checker proves.
//
// Each rank has a ring of cells that only this rank writes, and one word, its acknowledgement.
// Everything shown has a number that all ranks know without communication: each call takes places
// times segments numbers, equal on all ranks, used or not. Number n is in cell n mod `cells` of its
// publisher, and the cell contains n once the data are there. A rank no longer reads numbers below
// its acknowledgement, which grows with each segment that the rank has finished. A cell is reused
// after all ranks have acknowledged its data. Therefore no call ends with a barrier, a publisher
// waits only for ranks that are a whole ring behind, and the choice of the root makes no
// difference.
//
// Memory that a rank opens to a peer uses a ring of its own. Its cells contain only address and
// length, so the ring can have many cells. At the end of the call the rank waits for the peer's
// acknowledgement, after setting its own.
#pragma once

#include "railpass/schedule/schedule.hpp"

#include <cstdint>

namespace railpass {

/// A rank's two rings: for published data, and for opened memory.
enum class cell_ring : std::uint8_t { published, opened };
/// The ring of a step in shared memory.
constexpr cell_ring ring_of(step_kind k) {
  return opens_memory(k) || is_single_copy(k) ? cell_ring::opened : cell_ring::published;
}

/// The value that all ranks' acknowledgements must reach before `number` may be written.
constexpr std::uint64_t acknowledged_before(std::uint64_t number, std::uint64_t cells) {
  return number < cells ? 0 : number - cells + 1;
}

/// Turns of a schedule in shared memory: segments of its shared steps, equal on all ranks. For a
/// rank that is alone on its node, the segments of its local work.
constexpr std::int64_t shared_segments(const schedule& s, const message_size& size) {
  std::int64_t most = 0;
  for (const step& x : s.steps) {
    const std::int64_t segments = segments_per_round(x, size.segment_units(s.segment_bytes), size);
    if (is_shared(x.kind)) return segments;
    most = std::max(most, segments);
  }
  return s.places > 0 ? most : 0;
}

/// The number of data published at a place, counted from the call's first number.
constexpr std::uint64_t number_in_call(const schedule& s, std::int32_t place,
                                       std::int64_t segment) {
  return std::uint64_t(segment) * std::uint64_t(s.places) + std::uint64_t(place);
}

/// Whether a step has work in a turn of its schedule. Each segment is a turn, in which all steps
/// run one after the other with all their rounds. Steps without segments run in the first turn.
constexpr bool runs_in(const step& x, std::int64_t segment) { return x.segmented || segment == 0; }

}  // namespace railpass
