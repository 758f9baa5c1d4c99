// SPDX-License-Identifier: BSL-1.0
//
// Data as symbols instead of values: every unit of memory holds the expression that computed it.
#pragma once

#include "railpass/schedule/checking/call.hpp"
#include "railpass/schedule/checking/unrolled.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace railpass::checking {

class symbolic_data {
 public:
  symbolic_data(checked_call& call, const unrolled& steps) : call_(call), steps_(steps) {}

  // Sets the initial data: every rank's input. The phases follow.
  void put() {
    data_.assign(std::size_t(call_.num_ranks) * max_buffers * std::size_t(call_.size.units), {});
    // Expression 1 + v: the contribution of virtual rank v.
    operands_.assign(std::size_t(call_.num_ranks) + 1, {0, 0});
    known_.clear();
    judged_.clear();
    for (index v = 0; v < call_.num_ranks; ++v) {
      const buffer b = call_.what == promise::root_to_all ? buffer::output : buffer::input;
      extent mine{0, call_.size_of(v, b).units};
      switch (call_.what) {
        case promise::root_to_all:
        case promise::root_to_blocks:
          if (v != 0) continue;
          break;
        case promise::blocks_to_root:
        case promise::blocks_to_all:
        case promise::all_arrive:
          mine = call_.block_of(v, b, v);
          break;
        default:
          break;
      }
      symbol* s = memory(v, b);
      for (std::int64_t u = mine.begin; u < mine.end; ++u)
        s[u] = {std::uint32_t(v) + 1, std::uint32_t(u)};
    }
  }

  void begin_phase() { published_.clear(); }

  // Runs a message or a single copy; returns false if the sent data were never written.
  bool move(index send, index receive) {
    const instance &from = steps_.instances[std::size_t(send)],
                   &to = steps_.instances[std::size_t(receive)];
    const task &sender = steps_.tasks[std::size_t(from.owner)],
               &receiver = steps_.tasks[std::size_t(to.owner)];
    const symbol* source = memory(sender.rank, sender.what->from) + from.begin;
    symbol* target = memory(receiver.rank, receiver.what->to) + to.begin;
    for (index u = 0; u < from.end - from.begin; ++u) {
      if (!is_written(source[u], send, sender.what->from, from.begin + u)) return false;
      target[u] = source[u];
    }
    return true;
  }

  bool work_locally(const task& t, index i) {
    const step& s = *t.what;
    const instance& x = steps_.instances[std::size_t(i)];
    const symbol* from = memory(t.rank, s.from);
    symbol* to = memory(t.rank, s.to);
    if (from == to && x.from == x.begin) return true;
    for (index u = x.begin; u < x.end; ++u) {
      const symbol& left = from[x.from + u - x.begin];
      if (!is_written(left, i, s.from, x.from + u - x.begin)) return false;
      if (s.kind == step_kind::copy)
        to[u] = left;
      else if (!combine(i, left, s.to, u, to[u]))
        return false;
    }
    return true;
  }

  // Publishes the symbols that the memory holds at this time.
  bool publish(index i) {
    const instance& x = steps_.instances[std::size_t(i)];
    const task& t = steps_.tasks[std::size_t(x.owner)];
    const symbol* from = memory(t.rank, t.what->from);
    std::vector<symbol>& shown = published_[i];
    shown.assign(from + x.begin, from + x.end);
    for (index u = x.begin; u < x.end; ++u)
      if (!is_written(from[u], i, t.what->from, u)) return false;
    return true;
  }
  // Runs a step that reads or writes what `other` shows.
  bool look(index i, index other) {
    const instance& x = steps_.instances[std::size_t(i)];
    const task& t = steps_.tasks[std::size_t(x.owner)];
    if (t.what->kind == step_kind::get) return move(other, i);
    if (t.what->kind == step_kind::put) return move(i, other);
    const std::vector<symbol>& shown = published_[other];
    symbol* to = memory(t.rank, t.what->to);
    for (index u = x.begin; u < x.end; ++u) {
      const symbol& left = shown[std::size_t(u - x.begin)];
      if (t.what->kind == step_kind::fetch)
        to[u] = left;
      else if (!combine(i, left, t.what->to, u, to[u]))
        return false;
    }
    return true;
  }

  // Whether the outputs are as promised.
  bool check() {
    for (index v = 0; v < call_.num_ranks; ++v) {
      if (call_.what == promise::reduce_to_root && v != call_.first_root) continue;
      const extent mine = call_.output_of(v);
      if (!call_.traits.blocks || call_.what == promise::reduce_to_blocks) {
        if (!check_units(v, mine, none, mine.begin)) return false;
        continue;
      }
      for (index k = 0; k < call_.num_ranks; ++k) {
        const extent e = call_.block_of(v, buffer::output, k);
        if (e.begin < mine.begin || e.end > mine.end) continue;
        const bool from_root = call_.what == promise::root_to_blocks;
        const index owner = from_root ? 0 : k;
        const bool transposed = call_.what == promise::blocks_to_blocks;
        const extent source = call_.block_of(owner, buffer::input, transposed ? v : k);
        if (!check_units(v, e, owner, source.begin)) return false;
      }
    }
    return true;
  }

 private:
  // A symbol: which expression of which unit. Expression 0 is "never written".
  struct symbol {
    std::uint32_t expression = 0;
    std::uint32_t unit = 0;
    friend bool operator==(const symbol&, const symbol&) = default;
  };

