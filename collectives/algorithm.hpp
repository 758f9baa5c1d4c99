// SPDX-License-Identifier: BSL-1.0
//
// The descriptor of an algorithm, and the arms that follow from it. The registry of all algorithms
// is in registry.hpp.
#pragma once

#include "collectives/collective.hpp"
#include "models/machine.hpp"
#include "railpass/schedule/builder.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace railpass {

/// A parameter of an algorithm with the values that become arms; the first value is the default.
struct parameter {
  static constexpr int max_values = 16;
  std::string_view name;
  std::array<std::int64_t, max_values> values{};
  int num_values = 0;
  bool in_bytes = false;  ///< print and parse as a size (8KiB)

  constexpr parameter() = default;
  constexpr parameter(std::string_view n, std::initializer_list<std::int64_t> v, bool bytes = false)
      : name(n), in_bytes(bytes) {
    for (const std::int64_t x : v) values[std::size_t(num_values++)] = x;
  }
};

/// 0: not segmented.
inline constexpr parameter segment_bytes_parameter{
    "segment_bytes",
    {0, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10,
     512 << 10, 1 << 20},
    true};

/// Number of nearly equal blocks into which a message is cut, if it has enough units.
inline constexpr parameter blocks_parameter{"blocks", {32, 4, 8, 16, 64, 128}};

inline constexpr int max_parameters = 3;

/// One value per parameter of the descriptor, in its order.
using parameters = std::array<std::int64_t, max_parameters>;

/// For preconditions::max_nodes: any number of nodes.
inline constexpr int any_nodes = std::numeric_limits<int>::max();

/// Preconditions of an algorithm, known equally on all ranks.
struct preconditions {
  bool commutative = false;   ///< only commutative operations
  bool power_of_two = false;  ///< only a power of two of ranks
  bool even_ranks = false;    ///< only an even number of ranks
  /// Only where all ranks share memory and a unit fits in a cell. For algorithms that know nodes:
  /// only where the ranks of each node share memory.
  bool shared_memory = false;
  bool single_copy = false;  ///< only where all ranks may copy from and to each other's memory
  /// For lengths that only pairs of ranks know: in each call all ranks learn the length of the
  /// longest block, and make all blocks as long as that (see padded()).
  bool longest_block = false;
  int min_ranks = 2;
  int max_ranks = std::numeric_limits<int>::max();  ///< if schedules grow with the ranks
  std::int64_t min_units_per_rank = 0;              ///< message units >= this many times num_ranks
  /// 0: for any placement. Otherwise only for 2 to max_nodes nodes, some of them with several
  /// ranks. Reductions that do not commute need consecutive ranks on each node.
  int max_nodes = 0;
  /// Only where the ranks of one node use several caches, some of them shared. Reductions that do
  /// not commute need consecutive ranks under each cache.
  bool several_caches = false;
  bool equal_nodes = false;                                  ///< only nodes of equally many ranks
  int max_ranks_per_node = std::numeric_limits<int>::max();  ///< as max_ranks
};

/// Whether schedules are for ranks in groups, see shape::nodes.
constexpr bool knows_groups(const preconditions& needs) {
  return needs.max_nodes > 0 || needs.several_caches;
}

/// Upper bound of a rank's scratch memory, equal on all ranks, so that all ranks agree on whether
/// it fits.
struct scratch_formula {
  double messages = 0;  ///< times the message's length; with blocks: of all num_ranks blocks
  int blocks = 0;       ///< times the length of the longest block: the num_ranks-th part if equal
  constexpr double bytes(double message_bytes, double block_bytes) const {
    return messages * message_bytes + blocks * block_bytes;
  }
};

/// An algorithm as seen by the rest of railpass. Each algorithm has a header of its own and a line
/// in algorithms.def. Only native has no `build`: it has neither schedule nor closed form.
struct algorithm {
  collective op = collective::broadcast;
  std::string_view name;
  std::string_view source;  ///< paper and doi
  preconditions needs{};
  scratch_formula scratch{};
  /// Of algorithms that move blocks: a step may name several blocks of the input or the output at
  /// once. If these blocks are not adjacent in memory, their rank works on a copy of the message.
  bool spans_blocks = false;
  std::array<parameter, max_parameters> parameter_list{};
  schedule (*build)(const shape&, const parameters&) = nullptr;
  /// The closed form: the time of the collective in seconds, cheap enough for thousands of arms.
  /// The simulator checks and calibrates it.
  double (*cost_s)(const cost_query&, const parameters&) = nullptr;

  constexpr bool is_native() const { return build == nullptr; }
  constexpr int num_parameters() const {
    int n = 0;
    while (n < max_parameters && parameter_list[std::size_t(n)].num_values > 0) ++n;
    return n;
  }
  constexpr parameters default_values() const {
    parameters values{};
    for (int i = 0; i < num_parameters(); ++i)
      values[std::size_t(i)] = parameter_list[std::size_t(i)].values[0];
    return values;
  }
};

/// The MPI library's own algorithm: always eligible, and in use until another arm beats it.
constexpr algorithm native_algorithm(collective op) {
  return {.op = op, .name = "native", .source = "the MPI library", .needs = {.min_ranks = 1}};
}

/// An algorithm of another collective that also keeps the promise of `op`.
constexpr algorithm serving(collective op, algorithm a) {
  a.op = op;
  return a;
}

/// Whether the steps of the algorithm's schedules know only lengths of their own rank's blocks.
constexpr bool knows_pairs_only(const algorithm& a) {
  return describe(a.op).lengths == block_lengths::of_pair && !a.needs.longest_block;
}

}  // namespace railpass
