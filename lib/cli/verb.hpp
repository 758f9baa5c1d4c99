// SPDX-License-Identifier: BSL-1.0
//
// Shared parts of the verbs: descriptions, output of results (--json, --csv, --wide).
#pragma once

#include "lib/cli/arguments.hpp"
#include "lib/cli/options.hpp"
#include "lib/report/output.hpp"
#include "lib/report/terminal.hpp"

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal::cli {

/// What a verb does: options are declared on its subcommand.
struct verb {
  std::string_view examples;  ///< shown at the end of --help
  /// Declares the options and returns what to run; the exit status is its result.
  std::function<int()> (*declare)(CLI::App&);
};

#define RAILPASS_VERB(name, summary) extern const verb name##_verb;
#define RAILPASS_MPI_VERB(name, summary) RAILPASS_VERB(name, summary)
#define RAILPASS_BUILD_VERB(name, summary) RAILPASS_VERB(name, summary)
#include "lib/cli/verbs.def"
#undef RAILPASS_VERB
#undef RAILPASS_MPI_VERB
#undef RAILPASS_BUILD_VERB

/// A line of verbs.def.
struct named_verb {
  std::string_view name;
  std::string_view summary;
  bool is_listed;
  const verb* work;     ///< null: see `elsewhere`
  void (*elsewhere)();  ///< starts the helper, which has the verb, in place of this process
};
/// Of the program `railpass`, which is linked with no MPI library, or of its helper.
std::span<const named_verb> verbs();

/// The ranks of a verb that works on paper.
struct placed_ranks {
  int num_ranks = 0;
  int ranks_per_node = 1;
  int ranks_per_cache = 0;  ///< of one node; 0: they share one
};

/// Declares -p, --ranks-per-node and --ranks-per-cache. `ranks` must live until the verb runs.
/// @param most largest number of ranks
void declare_ranks(CLI::App& app, placed_ranks& ranks, int most);

/// "; did you mean '--ranks'?" if the first word that the verb does not know is like an option.
std::string meant_option(const CLI::App& verb);

/// Declares that a program of the user's and its arguments follow the options; CLI11 does not read
/// them. `usage` names them in the help.
void declare_program(CLI::App& app, const std::string& usage);
/// These words. Throws usage_error if there are none, or an option that the verb does not have.
std::vector<std::string> program_of(const CLI::App& verb, const std::string& expected);

/// Standard output.
report::output& screen();
/// Says there that samples with this profile::core_share are too long, if they are.
void say_if_disturbed(const std::optional<double>& core_share);

/// The option --json FILE of a verb that has results; declares --csv and --wide, too.
class json_output {
 public:
  void declare(CLI::App& app);
  /// Whether people read standard output: not when the JSON goes there.
  bool text() const { return file_ != "-"; }
  bool wanted() const { return !file_.empty(); }
  /// Throws error now rather than after a long run if the file cannot be written later.
  void check() const;
  /// Writes if the option was given; a file is replaced atomically.
  void write(const nlohmann::ordered_json& result) const;
  void write(const std::string& json) const;

 private:
  std::string file_;
};

/// Writes a file a verb was asked for, atomically; "-" is standard output. Throws error.
void write_output(const std::string& path, const std::string& text);

}  // namespace railpass::internal::cli
