// SPDX-License-Identifier: BSL-1.0
//
// Which of an MPI library's own algorithms a file of rules may name, from bench results. Pure: no
// file is read or written here.
#pragma once

#include "collectives/collective.hpp"
#include "models/samples.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace railpass::internal::libraries {

/// Least confidence of the interval of an algorithm's gain, and least gain: median time in the
/// default's.
inline constexpr double least_confidence = 0.95;
inline constexpr double largest_ratio = 0.95;

/// Messages of `from_bytes` to `to_bytes`, both included, take an algorithm. A barrier's rule is of
/// all sizes.
struct rule {
  std::int64_t from_bytes = 0;
  std::int64_t to_bytes = 0;
  own_algorithm algorithm{};
  std::int64_t segment_bytes = 0;
  double ratio = 1;  ///< largest ratio to the default's time where measured
  friend bool operator==(const rule&, const rule&) = default;
};

/// Rules of one collective on one number of ranks, in ascending order of disjoint sizes. Sizes
/// without a rule take the library's default.
struct rules_of_ranks {
  int num_ranks = 0;
  std::vector<rule> rules{};
};

struct rules_of_collective {
  collective op{};
  std::vector<rules_of_ranks> ranks{};  ///< in ascending order; other numbers take the default
};

struct rule_set {
  std::string mpi_library{};           ///< as fingerprint::mpi_library
  int largest_num_hosts = 1;           ///< of the bench files
  std::vector<std::string> sources{};  ///< the files, with numbers of ranks
  std::vector<rules_of_collective> collectives{};
  std::vector<std::string> left_out{};  ///< what was measured and has no rule, in sentences
};

/// A bench file.
struct named_bench {
  std::string name{};
  bench_results bench{};
};

/// The algorithm that an arm of a bench forces; null if the bench does not list the algorithm.
const own_algorithm* find_algorithm(const bench_results& bench, const std::string& collective,
                                    const std::string& arm);

/// Why no rule may rest on an algorithm in a bench; empty if a rule may.
using rule_filter =
    std::function<std::string(collective, const own_algorithm&, const bench_results&)>;

/// An algorithm may have a rule at a measured size if the interval of its ratio to the default,
/// over the launches of the bench, has `least_confidence` and ends below 1, and the median ratio is
/// at most `largest_ratio`. Between two measured sizes the algorithm must have passed at both;
/// smaller and larger sizes, and other numbers of ranks, have no rule. If several files have one
/// number of ranks, an algorithm must pass in each of these files. The fastest algorithm that
/// passed gets the rule. Throws error that names the file if it has too few launches or lacks times
/// of the default or of the library's own algorithms, or if files are of different MPI libraries.
rule_set rules_from(std::span<const named_bench> files, const rule_filter& why_not);

}  // namespace railpass::internal::libraries
