// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/base/error.hpp"
#include "railpass/schedule/schedule.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <utility>

namespace railpass {

/// The inputs of a schedule. All values except `rank` are equal on all ranks.
struct shape {
  std::int32_t rank = 0;  ///< virtual: (rank - root) mod num_ranks
  std::int32_t num_ranks = 1;
  bool commutative = true;  ///< reductions: the operands may be exchanged
  /// The rank that gets the result of a rooted reduction in rank order, whose virtual ranks are the
  /// physical ranks. Algorithms bring the result to rank 0's output, and builder::finish passes it
  /// on; algorithms with steps in shared memory bring it to result_rank themselves.
  std::int32_t result_rank = 0;
  /// For algorithms that know nodes (see nodes.hpp): the first virtual rank of each node, and
  /// num_ranks; empty: all ranks are on one node. Likewise for algorithms that know caches.
  group_begins nodes{};
};

/// Names a step while a schedule is being built. Negative: no step. Depending on no step is allowed
/// and has no effect, which spares algorithms an `if` for the first round.
using step_id = std::int32_t;
inline constexpr step_id no_step = -1;

/// A dependency as algorithms write it.
struct after {
  step_id step;
  std::int32_t lag;
};
/// Wait for the end of `step`.
constexpr after whole(step_id step) { return {step, dependency::all}; }
/// Instance (round, segment) waits for instance (round - lag, segment) of `step`.
constexpr after each(step_id step, std::int32_t lag = 0) { return {step, lag}; }

/// Waits until all instances of `step`, a send or receive, have been posted.
constexpr after posted(step_id step) { return {step, dependency::posted}; }

/// The dependencies of a step: a list in braces, or a vector if the list grows round by round.
/// Valid only during the call to which it is passed.
class wait_list {
 public:
  wait_list(std::initializer_list<after> list) : list_(list.begin(), list.size()) {}
  wait_list(const std::vector<after>& list) : list_(list) {}
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

 private:
  std::span<const after> list_;
};

/// The repetition of a step. Aggregate, so that algorithms write {.rounds = p - 1, .peer_stride =
/// 1}.
struct loop {
  std::int32_t rounds = 1;
  std::int32_t peer_stride = 0;
  bool segmented = false;
  std::int32_t window = max_window;  ///< messages of the step in flight
};
inline constexpr loop once{};
inline constexpr loop by_segments{.segmented = true};

namespace detail {

/// The last step that sends to each peer, or receives from it, as ranges of peers with the same
/// step, because a step has rounds for many peers.
class last_messages {
 public:
  /// Sets the step of peers [begin, end). Calls `had(step)` for each former step.
  template <class Had>
  void replace(std::int32_t begin, std::int32_t end, step_id now, const Had& had) {
    const auto first = std::partition_point(rows_.begin(), rows_.end(),
                                            [&](const row& r) { return r.end <= begin; });
    auto last = first;
    std::array<row, 3> instead{};
    row* next = instead.data();
    if (first != rows_.end() && first->begin < begin) *next++ = {first->begin, begin, first->step};
    *next++ = {begin, end, now};
    for (; last != rows_.end() && last->begin < end; ++last) {
      had(last->step);
      if (last->end > end) *next++ = {end, last->end, last->step};
    }
    rows_.insert(rows_.erase(first, last), instead.data(), next);
  }

 private:
  struct row {
    std::int32_t begin, end;
    step_id step;
  };
  std::vector<row> rows_;  // ascending and disjoint
};

}  // namespace detail

/// Collects the steps of one rank. Steps must be added in an order in which they could run one
/// after the other; `finish` works out what the executor needs.
// Clang copies arrays by a variable of its own.
class builder {  // NOLINT(bugprone-reserved-identifier)
 public:
  explicit builder(const shape& s, std::int64_t segment_bytes = 0, std::int32_t places = 0) {
    result_.rank = s.rank;
    result_.num_ranks = s.num_ranks;
    result_.segment_bytes = segment_bytes;
    result_.places = places;
    result_rank_ = s.result_rank;
  }

  step_id send(buffer from, const block_range& blocks, std::int32_t peer, wait_list waits = {},
               loop l = once) {
    return add({.kind = step_kind::send, .from = from, .to = from}, blocks, peer, waits, l);
  }
  step_id receive(buffer to, const block_range& blocks, std::int32_t peer, wait_list waits = {},
                  loop l = once) {
    return add({.kind = step_kind::receive, .from = to, .to = to}, blocks, peer, waits, l);
  }
  /// to = from op to
  step_id reduce(buffer from, buffer to, const block_range& blocks, wait_list waits = {},
                 loop l = once) {
    return reduce(from, blocks, to, blocks, waits, l);
  }
  /// `blocks` of `to` = `from_blocks` of `from` op `blocks` of `to`; both ranges have equal `parts`
  /// and `count`.
  step_id reduce(buffer from, const block_range& from_blocks, buffer to, const block_range& blocks,
                 wait_list waits = {}, loop l = once) {
    return add_local(step_kind::reduce, from, from_blocks, to, blocks, waits, l);
  }
  /// to = from
  step_id copy(buffer from, buffer to, const block_range& blocks, wait_list waits = {},
               loop l = once) {
    return copy(from, blocks, to, blocks, waits, l);
  }
  /// `blocks` of `to` = `from_blocks` of `from`; both ranges have equal `parts` and `count`.
  step_id copy(buffer from, const block_range& from_blocks, buffer to, const block_range& blocks,
               wait_list waits = {}, loop l = once) {
    return add_local(step_kind::copy, from, from_blocks, to, blocks, waits, l);
  }

