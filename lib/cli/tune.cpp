// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/verb.hpp"
#include "lib/files/files.hpp"
#include "lib/tune/extract.hpp"
#include "lib/tune/parameter_file.hpp"
#include "lib/tune/results.hpp"
#include "lib/tune/searches.hpp"
#include "lib/tune/summary.hpp"
#include "lib/tune/target.hpp"
#include "lib/tune/temporary_folder.hpp"
#include "railpass/base/hash.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <iostream>

namespace railpass::internal::cli {
namespace {

struct options {
  std::string parameters, target = "env", command, format, metrics = "latency", sizes;
  std::string search, timeout = "200s", budget, journal, html, settings, output;
  std::vector<std::string> patterns, unions, intersections;
  tune::tuning_plan plan;
  double resolution_percent = 0.2;
  bool discover = false, count = false;
  json_output json;
};

template <typename Work>
auto as_usage(const std::string& option, Work work) {
  try {
    return work();
  } catch (const usage_error&) {
    throw;
  } catch (const error& wrong) {
    throw usage_error(option + " " + wrong.what());
  }
}

std::string command_output(const tune::target& t) {
  if (t.lister.empty())
    throw usage_error("--discover: no program lists the parameters of the target " +
                      std::string(t.name));
  const tune::command_result done = tune::run_command(
      {.line = std::string(t.lister), .environment = {}, .limit_s = 60}, tune::watch_signals());
  if (!done.failure.empty() && done.output.empty())
    throw error("--discover: '" + std::string(t.lister) + "': " + done.failure);
  return done.output;
}

int discover(const options& o, const tune::target& t) {
  const auto parameters = tune::parse_reported(t, command_output(t));
  if (parameters.empty())
    throw error("--discover: '" + std::string(t.lister) + "' listed no parameter that can be read");
  if (o.json.wanted()) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const auto& p : parameters)
      list.push_back({{"name", p.name},
                      {"type", p.type},
                      {"default", p.default_value},
                      {"values", p.values},
                      {"help", p.help}});
    o.json.write(nlohmann::ordered_json{{"target", t.name}, {"parameters", std::move(list)}});
  }
  if (o.json.text()) write_output(o.output.empty() ? "-" : o.output, tune::proposal(parameters));
  return succeeded;
}

int combine(const options& o) {
  const auto parameters =
      o.unions.empty() ? tune::intersection_of(o.intersections) : tune::union_of(o.unions);
  const std::string path = o.output.empty() ? "-" : o.output;
  write_output(path, path.ends_with(".json") ? tune::to_parameter_json(parameters)
                                             : tune::to_parameter_file(parameters));
  return succeeded;
}

int count(const options& o, const tune::space& where) {
  using tune::condition_rule;
  constexpr std::uint64_t most = 100000000;
  const std::uint64_t all = where.count(condition_rule::none),
                      strict = where.count(condition_rule::strict, most),
                      kept = where.count(condition_rule::first_value, most);
  o.json.write(nlohmann::ordered_json{{"all", all}, {"strict", strict}, {"combinations", kept}});
  if (o.json.text())
    screen().words() << all << " combinations of values\n"
                     << strict << " satisfy every condition" << (strict == most ? " or more" : "")
                     << '\n'
                     << kept
                     << " with parameters kept at their first value where their condition is false"
                     << (kept == most ? " or more" : "") << '\n';
  return succeeded;
}

// The command's standard output, or the file that it was told to write.
tune::outcome launch(tune::command_request request, const tune::extractor& find,
                     const std::string& output_file) {
  std::string& line = request.line;
  bool to_file = false;
  for (std::size_t at; (at = line.find("{output}")) != std::string::npos; to_file = true)
    line.replace(at, 8, output_file);
  request.environment.emplace_back("RAILPASS_TUNE_OUTPUT", output_file);
  tune::outcome found;
  const tune::command_result done = tune::run_command(request, tune::watch_signals());
  found.failure = done.failure;
  if (done.failure.empty()) try {
      found.values = find.values(done, to_file ? files::read_text(output_file) : done.output);
    } catch (const error& wrong) {
      found.failure = wrong.what();
    }
  std::error_code ignored;
  std::filesystem::remove(output_file, ignored);
  return found;
}

