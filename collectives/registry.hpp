// SPDX-License-Identifier: BSL-1.0
//
// All algorithms of collectives/algorithms.def, and the arms that follow from them. An arm is an
// algorithm with a value for each of its parameters; its number is its index in arms_of(op) and is
// the same on all ranks of a build.
#pragma once

#include "collectives/algorithm.hpp"
#include "railpass/base/error.hpp"
#include "railpass/base/names.hpp"
#include "railpass/base/units.hpp"
#include "railpass/schedule/nodes.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Compiling all algorithms takes half a minute: railpass itself does so once, in registry.cpp.
// Other programs need nothing but headers.
#ifdef RAILPASS_COMPILED_REGISTRY
namespace railpass {
extern const std::span<const algorithm* const> all_algorithms;
}
#else
#include "collectives/all_algorithms.hpp"
namespace railpass {
inline constexpr std::span<const algorithm* const> all_algorithms = listed_algorithms;
}
#endif

namespace railpass {

/// An algorithm with its parameters: what a policy chooses.
struct arm {
  const algorithm* base = nullptr;
  parameters values{};
  friend bool operator==(const arm&, const arm&) = default;
};

/// What the preconditions are checked against. Equal on all ranks.
struct eligibility {
  int num_ranks = 1;
  std::int64_t units = 0;
  bool commutative = true;
  bool shared_memory = false;  ///< of all ranks of each node, with cells as large as a unit
  bool single_copy = false;    ///< between all ranks, on one node
  node_facts nodes{};
  node_facts caches{};  ///< of ranks on one node, see shape::nodes
};

constexpr bool eligible_on_nodes(const preconditions& n, const node_facts& nodes,
                                 bool commutative) {
  return n.max_nodes == 0 ||
         (nodes.matter() && nodes.num_nodes <= n.max_nodes &&
          (!n.equal_nodes || nodes.fewest_ranks == nodes.most_ranks) &&
          nodes.most_ranks <= n.max_ranks_per_node && (commutative || nodes.in_rank_order));
}

constexpr bool eligible_on_caches(const preconditions& n, const eligibility& e) {
  return !n.several_caches ||
         (e.nodes.num_nodes == 1 && e.caches.matter() && (e.commutative || e.caches.in_rank_order));
}

constexpr bool eligible(const algorithm& a, const eligibility& e) {
  const preconditions& n = a.needs;
  return e.num_ranks >= n.min_ranks && e.num_ranks <= n.max_ranks &&
         (!n.commutative || e.commutative) &&
         (!n.shared_memory || (e.shared_memory && (n.max_nodes > 0 || e.nodes.num_nodes == 1))) &&
         (!n.single_copy || e.single_copy) &&
         (!n.power_of_two || (e.num_ranks & (e.num_ranks - 1)) == 0) &&
         (!n.even_ranks || e.num_ranks % 2 == 0) && e.units >= n.min_units_per_rank * e.num_ranks &&
         eligible_on_nodes(n, e.nodes, e.commutative) && eligible_on_caches(n, e);
}

/// "pipeline+segment_bytes=8KiB": the algorithm's name, then each parameter that is not at its
/// default (its first value).
inline std::string name_of(const arm& a) {
  std::string text(a.base->name);
  for (int i = 0; i < a.base->num_parameters(); ++i) {
    const parameter& p = a.base->parameter_list[std::size_t(i)];
    const std::int64_t v = a.values[std::size_t(i)];
    if (v == p.values[0]) continue;
    text += '+';
    text += p.name;
    text += '=';
    text += p.in_bytes ? format_bytes(v) : std::to_string(v);
  }
  return text;
}

/// The arm with every parameter at its default.
constexpr arm default_arm(const algorithm& a) { return {&a, a.default_values()}; }

/// All arms of a collective: every combination of parameter values, `native` first.
inline std::vector<arm> arms_of(collective op) {
  std::vector<arm> arms;
  for (const algorithm* a : all_algorithms) {
    if (a->op != op) continue;
    std::vector<arm> mine{default_arm(*a)};
    for (int i = 0; i < a->num_parameters(); ++i) {
      const parameter& p = a->parameter_list[std::size_t(i)];
      std::vector<arm> product;
      for (const arm& base : mine)
        for (int v = 0; v < p.num_values; ++v) {
          product.push_back(base);
          product.back().values[std::size_t(i)] = p.values[std::size_t(v)];
        }
      mine = std::move(product);
    }
    arms.insert(arms.end(), mine.begin(), mine.end());
  }
  return arms;
}

inline const algorithm* find_algorithm(collective op, std::string_view name) {
  for (const algorithm* a : all_algorithms)
    if (a->op == op && a->name == name) return a;
  return nullptr;
}

/// By its name here or MPI's: all_reduce, allreduce, MPI_Allreduce; broadcast, bcast.
inline std::optional<collective> find_collective(std::string_view name) {
  if (is_same_name(name, "bcast")) return collective::broadcast;
  const auto found = std::ranges::find_if(
      all_collectives, [&](collective op) { return is_same_name(name, name_of(op)); });
  return found == all_collectives.end() ? std::nullopt : std::optional(*found);
}

/// The inverse of name_of. Any value of a parameter is accepted that lies between its smallest and
/// largest one (an arm need not be in arms_of to be pinned). Throws error naming the wrong word.
inline arm parse_arm(collective op, std::string_view text) {
  const auto fail = [&](const std::string& what) {
    return error("arm '" + std::string(text) + "' of " + std::string(name_of(op)) + ": " + what);
  };
  std::string_view rest = text;
  const auto next_word = [&] {
    const std::size_t plus = rest.find('+');
    const std::string_view word = rest.substr(0, plus);
    rest = plus == std::string_view::npos ? std::string_view{} : rest.substr(plus + 1);
    return word;
  };
  if (text.ends_with('+')) throw fail("nothing follows the last '+'");
  const std::string_view name = next_word();
  const algorithm* a = find_algorithm(op, name);
  if (!a) {
    std::vector<std::string_view> known;
    for (const algorithm* one : all_algorithms)
      if (one->op == op) known.push_back(one->name);
    throw fail("there is no algorithm '" + std::string(name) + "' (see railpass algorithms)" +
               did_you_mean(name, known));
  }
  arm result = default_arm(*a);
  while (!rest.empty()) {
    const std::string_view word = next_word();
    const std::size_t equals = word.find('=');
    const std::string_view key = word.substr(0, equals);
    int index = -1;
    for (int i = 0; i < a->num_parameters(); ++i)
      if (a->parameter_list[std::size_t(i)].name == key) index = i;
    if (index < 0 || equals == std::string_view::npos)
      throw fail("'" + std::string(word) + "' is not one of its parameters with a value");
    const parameter& p = a->parameter_list[std::size_t(index)];
    const auto value = parse_bytes(word.substr(equals + 1));
    const auto [low, high] = std::minmax_element(p.values.begin(), p.values.begin() + p.num_values);
    if (!value || *value < *low || *value > *high)
      throw fail("'" + std::string(word) + "': expected a number from " + std::to_string(*low) +
                 " to " + std::to_string(*high));
    result.values[std::size_t(index)] = *value;
  }
  return result;
}

/// Whether parse_arm() knows the arm. Files may be of another version of railpass.
inline bool is_arm(collective op, std::string_view text) {
  try {
    static_cast<void>(parse_arm(op, text));
    return true;
  } catch (const error&) {
    return false;
  }
}

}  // namespace railpass
