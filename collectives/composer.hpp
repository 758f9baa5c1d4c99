// SPDX-License-Identifier: BSL-1.0
//
// Combines several schedules into one: each part is a schedule that some ranks run among
// themselves, on a part of the message. The memory that a step touches determines which later steps
// wait for it. Steps that cut the same blocks into segments wait for their own segment alone, so
// levels overlap. Parts in shared memory and parts of messages become phases that follow each
// other.
#pragma once

#include "collectives/algorithm.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace railpass::collectives {

/// A part's blocks in the message: block j is blocks [begins[j], ends[j]) of `parts`.
/// A part that cuts its message into fewer blocks gets unions of these.
struct block_map {
  std::int32_t parts = 0;  ///< 0: the part's message is the whole message
  std::vector<std::int32_t> begins{}, ends{};

  /// Contiguous blocks; block j starts at borders[j].
  static block_map between(std::int32_t parts, const std::vector<std::int32_t>& borders) {
    return {parts, {borders.begin(), borders.end() - 1}, {borders.begin() + 1, borders.end()}};
  }
  /// Whether steps that walk over the part's blocks also walk evenly over the message.
  bool is_even() const {
    for (std::size_t j = 0; j < begins.size(); ++j)
      if (ends[j] - begins[j] != width() || begins[j] != std::int32_t(j) * width()) return false;
    return parts == std::int32_t(begins.size()) * width();
  }
  std::int32_t width() const { return begins.empty() ? 1 : ends[0] - begins[0]; }
  block_range operator()(const block_range& b, std::int32_t first) const {
    if (parts == 0) return {.parts = b.parts, .first = first, .stride = b.stride, .count = b.count};
    const std::int32_t each = std::int32_t(begins.size()) / b.parts;
    if (each * b.parts != std::int32_t(begins.size()))
      throw error("composer: a part cuts its message in " + std::to_string(b.parts) +
                  " blocks, expected a divisor of " + std::to_string(begins.size()));
    const std::int32_t begin = begins[std::size_t(first * each)];
    return {.parts = parts,
            .first = begin,
            .stride = b.stride * each * width(),
            .count = ends[std::size_t((first + b.count) * each - 1)] - begin};
  }
};

using buffer_map = std::array<buffer, max_buffers>;
inline constexpr buffer_map same_buffers{buffer::input,    buffer::output,   buffer::scratch0,
                                         buffer::scratch1, buffer::scratch2, buffer::scratch3};

/// The ranks that run a part, in the order of their numbers in the part.
class part_members {
 public:
  part_members(std::vector<std::int32_t> listed) : listed_(std::move(listed)) {}
  /// The ranks at the same position in each group, without a list, because groups may be many.
  part_members(const group_begins& groups, std::int32_t position)
      : groups_(groups), position_(position) {}

  std::int32_t size() const {
    return groups_.empty() ? std::int32_t(listed_.size()) : groups_.num_groups();
  }
  std::int32_t operator[](std::int32_t number) const {
    return groups_.empty() ? listed_[std::size_t(number)] : groups_[number] + position_;
  }
  /// Returns -1 for ranks that are no members.
  std::int32_t number_of(std::int32_t rank) const {
    if (groups_.empty()) {
      const auto found = std::ranges::find(listed_, rank);
      return found == listed_.end() ? -1 : std::int32_t(found - listed_.begin());
    }
    const std::int32_t group = groups_.group_of(rank);
    return groups_[group] + position_ == rank ? group : -1;
  }
  /// The distance between members if it is equal around all ranks; else 0.
  std::int32_t spacing(std::int32_t num_ranks) const {
    const std::int32_t apart = (*this)[1] - (*this)[0];
    if (apart * size() != num_ranks) return 0;
    if (!groups_.empty()) return groups_.are_equal() ? apart : 0;
    for (std::int32_t k = 2; k < size(); ++k)
      if ((*this)[k] != (*this)[0] + k * apart) return 0;
    return apart;
  }

 private:
  std::vector<std::int32_t> listed_;
  group_begins groups_;
  std::int32_t position_ = 0;
};

/// The members and the memory of a part.
struct placing {
  part_members members;
  block_map blocks{};
  buffer_map buffers = same_buffers;
};

