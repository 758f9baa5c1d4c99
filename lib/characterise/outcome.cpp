// SPDX-License-Identifier: BSL-1.0
#include "lib/characterise/outcome.hpp"

#include "lib/characterise/gains.hpp"
#include "lib/characterise/measuring.hpp"
#include "lib/characterise/planned.hpp"
#include "lib/files/files.hpp"
#include "lib/measure/fit_input.hpp"
#include "lib/measure/library_rules.hpp"
#include "lib/measure/wrong_results.hpp"
#include "railpass/base/error.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/fit/profile.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

namespace railpass::internal::characterise {
namespace {

std::vector<std::string> paths_of(const std::vector<libraries::named_bench>& benches) {
  std::vector<std::string> paths;
  for (const libraries::named_bench& one : benches) paths.push_back(one.name);
  return paths;
}

// Rules rest on enough launches; the time may be over before a cell has these.
std::vector<libraries::named_bench> usable_for_rules(std::vector<libraries::named_bench> benches) {
  for (libraries::named_bench& one : benches) {
    one.bench = decided(one.bench, arms_of::library);
    std::erase_if(one.bench.results, [](const bench_result& r) {
      return is_own_algorithm(r.arm) && r.launch_ratios.size() < std::size_t(deciding_launches);
    });
  }
  std::erase_if(benches, [](const libraries::named_bench& one) {
    return std::ranges::none_of(one.bench.results, is_own_algorithm, &bench_result::arm);
  });
  return benches;
}

void write_rules(const folder& to, outcome& o) {
  const std::string& mark = o.benches.front().bench.machine_id.mpi_library;
  const libraries::mpi_library* const library = libraries::find(mark);
  if (!library || !library->no_rules.empty()) {
    o.no_rules = "railpass writes no rules for this MPI library (" + mark + ").";
    return;
  }
  const std::string path = to.file("rules." + std::string(library->name));
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  const auto usable = usable_for_rules(o.benches);
  if (usable.empty()) {
    o.no_rules = "No algorithm of the MPI library's own was measured in " +
                 std::to_string(deciding_launches) +
                 " launches, as rules need; a larger --budget "
                 "makes more launches.";
    return;
  }
  o.rules = measure::rules_of(usable, *library, false);
  if (o.rules.collectives.empty()) {
    o.no_rules =
        "No rules: no algorithm of the MPI library's own was shown to be faster than its "
        "default.";
    return;
  }
  const libraries::rules_file file =
      measure::rules_file_of(o.rules, *library, std::filesystem::absolute(path).string());
  files::write_text(path, file.text);
  o.rules_path = path;
  o.rule_settings = file.settings;
  o.rule_limits = file.limits;
}

void write_plan(const folder& to, outcome& o) {
  const std::string path = to.file("plan.json");
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  o.plan = plan_of(o.benches);
  if (o.plan.empty()) return;
  const fingerprint& machine = o.benches.front().bench.machine_id;
  o.plan_path = path;
  files::write_text(o.plan_path,
                    files::to_json(knowledge::plan{.machine = knowledge::marks_for_plan(machine),
                                                   .written_at = files::utc_now(),
                                                   .calls = o.plan}));
}

void add_wrong_results(std::vector<std::string>& sentences,
                       const std::vector<launch_record>& launches) {
  for (const launch_record& one : launches)
    for (const measure::wrong_arm& wrong : measure::wrong_arms(one.results)) {
      std::string sentence = wrong.collective + " by " + wrong.arm + " on " +
                             std::to_string(one.request.num_ranks) + " ranks: left out, as " +
                             measure::wrong_result + " at " + wrong.bytes + " bytes";
      if (std::ranges::find(sentences, sentence) == sentences.end())
        sentences.push_back(std::move(sentence));
    }
}

bool gains(const knowledge::planned_calls& c) { return c.variant != "native"; }

}  // namespace

void fit(const folder& to, const std::vector<std::string>& files) {
  const measure::fit_input input = measure::collect_fit_input(files, {}, {}, {});
  files::write_text(to.file(profile_name),
                    files::to_json(fit_profile(input.all, input.machine_id, input.time)));
}

outcome write_outcome(const folder& to, const question& q) {
  outcome o;
  const std::vector<launch_record> launches = to.launches();
  o.launches = int(launches.size());
  std::set<int> all_ranks;  // of the folder, of which this question may be a part
  for (const launch_record& one : launches) {
    o.measured_s += one.wall_s;
    all_ranks.insert(one.request.num_ranks);
  }
  for (const int ranks : all_ranks) {
    const auto bench = bench_of(launches, ranks);
    if (!bench) continue;
    o.benches.push_back({to.file("bench_" + std::to_string(ranks) + ".json"), *bench});
    files::write_text(o.benches.back().name, files::to_json(*bench));
  }
  o.left_out = left_out(q, launches);
  if (o.benches.empty()) throw error(to.path() + ": " + o.left_out.at(0));
  std::vector<std::string> measured = sample_files(to);
  std::ranges::move(paths_of(o.benches), std::back_inserter(measured));
  fit(to, measured);
  write_rules(to, o);
  write_plan(to, o);
  add_wrong_results(o.left_out, launches);
  return o;
}

std::vector<std::string> advice(const outcome& o) {
  std::vector<std::string> sentences;
  if (!o.rules_path.empty()) {
    std::string settings;
    for (const std::string& one : o.rule_settings) settings += (settings.empty() ? "" : " ") + one;
    sentences.push_back(
        "Programs without railpass take the faster algorithms of the MPI library "
        "with these settings: " +
        settings);
  }
  if (std::ranges::any_of(o.plan, gains))
    sentences.push_back(
        "Programs with railpass follow the plan from their first call on with "
        "RAILPASS_PLAN=" +
        std::filesystem::absolute(o.plan_path).string());
  int undecided = 0;
  for (const libraries::named_bench& one : o.benches)
    for (const collective_gain& g : gains_of(one.bench)) undecided += g.undecided;
  if (undecided > 0)
    sentences.push_back("For " + std::to_string(undecided) +
                        " measured calls another algorithm may be faster, but the launches are too "
                        "few to show a gain; run the same command with a larger --budget.");
  if (sentences.empty())
    sentences.push_back(
        "Nothing is to be done: no algorithm was shown to be faster than the MPI library's "
        "default.");
  if (!o.no_rules.empty()) sentences.push_back(o.no_rules);
  return sentences;
}

}  // namespace railpass::internal::characterise
