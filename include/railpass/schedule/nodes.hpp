// SPDX-License-Identifier: BSL-1.0
//
// The placement of ranks on nodes. Algorithms that know nodes see virtual ranks in an order in
// which the ranks of each node are consecutive, whatever the placement: the root's node first, and
// the root as its first rank. A schedule then needs only the number of ranks on each node.
// Algorithms that know caches see the ranks of one node in the same way, with consecutive ranks
// under each cache. Memory does not grow with the ranks if all nodes have equally many consecutive
// ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace railpass {

/// The facts that decide whether such algorithms may run, about nodes or about the caches of one
/// node. Equal on all ranks.
struct node_facts {
  std::int32_t num_nodes = 1;
  std::int32_t fewest_ranks = 1;  ///< on any node
  std::int32_t most_ranks = 1;
  bool in_rank_order = true;  ///< each node's ranks follow one another
  /// Whether there are several nodes, and ranks that share a node.
  constexpr bool matter() const { return num_nodes > 1 && most_ranks > 1; }
  friend bool operator==(const node_facts&, const node_facts&) = default;
  /// For caches, as in cost_query.
  constexpr std::int32_t most_ranks_or_0() const { return matter() ? most_ranks : 0; }

  /// Ranks 0 .. ranks_per_node-1 on the first node, the next ranks on the second node, and so on.
  static constexpr node_facts blocks(std::int32_t num_ranks, std::int32_t ranks_per_node) {
    const std::int32_t most = std::clamp(ranks_per_node, 1, num_ranks);
    const std::int32_t rest = num_ranks % most;
    return {.num_nodes = num_ranks / most + (rest > 0 ? 1 : 0),
            .fewest_ranks = rest > 0 ? rest : most,
            .most_ranks = most};
  }
};

/// The first virtual rank of each group (the ranks of a node or of a cache), and the number of
/// ranks after the last group. Groups of equal size need no list. Two objects compare equal if they
/// are derived in the same way from the same list, in time that does not grow with the groups.
class group_begins {
 public:
  /// No groups: all ranks are in one group.
  constexpr group_begins() = default;
  /// Groups from a list, which is borrowed.
  constexpr group_begins(std::span<const std::int32_t> begins) {
    if (begins.empty()) return;
    list_ = begins.data();
    num_groups_ = std::int32_t(begins.size()) - 1;
    num_ranks_ = begins.back();
  }
  constexpr group_begins(const std::vector<std::int32_t>& begins)
      : group_begins(std::span<const std::int32_t>(begins)) {}
  /// `each` ranks in every group; the last group has the rest.
  static constexpr group_begins blocks(std::int32_t num_ranks, std::int32_t each) {
    group_begins all;
    all.num_groups_ = (num_ranks + each - 1) / each;
    all.num_ranks_ = num_ranks;
    all.each_ = each;
    return all;
  }
  /// The same groups, rotated so that `group` comes first.
  constexpr group_begins beginning_with(std::int32_t group) const {
    group_begins turned = *this;
    if (list_ || num_ranks_ % each_ != 0) turned.first_ = group;
    return turned;
  }

  constexpr bool empty() const { return num_ranks_ == 0; }
  constexpr std::int32_t num_groups() const { return num_groups_; }
  constexpr std::int32_t num_ranks() const { return num_ranks_; }
  /// First rank of group k, from 0 to num_groups().
  constexpr std::int32_t operator[](std::int32_t k) const {
    const std::int32_t at = k + first_, begin = unturned(first_);
    return at <= num_groups_ ? unturned(at) - begin
                             : unturned(at - num_groups_) + num_ranks_ - begin;
  }
  constexpr std::int32_t ranks_in(std::int32_t k) const { return (*this)[k + 1] - (*this)[k]; }
  constexpr std::int32_t fewest_ranks() const {
    if (!list_) return num_ranks_ - (num_groups_ - 1) * each_;
    std::int32_t fewest = num_ranks_;
    for (std::int32_t k = 0; k < num_groups_; ++k) fewest = std::min(fewest, ranks_in(k));
    return fewest;
  }
  constexpr bool are_equal() const { return fewest_ranks() * num_groups_ == num_ranks_; }
  /// The group of a virtual rank.
  constexpr std::int32_t group_of(std::int32_t virtual_rank) const {
    std::int32_t rank = virtual_rank + unturned(first_);
    if (rank >= num_ranks_) rank -= num_ranks_;
    std::int32_t group = each_ > 0 ? rank / each_ : 0;
    if (list_) group = std::int32_t(std::upper_bound(list_, list_ + num_groups_, rank) - list_) - 1;
    return group < first_ ? group - first_ + num_groups_ : group - first_;
  }
  std::vector<std::int32_t> listed() const {
    std::vector<std::int32_t> all;
    for (std::int32_t k = 0; !empty() && k <= num_groups_; ++k) all.push_back((*this)[k]);
    return all;
  }

