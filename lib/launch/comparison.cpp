// SPDX-License-Identifier: BSL-1.0
#include "lib/launch/comparison.hpp"

#include "lib/files/files.hpp"
#include "lib/launch/engine.hpp"
#include "lib/launch/ranks.hpp"
#include "lib/measure/marks.hpp"
#include "lib/report/page.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/base/printable.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/base/units.hpp"
#include "railpass/version.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <ostream>
#include <sstream>
#include <utility>

namespace railpass::internal::launch {
namespace {

// The program in a launcher's command is the first word that is linked with an MPI library.
mpi_family family_of_command(const std::vector<std::string>& command, launcher_kind kind) {
  for (const std::string& word : command)
    if (const mpi_family found = family_of_program(word); found != mpi_family::unknown)
      return found;
  const mpi_family usual = usual_family(kind);
  return usual == mpi_family::unknown ? family_of_build() : usual;
}

}  // namespace

std::array<way, 2> both_ways(const std::vector<std::string>& command, const std::string& mpi,
                             double limit_s) {
  const launcher_kind kind = kind_of_launcher(command.front());
  const std::vector<std::string> words(command.begin() + 1, command.end());
  const mpi_family family =
      mpi.empty() ? family_of_command(kind == launcher_kind::unknown ? command : words, kind)
                  : parse_family("--mpi", mpi);
  const std::string value = preload_value(preload_library(family), command);
  const std::vector<std::string> to_give_way = crowd_options(kind, words);

  const auto line = [&](const std::vector<std::string>& options) {
    std::vector<std::string> all{command.front()};
    all.insert(all.end(), to_give_way.begin(), to_give_way.end());
    all.insert(all.end(), options.begin(), options.end());
    all.insert(all.end(), words.begin(), words.end());
    return quoted(all);
  };
  // A program that calls railpass itself does so both ways.
  const std::vector<std::pair<std::string, std::string>> off{{"RAILPASS_ENABLE", "off"}};
  way without{"without",
              family,
              {.line = line(passing_options(kind, off)), .environment = {}, .limit_s = limit_s}};
  way with{"with",
           family,
           {.line = line(preloading_options(kind, value, words)),
            .environment = {},
            .limit_s = limit_s}};
  // Whatever starts the ranks passes it on.
  if (kind == launcher_kind::unknown) {
    without.command.environment = off;
    with.command.environment.emplace_back("LD_PRELOAD", value);
  }
  return {without, with};
}

namespace {

std::string last_lines(const std::string& text) {
  std::size_t from = text.size();
  for (int lines = 0; from > 0 && lines < 5; --from)
    if (text[from - 1] == '\n' && from != text.size()) ++lines;
  return from == 0 ? text : text.substr(text.find('\n', from) + 1);
}

void show_last_lines(const way& w, const std::string& errors, std::ostream& complaints) {
  std::istringstream lines(last_lines(errors));
  std::string text = "railpass: last output of the command " + w.name + " railpass:\n";
  for (std::string line; std::getline(lines, line);) text += "  " + printable(line) + '\n';
  complaints << text;
}

tune::command_result run_once(way& w, bool counts, const run_plan& plan) {
  tune::command_result result = tune::run_command(w.command, tune::watch_signals());
  if (!result.failure.empty()) {
    plan.progress.hide();
    // The last line is part of the failure.
    if (std::ranges::count(last_lines(result.errors), '\n') > 1)
      show_last_lines(w, result.errors, plan.complaints);
    throw error("the command " + w.name + " railpass: " + result.failure);
  }
  if (counts) {
    w.seconds.push_back(result.wall_s);
  } else if (const auto ignored = ignored_settings_in(result.errors); !ignored.empty()) {
    plan.progress.hide();
    for (const std::string& line : ignored) plan.complaints << printable(line) << '\n';
  }
  return result;
}

// Most programs print times. Blanks and signs before a number go with it.
std::string without_numbers(const std::string& text) {
  std::string rest;
  for (const char *c = text.c_str(), *const end = c + text.size(); c != end;) {
    if (!std::isdigit(static_cast<unsigned char>(*c))) {
      rest += *c++;
      continue;
    }
    rest.erase(rest.find_last_not_of(" +-") + 1);
    rest += '#';
    char* number_end = nullptr;
    std::strtod(c, &number_end);
    c = number_end;
  }
  return rest;
}

// Whether all runs have written the same.
struct seen_output {
  std::optional<tune::command_result> first{};
  bool same = true, same_but_numbers = true;

