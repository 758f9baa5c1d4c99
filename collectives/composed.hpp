// SPDX-License-Identifier: BSL-1.0
//
// Collectives for several nodes, composed of algorithms that know no nodes: within nodes, across
// nodes, and within nodes again. composer.hpp combines the parts. The leaders, the first ranks of
// each node, communicate across nodes. With several leaders each leader has a part of the message
// (a lane); with as many leaders as the smallest node has ranks, all ranks drive a share of the
// network. Sources: Zhu, Goodell, Gropp, Thakur: Hierarchical collectives in MPICH2, EuroPVM/MPI
// 2009, doi:10.1007/978-3-642-03770-2_41; lanes: Traeff: Decomposing collectives for exploiting
// multi-lane communication, 2019, doi:10.48550/arXiv.1910.13373.
#pragma once

#include "collectives/composer.hpp"
#include "collectives/parts.hpp"

#include <numeric>
#include <string_view>
#include <vector>

namespace railpass::collectives {

inline constexpr std::string_view nodes_source =
    "Zhu et al. 2009, doi:10.1007/978-3-642-03770-2_41";
inline constexpr std::string_view lanes_source =
    "Zhu et al. 2009, doi:10.1007/978-3-642-03770-2_41; Traeff 2019, "
    "doi:10.48550/arXiv.1910.13373";

/// 0: all ranks of a node, limited by most_lanes.
inline constexpr parameter leaders_parameter{"leaders", {1, 2, 4, 0}};
/// For schedules that overlap levels: fewer values than elsewhere, because leaders multiply the
/// arms.
inline constexpr parameter level_segments_parameter{
    "segment_bytes", {0, 8 << 10, 32 << 10, 128 << 10}, true};

/// For schedules that are useless without segments.
inline constexpr parameter stream_segments_parameter{
    "segment_bytes", {32 << 10, 8 << 10, 128 << 10}, true};

/// A part that walks over blocks or peers has its steps written out for each node. With more nodes
/// a schedule would exceed 64 KiB.
inline constexpr int most_nodes_written_out = 64;
/// Also limits schedules to 64 KiB.
inline constexpr int most_lanes = 32;

/// Within nodes in shared memory.
inline constexpr preconditions nodes_in_memory_needs{.shared_memory = true, .max_nodes = any_nodes};
inline constexpr std::string_view nodes_in_memory_source =
    "Zhu et al. 2009, doi:10.1007/978-3-642-03770-2_41; Graham and Shipman 2008, "
    "doi:10.1007/978-3-540-87475-1_21";

/// A rank's view of the ranks and nodes.
class ranks_on_nodes {
 public:
  explicit ranks_on_nodes(const shape& s)
      : begins_(s.nodes.empty() ? group_begins::blocks(s.num_ranks, s.num_ranks) : s.nodes),
        mine_(begins_.group_of(s.rank)) {}

  int num_nodes() const { return begins_.num_groups(); }
  /// This rank's node and its leader.
  int mine() const { return mine_; }
  int leader() const { return begins_[mine_]; }
  int size() const { return size(mine_); }
  int fewest() const { return begins_.fewest_ranks(); }
  /// The number of lanes for at most `leaders` leaders.
  int lanes(std::int64_t leaders) const {
    const int most = std::min(fewest(), most_lanes);
    return leaders == 0 ? most : int(std::min<std::int64_t>(leaders, most));
  }
  part_members leaders(int lane) const { return {begins_, lane}; }
  /// The ranks of this rank's node, the lane's leader first.
  std::vector<std::int32_t> node(int lane = 0) const {
    std::vector<std::int32_t> all;
    for (int k = 0; k < size(); ++k) all.push_back(leader() + (lane + k) % size());
    return all;
  }
  /// Blocks of ranks: one per node, or one per rank of this node.
  block_map blocks_of_nodes() const {
    return block_map::between(begins_.num_ranks(), begins_.listed());
  }
  block_map blocks_of_leaders() const {
    block_map all{.parts = begins_.num_ranks()};
    for (int i = 0; i < num_nodes(); ++i) {
      all.begins.push_back(begins_[i]);
      all.ends.push_back(begins_[i] + 1);
    }
    return all;
  }
  block_map blocks_of_node() const {
    std::vector<std::int32_t> borders(std::size_t(size()) + 1);
    std::iota(borders.begin(), borders.end(), leader());
    return block_map::between(begins_.num_ranks(), borders);
  }