  symbol* memory(index rank, buffer b) {
    return data_.data() + (std::size_t(rank) * max_buffers + call_.buffer_index(rank, b)) *
                              std::size_t(call_.size.units);
  }

  bool is_written(const symbol& s, index i, buffer b, index unit) {
    if (s.expression != 0) return true;
    return call_.fail(steps_.instance_text(i) + " reads unit " + std::to_string(unit) + " of " +
                      buffer_text(b) + ", which no step has written");
  }

  // right = left op right, where `right` is a unit of a buffer.
  bool combine(index i, const symbol& left, buffer b, index unit, symbol& right) {
    if (!is_written(right, i, b, unit)) return false;
    if (left.unit != right.unit)
      return call_.fail(steps_.instance_text(i) + " combines unit " + std::to_string(left.unit) +
                        " with unit " + std::to_string(right.unit) + " at unit " +
                        std::to_string(unit));
    right.expression = combined(left.expression, right.expression);
    return true;
  }

  // The expression "left op right": equal operands, equal number.
  std::uint32_t combined(std::uint32_t left, std::uint32_t right) {
    const std::uint64_t key = std::uint64_t{left} << 32 | right;
    if (key == last_key_ && !known_.empty()) return last_value_;
    const auto [found, is_new] = known_.try_emplace(key, std::uint32_t(operands_.size()));
    if (is_new) operands_.push_back({left, right});
    last_key_ = key;
    last_value_ = found->second;
    return found->second;
  }

  // Units `e` of rank v's output: input of `owner` from unit `source` on; no owner: reductions, and
  // the root's message.
  bool check_units(index v, const extent& e, index owner, std::int64_t source) {
    const symbol* mine = memory(v, buffer::output);
    const symbol* first = memory(0, buffer::output);
    for (std::int64_t u = e.begin; u < e.end; ++u) {
      const symbol& s = mine[u];
      const auto where = [&] {
        return call_.rank_text(v) + " unit " + std::to_string(u) + " of output: ";
      };
      if (s.expression == 0) return call_.fail(where() + "never written");
      if (s.unit != std::uint32_t(source + u - e.begin))
        return call_.fail(where() + "holds unit " + std::to_string(s.unit));
      if (owner != none && s.expression != std::uint32_t(owner) + 1)
        return call_.fail(where() + "expected input of " + call_.rank_text(owner) + ", found " +
                          expression_text(s.expression));
      if (!call_.traits.reduces) continue;
      const index last = call_.what == promise::prefix          ? v
                         : call_.what == promise::prefix_before ? v - 1
                                                                : call_.num_ranks - 1;
      if (first_contributions(s.expression) != last + 1)
        return call_.fail(where() + "expected the contributions of ranks 0 to " +
                          std::to_string(last) + " once each" +
                          (call_.commutative ? "" : " and in rank order") + ", found " +
                          expression_text(s.expression));
      if (call_.what == promise::reduce_to_all && s != first[u])
        return call_.fail(where() + "expected the same expression as on " + call_.rank_text(0) +
                          ", " + expression_text(first[u].expression) + ", found " +
                          expression_text(s.expression));
    }
    return true;
  }

  // Calls visit(contribution's virtual rank) from left to right until visit returns false.
  template <class Visit>
  bool walk(std::uint32_t expression, Visit visit) const {
    std::vector<std::uint32_t> open{expression};
    while (!open.empty()) {
      const std::uint32_t e = open.back();
      open.pop_back();
      if (operands_[e].first == 0) {
        if (!visit(index(e) - 1)) return false;
      } else {
        open.push_back(operands_[e].second);
        open.push_back(operands_[e].first);
      }
    }
    return true;
  }
  // Returns n if the expression has the contributions of ranks 0 to n-1 once each (in this order if
  // the operation does not commute); otherwise `none`.
  index first_contributions(std::uint32_t expression) {
    if (const auto known = judged_.find(expression); known != judged_.end()) return known->second;
    std::vector<bool> seen(std::size_t(call_.num_ranks), false);
    index count = 0, largest = -1;
    const bool each_once = walk(expression, [&](index v) {
      if (seen[std::size_t(v)] || (!call_.commutative && v != count)) return false;
      seen[std::size_t(v)] = true;
      ++count;
      largest = std::max(largest, v);
      return true;
    });
    return judged_[expression] = each_once && largest + 1 == count ? count : none;
  }
  std::string expression_text(std::uint32_t expression) const {
    std::string text = "the contributions of ranks";
    index count = 0;
    walk(expression, [&](index v) {
      text += ' ' + std::to_string(call_.physical(v));
      return ++count < 2 * call_.num_ranks;
    });
    return text + " in this order";
  }

  checked_call& call_;
  const unrolled& steps_;
  std::vector<symbol> data_;
  std::unordered_map<index, std::vector<symbol>> published_;       // by instance
  std::vector<std::pair<std::uint32_t, std::uint32_t>> operands_;  // of each expression
  std::unordered_map<std::uint64_t, std::uint32_t> known_;
  std::unordered_map<std::uint32_t, index> judged_;
  std::uint64_t last_key_ = 0;
  std::uint32_t last_value_ = 0;
};

}  // namespace railpass::checking