  /// Shows `blocks` of `from` to all ranks of the node.
  step_id publish(buffer from, const block_range& blocks, std::int32_t place, wait_list waits = {},
                  loop l = once) {
    return add({.kind = step_kind::publish, .from = from, .to = from, .place = place}, blocks,
               result_.rank, waits, l);
  }
  /// to = what `peer` has published
  step_id fetch(std::int32_t peer, std::int32_t place, buffer to, const block_range& blocks,
                wait_list waits = {}, loop l = once) {
    return add({.kind = step_kind::fetch, .from = to, .to = to, .place = place}, blocks, peer,
               waits, l);
  }
  /// to = what `peer` has published op to
  step_id combine(std::int32_t peer, std::int32_t place, buffer to, const block_range& blocks,
                  wait_list waits = {}, loop l = once) {
    return add({.kind = step_kind::combine, .from = to, .to = to, .place = place}, blocks, peer,
               waits, l);
  }

  /// Lets `peer` get `blocks` of `from`.
  step_id offer(buffer from, const block_range& blocks, std::int32_t peer, std::int32_t place,
                wait_list waits = {}, loop l = once) {
    return add({.kind = step_kind::offer, .from = from, .to = from, .place = place}, blocks, peer,
               waits, l);
  }
  /// to = what `peer` offers
  step_id get(std::int32_t peer, std::int32_t place, buffer to, const block_range& blocks,
              wait_list waits = {}, loop l = once) {
    return add({.kind = step_kind::get, .from = to, .to = to, .place = place}, blocks, peer, waits,
               l);
  }
  /// Lets `peer` put something in `blocks` of `to`.
  step_id invite(buffer to, const block_range& blocks, std::int32_t peer, std::int32_t place,
                 wait_list waits = {}, loop l = once) {
    return add({.kind = step_kind::invite, .from = to, .to = to, .place = place}, blocks, peer,
               waits, l);
  }
  /// what `peer` invites = `blocks` of `from`
  step_id put(std::int32_t peer, std::int32_t place, buffer from, const block_range& blocks,
              wait_list waits = {}, loop l = once) {
    return add({.kind = step_kind::put, .from = from, .to = from, .place = place}, blocks, peer,
               waits, l);
  }

  /// The finished schedule; the builder is empty afterwards.
  schedule finish() {
    pass_result_on();
    return finish_phase();
  }
  /// As finish(), for a phase that is not the end of the collective.
  schedule finish_phase() {
    link_successors();
    result_.steps.shrink_to_fit();
    result_.dependencies.shrink_to_fit();
    result_.successors.shrink_to_fit();
    return std::move(result_);
  }

 private:
  step_id add(step s, const block_range& blocks, std::int32_t peer, const wait_list& waits,
              loop l) {
    if (l.rounds <= 0) return no_step;
    s.blocks = blocks;
    s.peer = peer;
    s.peer_stride = l.peer_stride;
    s.rounds = l.rounds;
    s.segmented = l.segmented;
    s.window = l.window;
    s.first_dependency = static_cast<std::int32_t>(result_.dependencies.size());
    const step_id id = static_cast<step_id>(result_.steps.size());
    for (const after& a : waits) {
      if (a.step == no_step) continue;
      if (a.step >= id) throw error("a step of a schedule may only wait for earlier steps");
      add_dependency(s, {a.step, a.lag});
    }
    order_messages(s, id);
    take_turns(s, id);
    note_use(s.to, s.blocks, s.rounds);
    if (is_local(s.kind))
      note_use(s.from,
               {.parts = s.blocks.parts,
                .first = s.from_first,
                .stride = s.from_stride,
                .count = s.blocks.count},
               s.rounds);
    result_.steps.push_back(s);
    return id;
  }

  step_id add_local(step_kind kind, buffer from, const block_range& from_blocks, buffer to,
                    const block_range& blocks, const wait_list& waits, loop l) {
    if (from_blocks.parts != blocks.parts || from_blocks.count != blocks.count)
      throw error("a step of a schedule must read and write equal numbers of blocks");
    return add({.kind = kind,
                .from = from,
                .to = to,
                .from_first = from_blocks.first,
                .from_stride = from_blocks.stride},
               blocks, 0, waits, l);
  }