  void add(tune::command_result run) {
    if (!first) {
      first = std::move(run);
      return;
    }
    const bool is_same = run.output_hash == first->output_hash && run.output == first->output;
    // Nobody knows which part of a cut output differs.
    const bool is_cut = run.output_is_cut || first->output_is_cut;
    same = same && is_same;
    same_but_numbers =
        same_but_numbers &&
        (is_same || (!is_cut && without_numbers(run.output) == without_numbers(first->output)));
  }
};

void run_pairs(std::array<way, 2>& ways, const run_plan& plan, seen_output& output) {
  const double began_s = steady_clock_s();
  double pair_s = 0;
  for (int r = 0; r <= plan.repetitions; ++r) {
    const double pair_began_s = steady_clock_s();
    if (r > 1 && pair_began_s - began_s + pair_s > plan.budget_s) break;
    // The order within pairs alternates. The first pair only warms caches up.
    for (std::size_t i = 0; i < 2; ++i) {
      way& w = ways[(i + std::size_t(r)) % 2];
      plan.progress.show(double(2 * r + int(i)) / (2 * plan.repetitions + 2), w.name);
      output.add(run_once(w, r > 0, plan));
    }
    pair_s = steady_clock_s() - pair_began_s;
  }
}

void keep_whole_pairs(std::array<way, 2>& ways) {
  const std::size_t pairs = std::min(ways[0].seconds.size(), ways[1].seconds.size());
  for (way& w : ways) w.seconds.resize(pairs);
}

double spread_of(const std::vector<double>& seconds) {
  return robust_spread(seconds) / median(seconds);
}

report::tone tone_of(files::shown_gain shown) {
  return shown == files::shown_gain::faster   ? report::tone::good
         : shown == files::shown_gain::slower ? report::tone::bad
                                              : report::tone::plain;
}

// Empty if only the ranks can load it.
std::string library_of(mpi_family family) {
  try {
    return marks_of(family).library;
  } catch (const error&) {
    return {};
  }
}

}  // namespace

files::comparison run_in_turn(std::array<way, 2>& ways, const std::vector<std::string>& command,
                              const run_plan& plan) {
  seen_output output;
  try {
    run_pairs(ways, plan, output);
  } catch (const tune::interrupted&) {
    keep_whole_pairs(ways);
  }
  plan.progress.hide();
  if (ways[0].seconds.empty()) throw error("interrupted before a pair of runs had ended");
  return {.machine_id = measure::marks_with(library_of(ways[0].family), 1),
          .host = report::host_name(),
          .compared_at = files::utc_now(),
          .railpass_version = RAILPASS_VERSION,
          .command = command,
          .without_s = ways[0].seconds,
          .with_s = ways[1].seconds,
          .same_output = output.same,
          .same_output_but_numbers = output.same_but_numbers};
}

void fail_if_interrupted(const files::comparison& found, int repetitions) {
  if (*tune::watch_signals() != 0)
    throw error("interrupted: only " + std::to_string(found.without_s.size()) + " of " +
                std::to_string(repetitions) + " pairs of runs had ended");
}

std::string times_of(const files::comparison& found, report::output& out) {
  report::table lines({"", "median", "spread", "least", "most"});
  const auto add = [&](const std::string& name, const std::vector<double>& seconds) {
    lines.add({name, format_seconds(median(seconds)), percent(spread_of(seconds)),
               format_seconds(quantile(seconds, 0)), format_seconds(quantile(seconds, 1))});
  };
  add("without", found.without_s);
  add("with", found.with_s);
  const std::vector<double> ratios = found.ratios();
  const median_bounds ratio = bounds_of_median(ratios);
  return std::to_string(ratios.size()) +
         " runs each, in turn, after one to warm up: " + quoted(found.command) + '\n' +
         out.printed(lines) + "with / without, pair by pair: " + fixed(median(ratios), 3) + ", " +
         fixed(ratio.bounds.low, 3) + " .. " + fixed(ratio.bounds.high, 3) + " with " +
         percent(ratio.confidence, 0) + " confidence\n";
}

std::string verdict_of(const files::comparison& found, const report::output& out) {
  return out.toned(tone_of(found.shown()), found.verdict());
}

}  // namespace railpass::internal::launch
