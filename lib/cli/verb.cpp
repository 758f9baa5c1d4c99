// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/verb.hpp"

#include "lib/files/files.hpp"
#include "railpass/base/names.hpp"
#include "railpass/base/units.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
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

report::output& screen() {
  static report::output standard_output(std::cout, STDOUT_FILENO);
  return standard_output;
}

void say_if_disturbed(const std::optional<double>& core_share) {
  if (core_share.value_or(1) >= own_core_share) return;
  screen().words()
      << screen().toned(report::tone::bad, "Sampled on busy cores") << ": a rank had "
      << percent(*core_share, 0)
      << " of a core, as other ranks or other programs ran there.\nTimes are too long. Sample "
         "again on idle cores, with a core for each rank.\n\n";
}

void json_output::declare(CLI::App& app) {
  add_option(app, "--json", file_, "write the results as JSON to this file; - is standard output")
      .value_name("FILE");
  add_flag(app, "--csv", screen().csv,
           "print the tables alone, as CSV: times in s, sizes in bytes, shares from 0 to 1")
      .excludes("--json");
  add_flag(app, "--wide", screen().wide, "let tables be wider than 80 columns on a terminal");
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

}  // namespace railpass::internal::cli