  // Memory is allocated only for used blocks; for the whole message if steps cut it differently.
  void note_use(buffer b, const block_range& blocks, std::int32_t rounds) {
    const auto [lowest, highest] = first_blocks(blocks, rounds);
    result_.used[std::size_t(b)].include({blocks.parts, lowest, highest + blocks.count});
  }
  // The lowest and the highest first block of all rounds.
  static std::pair<std::int32_t, std::int32_t> first_blocks(const block_range& blocks,
                                                            std::int32_t rounds) {
    const std::int32_t p = blocks.parts, begin = wrap(blocks.first, p);
    const std::int32_t forward = wrap(blocks.stride, p);
    const std::int64_t stride = forward <= p / 2 ? forward : forward - p;
    const std::int64_t distinct = stride == 0 ? 1 : std::min(rounds, p);
    const std::int64_t end = begin + (distinct - 1) * stride;
    if (end >= 0 && end < p) return std::minmax({begin, std::int32_t(end)});
    if (stride == 1 || stride == -1) return {0, p - 1};
    std::pair<std::int32_t, std::int32_t> least_and_most{begin, begin};
    for (std::int64_t r = 1; r < distinct; ++r) {
      const std::int32_t first = wrap(begin + r * stride, p);
      least_and_most = {std::min(least_and_most.first, first),
                        std::max(least_and_most.second, first)};
    }
    return least_and_most;
  }

  // In shared memory, the rank that gets the result can read all published data.
  void pass_result_on() {
    if (result_rank_ == 0 || result_.places > 0) return;
    std::vector<after> all;
    for (step_id i = 0; i < step_id(result_.steps.size()); ++i) all.push_back(whole(i));
    if (result_.rank == 0) send(buffer::output, {}, result_rank_, all);
    if (result_.rank == result_rank_) receive(buffer::output, {}, 0, all);
  }

  void link_successors() {
    std::vector<std::vector<std::int32_t>> lists(result_.steps.size());
    for (std::size_t i = 0; i < result_.steps.size(); ++i)
      for (const dependency& d : result_.dependencies_of(result_.steps[i]))
        if (auto& list = lists[std::size_t(d.step)]; list.empty() || list.back() != std::int32_t(i))
          list.push_back(std::int32_t(i));
    for (std::size_t i = 0; i < result_.steps.size(); ++i) {
      result_.steps[i].first_successor = std::int32_t(result_.successors.size());
      result_.steps[i].num_successors = std::int32_t(lists[i].size());
      result_.successors.insert(result_.successors.end(), lists[i].begin(), lists[i].end());
    }
  }

  // Makes the step wait until every earlier send (receive) with a common peer has been posted.
  void order_messages(step& s, step_id id) {
    if (!is_message(s.kind)) return;
    detail::last_messages& latest = latest_[s.kind == step_kind::send ? 0 : 1];
    const auto wait = [&](step_id before) {
      if (before != id && !waits_for_posting(s, before))
        add_dependency(s, {before, dependency::posted});
    };
    const std::int32_t p = result_.num_ranks;
    const std::int32_t peers = s.peer_stride == 0 ? 1 : std::min(s.rounds, p);
    if (peers > 1 && s.peer_stride != 1 && s.peer_stride != -1) {
      for (std::int32_t r = 0; r < peers; ++r) {
        const std::int32_t peer = peer_of(s, r, p);
        latest.replace(peer, peer + 1, id, wait);
      }
      return;
    }
    const std::int32_t begin = peer_of(s, s.peer_stride < 0 ? peers - 1 : 0, p),
                       end = begin + peers;
    latest.replace(begin, std::min(end, p), id, wait);
    if (end > p) latest.replace(0, end - p, id, wait);
  }
  bool waits_for_posting(const step& s, step_id other) const {
    const auto known = result_.dependencies_of(s);
    return std::any_of(known.begin(), known.end(), [&](const dependency& d) {
      return d.step == other && d.lag == dependency::posted;
    });
  }
  // See dependency::in_turn.
  void take_turns(step& s, step_id id) {
    if (s.kind != step_kind::send) return;
    const step_id before = std::exchange(last_send_, id);
    if (before == no_step) return;
    const step& other = result_.steps[std::size_t(before)];
    const bool as_many_segments =
        s.segmented == other.segmented && (!s.segmented || (s.blocks.parts == other.blocks.parts &&
                                                            s.blocks.count == other.blocks.count));
    if (s.rounds == 1 && other.rounds == 1 && as_many_segments)
      add_dependency(s, {before, dependency::in_turn});
  }
  void add_dependency(step& s, dependency d) {
    result_.dependencies.push_back(d);
    ++s.num_dependencies;
  }

  step_id last_send_ = no_step;
  detail::last_messages latest_[2];  // sends, receives
  schedule result_;
  std::int32_t result_rank_ = 0;
};

}  // namespace railpass
