// SPDX-License-Identifier: BSL-1.0
//
// Proves the use of shared memory over several calls: see railpass/schedule/cells.hpp. Each rank is
// a sequential program of actions on cells and acknowledgements. Roots, sizes and collectives may
// change from call to call, and ranks run ahead of other ranks as far as they can.
//
// Proved properties:
// - Order: each step runs after the steps that it waits for, although steps run one after the
//   other.
// - Reading: ranks read the intended data completely. In every reachable state no cell is written
//   while a rank reads it, or before all readers have read it.
// - Ordering by release and acquire alone, independent of timing (vector clocks): a rank that
//   writes a cell again has acquired an acknowledgement that each earlier reader released after its
//   read. A rank that leaves a call in which it opened its memory has done so, too. The protocol is
//   therefore correct on memory models weaker than this machine's.
// - Ending: from every such state some rank can continue until all have ended.
//
// explore() checks all interleavings, play() one interleaving drawn from a seed. Both check all
// orderings, because timing does not change which action waits for which.
#pragma once

#include "railpass/schedule/cells.hpp"
#include "railpass/schedule/checking/call.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace railpass {

/// One of several calls in sequence on the same ranks.
struct call_in_row {
  std::span<const schedule> schedules;  ///< by virtual rank
  message_size size{};
  std::int32_t root = 0;                    ///< the physical rank of virtual rank 0
  std::span<const std::int64_t> lengths{};  ///< see check_case
};

class cell_protocol {
 public:
  /// The acknowledgements to wait for. Tests pass a wrong rule to show that the checker rejects it.
  using rule = std::uint64_t (*)(std::uint64_t number, std::uint64_t cells);

  /// @param cells number of cells in each ring of each rank
  /// @param ends_early number of acknowledgements by which a rank that opened its memory leaves a
  ///   call too early; tests show that the checker rejects this
  explicit cell_protocol(std::uint64_t cells, rule before = acknowledged_before,
                         std::uint64_t ends_early = 0)
      : cells_(cells), before_(before), ends_early_(ends_early) {}

  /// Sets the calls for the next proofs. Returns the fault, or an empty text.
  std::string set(std::span<const call_in_row> calls) {
    ranks_.assign(calls.empty() ? 0 : calls[0].schedules.size(), {});
    std::uint64_t first = 0;
    for (std::size_t n = 0; n < calls.size(); ++n) {
      const call_in_row& c = calls[n];
      if (c.schedules.size() != ranks_.size()) return "the calls are of different ranks";
      const schedule& one = c.schedules[0];
      checking::checked_call sizes;
      sizes.set(c.schedules, {.size = c.size, .lengths = c.lengths});
      for (std::size_t v = 0; v < ranks_.size(); ++v)
        if (std::string wrong = add(c, sizes, std::int32_t(v), first); !wrong.empty())
          return "call " + std::to_string(n) + ": " + wrong;
      first += std::uint64_t(one.places) * std::uint64_t(shared_segments(one, c.size));
    }
    for (program& p : ranks_) p.note_states(cells_);
    return check_ordering();
  }

