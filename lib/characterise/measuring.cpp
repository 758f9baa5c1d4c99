// SPDX-License-Identifier: BSL-1.0
#include "lib/characterise/measuring.hpp"

#include "lib/characterise/outcome.hpp"
#include "lib/files/files.hpp"
#include "lib/launch/ranks.hpp"
#include "lib/libraries/library.hpp"
#include "lib/measure/library_rules.hpp"
#include "railpass/base/error.hpp"
#include "railpass/base/units.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <span>
#include <tuple>

namespace railpass::internal::characterise {
namespace {

constexpr const char* samples_name = "samples.json";
constexpr const char* samples_across_name = "samples_across.json";

template <class Value, class Name>
std::string list_of(const std::vector<Value>& values, Name name) {
  std::string text;
  for (const Value& value : values) text += (text.empty() ? "" : ",") + std::string(name(value));
  return text;
}

std::string names_of(const std::vector<collective>& ops) {
  return list_of(ops, [](collective op) { return name_of(op); });
}

// Asked for each launch again and again.
auto rules_take(const libraries::mpi_library& library) {
  return [filter = measure::filter_of_rules(library, false),
          known = std::map<std::tuple<collective, std::string, int>, bool>()](
             collective op, const std::string& arm, const bench_results& launch) mutable {
    const auto [at, is_new] = known.try_emplace({op, arm, launch.num_ranks});
    if (is_new)
      if (const auto* own = libraries::find_algorithm(launch, std::string(name_of(op)), arm))
        at->second = filter(op, *own, launch).empty();
    return at->second;
  };
}

class machine {
 public:
  machine(const folder& to, const question& q, const std::string& launcher,
          const progress_report& progress)
      : folder_(to),
        question_(q),
        progress_(progress),
        program_(std::filesystem::canonical("/proc/self/exe").string()),
        starter_(launch::find_starter(launcher, {}, program_)) {}

  void sample() {
    if (folder_.has(samples_name)) return;
    progress_(0, "sampling");
    // Two ranks on different hosts, if there are several hosts.
    const std::string spread = sample_two(launch::spread::over_hosts);
    if (files::parse_samples(spread, "railpass sample").machine_id.num_hosts == 1) {
      files::write_text(folder_.file(samples_name), spread);
      return;
    }
    files::write_text(folder_.file(samples_across_name), spread);
    files::write_text(folder_.file(samples_name), sample_two(launch::spread::on_one_host));
  }

  void launch_all() {
    fit(folder_, sample_files(folder_));
    setenv("RAILPASS_PROFILE", std::filesystem::absolute(folder_.file(profile_name)).c_str(), 1);
    // Arms of railpass are measured whatever a plan says of them, or if the plan is refused.
    setenv("RAILPASS_PLAN", "", 1);
    const sample_set samples = files::read_samples(sample_files(folder_).front());
    const auto* const library = libraries::find(samples.machine_id.mpi_library);
    question_.own_algorithms = library && library->no_rules.empty();
    if (question_.own_algorithms) question_.rules_take = rules_take(*library);
    folder_.forgive_failures();  // their cause may be gone
    std::vector<launch_record> launches = folder_.launches();
    const std::size_t earlier = launches.size();
    for (const launch_record& one : launches) {
      check_machine(one, samples);
      check_placement(one, launches);
    }
    while (const auto next = next_launch(question_, launches)) {
      progress_(spent_s(launches) / question_.budget_s, title_of(*next));
      launch_record one = run(*next, samples);
      check_machine(one, samples);
      // A launcher may place a launch in another way now and then. If it does so from the first
      // launch on, the folder is another job's.
      if (has_result(std::span(launches).subspan(earlier), one.request.num_ranks)) {
        if (const std::string why = other_placement(one, launches); !why.empty())
          fail(one, why, samples);
      } else {
        check_placement(one, launches);
      }
      launches.push_back(std::move(one));
      folder_.add(launches.back());
    }
    if (std::ranges::none_of(launches, &std::string::empty, &launch_record::failure))
      throw error(launches.size() > earlier
                      ? launches[earlier].failure
                      : "the time is over, and no launch succeeded; run the command again with a "
                        "larger --budget");
  }

 private:
  static double spent_s(const std::vector<launch_record>& launches) {
    double sum_s = 0;
    for (const launch_record& one : launches) sum_s += one.wall_s;
    return sum_s;
  }

