// SPDX-License-Identifier: BSL-1.0
//
// Ranks and the nodes they stand on. Algorithms that know nodes see virtual ranks in an order in
// which those of a node stand together, whatever the placement: the root's node comes first, and
// the root is its first rank. So a schedule needs to know only how many ranks each node has.
// Algorithms that know caches see those of one node in the same way: a cache's ranks stand
// together. Nothing here grows with the ranks if each node has as many consecutive ranks.
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

/// What decides whether such algorithms may run: of nodes, or of the caches of one. Equal on all
/// ranks.
struct node_facts {
  std::int32_t num_nodes = 1;
  std::int32_t fewest_ranks = 1;  ///< on any node, as the next one
  std::int32_t most_ranks = 1;
  bool in_rank_order = true;  ///< each node's ranks follow one another
  /// There are nodes to go between, and ranks that share one.
  constexpr bool matter() const { return num_nodes > 1 && most_ranks > 1; }
  friend bool operator==(const node_facts&, const node_facts&) = default;
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

/// The first virtual rank of each group (the ranks of a node or of a cache), and the number of
/// ranks behind the last group. Groups of one size are not listed. Two are equal if they are
/// computed in the same way from the same list, which takes no time that grows with the groups.
class group_begins {
 public:
  /// No groups: all ranks are in one.
  constexpr group_begins() = default;
  /// As listed. The list is borrowed.
  constexpr group_begins(std::span<const std::int32_t> begins) {
    if (begins.empty()) return;
    list_ = begins.data();
    num_groups_ = std::int32_t(begins.size()) - 1;
    num_ranks_ = begins.back();
  }
  constexpr group_begins(const std::vector<std::int32_t>& begins)
      : group_begins(std::span<const std::int32_t>(begins)) {}
  /// `each` ranks in every group; the last group has what is left.
  static constexpr group_begins blocks(std::int32_t num_ranks, std::int32_t each) {
    group_begins all;
    all.num_groups_ = (num_ranks + each - 1) / each;
    all.num_ranks_ = num_ranks;
    all.each_ = each;
    return all;
  }
  /// The same groups in turn, the one of that number first.
  constexpr group_begins beginning_with(std::int32_t group) const {
    group_begins turned = *this;
    if (list_ || num_ranks_ % each_ != 0) turned.first_ = group;
    return turned;
  }

  constexpr bool empty() const { return num_ranks_ == 0; }
  constexpr std::int32_t num_groups() const { return num_groups_; }
  constexpr std::int32_t num_ranks() const { return num_ranks_; }
  /// Of group k, from 0 to num_groups().
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
  /// The same for equal ones.
  std::uint64_t hash() const {
    return reinterpret_cast<std::uintptr_t>(list_) ^
           (std::uint64_t(std::uint32_t(first_)) << 32 | std::uint32_t(each_));
  }

 private:
  // With group 0 first.
  constexpr std::int32_t unturned(std::int32_t k) const {
    return list_ ? list_[k] : k < num_groups_ ? k * each_ : num_ranks_;
  }

  const std::int32_t* list_ = nullptr;
  std::int32_t num_groups_ = 0, num_ranks_ = 0;
  std::int32_t each_ = 0;   // without a list
  std::int32_t first_ = 0;  // what is called group 0
};

/// The physical rank of each virtual one, and the other way round, where nodes give their order.
/// Borrows the tables of the placement that it is of.
class rank_order {
 public:
  /// None: virtual ranks are counted from the root on.
  constexpr rank_order() = default;

  constexpr bool empty() const { return num_ranks_ == 0; }
  constexpr std::int32_t num_ranks() const { return num_ranks_; }
  /// The physical rank.
  constexpr std::int32_t operator[](std::int32_t virtual_rank) const {
    std::int32_t place = begin_ + virtual_rank;
    if (virtual_rank < size_)
      place += virtual_rank + middle_ < size_ ? middle_ : middle_ - size_;
    else if (place >= num_ranks_)
      place -= num_ranks_;
    return physical_ ? physical_[place] : place;
  }
  constexpr std::int32_t virtual_rank(std::int32_t physical) const {
    std::int32_t v = (places_ ? places_[physical] : physical) - begin_;
    if (v < 0) v += num_ranks_;
    if (v >= size_) return v;
    return v < middle_ ? v - middle_ + size_ : v - middle_;
  }

 private:
  friend class placement;
  std::int32_t num_ranks_ = 0;
  std::int32_t begin_ = 0, size_ = 0;  // the root's node, in the order of nodes
  std::int32_t middle_ = 0;            // the root's place on its node
  const std::int32_t *physical_ = nullptr, *places_ = nullptr;  // see placement
};

/// The nodes on which the ranks of a communicator stand. It has a table of ranks only if nodes are
/// not blocks of consecutive ranks, and a list of nodes only if these differ in size.
class placement {
 public:
  /// Allocates all that set() may need, so that ranks who have agreed to go on cannot fail there.
  explicit placement(std::int32_t num_ranks) : num_ranks_(num_ranks) {
    physical_.reserve(std::size_t(num_ranks));
    places_.reserve(std::size_t(num_ranks));
    begins_.reserve(std::size_t(num_ranks) + 1);
  }
  /// `node_of(r)` is the number of physical rank r's node.
  template <class NodeOf>
  void set(const NodeOf& node_of) {
    if (!are_blocks(node_of)) sort(node_of);
    if (facts_.in_rank_order) {
      forget(physical_);
      forget(places_);
    }
    if (each_ > 0) forget(begins_);
  }