  /// Checks all interleavings of at most 4 ranks, up to `most_states` states. Returns the fault, or
  /// an empty text.
  std::string explore(std::size_t most_states = 4'000'000) {
    if (ranks_.size() > 4) return "more than 4 ranks have too many interleavings";
    std::unordered_set<std::uint64_t> seen{0};
    std::vector<std::uint64_t> open{0};
    while (!open.empty()) {
      const state now = decoded(open.back());
      open.pop_back();
      bool ended = true, moved = false;
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        if (now[r] == ranks_[r].actions.size()) continue;
        ended = false;
        std::string wrong;
        if (!may_act(now, r, wrong)) {
          if (!wrong.empty()) return wrong;
          continue;
        }
        moved = true;
        state next = now;
        ++next[r];
        if (seen.insert(encoded(next)).second) open.push_back(encoded(next));
      }
      if (!ended && !moved) return explain(now);
      if (seen.size() > most_states) return "there are too many states";
    }
    num_states_ = seen.size();
    return {};
  }
  /// Number of states that explore() found.
  std::size_t num_states() const { return num_states_; }

  /// Checks one random interleaving, in which some ranks are slow.
  std::string play(std::mt19937& random) {
    const std::size_t p = ranks_.size();
    state now(p, 0);
    std::vector<bool> slow;
    std::vector<std::size_t> ready;
    // Ranks that wait for a rank's writes; the last entry is for acknowledgements.
    std::vector<std::vector<std::size_t>> waiting(p + 1);
    for (std::size_t r = 0; r < p; ++r) {
      slow.push_back(random() % 4 == 0);
      if (!ranks_[r].actions.empty()) ready.push_back(r);
    }
    const auto wake = [&](std::vector<std::size_t>& ranks) {
      ready.insert(ready.end(), ranks.begin(), ranks.end());
      ranks.clear();
    };
    while (!ready.empty()) {
      const std::size_t k = random() % ready.size(), r = ready[k];
      if (slow[r] && random() % 16 != 0) continue;
      const action& a = ranks_[r].actions[now[r]];
      std::string wrong;
      const bool acts = may_act(now, r, wrong);
      if (!wrong.empty()) return wrong;
      if (acts) ++now[r];
      if (!acts) waiting[a.what == deed::read ? std::size_t(a.peer) : p].push_back(r);
      if (!acts || now[r] == ranks_[r].actions.size()) {
        ready[k] = ready.back();
        ready.pop_back();
      }
      if (acts && a.what == deed::written) wake(waiting[r]);
      if (acts && a.what == deed::acknowledge) wake(waiting[p]);
    }
    for (std::size_t r = 0; r < p; ++r)
      if (now[r] < ranks_[r].actions.size()) return explain(now);
    return {};
  }

 private:
  enum class deed : std::uint8_t { write, written, read, has_read, acknowledge, close };
  struct action {
    deed what;
    std::int32_t peer = 0;     // read, has_read: the cell's owner; close: the rank that was let in
    std::uint64_t number = 0;  // or the acknowledgement
    cell_ring ring = cell_ring::published;
    std::uint64_t until = 0;  // close: the acknowledgement that the peer must reach
  };
  // The two rings of a rank have consecutive numbers.
  static std::size_t cell_of(const action& a, std::uint64_t cells) {
    return std::size_t(a.number % cells + (a.ring == cell_ring::opened ? cells : 0));
  }
  std::size_t cell_of(const action& a) const { return cell_of(a, cells_); }
  // One cell of a rank: the number that it shows, and whether it is being written.
  struct cell_state {
    std::uint64_t shown = 0;  // number + 1; 0: empty
    bool is_written = false;
  };
  struct program {
    std::vector<action> actions;
    // State before each action, and after the last.
    std::vector<std::uint64_t> acknowledged;
    std::vector<std::vector<cell_state>> own;

    void note_states(std::uint64_t cells) {
      acknowledged.assign(1, 0);
      own.assign(1, std::vector<cell_state>(2 * cells));
      for (const action& a : actions) {
        acknowledged.push_back(a.what == deed::acknowledge ? a.number : acknowledged.back());
        own.push_back(own.back());
        if (a.what != deed::write && a.what != deed::written) continue;
        cell_state& mine = own.back()[cell_of(a, cells)];
        mine.is_written = a.what == deed::write;
        mine.shown = a.number + 1;
      }
    }
  };
  using state = std::vector<std::size_t>;  // by rank: actions done

  std::string add(const call_in_row& c, const checking::checked_call& sizes, std::int32_t v,
                  std::uint64_t first) {
    const schedule& s = c.schedules[std::size_t(v)];
    const auto p = std::int32_t(ranks_.size());
    program& mine = ranks_[std::size_t(physical_rank(v, c.root, p))];
    const std::int64_t segments = shared_segments(s, c.size);
    const std::int64_t units = c.size.segment_units(s.segment_bytes);
    const std::uint64_t end = first + number_in_call(s, 0, segments) - ends_early_;
    std::vector<action> closings;
    std::vector<std::vector<bool>> done;
    for (const step& x : s.steps)
      done.emplace_back(std::size_t(x.rounds * segments_per_round(x, units, c.size)), false);
    for (std::int64_t segment = 0; segment < segments; ++segment) {
      for (std::size_t i = 0; i < s.steps.size(); ++i) {
        const step& x = s.steps[i];
        if (!runs_in(x, segment)) continue;
        const std::int64_t own_segments = segments_per_round(x, units, c.size);
        if (x.segmented && own_segments != segments)
          return "step " + std::to_string(i) + " of virtual rank " + std::to_string(v) +
                 " has another number of segments than the steps in shared memory";
        for (std::int32_t round = 0; round < x.rounds; ++round) {
          for (const dependency& d : s.dependencies_of(x)) {
            const auto& other = done[std::size_t(d.step)];
            const std::int64_t awaited =
                instances_awaited(d, round, segment, own_segments,
                                  s.steps[std::size_t(d.step)].rounds, std::int64_t(other.size()));
            if (!std::all_of(other.begin(), other.begin() + awaited, [](bool b) { return b; }))
              return "step " + std::to_string(i) + " of virtual rank " + std::to_string(v) +
                     ", segment " + std::to_string(segment) + ", runs before step " +
                     std::to_string(d.step) + ", which it waits for";
          }
          done[i][std::size_t(round * own_segments + segment)] = true;
          const message_size size = sizes.size_of(v, x.to);
          if (instance_extent(x, round, segment, units, size).size() == 0) continue;
          const std::uint64_t number = first + number_in_call(s, x.place, segment);
          const std::int32_t peer = physical_rank(x.peer, c.root, p);
          if (shows(x.kind)) {
            mine.actions.push_back({deed::write, 0, number, ring_of(x.kind)});
            mine.actions.push_back({deed::written, 0, number, ring_of(x.kind)});
            if (opens_memory(x.kind))
              closings.push_back({deed::close, peer, number, ring_of(x.kind), end});
          } else if (is_shared(x.kind) && &ranks_[std::size_t(peer)] != &mine) {
            mine.actions.push_back({deed::read, peer, number, ring_of(x.kind)});
            mine.actions.push_back({deed::has_read, peer, number, ring_of(x.kind)});
          }
        }
      }
      mine.actions.push_back({deed::acknowledge, 0, first + number_in_call(s, s.places, segment)});
    }
    mine.actions.insert(mine.actions.end(), closings.begin(), closings.end());
    return {};
  }

  // A rank's read of another rank's cells, and the writing action in the owner's program.
  struct reading {
    std::size_t rank;
    std::uint64_t number;
    std::size_t ends;  // in the reader's program
  };
  struct readings {
    std::vector<std::vector<reading>> by_cell;
    std::unordered_map<std::uint64_t, std::size_t> written;
  };
  std::vector<readings> all_readings() const {
    std::vector<readings> of(ranks_.size());
    for (readings& r : of) r.by_cell.resize(std::size_t(2 * cells_));
    for (std::size_t q = 0; q < ranks_.size(); ++q)
      for (std::size_t i = 0; i < ranks_[q].actions.size(); ++i) {
        const action& a = ranks_[q].actions[i];
        if (a.what == deed::has_read)
          of[std::size_t(a.peer)].by_cell[cell_of(a)].push_back({q, a.number, i});
        else if (a.what == deed::written)
          of[q].written.emplace(a.number, i);
      }
    return of;
  }

  // Vector clocks: clock[q] actions of rank q happened before, through release and acquire.
  std::string check_ordering() const {
    const std::size_t p = ranks_.size();
    const std::vector<readings> of = all_readings();
    using clock = std::vector<std::size_t>;
    std::vector<std::vector<clock>> after(p);  // of each action
    state now(p, 0);
    const auto join = [](clock& into, const clock& from) {
      for (std::size_t q = 0; q < into.size(); ++q) into[q] = std::max(into[q], from[q]);
    };
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < p; ++r) {
        const program& mine = ranks_[r];
        while (now[r] < mine.actions.size()) {
          const action& a = mine.actions[now[r]];
          std::string wrong;
          if (!may_act(now, r, wrong)) {
            if (!wrong.empty()) return wrong;
            break;
          }
          clock c = now[r] == 0 ? clock(p, 0) : after[r].back();
          // Joins the clock released with the acknowledgement that this rank waited for.
          const auto join_acknowledgement = [&](std::size_t q, std::uint64_t awaited) {
            const std::vector<std::uint64_t>& theirs = ranks_[q].acknowledged;
            const auto enough = std::lower_bound(theirs.begin(), theirs.end(), awaited);
            if (enough != theirs.begin())
              join(c, after[q][std::size_t(enough - theirs.begin()) - 1]);
          };
          if (a.what == deed::read) {
            const std::size_t released = of[std::size_t(a.peer)].written.at(a.number);
            join(c, after[std::size_t(a.peer)][released]);
          } else if (a.what == deed::write) {
            for (std::size_t q = 0; q < p; ++q)
              if (q != r) join_acknowledgement(q, before_(a.number, cells_));
            for (const reading& b : of[r].by_cell[cell_of(a)])
              if (b.number < a.number && c[b.rank] <= b.ends)
                return "rank " + std::to_string(r) + " writes number " + std::to_string(a.number) +
                       " without having heard that rank " + std::to_string(b.rank) +
                       " has read number " + std::to_string(b.number);
          } else if (a.what == deed::close) {
            join_acknowledgement(std::size_t(a.peer), a.until);
            for (const reading& b : of[r].by_cell[cell_of(a)])
              if (b.number == a.number && c[b.rank] <= b.ends)
                return "rank " + std::to_string(r) +
                       " ends a call without having heard that rank " + std::to_string(b.rank) +
                       " is done with the memory opened as number " + std::to_string(b.number);
          }
          c[r] = now[r] + 1;
          after[r].push_back(std::move(c));
          ++now[r];
          moved = true;
        }
      }
    }
    for (std::size_t r = 0; r < p; ++r)
      if (now[r] < ranks_[r].actions.size()) return explain(now);
    return {};
  }

  // Whether the next action of a rank may happen now. `wrong` is set if it would happen, but must
  // not.
  bool may_act(const state& now, std::size_t r, std::string& wrong) const {
    const action& a = ranks_[r].actions[now[r]];
    if (a.what == deed::write) {
      for (std::size_t q = 0; q < ranks_.size(); ++q)
        if (q != r && ranks_[q].acknowledged[now[q]] < before_(a.number, cells_)) return false;
      for (std::size_t q = 0; q < ranks_.size(); ++q) {
        if (now[q] == ranks_[q].actions.size()) continue;
        const action& b = ranks_[q].actions[now[q]];
        if (b.what == deed::has_read && std::size_t(b.peer) == r && cell_of(b) == cell_of(a))
          wrong = "rank " + std::to_string(r) + " writes number " + std::to_string(a.number) +
                  " while rank " + std::to_string(q) + " reads number " + std::to_string(b.number) +
                  " in the same slot of shared memory";
      }
      return wrong.empty();
    }
    if (a.what == deed::close)
      return ranks_[std::size_t(a.peer)].acknowledged[now[std::size_t(a.peer)]] >= a.until;
    if (a.what == deed::read) {
      const program& other = ranks_[std::size_t(a.peer)];
      const cell_state& cell = other.own[now[std::size_t(a.peer)]][cell_of(a)];
      if (cell.shown > a.number + 1)
        wrong = "rank " + std::to_string(a.peer) + " has overwritten number " +
                std::to_string(a.number) + " before rank " + std::to_string(r) + " has read it";
      return cell.shown == a.number + 1 && !cell.is_written;
    }
    return true;
  }

  std::string explain(const state& now) const {
    std::string text = "the ranks wait for ever:";
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (now[r] == ranks_[r].actions.size()) continue;
      const action& a = ranks_[r].actions[now[r]];
      text += " rank " + std::to_string(r) +
              (a.what == deed::write ? " to write number " : " for rank ") +
              (a.what == deed::write   ? ""
               : a.what == deed::close ? std::to_string(a.peer) + " to be done with number "
                                       : std::to_string(a.peer) + "'s number ") +
              std::to_string(a.number) + ";";
    }
    return text;
  }

  std::uint64_t encoded(const state& s) const {
    std::uint64_t key = 0;
    for (std::size_t r = 0; r < s.size(); ++r) key |= std::uint64_t(s[r]) << (16 * r);
    return key;
  }
  state decoded(std::uint64_t key) const {
    state s(ranks_.size());
    for (std::size_t r = 0; r < s.size(); ++r) s[r] = key >> (16 * r) & 0xffff;
    return s;
  }

  std::uint64_t cells_;
  rule before_;
  std::uint64_t ends_early_;
  std::vector<program> ranks_;  // physical
  std::size_t num_states_ = 0;
};

}  // namespace railpass
