// SPDX-License-Identifier: BSL-1.0
//
// Runs the checker over algorithms, for `railpass verify` and for the tests. The checker itself is
// in railpass/schedule/checking.
#pragma once

#include "collectives/registry.hpp"
#include "railpass/schedule/checker.hpp"
#include "railpass/schedule/checking/protocol.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace railpass {

/// The groups in which some algorithms order ranks, as in shape::nodes; at most one kind is given.
struct rank_groups {
  std::span<const std::int32_t> nodes{};
  std::span<const std::int32_t> caches{};  ///< of a single node

  std::span<const std::int32_t> given() const { return nodes.empty() ? caches : nodes; }
  /// Whether an algorithm is for these groups; without groups, whether it is for none.
  bool are_for(const preconditions& needs) const {
    return (needs.max_nodes > 0) != nodes.empty() && needs.several_caches != caches.empty();
  }
};

/// The schedules of all virtual ranks. `result_rank`, `nodes`: see shape.
inline std::vector<schedule> build_all(const arm& a, std::int32_t num_ranks, bool commutative,
                                       std::int32_t result_rank = 0,
                                       const group_begins& nodes = {}) {
  std::vector<schedule> all;
  for (std::int32_t v = 0; v < num_ranks; ++v)
    all.push_back(a.base->build({.rank = v,
                                 .num_ranks = num_ranks,
                                 .commutative = commutative,
                                 .result_rank = result_rank,
                                 .nodes = nodes},
                                a.values));
  return all;
}

/// The rank to which a rooted reduction in rank order passes its result; 0 for all other calls.
constexpr std::int32_t result_rank_of(collective op, std::int32_t root, bool commutative) {
  return describe(op).what == promise::reduce_to_root && !commutative ? root : 0;
}

/// Checks one eligible arm in one case. `what` and the schedules follow from the arm, which must
/// not be native.
inline check_result check(const arm& a, std::int32_t num_ranks, check_case c) {
  c.what = describe(a.base->op).what;
  c.lengths_of_pair = knows_pairs_only(*a.base);
  const std::vector<schedule> schedules =
      build_all(a, num_ranks, c.commutative, result_rank_of(a.base->op, c.root, c.commutative));
  return checker{}.check(schedules, c);
}

/// The result for one arm at one number of ranks.
struct verification {
  std::string_view algorithm;
  std::vector<std::pair<std::string, std::int64_t>> parameters;  ///< name, value
  bool ok = true;
  std::int64_t steps = 0;        ///< instances of steps checked, over all ranks and sizes
  std::size_t memory_bytes = 0;  ///< of the largest schedule
  std::string message;           ///< the first error, with the size and the kind of call
};

namespace verify_detail {

inline bool same_steps(const std::vector<schedule>& a, const std::vector<schedule>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const schedule& x, const schedule& y) {
        return x.used == y.used && x.steps == y.steps && x.dependencies == y.dependencies &&
               x.successors == y.successors && same_steps(x.phases, y.phases);
      });
}

// One message: its length, and the lengths of its blocks if they are not equal.
struct message_to_check {
  std::int64_t units = 0;
  std::vector<extent> blocks;         // equal on all ranks
  std::vector<std::int64_t> lengths;  // see check_case
};