 private:
  int size(int node) const { return begins_.ranks_in(node); }

  group_begins begins_;
  int mine_;
};

/// The number of blocks into which a schedule of `num_ranks` ranks cuts its message; equal on all
/// ranks.
inline std::int32_t cuts_of(const algorithm& a, std::int32_t num_ranks, bool commutative) {
  std::int32_t cuts = 1;
  for (const std::int32_t rank : {0, num_ranks - 1}) {
    const schedule s = a.build({.rank = rank, .num_ranks = num_ranks, .commutative = commutative},
                               a.default_values());
    for (const step& x : s.steps) cuts = std::lcm(cuts, x.blocks.parts);
  }
  return cuts;
}

/// A lane's part of the message, cut into blocks.
inline block_map lane_of(int lane, int lanes, std::int32_t cuts) {
  if (lanes == 1) return {};
  std::vector<std::int32_t> borders(std::size_t(cuts) + 1);
  std::iota(borders.begin(), borders.end(), lane * cuts);
  return block_map::between(lanes * cuts, borders);
}

/// Buffers of a part that continues where the part before has ended, in `input`, which may be
/// scratch2.
constexpr buffer_map next_buffers(buffer input, buffer output) {
  return {input, output, buffer::scratch3, buffer::scratch0, buffer::scratch1, buffer::scratch2};
}

template <const algorithm& Across, const algorithm& Inside>
schedule build_broadcast_on_nodes(const shape& s, std::int64_t leaders, std::int64_t segment_bytes,
                                  const parameters& inside = Inside.default_values()) {
  composer c(s, segment_bytes);
  const ranks_on_nodes ranks(s);
  const int lanes = ranks.lanes(leaders), nodes = ranks.num_nodes();
  const std::int32_t cuts = lanes == 1 || nodes == 1 ? 1 : cuts_of(Across, nodes, true);
  for (int lane = 0; lane < lanes; ++lane) {
    const block_map part = lane_of(lane, lanes, cuts);
    std::vector<std::int32_t> node = ranks.node(lane);
    const placing across{.members = ranks.leaders(lane), .blocks = part};
    const bool from_root = ranks.mine() == 0 && lane > 0;
    if (from_root) {  // the root has it, and the lane's leader waits for it
      std::erase(node, 0);
      node.insert(node.begin(), 0);
      c.add(Inside, inside, {.members = node, .blocks = part});
    }
    if (nodes > 1) c.add(Across, across);
    if (!from_root) c.add(Inside, inside, {.members = node, .blocks = part});
  }
  return c.finish();
}

template <const algorithm& Up, const algorithm& Across, const algorithm& Down>
schedule build_all_reduce_on_nodes(const shape& s, std::int64_t leaders, std::int64_t segment_bytes,
                                   const parameters& up = Up.default_values(),
                                   const parameters& down = Down.default_values()) {
  composer c(s, segment_bytes);
  const ranks_on_nodes ranks(s);
  // In rank order a node's sum starts with the node's first rank.
  const int lanes = s.commutative ? ranks.lanes(leaders) : 1, nodes = ranks.num_nodes();
  const std::int32_t cuts = lanes == 1 || nodes == 1 ? 1 : cuts_of(Across, nodes, s.commutative);
  for (int lane = 0; lane < lanes; ++lane)
    c.add(Up, up, {.members = ranks.node(lane), .blocks = lane_of(lane, lanes, cuts)});
  if (nodes > 1)
    for (int lane = 0; lane < lanes; ++lane)
      c.add(Across, {.members = ranks.leaders(lane),
                     .blocks = lane_of(lane, lanes, cuts),
                     .buffers = next_buffers(buffer::output, buffer::output)});
  for (int lane = 0; lane < lanes; ++lane)
    c.add(Down, down, {.members = ranks.node(lane), .blocks = lane_of(lane, lanes, cuts)});
  return c.finish();
}

template <const algorithm& Inside, const algorithm& Across>
schedule build_reduce_on_nodes(const shape& s, std::int64_t segment_bytes,
                               const parameters& up = Inside.default_values()) {
  composer c(s, segment_bytes);
  const ranks_on_nodes ranks(s);
  // Only the root has memory for an output.
  const buffer sum = ranks.mine() == 0 ? buffer::output : buffer::scratch2;
  buffer_map inside = same_buffers;
  inside[std::size_t(buffer::output)] = sum;
  c.add(Inside, up, {.members = ranks.node(), .buffers = inside});
  if (ranks.num_nodes() > 1)
    c.add(Across, {.members = ranks.leaders(0), .buffers = next_buffers(sum, buffer::output)});
  return c.finish();
}

template <const algorithm& Up, const algorithm& Across, const algorithm& Down>
schedule build_all_gather_on_nodes(const shape& s, std::int64_t segment_bytes,
                                   const parameters& down = Down.default_values()) {
  composer c(s, segment_bytes);
  const ranks_on_nodes ranks(s);
  c.add(Up, {.members = ranks.node(), .blocks = ranks.blocks_of_node()});
  if (ranks.num_nodes() > 1)
    c.add(Across, {.members = ranks.leaders(0),
                   .blocks = ranks.blocks_of_nodes(),
                   .buffers = next_buffers(buffer::output, buffer::output)});
  c.add(Down, down, {.members = ranks.node()});
  return c.finish();
}

template <const algorithm& Inside, const algorithm& Across>
schedule build_gather_on_nodes(const shape& s) {
  composer c(s, 0);
  const ranks_on_nodes ranks(s);
  const buffer collected = ranks.mine() == 0 ? buffer::output : buffer::scratch2;
  buffer_map inside = same_buffers;
  inside[std::size_t(buffer::output)] = collected;
  c.add(Inside, {.members = ranks.node(), .blocks = ranks.blocks_of_node(), .buffers = inside});
  if (ranks.num_nodes() > 1)
    c.add(Across, {.members = ranks.leaders(0),
                   .blocks = ranks.blocks_of_nodes(),
                   .buffers = next_buffers(collected, buffer::output)});
  return c.finish();
}

template <const algorithm& Across, const algorithm& Inside>
schedule build_scatter_on_nodes(const shape& s) {
  composer c(s, 0);
  const ranks_on_nodes ranks(s);
  // The root's own blocks stay where they are.
  const buffer arrived = s.rank == 0 ? buffer::input : buffer::scratch2;
  if (ranks.num_nodes() > 1)
    c.add(Across, {.members = ranks.leaders(0),
                   .blocks = ranks.blocks_of_nodes(),
                   .buffers = next_buffers(buffer::input, arrived)});
  buffer_map inside = same_buffers;
  inside[std::size_t(buffer::input)] = arrived;
  c.add(Inside, {.members = ranks.node(), .blocks = ranks.blocks_of_node(), .buffers = inside});
  return c.finish();
}

/// Ranks tell their leader that they have arrived, and the leader tells them when all have.
template <const algorithm& Across>
schedule build_barrier_on_nodes(const shape& s) {
  composer c(s, 0);
  const ranks_on_nodes ranks(s);
  const auto block = [&](std::int32_t rank) {
    return block_range{.parts = s.num_ranks, .first = rank};
  };
  if (s.rank != ranks.leader()) {
    c.send(buffer::input, block(s.rank), ranks.leader(), once);
    c.receive(buffer::output, block(ranks.leader()), ranks.leader(), once);
    return c.finish();
  }
  const loop others{.rounds = ranks.size() - 1, .peer_stride = 1};
  block_range theirs = block(s.rank + 1);
  theirs.stride = 1;
  if (others.rounds > 0) c.receive(buffer::output, theirs, s.rank + 1, others);
  if (ranks.num_nodes() > 1) {
    c.add(Across, {.members = ranks.leaders(0), .blocks = ranks.blocks_of_leaders()},
          c.all_so_far());
  }
  if (others.rounds > 0) c.send(buffer::input, block(s.rank), s.rank + 1, others, c.all_so_far());
  return c.finish();
}

/// For equal nodes, where all ranks drive a share of the network. Each rank sums its block of the
/// node's inputs in shared memory, continues with the ranks of the same local rank on other
/// nodes, and publishes the sum.
template <const algorithm& Up, const algorithm& Across, const algorithm& Down>
schedule build_all_reduce_in_memory_lanes(const shape& s) {
  composer c(s, 0);
  const ranks_on_nodes ranks(s);
  const int lanes = ranks.fewest(), nodes = ranks.num_nodes();
  const std::int32_t cuts = nodes == 1 ? 1 : cuts_of(Across, nodes, s.commutative);
  std::vector<std::int32_t> borders;
  for (int lane = 0; lane <= lanes; ++lane) borders.push_back(lane * cuts);
  const block_map blocks = block_map::between(lanes * cuts, borders);
  // In place, the rank's own block of the input would be overwritten while it is still needed.
  constexpr buffer sum = buffer::scratch2;
  buffer_map up = same_buffers, down = same_buffers;
  up[std::size_t(buffer::output)] = down[std::size_t(buffer::input)] = sum;
  c.add(Up, {.members = ranks.node(), .blocks = blocks, .buffers = up});
  if (nodes > 1)
    for (int lane = 0; lane < lanes; ++lane)
      c.add(Across, {.members = ranks.leaders(lane),
                     .blocks = lane_of(lane, lanes, cuts),
                     .buffers = next_buffers(sum, sum)});
  c.add(Down, {.members = ranks.node(), .blocks = blocks, .buffers = down});
  return c.finish();
}

/// Ranks meet in the memory of their node, and learn there that all ranks have arrived.
template <const algorithm& Up, const algorithm& Across, const algorithm& Down>
schedule build_barrier_in_memory(const shape& s, const parameters& inside) {
  composer c(s, 0);
  const ranks_on_nodes ranks(s);
  c.add(Up, inside, {.members = ranks.node(), .blocks = ranks.blocks_of_node()});
  if (ranks.num_nodes() > 1)
    c.add(Across, {.members = ranks.leaders(0), .blocks = ranks.blocks_of_leaders()});
  const std::vector<std::int32_t> own{ranks.leader(), ranks.leader() + 1};
  c.add(Down, inside, {.members = ranks.node(), .blocks = block_map::between(s.num_ranks, own)});
  return c.finish();
}

/// For equal nodes, where all ranks drive a share of the network. Each rank gathers the blocks of
/// the ranks of the same local rank on other nodes, and passes them on to its own node.
template <const algorithm& Across, const algorithm& Inside>
schedule build_all_gather_in_lanes(const shape& s) {
  composer c(s, 0);
  const ranks_on_nodes ranks(s);
  const int p = s.num_ranks, nodes = ranks.num_nodes(), lanes = ranks.fewest();
  const int lane = s.rank - ranks.leader();
  // Block k nodes + j of scratch0 is rank k's of node j.
  const auto lane_block = [&](int k, int j) { return k * nodes + j; };
  constexpr buffer_map in_scratch{buffer::scratch0, buffer::scratch0, buffer::scratch1,
                                  buffer::scratch2, buffer::scratch3, buffer::scratch3};
  c.copy(buffer::input, {.parts = p, .first = s.rank}, buffer::scratch0,
         {.parts = p, .first = lane_block(lane, ranks.mine())});
  std::vector<std::int32_t> of_lane(std::size_t(nodes) + 1), of_lanes(std::size_t(lanes) + 1);
  std::iota(of_lane.begin(), of_lane.end(), lane_block(lane, 0));
  for (int k = 0; k <= lanes; ++k) of_lanes[std::size_t(k)] = lane_block(k, 0);
  if (nodes > 1)
    c.add(Across, {.members = ranks.leaders(lane),
                   .blocks = block_map::between(p, of_lane),
                   .buffers = in_scratch});
  c.add(
      Inside,
      {.members = ranks.node(), .blocks = block_map::between(p, of_lanes), .buffers = in_scratch});
  for (int k = 0; k < lanes; ++k)
    c.copy(buffer::scratch0, {.parts = p, .first = lane_block(k, 0), .stride = 1}, buffer::output,
           {.parts = p, .first = k, .stride = lanes}, nodes);
  return c.finish();
}

// --- closed forms, from the closed forms of the parts

/// Sums levels that follow each other. Levels with segments overlap with the next level.
class levels {
 public:
  levels(const cost_query& q, std::int64_t leaders, std::int64_t segment_bytes)
      : query_(q),
        per_node_(std::clamp(q.ranks_per_node, 1, q.num_ranks)),
        nodes_((q.num_ranks + per_node_ - 1) / per_node_),
        fewest_(q.num_ranks - (nodes_ - 1) * per_node_),
        lanes_(std::min({fewest_, most_lanes, leaders == 0 ? fewest_ : int(leaders)})),
        segment_bytes_(double(segment_bytes)),
        machine_(q.machine) {
    share_ways_out();
  }