std::string identity_of(const options& o, const tune::space& where) {
  nlohmann::ordered_json patterns = o.patterns;
  return nlohmann::ordered_json{{"parameters", tune::to_parameter_json(where.parameters())},
                                {"target", o.target},
                                {"command", o.command},
                                {"patterns", std::move(patterns)},
                                {"format", o.format},
                                {"metrics", o.metrics},
                                {"sizes", o.sizes}}
      .dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

// The name that the same tuning finds again.
std::string journal_name(const std::string& identity) {
  char name[64];
  std::snprintf(name, sizeof name, "railpass-tune-%016llx.journal",
                static_cast<unsigned long long>(fnv1a(identity)));
  return name;
}

int run(options& o) {
  const tune::target& target =
      as_usage("--target", [&]() -> const tune::target& { return tune::find_target(o.target); });
  o.json.check();
  if (o.discover) return discover(o, target);
  if (!o.unions.empty() || !o.intersections.empty()) return combine(o);
  if (o.parameters.empty())
    throw usage_error("expected a file of parameters, --discover, --union or --intersection");
  const tune::space where = tune::read_parameters(o.parameters);
  if (o.count) return count(o, where);

  // Everything that can be wrong is found before anything is launched.
  if (o.command.empty()) throw usage_error("--command: expected the command to be launched");
  if (o.search.empty()) o.search = tune::searches().front().name;
  o.plan.search = o.search;
  as_usage("--search", [&] { return tune::make_search(o.search); });
  const double limit_s = parse_duration_s("--timeout", o.timeout);
  if (!o.budget.empty()) o.plan.budget_s = parse_duration_s("--budget", o.budget);
  o.plan.wanted.resolution = o.resolution_percent / 100;
  tune::extraction wanted{
      .goals = {}, .patterns = o.patterns, .format = o.format, .sizes_bytes = {}};
  for (const std::string& metric : split_list("--metric", o.metrics))
    wanted.goals.push_back(as_usage("--metric", [&] { return tune::goal_of(metric); }));
  if (wanted.goals.size() > 2) throw usage_error("--metric: expected one or two");
  if (!o.sizes.empty()) wanted.sizes_bytes = parse_sizes("--bytes", o.sizes, largest_message_bytes);
  const tune::extractor find = as_usage("--extract", [&] { return tune::extractor(wanted); });
  if (!o.settings.empty())
    as_usage("--settings", [&] { tune::check_settings_file(target, where); });
  as_usage("--command", [&] { return tune::apply(target, o.command, where.default_settings()); });

  const std::string identity = identity_of(o, where);
  const bool own_journal = o.journal.empty();
  tune::journal kept(own_journal ? journal_name(identity) : o.journal, identity,
                     find.goals().size());
  if (kept.earlier_runs() > 0 && o.json.text())
    std::cerr << "railpass tune: continues after " << kept.earlier_runs()
              << " launches in the journal\n";
  const tune::temporary_folder folder;
  std::uint64_t launches = 0;
  report::progress_bar bar("tune", true);
  const tune::launcher run_once = [&](const tune::combination* c) {
    const bool bare = c == nullptr && target.name != "words";
    tune::command_request request = tune::apply(target, o.command,
                                                bare ? tune::settings_list{}
                                                : c  ? where.settings(*c)
                                                     : where.default_settings());
    request.limit_s = limit_s;
    request.folder = folder.path();
    return launch(std::move(request), find, folder.file(std::to_string(++launches)));
  };
  const tune::watcher watch = [&](std::uint64_t done, double expected, double left_s) {
    bar.show(double(done) / expected,
             std::to_string(done) + " launches, about " + tune::duration_text(left_s) + " left");
  };
  tune::tuning found = [&] {
    try {
      return tune::tune(where, find.goals(), o.plan, run_once, kept, watch);
    } catch (const tune::interrupted&) {
      bar.hide();
      throw error("interrupted; run the same command again to resume");
    }
  }();
  bar.hide();
  const tune::report result(where, o.plan, o.command, o.target, std::move(found));
  o.json.write(tune::to_json(result));
  if (!o.html.empty()) write_output(o.html, tune::to_html(result));
  if (!result.found.recommended)
    throw error("no launch gave a value: " +
                (result.failures.empty() ? "no launch was made" : result.failures.front().first));
  if (!o.settings.empty())
    write_output(o.settings, tune::settings_file(target, result.recommended()
                                                             ? where.settings(*result.recommended())
                                                             : tune::settings_list{}));
  if (o.json.text()) tune::print(result, screen());
  if (own_journal) kept.remove();
  return succeeded;
}

std::function<int()> declare(CLI::App& app) {
  auto o = std::make_shared<options>();
  add_option(app, "parameters", o->parameters,
             "file of parameters: OTPO's format (NAME -d DEFAULT -p {V V} | -r LOW HIGH -t "
             "increment OP N | -a \"$part$,...\" -i \"RPN\" -v), or JSON")
      .value_name("FILE");
  add_option(app, "--command", o->command,
             "shell command to launch; {output} is replaced by the name of a new file")
      .value_name("COMMAND");
  std::string names;
  for (const tune::target& t : tune::targets())
    names += (names.empty() ? "" : ", ") + std::string(t.name);
  add_option(app, "--target", o->target, "target of the parameters: " + names).show_default();
  add_option(app, "--extract", o->patterns,
             "pattern (RE2's regular expressions) of the number in the command's output, with one "
             "group around it; again for a second metric")
      .once_each();
  add_option(app, "--output-of", o->format, "read the output of railpass, osu, imb or netpipe");
  add_option(app, "--metric", o->metrics,
             "latency, bandwidth, time or memory; two, separated by a comma, for a Pareto front")
      .show_default();
  add_option(app, "--bytes", o->sizes, "with --output-of: the message sizes that count")
      .value_name("SIZES");
  names.clear();
  for (const auto& s : tune::searches())
    names += (names.empty() ? "" : "; ") + std::string(s.name) + ": " + std::string(s.summary);
  add_option(app, "--search", o->search, names + "; the first is the default");
  add_option(app, "--repetitions", o->plan.wanted.repetitions,
             "launches of each combination that may be the best")
      .range(1, 1000)
      .show_default();
  add_option(app, "--confidence", o->plan.wanted.confidence,
             "confidence required to call two combinations different")
      .range(0.5, 0.9999)
      .show_default();
  add_option(app, "--resolution", o->resolution_percent,
             "differences up to this percentage do not count")
      .range(0.0, 100.0)
      .show_default();
  add_option(app, "--warm-up", o->plan.warm_ups, "launches before the first that counts")
      .range(0, 100)
      .show_default();
  add_option(app, "--timeout", o->timeout, "time after which a launch is ended and counts as worst")
      .show_default();
  add_option(app, "--budget", o->budget, "time for everything, such as 10m");
  add_option(app, "--runs", o->plan.most_runs, "launches for everything");
  add_option(app, "--seed", o->plan.seed, "seed of all random choices").show_default();
  add_option(app, "--journal", o->journal,
             "file that keeps every launch, so that an interrupted tuning can be resumed; "
             "default: a file in this folder, removed at the end")
      .value_name("FILE");
  add_option(app, "--html", o->html, "write a page with pictures").value_name("FILE");
  add_option(app, "--settings", o->settings,
             "write the recommendation: mca-params.conf for openmpi, else a file for a shell to "
             "read (`. FILE`); an empty file if the defaults are as good")
      .value_name("FILE");
  o->json.declare(app);
  add_flag(app, "--count", o->count, "only print the number of combinations");
  add_flag(app, "--discover", o->discover,
           "list the parameters that the installed library of the target reports");
  add_option(app, "--union", o->unions,
             "results (--json); the values of their best groups make a new file of parameters")
      .value_name("FILES");
  add_option(app, "--intersection", o->intersections,
             "as --union, with the values common to all results")
      .value_name("FILES")
      .excludes("--union");
  add_option(app, "-o,--output", o->output, "output of --discover, --union and --intersection")
      .value_name("FILE");
  return [o] { return run(*o); };
}

}  // namespace

const verb tune_verb{
    "  railpass tune --discover --target openmpi -o params.conf\n"
    "  railpass tune params.conf --target openmpi --command 'mpirun -n 2 ./latency' \\\n"
    "      --extract 'lat: ([0-9.]+)' --budget 10m --settings mca-params.conf",
    declare};

}  // namespace railpass::internal::cli