// Sizes in units at which something changes: 0, fewer than ranks, around one block or segment per
// rank, around the ends of segments, several segments.
inline std::vector<message_to_check> sizes_to_check(std::int64_t p, std::int64_t segment_units) {
  std::vector<std::int64_t> sizes{0, 1, p - 1, p, p + 1};
  if (segment_units > 0) {
    const std::int64_t s = segment_units;
    for (const std::int64_t u : {s - 1, s, s + 1, 3 * s + 1, p * s + 1, 2 * p * s - 1})
      sizes.push_back(u);
  } else {
    sizes.push_back(2 * p + p / 2);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  std::vector<message_to_check> messages;
  for (const std::int64_t units : sizes) messages.push_back({units, {}, {}});
  return messages;
}

// Equal blocks, one per rank, of such sizes.
inline std::vector<message_to_check> equal_blocks_to_check(std::int64_t p,
                                                           std::int64_t segment_units) {
  std::vector<message_to_check> messages;
  for (const std::int64_t block : {std::int64_t{0}, std::int64_t{1}, 3 * segment_units + 1,
                                   segment_units > 0 ? segment_units : 3})
    messages.push_back({p * block, {}, {}});
  return messages;
}

// Unequal blocks: one rank has everything, all other ranks nothing; or all blocks differ.
// @param each_pair a block for each ordered pair of ranks instead of one for each rank
inline std::vector<message_to_check> unequal_blocks_to_check(std::int64_t p,
                                                             std::int64_t segment_units,
                                                             bool each_pair) {
  const std::int64_t most = 2 * std::max<std::int64_t>(1, segment_units) + 1;
  const auto length = [&](int kind, std::int64_t k) -> std::int64_t {
    if (kind == 0) return k == p / 2 ? most : 0;
    if (kind == 1) return k % 2 == 0 ? 0 : most;
    return k * 2654435761 % 97 % (most + 1);
  };
  std::vector<message_to_check> messages;
  for (const int kind : {0, 1, 2}) {
    message_to_check m;
    if (!each_pair) {
      for (std::int64_t k = 0; k < p; ++k) {
        m.blocks.push_back({m.units, m.units + length(kind, k)});
        m.units = m.blocks.back().end;
      }
    } else {
      std::vector<std::int64_t> sums(std::size_t(2 * p), 0);
      for (std::int64_t i = 0; i < p; ++i)
        for (std::int64_t j = 0; j < p; ++j) {
          m.lengths.push_back(length(kind, i * 7 + j));
          sums[std::size_t(i)] += m.lengths.back();
          sums[std::size_t(p + j)] += m.lengths.back();
        }
      m.units = *std::max_element(sums.begin(), sums.end());
    }
    messages.push_back(std::move(m));
  }
  return messages;
}

// The fault if a rank uses more scratch memory than the descriptor says; otherwise empty.
inline std::string scratch_beyond(const algorithm& a, const std::vector<schedule>& schedules,
                                  const message_size& size) {
  const auto p = std::int32_t(schedules.size());
  const double block =
      size.blocks.empty() ? double(size.units) / p : double(longest_range(1, p, size));
  const auto most = a.scratch.bytes(double(size.units), block);
  for (const schedule& s : schedules) {
    std::int64_t units = 0;
    for (std::size_t b = std::size_t(buffer::scratch0); b < max_buffers; ++b)
      if (const buffer_use& u = s.used[b]; u.last > 0)
        units += blocks_extent(u.first, u.last - u.first, u.parts, size).size();
    // Blocks are rounded up if they do not divide the message.
    if (double(units) > most + s.num_ranks)
      return "virtual rank " + std::to_string(s.rank) + " uses " + std::to_string(units) +
             " units of scratch memory, the descriptor says at most " + std::to_string(most);
  }
  return {};
}

// The fault if a rank names several of the user's blocks at once and the descriptor does not say
// so; otherwise empty.
inline std::string blocks_beyond(const algorithm& a, const std::vector<schedule>& schedules) {
  const promise_traits traits = traits_of(a.op);
  if (a.spans_blocks || !traits.blocks || traits.reduces || a.op == collective::barrier) return {};
  for (const schedule& s : schedules)
    if (spans_blocks(s, buffer::input) || spans_blocks(s, buffer::output))
      return "virtual rank " + std::to_string(s.rank) +
             " names several blocks at once, the descriptor says single blocks";
  return {};
}

inline std::vector<message_to_check> messages_to_check(const algorithm& a, std::int64_t p,
                                                       std::int64_t segment_units) {
  const collective_traits& traits = describe(a.op);
  if (traits.what == promise::all_arrive) return {{p, {}, {}}};
  if (!traits_of(a.op).blocks) return sizes_to_check(p, segment_units);
  std::vector<message_to_check> messages = equal_blocks_to_check(p, segment_units);
  if (traits.lengths != block_lengths::equal && !a.needs.longest_block)
    for (message_to_check& m :
         unequal_blocks_to_check(p, segment_units, traits.what == promise::blocks_to_blocks))
      messages.push_back(std::move(m));
  return messages;
}

// Phase `k` of the ranks of one node, from virtual rank `first` on, as a schedule of their own.
inline std::vector<schedule> phase_on_node(const std::vector<schedule>& schedules, std::size_t k,
                                           std::int32_t first, std::int32_t end) {
  std::vector<schedule> phase;
  for (std::int32_t v = first; v < end; ++v) {
    phase.push_back(phases_of(schedules[std::size_t(v)])[k]);
    for (step& x : phase.back().steps)
      if (is_shared(x.kind)) x.peer -= first;
  }
  return phase;
}

// The fault in the use of shared memory over calls with changing roots and sizes; otherwise empty.
// The rings have the fewest possible cells, and some more. The node starts at virtual rank `first`.
inline std::string protocol_fault(const std::vector<schedule>& schedules, const check_case& c,
                                  const std::vector<message_to_check>& messages, bool rooted,
                                  std::int32_t first, std::int32_t end) {
  const auto p = end - first;
  std::vector<std::vector<schedule>> phases;
  std::int32_t places = 0;
  std::size_t steps = 0;
  for (std::size_t k = 0; k < phases_of(schedules[0]).size(); ++k) {
    if (phases_of(schedules[0])[k].places == 0) continue;
    phases.push_back(phase_on_node(schedules, k, first, end));
    places = std::max(places, phases.back()[0].places);
    steps += phases.back()[0].steps.size();
  }
  std::mt19937 random(std::uint32_t(p) * 1000u + std::uint32_t(steps));
  // Many ranks behave like a few, but take much longer to check.
  const bool many = p > 16;
  std::vector<call_in_row> calls;
  for (std::size_t i = 0; i < messages.size(); i += many ? 1 + messages.size() / 6 : 1) {
    const message_to_check& m = messages[i];
    call_in_row call{.schedules = {}, .size = c.size};
    call.size.units = m.units;
    call.size.blocks = m.blocks;
    call.lengths = m.lengths;
    if (rooted && c.commutative) call.root = std::int32_t(random() % std::uint32_t(p));
    for (const std::vector<schedule>& phase : phases) {
      call.schedules = phase;
      calls.push_back(call);
    }
  }
  const std::vector<std::int32_t> spare = many ? std::vector{1} : std::vector{0, 1, places};
  for (const std::int32_t more : spare) {
    cell_protocol protocol(std::uint64_t(places + more));
    std::string wrong = protocol.set(calls);
    for (int k = 0; k < (many ? 1 : 4) && wrong.empty(); ++k) wrong = protocol.play(random);
    if (!wrong.empty())
      return "with " + std::to_string(places + more) + " slots of shared memory: " + wrong;
  }
  return {};
}

// Checks the first node, which is the root's, and one node for each other number of ranks. A node
// of one rank uses no shared memory. `nodes`: see shape.
inline std::string protocol_fault_on_nodes(const std::vector<schedule>& schedules,
                                           const check_case& c,
                                           const std::vector<message_to_check>& messages,
                                           bool rooted, std::span<const std::int32_t> nodes) {
  const std::vector<std::int32_t> one{0, std::int32_t(schedules.size())};
  if (nodes.empty()) nodes = one;
  std::vector<std::int32_t> proved{1};
  for (std::size_t n = 0; n + 1 < nodes.size(); ++n) {
    const std::int32_t ranks = nodes[n + 1] - nodes[n];
    if (std::ranges::find(proved, ranks) != proved.end()) continue;
    proved.push_back(ranks);
    if (std::string wrong = protocol_fault(schedules, c, messages, rooted, nodes[n], nodes[n + 1]);
        !wrong.empty())
      return nodes.size() == 2 ? wrong : "node " + std::to_string(n) + ", " + wrong;
  }
  return {};
}

inline node_facts facts_of(std::span<const std::int32_t> nodes, std::int32_t num_ranks) {
  if (nodes.empty()) return node_facts::blocks(num_ranks, num_ranks);
  node_facts facts{.num_nodes = std::int32_t(nodes.size()) - 1, .fewest_ranks = num_ranks};
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    facts.fewest_ranks = std::min(facts.fewest_ranks, nodes[i] - nodes[i - 1]);
    facts.most_ranks = std::max(facts.most_ranks, nodes[i] - nodes[i - 1]);
  }
  return facts;
}

}  // namespace verify_detail