class composer {
 public:
  /// @param segment_bytes segments of messages; segments in shared memory are as long as a cell
  composer(const shape& s, std::int64_t segment_bytes)
      : shape_(s), segment_bytes_(segment_bytes), builder_(s, segment_bytes) {}

  /// Adds this rank's steps of a part after all earlier parts; nothing if the rank is no member. If
  /// any of the ranks has a part in shared memory, all ranks add the same parts in the same order.
  /// @param waits further steps for which the whole part waits
  void add(const algorithm& what, const placing& where, const std::vector<after>& waits = {}) {
    add(what, what.default_values(), where, waits);
  }
  void add(const algorithm& what, const parameters& values, const placing& where,
           const std::vector<after>& waits = {}) {
    enter_phase(what.needs.shared_memory);
    const std::int32_t me = where.members.number_of(shape_.rank);
    if (me < 0) return;
    if (where.members.size() == 1) return add_alone(what, where);
    part now{.built = what.build(
                 {.rank = me, .num_ranks = where.members.size(), .commutative = shape_.commutative},
                 values),
             .where = where,
             .first = step_id(steps_.size()),
             .first_place = places_};
    places_ += now.built.places;
    now.unrolled = must_be_unrolled(now);
    for (const step& x : now.built.steps) {
      std::vector<std::vector<after>>& rounds = now.stand_for.emplace_back();
      for (std::int32_t r = 0; r < (now.unrolled ? x.rounds : 1); ++r) {
        std::vector<after> mine = waits;
        for (const dependency& d : now.built.dependencies_of(x)) translate(now, d, r, mine);
        const mapped_step y = mapped(now, x, r);
        if (y.what.kind == step_kind::copy && y.from == y.to && y.what.from == y.what.to)
          rounds.push_back(std::move(mine));  // the data are already in place
        else
          rounds.push_back({each(append(y, std::move(mine), now.first))});
      }
    }
  }

  step_id send(buffer from, const block_range& blocks, std::int32_t peer, const loop& l,
               std::vector<after> waits = {}) {
    enter_phase(false);
    return append({{.kind = step_kind::send,
                    .from = from,
                    .to = from,
                    .peer = peer,
                    .peer_stride = l.peer_stride,
                    .rounds = l.rounds},
                   {},
                   blocks},
                  std::move(waits), step_id(steps_.size()));
  }
  step_id receive(buffer to, const block_range& blocks, std::int32_t peer, const loop& l) {
    enter_phase(false);
    return append({{.kind = step_kind::receive,
                    .from = to,
                    .to = to,
                    .peer = peer,
                    .peer_stride = l.peer_stride,
                    .rounds = l.rounds},
                   {},
                   blocks},
                  {}, step_id(steps_.size()));
  }
  step_id copy(buffer from, const block_range& from_blocks, buffer to, const block_range& blocks,
               std::int32_t rounds = 1) {
    enter_phase(false);
    return append(
        {{.kind = step_kind::copy, .from = from, .to = to, .rounds = rounds}, from_blocks, blocks},
        {}, step_id(steps_.size()));
  }

  /// All steps so far, for a part that must wait for everything.
  std::vector<after> all_so_far() const {
    std::vector<after> all;
    for (step_id i = 0; i < step_id(steps_.size()); ++i) all.push_back(whole(i));
    return all;
  }

  schedule finish() {
    schedule last = builder_.finish();
    if (phases_.empty() && !in_memory_) return last;
    end_phase(std::move(last));
    schedule all = builder(shape_, cell_bytes).finish_phase();
    for (const schedule& phase : phases_)
      for (std::size_t b = 0; b < all.used.size(); ++b) all.used[b].include(phase.used[b]);
    all.phases = std::move(phases_);
    return all;
  }

