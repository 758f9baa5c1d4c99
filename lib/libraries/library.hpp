// SPDX-License-Identifier: BSL-1.0
//
// One MPI library's own algorithms, as railpass knows them: how a process forces an algorithm, and
// the file of rules by which the library chooses algorithms without railpass. One file per library.
// Nothing here calls MPI.
#pragma once

#include "collectives/collective.hpp"
#include "lib/libraries/rules.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace railpass::internal::libraries {

/// The arm "native:NAME[:SEGMENT]" of a bench.
struct own_arm {
  std::string name{};              ///< the library's; "all" on the command line: all algorithms
  std::int64_t segment_bytes = 0;  ///< 0: not segmented
  friend bool operator==(const own_arm&, const own_arm&) = default;
};
/// Segments may be written as sizes ("32KiB"). Throws error that names the wrong word.
own_arm parse_own_arm(std::string_view text);
std::string name_of(const own_arm& arm);

/// What MPI_T says of a control variable that chooses an algorithm.
struct algorithm_variable {
  std::string description{};
  std::vector<std::pair<int, std::string>> values{};  ///< of its enumeration, if there is one
};

/// A file of rules, and the sentences that go with it.
struct rules_file {
  std::string text{};
  std::vector<std::string> settings{};  ///< that make the file effective; {file} is its path
  std::vector<std::string> limits{};    ///< what the format cannot express, in sentences
};

/// When a library reads the variables that choose an algorithm. `at_start`: in MPI_Init, for all
/// calls of a launch.
enum class variables_read { with_communicator, in_calls, at_start };

struct mpi_library {
  std::string_view name;  ///< on the command line
  std::string_view full;  ///< in sentences

  /// Whether a machine's mark mpi_library is of this library.
  bool (*is)(std::string_view mark);

  // Forcing an algorithm.

  /// Variables of the environment that must be set before MPI_Init.
  std::span<const std::pair<const char*, const char*>> environment;
  variables_read read;
  /// Key and value of the info with which a communicator obeys the variables; may be empty.
  std::pair<const char*, const char*> communicator_info;
  /// The control variables of MPI_T; empty if the library has none.
  std::string (*algorithm_variable_of)(collective op);
  std::string (*segment_variable_of)(collective op);
  /// The variable of the environment that takes an algorithm's name; null unless read at_start.
  std::string (*setting_of)(collective op);
  /// Whether `algorithms` and `write` look at the content of the library's file.
  bool reads_file;
  /// The algorithms that the first variable chooses. `library`: the content of the library's file.
  std::vector<own_algorithm> (*algorithms)(collective op, const algorithm_variable& variable,
                                           std::string_view library);

  // Rules.

  /// Why railpass writes none; then the functions below are null.
  std::string_view no_rules;
  /// Why no rule may rest on times of this algorithm in this bench, as the end of a sentence; empty
  /// if a rule may.
  std::string (*why_not)(collective op, const own_algorithm& algorithm, const bench_results& bench,
                         bool commutative);
  /// Throws error if the library's file does not have what a complete file of rules needs.
  rules_file (*write)(const rule_set& rules, std::string_view library);
};

#define RAILPASS_MPI_LIBRARY(name) extern const mpi_library name##_library;
#include "lib/libraries/libraries.def"
#undef RAILPASS_MPI_LIBRARY

std::span<const mpi_library* const> all();
/// The library of a machine's mark; null if railpass cannot force its algorithms.
const mpi_library* find(std::string_view mark);

}  // namespace railpass::internal::libraries