  friend constexpr bool operator==(const group_begins&, const group_begins&) = default;
  /// Equal objects have equal hashes.
  std::uint64_t hash() const {
    return reinterpret_cast<std::uintptr_t>(list_) ^
           (std::uint64_t(std::uint32_t(first_)) << 32 | std::uint32_t(each_));
  }

 private:
  // As if group 0 were first.
  constexpr std::int32_t unturned(std::int32_t k) const {
    return list_ ? list_[k] : k < num_groups_ ? k * each_ : num_ranks_;
  }

  const std::int32_t* list_ = nullptr;
  std::int32_t num_groups_ = 0, num_ranks_ = 0;
  std::int32_t each_ = 0;   // without a list
  std::int32_t first_ = 0;  // the group that counts as group 0
};

/// The physical rank of each virtual rank, and vice versa, if nodes define the order. Borrows the
/// tables of its placement.
class rank_order {
 public:
  /// No order: virtual ranks count from the root.
  constexpr rank_order() = default;

  constexpr bool empty() const { return num_ranks_ == 0; }
  constexpr std::int32_t num_ranks() const { return num_ranks_; }
  /// The physical rank of a virtual rank.
  constexpr std::int32_t operator[](std::int32_t virtual_rank) const {
    std::int32_t position = begin_ + virtual_rank;
    if (virtual_rank < size_)
      position += virtual_rank + middle_ < size_ ? middle_ : middle_ - size_;
    else if (position >= num_ranks_)
      position -= num_ranks_;
    return physical_ ? physical_[position] : position;
  }
  constexpr std::int32_t virtual_rank(std::int32_t physical) const {
    std::int32_t v = (positions_ ? positions_[physical] : physical) - begin_;
    if (v < 0) v += num_ranks_;
    if (v >= size_) return v;
    return v < middle_ ? v - middle_ + size_ : v - middle_;
  }

 private:
  friend class placement;
  std::int32_t num_ranks_ = 0;
  std::int32_t begin_ = 0, size_ = 0;  // the root's node, in the order of nodes
  std::int32_t middle_ = 0;            // the root's local rank
  const std::int32_t *physical_ = nullptr, *positions_ = nullptr;  // see placement
};

/// The nodes of a communicator's ranks. A table of ranks exists only if nodes are not blocks of
/// consecutive ranks, and a list of nodes only if nodes differ in size.
class placement {
 public:
  /// Allocates everything that set() may need, so that set() cannot fail after the ranks'
  /// agreement.
  explicit placement(std::int32_t num_ranks) : num_ranks_(num_ranks) {
    physical_.reserve(std::size_t(num_ranks));
    positions_.reserve(std::size_t(num_ranks));
    begins_.reserve(std::size_t(num_ranks) + 1);
  }
  /// @param node_of node_of(r) is the number of physical rank r's node
  template <class NodeOf>
  void set(const NodeOf& node_of) {
    if (!are_blocks(node_of)) sort(node_of);
    if (facts_.in_rank_order) {
      forget(physical_);
      forget(positions_);
    }
    if (each_ > 0) forget(begins_);
  }

  const node_facts& facts() const { return facts_; }
  std::int32_t num_ranks() const { return num_ranks_; }
  /// The number of a rank's node; nodes are in the order of their first ranks.
  std::int32_t node_of(std::int32_t rank) const { return nodes().group_of(position_of(rank)); }
  /// The number of lower ranks on the same node.
  std::int32_t local_rank(std::int32_t rank) const {
    return position_of(rank) - nodes()[node_of(rank)];
  }
  std::int32_t ranks_on(std::int32_t node) const { return nodes().ranks_in(node); }
  group_begins nodes() const {
    return each_ > 0 ? group_begins::blocks(num_ranks_, each_) : group_begins(begins_);
  }
  /// The order of nodes that starts with the root's node, and there with the root.
  rank_order order_from(std::int32_t root) const {
    const group_begins all = nodes();
    const std::int32_t position = position_of(root), node = all.group_of(position);
    rank_order order;
    order.num_ranks_ = num_ranks_;
    order.begin_ = all[node];
    order.size_ = all.ranks_in(node);
    order.middle_ = position - order.begin_;
    if (!physical_.empty()) order.physical_ = physical_.data();
    if (!positions_.empty()) order.positions_ = positions_.data();
    return order;
  }
  friend bool operator==(const placement&, const placement&) = default;
  bool has_tables() const { return each_ == 0 || !facts_.in_rank_order; }
  std::size_t memory_bytes() const {
    return sizeof(*this) + sizeof(std::int32_t) *
                               (physical_.capacity() + positions_.capacity() + begins_.capacity());
  }

 private:
  std::int32_t position_of(std::int32_t rank) const {
    return positions_.empty() ? rank : positions_[std::size_t(rank)];
  }
  static void forget(std::vector<std::int32_t>& table) { std::vector<std::int32_t>().swap(table); }

