// SPDX-License-Identifier: BSL-1.0
//
// All instances of all ranks' steps, one by one: which units each reads and writes, and its peer.
#pragma once

#include "railpass/schedule/checking/call.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace railpass::checking {

// A step of one rank.
struct task {
  const step* what = nullptr;
  index rank = 0;
  index number = 0;  // in its schedule
  index first = 0;   // its instances: [first, first + total)
  index total = 0;
  index segments = 1;
};
// A step for one segment of one round.
struct instance {
  index begin = 0, end = 0;  // units
  index from = 0;            // reduce and copy: the first unit that is read
  index peer = 0;
  index owner = 0;  // task
  bool empty() const { return begin == end; }
};

class unrolled {
 public:
  explicit unrolled(checked_call& call) : call_(call) {}

  std::vector<task> tasks;        // rank by rank
  std::vector<index> first_task;  // by virtual rank, and the end
  std::vector<instance> instances;

  bool expand() {
    tasks.clear();
    instances.clear();
    first_task.assign(1, 0);
    const std::int64_t segment_units = call_.size.segment_units(call_.schedules[0].segment_bytes);
    for (index v = 0; v < call_.num_ranks; ++v) {
      const schedule& s = call_.schedules[std::size_t(v)];
      for (std::size_t i = 0; i < s.steps.size(); ++i) {
        const step& x = s.steps[i];
        task t{.what = &x, .rank = v, .number = index(i), .first = index(instances.size())};
        const message_size to_size = call_.size_of(v, x.to), from_size = call_.size_of(v, x.from);
        t.segments = index(segments_per_round(x, segment_units, to_size));
        t.total = x.rounds * t.segments;
        const bool local = is_local(x.kind);
        for (index r = 0; r < x.rounds; ++r) {
          const extent whole = round_extent(x.blocks, r, to_size);
          const index peer = local ? v : peer_of(x, r, call_.num_ranks);
          const std::int64_t from = local ? round_source(x, r, from_size) : whole.begin;
          for (index k = 0; k < t.segments; ++k) {
            const extent e = segment_of(x, whole, k, segment_units);
            instances.push_back({.begin = index(e.begin),
                                 .end = index(e.end),
                                 .from = index(from + e.begin - whole.begin),
                                 .peer = peer,
                                 .owner = index(tasks.size())});
            if (e.size() > 0) ++call_.found.steps;
          }
          if (local && whole.size() != source_length(x, r, from_size))
            return call_.fail(call_.form_text(v, i) +
                              ": reads and writes ranges of different lengths");
          if (writes_memory(x.kind) && whole.size() > 0 && x.to == buffer::output) {
            const extent mine = call_.output_of(v);
            if (whole.begin < mine.begin || whole.end > mine.end)
              return call_.fail(call_.form_text(v, i) + ": writes units [" +
                                std::to_string(whole.begin) + ", " + std::to_string(whole.end) +
                                ") of its output, but only has memory for [" +
                                std::to_string(mine.begin) + ", " + std::to_string(mine.end) + ")");
          }
          if (!in_scratch(s, x.to, whole) ||
              (local && !in_scratch(s, x.from, {from, from + whole.size()})))
            return call_.fail(call_.form_text(v, i) + not_in_scratch);
        }
        tasks.push_back(t);
      }
      first_task.push_back(index(tasks.size()));
    }
    return true;
  }

  std::span<const task> tasks_of(index v) const {
    return {tasks.data() + first_task[std::size_t(v)],
            std::size_t(first_task[std::size_t(v) + 1] - first_task[std::size_t(v)])};
  }
  std::span<const dependency> dependencies_of(const task& t) const {
    return call_.schedules[std::size_t(t.rank)].dependencies_of(*t.what);
  }
  std::string instance_text(index i) const {
    const instance& x = instances[std::size_t(i)];
    const task& t = tasks[std::size_t(x.owner)];
    const index k = i - t.first;
    std::string text = call_.rank_text(t.rank) + call_.phase_text + " step " +
                       std::to_string(t.number) + " (" + call_.step_text(*t.what, x.peer);
    if (t.what->rounds > 1) text += ", round " + std::to_string(k / t.segments);
    if (t.segments > 1) text += ", segment " + std::to_string(k % t.segments);
    return text + ") units [" + std::to_string(x.begin) + ", " + std::to_string(x.end) + ")";
  }

 private:
  static constexpr const char* not_in_scratch =
      ": names a part of a scratch buffer that schedule::used does not";
  static std::int64_t source_length(const step& x, index round, const message_size& size) {
    const block_range range{.parts = x.blocks.parts,
                            .first = x.from_first,
                            .stride = x.from_stride,
                            .count = x.blocks.count};
    return round_extent(range, round, size).size();
  }
  bool in_scratch(const schedule& s, buffer b, const extent& e) const {
    if (b < buffer::scratch0) return true;
    const buffer_use& u = s.use_of(b);
    if (u.last == 0) return false;
    const extent used = blocks_extent(u.first, u.last - u.first, u.parts, call_.size);
    return e.begin >= used.begin && e.end <= used.end;
  }

  checked_call& call_;
};

}  // namespace railpass::checking
