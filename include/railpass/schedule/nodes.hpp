// SPDX-License-Identifier: BSL-1.0
//
// Ranks and the nodes they stand on. Algorithms that know nodes see virtual ranks in an order in
// which those of a node stand together, whatever the placement: the root's node comes first, and
// the root is its first rank. So a schedule needs to know only how many ranks each node has.
// Algorithms that know caches see those of one node in the same way: a cache's ranks stand
// together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace railpass {

/// What decides whether such algorithms may run: of nodes, or of the caches of one. Equal on all
/// ranks.
struct node_facts {
  std::int32_t num_nodes = 1;
  std::int32_t fewest_ranks = 1;  ///< on any node, as the next one
  std::int32_t most_ranks = 1;
  bool in_rank_order = true;  ///< each node's ranks follow one another
  /// There are nodes to go between, and ranks that share one.
  constexpr bool matter() const { return num_nodes > 1 && most_ranks > 1; }
  /// Of caches, as closed forms are told.
  constexpr std::int32_t most_ranks_or_0() const { return matter() ? most_ranks : 0; }

  /// Ranks 0 .. ranks_per_node-1 on the first node, the next ones on another one, and so on.
  static constexpr node_facts blocks(std::int32_t num_ranks, std::int32_t ranks_per_node) {
    const std::int32_t most = std::clamp(ranks_per_node, 1, num_ranks);
    const std::int32_t rest = num_ranks % most;
    return {.num_nodes = num_ranks / most + (rest > 0 ? 1 : 0),
            .fewest_ranks = rest > 0 ? rest : most,
            .most_ranks = most};
  }
};

/// The ranks of a communicator, by nodes. Memory is allocated by reserve() alone, so that ranks who
/// have agreed to go on cannot fail here.
class node_order {
 public:
  node_order() = default;
  /// Of ranks on nodes with any numbers.
  explicit node_order(std::span<const std::int32_t> node_of_rank) {
    reserve(std::int32_t(node_of_rank.size()));
    set([&](std::int32_t r) { return node_of_rank[std::size_t(r)]; });
  }

  void reserve(std::int32_t num_ranks) {
    const auto p = std::size_t(num_ranks);
    nodes_.reserve(p);
    begins_.reserve(p + 1);
    by_node_.resize(p);
    physical_.resize(p);
    virtual_.resize(p);
  }
  /// `node_of(r)` is the number of physical rank r's node; of as many ranks as reserve() was told.
  template <class NodeOf>
  void set(const NodeOf& node_of) {
    const auto p = std::int32_t(by_node_.size());
    for (std::int32_t r = 0; r < p; ++r) by_node_[std::size_t(r)] = r;
    std::sort(by_node_.begin(), by_node_.end(), [&](std::int32_t a, std::int32_t b) {
      const auto x = node_of(a), y = node_of(b);
      return x != y ? x < y : a < b;
    });
    nodes_.clear();
    begins_.clear();
    for (std::int32_t i = 0; i < p; ++i) {
      if (i == 0 || node_of(by_node_[std::size_t(i)]) != node_of(by_node_[std::size_t(i - 1)]))
        nodes_.push_back({by_node_[std::size_t(i)], i, 0});
      ++nodes_.back().num_ranks;
    }
    std::sort(nodes_.begin(), nodes_.end(),
              [](const node& a, const node& b) { return a.first_rank < b.first_rank; });
    begin_with(0);
    facts_ = {.num_nodes = std::int32_t(nodes_.size()), .fewest_ranks = p, .most_ranks = 0};
    for (const node& n : nodes_) {
      facts_.fewest_ranks = std::min(facts_.fewest_ranks, n.num_ranks);
      facts_.most_ranks = std::max(facts_.most_ranks, n.num_ranks);
    }
    facts_.in_rank_order = std::is_sorted(physical_.begin(), physical_.end());
  }

  /// Keeps the facts alone.
  void forget_order() {
    const node_facts kept = facts_;
    *this = {};
    facts_ = kept;
  }

  const node_facts& facts() const { return facts_; }

  /// Puts the root and its node first. With root 0 and nodes in rank order all ranks keep their
  /// numbers.
  void begin_with(std::int32_t root) {
    if (!begins_.empty() && physical_[0] == root) return;
    std::size_t first = 0;
    while (!has(nodes_[first], root)) ++first;
    begins_.assign(1, 0);
    for (std::size_t k = 0; k < nodes_.size(); ++k) {
      const node& n = nodes_[(first + k) % nodes_.size()];
      const auto ranks =
          std::span(by_node_).subspan(std::size_t(n.begin), std::size_t(n.num_ranks));
      const auto middle = k == 0 ? std::find(ranks.begin(), ranks.end(), root) : ranks.begin();
      std::rotate_copy(ranks.begin(), middle, ranks.end(), physical_.begin() + begins_.back());
      begins_.push_back(begins_.back() + n.num_ranks);
    }
    for (std::size_t v = 0; v < physical_.size(); ++v)
      virtual_[std::size_t(physical_[v])] = std::int32_t(v);
  }
  /// The physical rank of each virtual one, and the other way round.
  std::span<const std::int32_t> physical() const { return physical_; }
  std::span<const std::int32_t> virtual_ranks() const { return virtual_; }
  /// The first virtual rank of each node, and the number of ranks: see shape::nodes.
  std::span<const std::int32_t> begins() const { return begins_; }

 private:
  struct node {
    std::int32_t first_rank;  // physical
    std::int32_t begin;       // in by_node_
    std::int32_t num_ranks;
  };
  bool has(const node& n, std::int32_t rank) const {
    const auto ranks = std::span(by_node_).subspan(std::size_t(n.begin), std::size_t(n.num_ranks));
    return std::binary_search(ranks.begin(), ranks.end(), rank);
  }

  node_facts facts_{};
  std::vector<node> nodes_;            // by their first ranks
  std::vector<std::int32_t> by_node_;  // physical ranks, ascending within a node
  std::vector<std::int32_t> physical_, virtual_, begins_;
};

}  // namespace railpass