 private:
  struct part {
    schedule built;
    const placing& where;
    step_id first;  // of the part's steps in the schedule
    std::int32_t first_place = 0;
    bool unrolled = false;
    // By step and round of the part: the steps that replace it here.
    std::vector<std::vector<std::vector<after>>> stand_for{};
  };
  // A step without its blocks, which are in terms of the whole message here.
  struct mapped_step {
    step what;
    block_range from;  // for local steps
    block_range to;
  };
  // Memory that a step touches.
  struct access {
    std::size_t memory;
    block_range blocks;
    bool writes;
  };
  struct known_step {
    std::vector<access> touches;
    std::int32_t rounds;
    bool segmented;
    std::vector<bool> ended;  // by step: whether it has ended when an instance of this step starts
  };

  void enter_phase(bool in_memory) {
    if (in_memory != in_memory_) {
      if (any_part_) end_phase(builder_.finish_phase());
      in_memory_ = in_memory;
      builder_ = builder(shape_, in_memory ? cell_bytes : segment_bytes_);
    }
    any_part_ = true;
  }
  void end_phase(schedule ended) {
    // A rank that is alone on its node publishes nothing, but other ranks do.
    if (in_memory_) ended.places = std::max(1, places_);
    phases_.push_back(std::move(ended));
    steps_.clear();
    places_ = 0;
  }

  // A message among one rank.
  void add_alone(const algorithm& what, const placing& where) {
    const buffer from = where.buffers[std::size_t(buffer::input)],
                 to = where.buffers[std::size_t(buffer::output)];
    const promise promised = describe(what.op).what;
    if (from == to || promised == promise::root_to_all || promised == promise::all_arrive) return;
    const block_range blocks = where.blocks({}, 0);
    append({{.kind = step_kind::copy, .from = from, .to = to, .segmented = true}, blocks, blocks},
           {}, step_id(steps_.size()));
  }

  // Members at equal distances around all ranks meet in the same strides.
  std::int32_t spacing(const placing& where) const {
    return where.members.spacing(shape_.num_ranks);
  }
  bool must_be_unrolled(const part& p) const {
    const bool walks_evenly = p.where.blocks.parts == 0 || p.where.blocks.is_even();
    const bool meets_evenly = spacing(p.where) > 0;
    return std::ranges::any_of(p.built.steps, [&](const step& x) {
      return x.rounds > 1 && ((x.peer_stride != 0 && !meets_evenly) ||
                              ((x.blocks.stride != 0 || x.from_stride != 0) && !walks_evenly));
    });
  }

  // Translates the steps for which round r of a part's step waits because of `d`.
  static void translate(const part& p, const dependency& d, std::int32_t r,
                        std::vector<after>& waits) {
    // The builder orders messages to a rank; other orders only affect speed.
    if (d.lag == dependency::in_turn || d.lag == dependency::posted) return;
    const auto& rounds = p.stand_for[std::size_t(d.step)];
    const auto add_all = [&] {
      for (const auto& round : rounds)
        for (const after& a : round) waits.push_back(whole(a.step));
    };
    if (d.lag == dependency::all) return add_all();
    const std::int32_t other = p.unrolled ? r - d.lag : 0;
    if (other < 0) return;
    if (other >= std::int32_t(rounds.size())) return add_all();
    for (const after& a : rounds[std::size_t(other)])
      waits.push_back({a.step, a.lag < 0 || p.unrolled ? a.lag : a.lag + d.lag});
  }

  mapped_step mapped(const part& p, const step& x, std::int32_t r) const {
    mapped_step y{.what = x, .from = {}, .to = {}};
    const auto range = [&](std::int32_t first, std::int32_t stride) {
      const block_range b{
          .parts = x.blocks.parts, .stride = p.unrolled ? 0 : stride, .count = x.blocks.count};
      return p.where.blocks(b, wrap(first + std::int64_t{r} * stride, b.parts));
    };
    y.to = range(x.blocks.first, x.blocks.stride);
    y.from = range(x.from_first, x.from_stride);
    y.what.from = p.where.buffers[std::size_t(x.from)];
    y.what.to = p.where.buffers[std::size_t(x.to)];
    if (p.unrolled) y.what.rounds = 1;
    y.what.place += p.first_place;
    if (is_local(x.kind)) return y;
    y.what.peer = p.where.members[peer_of(x, r, p.built.num_ranks)];
    y.what.peer_stride = p.unrolled || x.peer_stride == 0 ? 0 : x.peer_stride * spacing(p.where);
    return y;
  }