  const node_facts& facts() const { return facts_; }
  std::int32_t num_ranks() const { return num_ranks_; }
  /// The number of a rank's node, by the nodes' first ranks.
  std::int32_t node_of(std::int32_t rank) const { return nodes().group_of(place_of(rank)); }
  /// How many of the node's ranks are lower.
  std::int32_t place_on_node(std::int32_t rank) const {
    return place_of(rank) - nodes()[node_of(rank)];
  }
  std::int32_t ranks_on(std::int32_t node) const { return nodes().ranks_in(node); }
  std::int32_t rank_on(std::int32_t node, std::int32_t place) const {
    const std::int32_t at = nodes()[node] + place;
    return physical_.empty() ? at : physical_[std::size_t(at)];
  }
  group_begins nodes() const {
    return each_ > 0 ? group_begins::blocks(num_ranks_, each_) : group_begins(begins_);
  }
  /// The nodes' order that begins with the root's node, and there with the root.
  rank_order order_from(std::int32_t root) const {
    const group_begins all = nodes();
    const std::int32_t place = place_of(root), node = all.group_of(place);
    rank_order order;
    order.num_ranks_ = num_ranks_;
    order.begin_ = all[node];
    order.size_ = all.ranks_in(node);
    order.middle_ = place - order.begin_;
    if (!physical_.empty()) order.physical_ = physical_.data();
    if (!places_.empty()) order.places_ = places_.data();
    return order;
  }
  friend bool operator==(const placement&, const placement&) = default;
  bool has_tables() const { return each_ == 0 || !facts_.in_rank_order; }
  std::size_t memory_bytes() const {
    return sizeof(*this) +
           sizeof(std::int32_t) * (physical_.capacity() + places_.capacity() + begins_.capacity());
  }

 private:
  std::int32_t place_of(std::int32_t rank) const {
    return places_.empty() ? rank : places_[std::size_t(rank)];
  }
  static void forget(std::vector<std::int32_t>& table) { std::vector<std::int32_t>().swap(table); }

  // Each node's ranks follow one another, as many on each and the rest on the last one, and nodes
  // have ascending numbers.
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
    // For now `begins_` has numbers of nodes by rank, and `places_` the first ranks of these nodes.
    physical_.resize(p);
    places_.resize(p);
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
      at(places_, r) = first ? r : at(places_, physical_[i - 1]);
    }
    sort_by(places_);
    begins_.clear();
    for (std::size_t i = 0; i < p; ++i)
      if (at(places_, physical_[i]) == physical_[i]) begins_.push_back(std::int32_t(i));
    begins_.push_back(num_ranks_);
    for (std::size_t i = 0; i < p; ++i) at(places_, physical_[i]) = std::int32_t(i);
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
  std::int32_t each_ = 0;  // on every node, but on the last one fewer maybe; 0: see begins_
  // In the order of nodes these are by their first ranks, and each node's ranks ascend.
  std::vector<std::int32_t> physical_;  // ranks in the order of nodes; empty: in rank order
  std::vector<std::int32_t> places_;    // of ranks in that order; empty, too
  std::vector<std::int32_t> begins_;    // of nodes in that order, and the number of ranks
};

/// A communicator's ranks in the order of nodes, from some root on.
class node_order {
 public:
  node_order() = default;
  /// Of ranks on nodes with any numbers.
  explicit node_order(std::span<const std::int32_t> node_of_rank) {
    placement where(std::int32_t(node_of_rank.size()));
    where.set([&](std::int32_t r) { return node_of_rank[std::size_t(r)]; });
    become(std::make_shared<const placement>(std::move(where)));
  }

  /// Beginning with rank 0.
  void become(std::shared_ptr<const placement> where) {
    facts_ = where->facts();
    where_ = std::move(where);
    root_ = -1;
    begin_with(0);
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
    if (root == root_) return;
    root_ = root;
    ranks_ = where_->order_from(root);
    begins_ = where_->nodes().beginning_with(where_->node_of(root));
  }
  /// Physical and virtual ranks.
  const rank_order& ranks() const { return ranks_; }
  /// The first virtual rank of each node, and the number of ranks: see shape::nodes.
  const group_begins& begins() const { return begins_; }

 private:
  node_facts facts_{};
  std::shared_ptr<const placement> where_;
  std::int32_t root_ = -1;
  rank_order ranks_;
  group_begins begins_;
};

}  // namespace railpass
