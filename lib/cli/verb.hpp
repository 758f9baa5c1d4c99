// SPDX-License-Identifier: BSL-1.0
//
// What every verb of the railpass program shares: exit statuses, the --json option, tables, and
// reading numbers with messages that name the option.
#pragma once

#include "collectives/registry.hpp"
#include "railpass/base/error.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::cli {

/// The statuses every verb ends with.
enum exit_status : int { succeeded = 0, failed = 1, wrong_use = 2 };

/// The command line asks for something that cannot be: exit status 2. Everything else that goes
/// wrong is a railpass::error: exit status 1.
class usage_error : public error {
 public:
  using error::error;
};

/// One verb: options are declared on its subcommand, and `run` does the work.
struct verb {
  std::string_view name;
  std::string_view summary;
  std::string_view examples;  ///< shown at the end of --help
  /// Declares the options and returns what to run; the exit status is its result.
  std::function<int()> (*declare)(CLI::App&);
};

#define RAILPASS_VERB(name) extern const verb name##_verb;
#include "lib/cli/verbs.def"
#undef RAILPASS_VERB

/// The option --json FILE of a verb that has results.
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

/// A table for people: the first column left, the others right unless they hold words.
class table {
 public:
  explicit table(std::vector<std::string> titles) : titles_(std::move(titles)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }
  std::string text() const;
  std::string markdown() const;
  std::string csv() const;

 private:
  std::vector<std::string> titles_;
  std::vector<std::vector<std::string>> rows_;
};

/// The words of a list separated by commas; throws usage_error if there is none or one is empty.
std::vector<std::string> split_list(std::string_view option, std::string_view text);

/// "64KiB,1MiB" in bytes, none above `largest`. Throws usage_error.
std::vector<std::int64_t> parse_sizes(std::string_view option, std::string_view text,
                                      std::int64_t largest);
std::int64_t parse_size(std::string_view option, std::string_view text, std::int64_t largest);

/// "20s", "500ms", "2min" or seconds as a plain number; positive. Throws usage_error.
double parse_duration_s(std::string_view option, std::string_view text);

/// The collective of this name. Throws usage_error that lists the names.
collective parse_collective(std::string_view option, std::string_view name);

/// parse_arm for the command line: a wrong arm is wrong use.
arm arm_of_option(std::string_view option, collective op, std::string_view text);

/// Throws usage_error unless 0 <= root < num_ranks.
void check_root(int root, int num_ranks);

/// Largest message the verbs take: what MPI's int counts can say.
inline constexpr std::int64_t largest_message_bytes = 2147483647;
/// Most ranks the verbs that work on paper take.
inline constexpr int most_ranks = 1 << 20;

/// "12.3 %"
std::string percent(double fraction, int decimals = 1);
std::string fixed(double value, int decimals);

/// A progress bar on standard error: shown only if that is a terminal. Not for parallel use.
class progress_bar {
 public:
  progress_bar(std::string title, bool enabled);
  ~progress_bar();
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;
  void show(double fraction, const std::string& doing);
  /// Clears the line; the next show() draws it again.
  void hide();

 private:
  std::string title_;
  bool shown_;
  double last_s_ = 0;
};

}  // namespace railpass::cli