  int per_node() const { return per_node_; }

  /// Within nodes, a part of `bytes` for each lane; in segments if the algorithm has them.
  void inside(const algorithm& a, double bytes) {
    if (per_node_ == 1) return;
    const double part = bytes / lanes_;
    const routes r({.machine = query_.machine, .num_ranks = per_node_, .ranks_per_node = per_node_},
                   part);
    // With more than one lane every rank is equally busy.
    const double others_s = std::max(0.0, lanes_ * (per_node_ - 1.0) / per_node_ - 1) *
                            (r.near.stage_s(1, 1) + reducing_s(a, part));
    add(a, a.default_values(), query_.machine, per_node_, per_node_, part, others_s);
  }
  /// Within nodes, for all lanes at once.
  void inside_once(const algorithm& a, double bytes) { inside_once(a, a.default_values(), bytes); }
  void inside_once(const algorithm& a, const parameters& values, double bytes) {
    if (per_node_ > 1) add(a, values, query_.machine, per_node_, per_node_, bytes, 0);
  }
  /// Across nodes, a part of `bytes` for each lane.
  void across(const algorithm& a, double bytes) {
    if (nodes_ > 1) add(a, a.default_values(), machine_, nodes_, 1, bytes / lanes_, 0);
  }
  void local(double seconds) { before_s_ += seconds; }

