// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/verb.hpp"

#include "lib/cli/help.hpp"
#include "lib/files/files.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/base/names.hpp"
#include "railpass/base/units.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <unistd.h>

namespace railpass::internal::cli {

void declare_ranks(CLI::App& app, placed_ranks& ranks, int most) {
  add_option(app, "-p,--ranks", ranks.num_ranks, "number of ranks")
      .value_name("RANKS")
      .required()
      .range(1, most);
  add_option(app, "--ranks-per-node", ranks.ranks_per_node, "ranks on each node")
      .value_name("RANKS")
      .range(1, most)
      .show_default();
  add_option(
      app, "--ranks-per-cache", ranks.ranks_per_cache,
      "ranks under each last-level cache, if all ranks are on one node; 0: all ranks share a "
      "cache")
      .value_name("RANKS")
      .range(0, most)
      .show_default();
}

std::string meant_option(const CLI::App& verb) {
  std::vector<std::string> known;
  for (const CLI::Option* const option : verb.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  const std::vector<std::string> extra = verb.remaining();
  return extra.empty() ? "" : did_you_mean(extra.front().substr(0, extra.front().find('=')), known);
}

namespace {

// Said once, on the command line.
struct {
  bool csv = false, wide = false;
} tables;

// The file's only line that begins with `key`, without it.
std::string line_of(const std::string& file, const std::string& key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(key)) return line.substr(key.size());
  return {};
}

// The terminal that shows what is written there (1 or 2); empty: none does. Under mpirun a rank's
// output goes to the launcher, be it through a pipe or a terminal of its own, so the terminal is
// the one that the launcher itself writes to.
std::string find_terminal(int descriptor) {
  const std::string number = std::to_string(descriptor);
  std::string process = std::to_string(getppid());
  for (int generation = 0; generation < 3; ++generation) {
    const std::string folder = "/proc/" + process;
    const std::string name = line_of(folder + "/comm", "");
    const bool launcher =
        name.find("mpi") != std::string::npos || name.find("pmi") != std::string::npos ||
        name.find("orte") != std::string::npos || name.find("prte") != std::string::npos;
    if (!launcher) return generation == 0 && isatty(descriptor) == 1 ? "/dev/fd/" + number : "";
    std::error_code missing;
    const std::string target =
        std::filesystem::read_symlink(folder + "/fd/" + number, missing).string();
    if (missing) return {};
    if (target.starts_with("/dev/pts/") || target.starts_with("/dev/tty")) return target;
    process = line_of(folder + "/status", "PPid:\t");
  }
  return {};
}

bool is_on_terminal() {
  static const bool seen = !find_terminal(STDOUT_FILENO).empty();
  return seen;
}

// As no-color.org has it: any value but an empty one.
bool shows_colours() {
  const auto value = [](const char* variable) {
    const char* const text = std::getenv(variable);
    return std::string_view(text ? text : "");
  };
  return value("NO_COLOR").empty() && value("TERM") != "dumb" && is_on_terminal();
}

}  // namespace

void say_if_disturbed(const std::optional<double>& core_share) {
  if (core_share.value_or(1) >= own_core_share) return;
  words() << toned(report::tone::bad, "Sampled on busy cores") << ": a rank had "
          << percent(*core_share, 0)
          << " of a core, as other ranks or other programs ran there.\nTimes are too long. Sample "
             "again on idle cores, with a core for each rank.\n\n";
}

std::ostream& words() {
  static std::ostream nowhere(nullptr);
  return tables.csv ? nowhere : std::cout;
}

std::string toned(report::tone how, const std::string& text) {
  return shows_colours() ? report::coloured(how, text) : text;
}

std::string printed(const report::table& lines, const std::string& title) {
  if (!tables.csv)
    return lines.text(tables.wide || !is_on_terminal() ? 0 : terminal_columns, shows_colours());
  // One header for tables of one kind, an empty line between kinds.
  static std::string last;
  const std::string text = lines.csv(title), header = text.substr(0, text.find('\n') + 1);
  std::cout << (header == last ? text.substr(header.size()) : (last.empty() ? "" : "\n") + text);
  last = header;
  return {};
}

bool wants_csv() { return tables.csv; }

std::string wrapped(const std::string& text, std::size_t indent) {
  if (tables.wide || !is_on_terminal()) return text;
  std::istringstream lines(filled(text, terminal_columns - indent));
  std::string result;
  for (std::string line; std::getline(lines, line);)
    result += (result.empty() ? "" : '\n' + std::string(indent, ' ')) + line;
  return result;
}

void json_output::declare(CLI::App& app) {
  add_option(app, "--json", file_, "write the results as JSON to this file; - is standard output")
      .value_name("FILE");
  add_flag(app, "--csv", tables.csv,
           "print the tables alone, as CSV: times in s, sizes in bytes, shares from 0 to 1")
      .excludes("--json");
  add_flag(app, "--wide", tables.wide, "let tables be wider than 80 columns on a terminal");
}

void json_output::check() const {
  if (!wanted() || !text()) return;
  const std::size_t slash = file_.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : file_.substr(0, slash + 1);
  if (access(folder.c_str(), W_OK) != 0)
    throw error("--json '" + file_ + "': expected a file in a folder that can be written");
}

void json_output::write(const nlohmann::ordered_json& result) const {
  write(result.dump(2) + '\n');
}

void json_output::write(const std::string& json) const {
  if (wanted()) write_output(file_, json);
}

void write_output(const std::string& path, const std::string& text) {
  if (path == "-")
    std::cout << text;
  else
    files::write_text(path, text);
}

progress_bar::progress_bar(std::string title, bool enabled)
    : title_(std::move(title)), terminal_(enabled ? find_terminal(STDERR_FILENO) : std::string()) {}

progress_bar::~progress_bar() { hide(); }

void progress_bar::hide() {
  if (last_s_ > 0) std::ofstream(terminal_) << "\r\033[K" << std::flush;
}

void progress_bar::show(double fraction, const std::string& doing) {
  const double now_s = steady_clock_s();
  // Drawing must not disturb what is measured.
  if (terminal_.empty() || now_s - last_s_ < 0.1) return;
  last_s_ = now_s;
  constexpr int width = 30;
  const double part = std::clamp(fraction, 0.0, 1.0);
  std::string bar(std::size_t(width * part), '#');
  bar.resize(width, '.');
  std::ofstream(terminal_) << "\r\033[K" + title_ + " [" + bar + "] " + percent(part, 0) + "  " +
                                  doing
                           << std::flush;
}

}  // namespace railpass::internal::cli