  // In a call in place, input and output are the same memory.
  static std::size_t memory_of(buffer b) {
    return b == buffer::input ? std::size_t(buffer::output) : std::size_t(b);
  }
  static std::vector<access> accesses(const mapped_step& y) {
    const step& x = y.what;
    if (!is_local(x.kind)) return {{memory_of(x.to), y.to, writes_memory(x.kind)}};
    return {{memory_of(x.from), y.from, false}, {memory_of(x.to), y.to, true}};
  }
  // Different cuts of the message are assumed to overlap.
  static bool overlap(const access& a, const known_step& x, const access& b, const known_step& y) {
    if (a.memory != b.memory || !(a.writes || b.writes)) return false;
    if (a.blocks.parts != b.blocks.parts || (x.rounds > 1 && a.blocks.stride != 0) ||
        (y.rounds > 1 && b.blocks.stride != 0))
      return true;
    return a.blocks.first < b.blocks.first + b.blocks.count &&
           b.blocks.first < a.blocks.first + a.blocks.count;
  }
  // How the newer step waits for the older step, if it does.
  static std::optional<std::int32_t> lag_between(const known_step& newer, const known_step& older) {
    std::optional<std::int32_t> lag;
    for (const access& a : newer.touches)
      for (const access& b : older.touches) {
        if (!overlap(a, newer, b, older)) continue;
        const bool segment_by_segment = newer.segmented && older.segmented && newer.rounds == 1 &&
                                        older.rounds == 1 && a.blocks == b.blocks;
        if (!segment_by_segment) return dependency::all;
        lag = 0;
      }
    return lag;
  }

  // Steps from `first` on belong to one part, which already has its own dependencies.
  step_id append(const mapped_step& y, std::vector<after> waits, step_id first) {
    const auto id = step_id(steps_.size());
    known_step mine{accesses(y), y.what.rounds, y.what.segmented,
                    std::vector<bool>(std::size_t(id), false)};
    const auto note = [&](const after& a) {
      // With a larger lag the first rounds wait for nothing.
      if (a.lag != dependency::all && a.lag != 0) return;
      const std::vector<bool>& before = steps_[std::size_t(a.step)].ended;
      for (std::size_t i = 0; i < before.size(); ++i)
        if (before[i]) mine.ended[i] = true;
      if (a.lag == dependency::all) mine.ended[std::size_t(a.step)] = true;
    };
    for (const after& a : waits) note(a);
    for (step_id other = first; other-- > 0;) {
      if (mine.ended[std::size_t(other)]) continue;
      const std::optional<std::int32_t> lag = lag_between(mine, steps_[std::size_t(other)]);
      if (!lag) continue;
      waits.push_back({other, *lag});
      note(waits.back());
    }
    const loop l{.rounds = y.what.rounds,
                 .peer_stride = y.what.peer_stride,
                 .segmented = y.what.segmented,
                 .window = y.what.window};
    steps_.push_back(std::move(mine));
    switch (y.what.kind) {
      case step_kind::send:
        return builder_.send(y.what.from, y.to, y.what.peer, waits, l);
      case step_kind::receive:
        return builder_.receive(y.what.to, y.to, y.what.peer, waits, l);
      case step_kind::reduce:
        return builder_.reduce(y.what.from, y.from, y.what.to, y.to, waits, l);
      case step_kind::copy:
        return builder_.copy(y.what.from, y.from, y.what.to, y.to, waits, l);
      case step_kind::publish:
        return builder_.publish(y.what.from, y.to, y.what.place, waits, l);
      case step_kind::fetch:
        return builder_.fetch(y.what.peer, y.what.place, y.what.to, y.to, waits, l);
      case step_kind::combine:
        return builder_.combine(y.what.peer, y.what.place, y.what.to, y.to, waits, l);
      default:
        throw error("composer: a part has single copies");
    }
  }

  shape shape_;
  std::int64_t segment_bytes_;
  // For the phase to which parts are added.
  builder builder_;
  std::vector<known_step> steps_;
  bool in_memory_ = false, any_part_ = false;
  std::int32_t places_ = 0;
  std::vector<schedule> phases_;  // earlier phases
};

}  // namespace railpass::collectives