/// Proves every arm of the collective for `num_ranks` ranks: all eligible algorithms with all
/// values of their parameters. Cases are sizes around the ends of blocks and segments, calls in
/// place and not, operations that commute or not, and blocks of unequal lengths, as far as allowed.
///
/// Large units make segments of a few units, so that small messages have many segments. Arms with
/// the same schedules, up to the length of a segment, need the same proof: the first such arm gets
/// all sizes, the other arms one size of several segments.
/// @param roots physical ranks; rooted reductions in rank order are proved for each root, all other
///   calls for the first root only, which proves every root (see checker.hpp)
/// @param progress receives the finished share before each arm
/// @param groups proves only the algorithms for such groups; without groups, only the other
///   algorithms; groups must keep the rank order for reductions in rank order
inline std::vector<verification> verify(
    collective op, std::int32_t num_ranks, std::span<const std::int32_t> roots,
    const std::function<void(double, const std::string&)>& progress = {},
    const rank_groups& groups = {}) {
  if (num_ranks < 1)
    throw error("verify: the number of ranks is " + std::to_string(num_ranks) +
                ", expected at least 1");
  if (roots.empty()) throw error("verify: there is no root, expected at least one");
  for (const std::int32_t root : roots)
    if (root < 0 || root >= num_ranks)
      throw error("verify: the root is " + std::to_string(root) + ", expected a rank from 0 to " +
                  std::to_string(num_ranks - 1));
  const node_facts on_nodes = verify_detail::facts_of(groups.nodes, num_ranks),
                   on_caches = verify_detail::facts_of(groups.caches, num_ranks);
  constexpr std::int64_t units_per_segment = 2;
  const promise_traits traits = traits_of(op);
  struct operation {
    bool commutative;
    std::int32_t root;
  };
  std::vector<operation> operations{{true, roots.front()}};
  if (traits.reduces)
    for (const std::int32_t root : traits.rooted ? roots : roots.first(1))
      operations.push_back({false, root});
  std::vector<verification> results;
  std::vector<std::pair<const algorithm*, std::vector<schedule>>> proved;
  checker check;
  const std::vector<arm> arms = arms_of(op);
  for (std::size_t number = 0; number < arms.size(); ++number) {
    const arm& a = arms[number];
    if (a.base->is_native() || !groups.are_for(a.base->needs)) continue;
    if (progress) progress(double(number) / double(arms.size()), name_of(a));
    verification v;
    v.algorithm = a.base->name;
    for (int i = 0; i < a.base->num_parameters(); ++i)
      v.parameters.emplace_back(a.base->parameter_list[std::size_t(i)].name,
                                a.values[std::size_t(i)]);
    bool runs = false;
    for (const auto& [commutative, root] : operations) {
      if (!eligible(*a.base, {.num_ranks = num_ranks,
                              .units = a.base->needs.min_units_per_rank * num_ranks,
                              .commutative = commutative,
                              .shared_memory = true,
                              .single_copy = true,
                              .nodes = on_nodes,
                              .caches = on_caches}))
        continue;
      runs = true;
      std::vector<schedule> schedules = build_all(
          a, num_ranks, commutative, result_rank_of(op, root, commutative), groups.given());
      const std::int64_t segment_bytes = schedules[0].segment_bytes;
      const bool seen = std::any_of(proved.begin(), proved.end(), [&](const auto& other) {
        return other.first == a.base &&
               (other.second[0].segment_bytes > 0) == (segment_bytes > 0) &&
               verify_detail::same_steps(other.second, schedules);
      });
      check_case c{.what = describe(op).what,
                   .root = root,
                   .commutative = commutative,
                   .nodes = groups.nodes,
                   .lengths_of_pair = knows_pairs_only(*a.base)};
      // A barrier's units are bytes.
      if (c.what != promise::all_arrive)
        c.size.unit_bytes = std::max<std::int64_t>(1, segment_bytes / units_per_segment);
      const std::int64_t segment_units = segment_bytes > 0 ? units_per_segment : 0;
      std::vector<verify_detail::message_to_check> messages =
          verify_detail::messages_to_check(*a.base, num_ranks, segment_units);
      if (seen) messages = {messages[messages.size() / 2]};
      for (const bool in_place : {false, true}) {
        if (in_place && (traits.in_place == in_place_ranks::none || seen)) continue;
        c.in_place = in_place;
        c.prove_ending = !in_place;
        // Shared memory is used in place, where every other size suffices.
        for (std::size_t i = in_place ? 1 : 0; i < messages.size(); i += in_place ? 2 : 1) {
          const verify_detail::message_to_check& m = messages[i];
          if (!v.ok || m.units < a.base->needs.min_units_per_rank * num_ranks) continue;
          c.size.units = m.units;
          c.size.blocks = m.blocks;
          c.lengths = m.lengths;
          const check_result r = check.check(schedules, c);
          v.steps += r.steps;
          v.memory_bytes = std::max(v.memory_bytes, r.memory_bytes);
          std::string wrong = r.message;
          if (r.ok) wrong = verify_detail::scratch_beyond(*a.base, schedules, c.size);
          if (wrong.empty()) continue;
          v.ok = false;
          v.message = std::to_string(m.units) + " units" +
                      (m.blocks.empty() && m.lengths.empty() ? "" : " in unequal blocks") +
                      ", segments of " + std::to_string(c.size.segment_units(segment_bytes)) +
                      (!traits.reduces ? ""
                       : commutative   ? ", commutative"
                                       : ", not commutative, root " + std::to_string(root)) +
                      (in_place ? ", in place" : "") + ": " + wrong;
        }
      }
      if (v.ok) v.message = verify_detail::blocks_beyond(*a.base, schedules);
      v.ok = v.ok && v.message.empty();
      if (v.ok && std::ranges::any_of(phases_of(schedules[0]),
                                      [](const schedule& s) { return s.places > 0; })) {
        v.message = verify_detail::protocol_fault_on_nodes(schedules, c, messages, traits.rooted,
                                                           groups.nodes);
        v.ok = v.message.empty();
      }
      if (!seen) proved.emplace_back(a.base, std::move(schedules));
    }
    if (runs) results.push_back(std::move(v));
  }
  return results;
}

}  // namespace railpass
