// SPDX-License-Identifier: BSL-1.0
//
// Checks the form of each schedule: numbers are in range, dependencies point back, the size is
// small. Checks of what the steps do are in the other files of this folder.
#pragma once

#include "railpass/schedule/checking/call.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

namespace railpass {

inline constexpr std::size_t max_schedule_bytes = 64 * 1024;
inline constexpr std::int32_t max_ranks_for_schedule_bytes = 64;

/// Whether a rank can post all its messages and local work at once, so that a nonblocking call
/// needs no progress calls. No step may wait for the end of another step, and all messages must fit
/// in the executor's window.
inline bool all_ready_at_start(const schedule& s, const message_size& size,
                               std::int64_t window = 64) {
  if (!s.phases.empty()) return false;
  std::int64_t sends = 0, receives = 0;
  for (const step& x : s.steps) {
    for (const dependency& d : s.dependencies_of(x))
      if (d.lag != dependency::posted &&
          (d.lag != dependency::in_turn || size.bytes() >= large_message_bytes))
        return false;
    const std::int64_t instances =
        x.rounds * segments_per_round(x, size.segment_units(s.segment_bytes), size);
    if (is_shared(x.kind) || (is_message(x.kind) && instances > x.window)) return false;
    if (x.kind == step_kind::send) sends += instances;
    if (x.kind == step_kind::receive) receives += instances;
  }
  return sends <= window && receives <= window;
}

namespace checking {

inline bool knows_lengths(const checked_call& call, const step& x, index v) {
  const block_range& b = x.blocks;
  if (b.parts != call.num_ranks || b.count != 1 || x.segmented || x.from >= buffer::scratch0 ||
      x.to >= buffer::scratch0)
    return false;
  if (is_local(x.kind)) return x.rounds == 1 && b.first == v && x.from_first == v;
  for (index r = 0; r < x.rounds; ++r) {
    const index block = wrap(b.first + std::int64_t{r} * b.stride, call.num_ranks);
    if (block != v && block != peer_of(x, r, call.num_ranks)) return false;
  }
  return true;
}

// Checks a publish or a later kind of step.
inline bool check_shared_step(checked_call& call, index v, std::size_t number) {
  const schedule& s = call.schedules[std::size_t(v)];
  const step& x = s.steps[number];
  const auto wrong = [&](const std::string& text) {
    return call.fail(call.form_text(v, number) + ": " + text);
  };
  if (x.place < 0 || x.place >= s.places)
    return wrong("the place is " + std::to_string(x.place) + " of " + std::to_string(s.places));
  if (x.rounds != 1) return wrong("rounds is " + std::to_string(x.rounds) + ", expected 1");
  const auto segments = [&](index rank, const step& y) {
    return segments_per_round(y, call.size.segment_units(s.segment_bytes),
                              call.size_of(rank, y.to));
  };
  const index leader = call.first_on_node(v);
  const auto& first = call.schedules[std::size_t(leader)].steps;
  const auto other = std::ranges::find_if(first, [](const step& y) { return is_shared(y.kind); });
  if (other != first.end() && segments(v, x) != segments(leader, *other))
    return wrong("has " + std::to_string(segments(v, x)) + " segments, a step of " +
                 call.rank_text(leader) + " has " + std::to_string(segments(leader, *other)));
  if (x.peer < 0 || x.peer >= call.num_ranks) return wrong("there is no such rank");
  if (call.first_on_node(x.peer) != leader) return wrong("the peer is on another node");
  if ((opens_memory(x.kind) || is_single_copy(x.kind)) && x.peer == v)
    return wrong("the peer is the rank itself");
  if (looks(x.kind)) return true;
  for (std::size_t i = 0; i < number; ++i)
    if (shows(s.steps[i].kind) && s.steps[i].place == x.place)
      return wrong("step " + std::to_string(i) + " shows something at the same place");
  if (x.kind != step_kind::publish) return true;
  const std::int64_t whole = longest_range(x.blocks.count, x.blocks.parts, call.size_of(v, x.to));
  const std::int64_t units =
      x.segmented ? std::min(whole, call.size.segment_units(s.segment_bytes)) : whole;
  if (units * call.size.unit_bytes > cell_bytes)
    return wrong("has " + std::to_string(units * call.size.unit_bytes) +
                 " bytes at once, a slot of shared memory holds " + std::to_string(cell_bytes));
  return true;
}

inline bool check_step(checked_call& call, index v, std::size_t number) {
  const schedule& s = call.schedules[std::size_t(v)];
  const step& x = s.steps[number];
  const block_range& b = x.blocks;
  const auto wrong = [&](const std::string& text) {
    return call.fail(call.form_text(v, number) + ": " + text);
  };
  const bool message = is_message(x.kind), local = is_local(x.kind);
  if (x.rounds < 1) return wrong("rounds is " + std::to_string(x.rounds) + ", expected 1 or more");
  if (x.window < 1 || x.window > max_window)
    return wrong("window is " + std::to_string(x.window) + ", expected 1 to " +
                 std::to_string(max_window));
  if (b.parts < 1 || b.count < 1 || b.count > b.parts)
    return wrong("takes " + std::to_string(b.count) + " of " + std::to_string(b.parts) + " blocks");
  if (call.lengths_of_pair && !knows_lengths(call, x, v))
    return wrong(
        "does not know how long the block is: expected single unsegmented blocks of its "
        "own rank or of the peer");
  for (index r = 0; r < x.rounds; ++r) {
    if (wrap(b.first + std::int64_t{r} * b.stride, b.parts) + b.count > b.parts ||
        (local &&
         wrap(x.from_first + std::int64_t{r} * x.from_stride, b.parts) + b.count > b.parts))
      return wrong("the blocks of round " + std::to_string(r) +
                   " go beyond the end of the message");
    if (message && peer_of(x, r, call.num_ranks) == v)
      return wrong("the peer of round " + std::to_string(r) + " is the rank itself");
  }
  if (writes_memory(x.kind) && x.to == buffer::input) return wrong("writes the input");
  if (local && x.from == x.to) return wrong("source and target are the same buffer");
  if (message && s.places > 0) return wrong("is a message of a schedule with shared memory");
  if (is_shared(x.kind) && !check_shared_step(call, v, number)) return false;
  for (const dependency& d : s.dependencies_of(x)) {
    if (d.step < 0 || std::size_t(d.step) >= number)
      return wrong("waits for step " + std::to_string(d.step) + ", expected an earlier one");
    const step& other = s.steps[std::size_t(d.step)];
    const std::int64_t segment = call.size.segment_units(s.segment_bytes);
    if ((d.lag >= 0 || d.lag == dependency::in_turn) &&
        segments_per_round(x, segment, call.size) != segments_per_round(other, segment, call.size))
      return wrong("waits for single segments of step " + std::to_string(d.step) +
                   ", which has another number of them");
    const auto told = s.successors_of(other);
    if (std::find(told.begin(), told.end(), index(number)) == told.end())
      return wrong("is not among the successors of step " + std::to_string(d.step) +
                   ", which it waits for");
  }
  return true;
}

// Checks that all schedules are small.
inline bool check_memory(checked_call& call) {
  for (const schedule& s : call.schedules)
    call.found.memory_bytes = std::max(call.found.memory_bytes, s.memory_bytes());
  return call.num_ranks > max_ranks_for_schedule_bytes ||
         call.found.memory_bytes <= max_schedule_bytes ||
         call.fail("a schedule takes " + std::to_string(call.found.memory_bytes) +
                   " bytes, expected at most " + std::to_string(max_schedule_bytes));
}

// Checks that all ranks have the same phases, if any.
inline bool check_phases(checked_call& call) {
  const std::span<const schedule> first = phases_of(call.schedules[0]);
  for (index v = 0; v < call.num_ranks; ++v) {
    const schedule& s = call.schedules[std::size_t(v)];
    if (phases_of(s).size() != first.size())
      return call.fail(call.rank_text(v) + ": there are " + std::to_string(phases_of(s).size()) +
                       " phases, " + call.rank_text(0) + " has " + std::to_string(first.size()));
    if (s.phases.empty()) continue;
    if (!s.steps.empty() || s.places > 0)
      return call.fail(call.rank_text(v) + ": has both steps and phases");
    for (std::size_t k = 0; k < first.size(); ++k) {
      const schedule& phase = s.phases[k];
      const std::string where = call.rank_text(v) + " phase " + std::to_string(k);
      if (!phase.phases.empty()) return call.fail(where + ": has phases itself");
      if ((phase.places > 0) != (first[k].places > 0))
        return call.fail(where + ": is " + (phase.places > 0 ? "" : "not ") +
                         "in shared memory, unlike that of " + call.rank_text(0));
    }
  }
  return true;
}

// Checks one phase.
inline bool check_form(checked_call& call) {
  for (index v = 0; v < call.num_ranks; ++v) {
    const schedule& s = call.schedules[std::size_t(v)];
    if (s.rank != v || s.num_ranks != call.num_ranks)
      return call.fail(call.rank_text(v) + ": the schedule says rank " + std::to_string(s.rank) +
                       " of " + std::to_string(s.num_ranks) + ", expected " + std::to_string(v) +
                       " of " + std::to_string(call.num_ranks));
    if (s.segment_bytes != call.schedules[0].segment_bytes)
      return call.fail(call.rank_text(v) + ": segment_bytes is " + std::to_string(s.segment_bytes) +
                       ", rank " + std::to_string(call.physical(0)) + " has " +
                       std::to_string(call.schedules[0].segment_bytes));
    const index leader = call.first_on_node(v);
    if (s.places != call.schedules[std::size_t(leader)].places)
      return call.fail(call.rank_text(v) + ": there are " + std::to_string(s.places) +
                       " places, rank " + std::to_string(call.physical(leader)) + " has " +
                       std::to_string(call.schedules[std::size_t(leader)].places));
    if (s.places > 0 && !call.is_alone(v) &&
        std::ranges::none_of(s.steps, [](const step& x) { return is_shared(x.kind); }))
      return call.fail(call.rank_text(v) + ": has no step in shared memory, and so does not know " +
                       "how many segments the other ranks show");
    for (std::size_t i = 0; i < s.steps.size(); ++i)
      if (!check_step(call, v, i)) return false;
  }
  return true;
}

}  // namespace checking
}  // namespace railpass