  // Whether each node's ranks are consecutive, equally many on each node and the rest on the last
  // node, with ascending node numbers.
  template <class NodeOf>
  bool are_blocks(const NodeOf& node_of) {
    each_ = 0;
    auto before = node_of(0);
    for (std::int32_t r = 1; r < num_ranks_; ++r) {
      const auto node = node_of(r);
      if (node != before && each_ == 0) each_ = r;
      const bool begins = each_ > 0 && r % each_ == 0;
      if (begins ? node <= before : node != before) {
        each_ = 0;
        return false;
      }
      before = node;
    }
    if (each_ == 0) each_ = num_ranks_;
    facts_ = node_facts::blocks(num_ranks_, each_);
    return true;
  }

  template <class NodeOf>
  void sort(const NodeOf& node_of) {
    const auto p = std::size_t(num_ranks_);
    const auto at = [](auto& table, std::int32_t r) -> auto& { return table[std::size_t(r)]; };
    // Temporarily `begins_` has numbers of nodes by rank, and `positions_` the nodes' first ranks.
    physical_.resize(p);
    positions_.resize(p);
    begins_.resize(p);
    std::iota(physical_.begin(), physical_.end(), 0);
    for (std::int32_t r = 0; r < num_ranks_; ++r) at(begins_, r) = node_of(r);
    const auto sort_by = [&](const std::vector<std::int32_t>& key) {
      std::sort(physical_.begin(), physical_.end(), [&](std::int32_t a, std::int32_t b) {
        return std::pair(at(key, a), a) < std::pair(at(key, b), b);
      });
    };
    sort_by(begins_);
    for (std::size_t i = 0; i < p; ++i) {
      const std::int32_t r = physical_[i];
      const bool first = i == 0 || at(begins_, physical_[i - 1]) != at(begins_, r);
      at(positions_, r) = first ? r : at(positions_, physical_[i - 1]);
    }
    sort_by(positions_);
    begins_.clear();
    for (std::size_t i = 0; i < p; ++i)
      if (at(positions_, physical_[i]) == physical_[i]) begins_.push_back(std::int32_t(i));
    begins_.push_back(num_ranks_);
    for (std::size_t i = 0; i < p; ++i) at(positions_, physical_[i]) = std::int32_t(i);
    describe();
  }
  void describe() {
    facts_ = {.num_nodes = std::int32_t(begins_.size()) - 1,
              .fewest_ranks = num_ranks_,
              .most_ranks = 0,
              .in_rank_order = std::is_sorted(physical_.begin(), physical_.end())};
    for (std::size_t n = 0; n + 1 < begins_.size(); ++n) {
      facts_.fewest_ranks = std::min(facts_.fewest_ranks, begins_[n + 1] - begins_[n]);
      facts_.most_ranks = std::max(facts_.most_ranks, begins_[n + 1] - begins_[n]);
    }
    const std::int32_t each = begins_[1];
    std::size_t n = 0;
    while (n < begins_.size() && begins_[n] == std::min(std::int32_t(n) * each, num_ranks_)) ++n;
    each_ = n == begins_.size() ? each : 0;
  }

  node_facts facts_{};
  std::int32_t num_ranks_;
  std::int32_t each_ = 0;  // on every node, the last may have fewer; 0: see begins_
  // Nodes are ordered by their first ranks, and ranks ascend within each node.
  std::vector<std::int32_t> physical_;   // ranks in the order of nodes; empty: in rank order
  std::vector<std::int32_t> positions_;  // of ranks in that order; then also empty
  std::vector<std::int32_t> begins_;     // of nodes in that order, and the number of ranks
};

/// A communicator's ranks in the order of nodes, starting from a root.
class node_order {
 public:
  node_order() = default;
  /// For nodes with any numbers.
  explicit node_order(std::span<const std::int32_t> node_of_rank) {
    placement where(std::int32_t(node_of_rank.size()));
    where.set([&](std::int32_t r) { return node_of_rank[std::size_t(r)]; });
    become(std::make_shared<const placement>(std::move(where)));
  }

  /// Starts with rank 0.
  void become(std::shared_ptr<const placement> where) {
    facts_ = where->facts();
    where_ = std::move(where);
    root_ = -1;
    begin_with(0);
  }
  /// Keeps only the facts.
  void forget_order() {
    const node_facts kept = facts_;
    *this = {};
    facts_ = kept;
  }

  const node_facts& facts() const { return facts_; }

  /// Puts the root and its node first. If the root is 0 and nodes are in rank order, all ranks keep
  /// their numbers.
  void begin_with(std::int32_t root) {
    if (root == root_) return;
    root_ = root;
    ranks_ = where_->order_from(root);
    begins_ = where_->nodes().beginning_with(where_->node_of(root));
  }
  /// Maps between physical and virtual ranks.
  const rank_order& ranks() const { return ranks_; }
  /// The first virtual rank of each node, then the number of ranks: see shape::nodes.
  const group_begins& begins() const { return begins_; }

 private:
  node_facts facts_{};
  std::shared_ptr<const placement> where_;
  std::int32_t root_ = -1;
  rank_order ranks_;
  group_begins begins_;
};

}  // namespace railpass