  static std::string title_of(const launch_request& r) {
    return (r.ops.size() == 1 ? std::string(name_of(r.ops.front()))
                              : std::to_string(r.ops.size()) + " collectives") +
           " on " + std::to_string(r.num_ranks) + " ranks";
  }

  std::string sample_two(launch::spread how) const {
    const double budget_s = std::clamp(0.02 * question_.budget_s, 2.0, 30.0);
    const tune::command_result done =
        launch::run_ranks(starter_, 2, launch::placing_options(starter_.kind, how),
                          {program_, "sample", "--collectives=" + names_of(question_.ops),
                           "--budget=" + fixed(budget_s, 3), "--json", "-"},
                          limit_s(budget_s));
    if (!done.failure.empty()) throw error("sampling: " + done.failure);
    return done.output;
  }

  launch_record run(const launch_request& r, const sample_set& samples) const {
    const auto text = [](const auto& value) { return std::to_string(value); };
    const auto same = [](const std::string& word) { return word; };
    const tune::command_result done = launch::run_ranks(
        starter_, r.num_ranks, {},
        {program_, "bench", "--collectives=" + names_of(r.ops), "--bytes=" + list_of(r.sizes, text),
         "--arms=" + list_of(r.arms, same), "--budget=" + fixed(r.budget_s, 3), "--json", "-"},
        limit_s(r.budget_s));
    launch_record record{.request = r, .wall_s = done.wall_s, .failure = done.failure};
    // Arms with wrong results are not among the results, which are otherwise complete.
    if (done.failure.find("wrong results: ") != std::string::npos) record.failure.clear();
    if (record.failure.empty()) try {
        record.results = files::parse_bench(done.output, "railpass bench");
        if (const int ran = record.results.num_ranks; ran != r.num_ranks)
          record.failure =
              "the launcher started " + text(ran) + " ranks instead of " + text(r.num_ranks);
      } catch (const error& problem) {
        record.failure = problem.what();
      }
    if (!record.failure.empty()) fail(record, record.failure, samples);
    return record;
  }

  // A failure has no results but where and when.
  static void fail(launch_record& one, const std::string& why, const sample_set& samples) {
    one.failure = why;
    one.results = {.machine_id = samples.machine_id, .measured_at = files::utc_now()};
  }

  static bool has_result(std::span<const launch_record> launches, int num_ranks) {
    return std::ranges::any_of(launches, [&](const launch_record& one) {
      return one.failure.empty() && one.request.num_ranks == num_ranks;
    });
  }

  void check_machine(const launch_record& one, const sample_set& samples) const {
    fingerprint here = one.results.machine_id;
    here.num_hosts = samples.machine_id.num_hosts;
    if (const std::string why = mismatch(samples.machine_id, here); !why.empty())
      throw error(folder_.path() + ": " + why + "; name another folder");
  }

  void check_placement(const launch_record& one, const std::vector<launch_record>& all) const {
    if (const std::string why = other_placement(one, all); !why.empty())
      throw error(folder_.path() + ": " + why + "; name another folder");
  }

  // Empty if a launch is placed as the first launch on this number of ranks.
  static std::string other_placement(const launch_record& one,
                                     const std::vector<launch_record>& all) {
    if (!one.failure.empty()) return {};
    const auto first = std::ranges::find_if(all, [&](const launch_record& other) {
      return other.failure.empty() && other.request.num_ranks == one.request.num_ranks;
    });
    if (first == all.end() || first->results.ranks_per_node == one.results.ranks_per_node)
      return {};
    return "a launch of " + std::to_string(one.request.num_ranks) + " ranks had " +
           std::to_string(one.results.ranks_per_node) + " per node, an earlier launch " +
           std::to_string(first->results.ranks_per_node);
  }

  const folder& folder_;
  question question_;
  const progress_report& progress_;
  std::string program_;
  launch::starter starter_;
};

}  // namespace

std::vector<std::string> sample_files(const folder& from) {
  std::vector<std::string> paths;
  for (const char* const name : {samples_name, samples_across_name})
    if (from.has(name)) paths.push_back(from.file(name));
  return paths;
}

void measure_machine(const folder& to, const question& q, const std::string& launcher,
                     const progress_report& progress) {
  machine m(to, q, launcher, progress);
  m.sample();
  m.launch_all();
}

}  // namespace railpass::internal::characterise
