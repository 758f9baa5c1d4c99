// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/verb.hpp"

#include "lib/cli/help.hpp"
#include "lib/files/files.hpp"
#include "railpass/base/names.hpp"
#include "railpass/base/units.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>
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

class usage_with_program : public help_formatter {
 public:
  explicit usage_with_program(std::string program) : program_(std::move(program)) {}
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    usage.insert(usage.find_last_not_of('\n') + 1, ' ' + program_);
    return usage;
  }

 private:
  std::string program_;
};

}  // namespace

void declare_program(CLI::App& app, const std::string& usage) {
  app.prefix_command();
  app.formatter(std::make_shared<usage_with_program>(usage));
}

std::vector<std::string> program_of(const CLI::App& verb, const std::string& expected) {
  std::vector<std::string> program = verb.remaining();
  if (program.empty()) throw usage_error("expected " + expected);
  if (program.front().starts_with('-'))
    throw usage_error("there is no option '" + program.front() + "' (railpass " + verb.get_name() +
                      " --help lists them)" + meant_option(verb));
  return program;
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
  if (!files::may_be_written(file_))
    throw error("--json '" + file_ + "': expected a file in a folder that can be written");
}

void json_output::write(const nlohmann::ordered_json& result) const {
  constexpr auto replaced = nlohmann::ordered_json::error_handler_t::replace;
  write(result.dump(2, ' ', false, replaced) + '\n');
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
