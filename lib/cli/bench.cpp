// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/bench.hpp"

#include "lib/cli/parallel.hpp"
#include "lib/cli/verb.hpp"
#include "lib/files/files.hpp"
#include "lib/measure/workload.hpp"
#include "lib/report/table.hpp"
#include "railpass/base/settings.hpp"
#include "railpass/base/units.hpp"

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

namespace railpass::cli {
namespace {

struct options {
  std::string collectives = "broadcast,all_reduce";
  std::string bytes = "64KiB,1MiB";
  std::string arms;
  std::string budget = "60s";
  std::string clock = "barrier";
  int root = 0;
  int learning = 0;
  bool all = false;
  json_output json;
};

struct request {
  std::vector<collective> ops;
  std::vector<std::int64_t> sizes;
  std::vector<std::string> arms;  // empty: all
  double budget_s = 60;
};

// Everything that can be wrong is found before MPI is initialised.
request parse(const options& o) {
  request r;
  r.ops = parse_collectives("--collectives", o.collectives);
  r.sizes = parse_sizes("--bytes", o.bytes, largest_message_bytes);
  r.budget_s = parse_duration_s("--budget", o.budget);
  if (o.arms.empty()) return r;
  for (const std::string& name : split_list("--arms", o.arms)) {
    if (std::find(r.arms.begin(), r.arms.end(), name) != r.arms.end()) continue;
    r.arms.push_back(name);
    if (name == "native" || name == "tuned") continue;
    // An arm must be one of some collective; where it is not, it is not measured.
    std::optional<usage_error> wrong;
    bool known = false;
    for (const collective op : r.ops) try {
        arm_of_option("--arms", op, name);
        known = true;
      } catch (const usage_error& why) {
        if (!wrong) wrong = why;
      }
    if (!known) throw *wrong;
  }
  return r;
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

void print_cell(const measure::cell_result& cell, const std::string& title, bool all) {
  constexpr std::size_t shown_arms = 10;
  std::vector<const bench_result*> rows;
  for (const bench_result& row : cell.rows) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto* a, const auto* b) { return a->median_s < b->median_s; });
  report::table lines({"arm", "median", "p90", "spread", "runs", "/native", "95 %", "/best arm"});
  std::size_t arms = 0;
  for (const bench_result* row : rows) {
    const bool always = row->arm == "native" || row->arm == "tuned";
    if (!always && ++arms > shown_arms && !all) continue;
    lines.add({row->arm, format_seconds(row->median_s), format_seconds(row->p90_s),
               percent(row->spread_s.value_or(0) / row->median_s), std::to_string(row->runs),
               row->ratio_to_native ? fixed(*row->ratio_to_native, 3) : "-",
               row->ratio_low ? fixed(*row->ratio_low, 3) + ".." + fixed(*row->ratio_high, 3) : "-",
               row->ratio_to_best ? fixed(*row->ratio_to_best, 3) : "-"});
  }
  std::cout << title << '\n' << lines.text();
  if (arms > shown_arms && !all)
    std::cout << arms - shown_arms
              << " slower arms are measured but not shown (--all shows them)\n";
  if (cell.late_rounds > 0)
    std::cout << cell.late_rounds << " rounds are left out, in which a rank was late\n";
  if (!cell.tuned_arm.empty()) std::cout << "tuned had settled on " << cell.tuned_arm << '\n';
  if (!cell.left_out.empty()) {
    std::cout << cell.left_out.size()
              << " arms were left out, the first: " << cell.left_out[0].first << ", "
              << cell.left_out[0].second << '\n';
  }
  for (const learning_result& l : cell.learning)
    std::cout << "calls " << l.first_call << " to " << l.first_call + l.calls - 1 << ": "
              << format_seconds(l.total_s) << ", " << fixed(l.total_s / l.native_total_s, 3)
              << " x native's (pairs " << fixed(l.ratio_to_native, 3) << ", "
              << fixed(l.native_low, 3) << ".." << fixed(l.native_high, 3) << "), "
              << fixed(l.total_s / l.best_total_s, 3) << " x those of " << l.best_arm << " (pairs "
              << fixed(l.ratio_to_best, 3) << "); the slowest took "
              << format_seconds(l.worst_call_s) << ", "
              << fixed(l.worst_call_s / l.best_median_s, 2) << " x its median (its own slowest "
              << fixed(l.best_worst_call_s / l.best_median_s, 2) << " x)\n";
  std::cout << std::endl;
}

std::int64_t whole_message_bytes(collective op, std::int64_t bytes, int num_ranks) {
  try {
    return measure::whole_message_bytes(op, bytes, num_ranks);
  } catch (const error& wrong) {
    throw usage_error(std::string("--bytes: ") + wrong.what());
  }
}

// What is measured at each size; equal on all ranks, as the profile is rank 0's.
std::vector<measure::cell_request> cells_of(const request& r, const options& o,
                                            const measure::job& j, const profile* knowledge) {
  std::vector<measure::cell_request> cells;
  for (const collective op : r.ops)
    for (const std::int64_t size : r.sizes) {
      const std::int64_t bytes = whole_message_bytes(op, size, j.num_ranks);
      if (std::ranges::any_of(cells, [&](const auto& c) { return c.op == op && c.bytes == bytes; }))
        continue;
      cells.push_back({.op = op,
                       .bytes = bytes,
                       .root = o.root,
                       .contestants = measure::contestants_of(r.arms, op, bytes, j, knowledge),
                       .learning = o.learning,
                       .round_time = o.clock == "round_time"});
      if (cells.back().contestants.empty())
        throw usage_error("--arms '" + o.arms + "': none of them can run " +
                          std::string(name_of(op)) + " of " + format_bytes(bytes) + " on " +
                          std::to_string(j.num_ranks) + " ranks");
    }
  return cells;
}

int run(const options& o) {
  const request wanted = parse(o);
  return run_job([&](const measure::job& j) {
    if (j.num_ranks < 2) throw usage_error("expected at least 2 ranks: mpirun -n 2 railpass bench");
    check_root(o.root, j.num_ranks);
    std::optional<profile> knowledge;
    std::string profile_text;
    bench_results all = measure::begin_bench(j);
    const std::string profile_path = read_environment(environ).values.profile;
    on_rank_0(j, [&] {
      o.json.check();
      if (!profile_path.empty())
        profile_text = files::to_json(files::read_profile(profile_path, all.machine_id));
    });
    measure::broadcast_text(profile_text);
    if (!profile_text.empty()) knowledge = files::parse_profile(profile_text, profile_path);

    all.notes = {{"railpass_version", RAILPASS_VERSION},
                 {"hosts", join(j.hosts)},
                 {"cpu_model", all.machine_id.cpu_model},
                 {"mpi_library", all.machine_id.mpi_library},
                 {"profile", profile_path},
                 {"policy", read_environment(environ).values.policy},
                 {"budget_s", fixed(wanted.budget_s, 3)},
                 {"clock", o.clock},
                 {"root", std::to_string(o.root)}};
    const bool speaks = j.rank == 0 && o.json.text();
    if (speaks)
      std::cout << all.measured_at << ", railpass " RAILPASS_VERSION ", "
                << all.machine_id.mpi_library << "\n"
                << j.num_ranks << " ranks, at most " << all.ranks_per_node << " per node, on "
                << j.num_nodes() << " hosts; " << all.machine_id.cpu_model
                << (all.machine_id.rails.empty() ? "" : "; arms over " + all.machine_id.rails)
                << "\nprofile: "
                << (profile_path.empty() ? "none, generic constants" : profile_path) << "\n\n";

    std::vector<std::string> wrong, missed;
    {
      progress_bar bar("bench", j.rank == 0);
      measure::measure_cells(
          j, cells_of(wanted, o, j, knowledge ? &*knowledge : nullptr), wanted.budget_s, all,
          [&](double fraction, const std::string& doing) { bar.show(fraction, doing); },
          [&](const measure::cell_request& cell, const measure::cell_result& result) {
            const bool any_size = describe(cell.op).what == promise::all_arrive;
            const std::string title =
                std::string(name_of(cell.op)) + (any_size ? "" : " of " + format_bytes(cell.bytes));
            if (speaks) {
              bar.hide();
              print_cell(result, title, o.all);
            }
            for (const measure::not_shown& m : result.missed)
              missed.push_back(title + " against " + m.other + ": " + fixed(m.ratio.low, 3) + ".." +
                               fixed(m.ratio.high, 3));
            for (const std::string& label : result.wrong) wrong.push_back(title + " by " + label);
          });
    }
    if (speaks && !missed.empty()) {
      std::cout << "Not shown to be as fast (95 % interval of tuned / other):\n";
      for (const std::string& one : missed) std::cout << "  " << one << '\n';
    }
    all.notes["missed"] = join(missed);
    on_rank_0(j, [&] { o.json.write(files::to_json(all)); });
    if (!wrong.empty()) throw error("wrong results: " + join(wrong));
    return int(succeeded);
  });
}

}  // namespace