  double total_s() {
    end_overlap();
    return before_s_;
  }

 private:
  double reducing_s(const algorithm& a, double bytes) const {
    return traits_of(a.op).reduces ? query_.machine.reduce.time_s(bytes) : 0;
  }
  // The lanes of a node share its links.
  void share_ways_out() {
    const double sharing = std::max(1.0, double(lanes_) / query_.machine.rails_per_node);
    if (sharing == 1) return;
    for (link_piece& piece : machine_.across_nodes.pieces) {
      piece.gap_s *= sharing;
      piece.gap_s_per_byte *= sharing;  // the message therefore also arrives later
    }
    for (time_curve* curve : {&machine_.across_nodes.exchange, &machine_.across_nodes.shift,
                              &machine_.across_nodes.flow, &machine_.across_nodes.crowd})
      for (time_curve::piece& piece : curve->pieces) piece.s_per_byte *= sharing;
  }
  void add(const algorithm& a, const parameters& values, const machine_model& machine,
           int num_ranks, int per_node, double bytes, double others_s) {
    const auto time_s = [&](double of_bytes) {
      return a.cost_s({.machine = machine,
                       .num_ranks = num_ranks,
                       .ranks_per_node = per_node,
                       .bytes = of_bytes,
                       .unit_bytes = query_.unit_bytes},
                      in_segments(a, values));
    };
    const double all_s = time_s(bytes) + others_s;
    const double first_bytes = std::max(segment_bytes_, query_.unit_bytes);
    if (segment_bytes_ == 0 || first_bytes >= bytes || segment_index(a) < 0) {
      end_overlap();
      before_s_ += all_s;
      return;
    }
    const double first_s = std::min(all_s, time_s(first_bytes));
    before_s_ += first_s;
    longest_rest_s_ = std::max(longest_rest_s_, all_s - first_s);
  }
  void end_overlap() {
    before_s_ += longest_rest_s_;
    longest_rest_s_ = 0;
  }
  static int segment_index(const algorithm& a) {
    for (int i = 0; i < a.num_parameters(); ++i)
      if (a.parameter_list[std::size_t(i)].name == segment_bytes_parameter.name) return i;
    return -1;
  }
  parameters in_segments(const algorithm& a, parameters values) const {
    if (const int i = segment_index(a); i >= 0)
      values[std::size_t(i)] = std::int64_t(segment_bytes_);
    return values;
  }

  const cost_query& query_;
  int per_node_, nodes_, fewest_, lanes_;
  double segment_bytes_;
  machine_model machine_;
  double before_s_ = 0, longest_rest_s_ = 0;
};

}  // namespace railpass::collectives