const verb bench_verb{
    "bench", "Measure the MPI library's collectives, every arm and the tuned call (under mpirun)",
    "  mpirun -n 4 railpass bench --bytes 64KiB,1MiB --budget 60s --json bench.json\n"
    "  mpirun -n 8 railpass bench --collectives broadcast --arms native,tuned,binomial\n"
    "  RAILPASS_PROFILE=profile.json mpirun -n 8 railpass bench --learning 100\n"
    "All are measured in one run, taking turns. The exit status is 1 if a result was wrong.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      app.add_option("--collectives", o->collectives, "which ones, or all")
          ->type_name("NAMES")
          ->capture_default_str();
      app.add_option("--bytes", o->bytes,
                     "message sizes; of the blocks of all ranks together where ranks have such, "
                     "rounded up to whole elements")
          ->type_name("SIZES")
          ->capture_default_str();
      app.add_option("--arms", o->arms,
                     "what to measure: native, tuned, or arms such as pipeline+segment_bytes=8KiB; "
                     "all of them if not given")
          ->type_name("NAMES");
      app.add_option("--budget", o->budget, "about how long to measure in all")
          ->type_name("TIME")
          ->capture_default_str();
      app.add_option(
             "--clock", o->clock,
             "barrier: a repetition is timed behind one; round_time: it begins on all ranks "
             "at one instant of synchronised clocks, and does not count if one is late")
          ->type_name("NAME")
          ->check(CLI::IsMember({"barrier", "round_time"}))
          ->capture_default_str();
      app.add_option("--root", o->root, "of the collectives that have one")
          ->type_name("RANK")
          ->capture_default_str();
      app.add_option("--learning", o->learning,
                     "also measure the first N calls of contexts that know nothing yet, in turns "
                     "with the MPI library's and the fastest arm's")
          ->type_name("N")
          ->check(CLI::Range(1, 1000000));
      app.add_flag("--all", o->all, "print all arms, not only the fastest");
      o->json.declare(app);
      return [o] { return run(*o); };
    }};

}  // namespace railpass::cli
