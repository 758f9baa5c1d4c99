// SPDX-License-Identifier: BSL-1.0
//
// Comparisons of runs before and after an upgrade.
#include "railpass/knowledge/upgrade.hpp"

#include "support/catch.hpp"
#include "support/seed.hpp"

#include <random>

using namespace railpass;
using namespace railpass::knowledge;

namespace {

arm_experience arm_of(std::string name, std::int64_t calls, double median_s) {
  return {.arm = std::move(name),
          .calls = calls,
          .times = {.samples = 50,
                    .mean_s = median_s,
                    .spread = 0.1,
                    .quantiles = {median_s, median_s, median_s}}};
}

stored_run run_of(int number, surroundings in, std::vector<experience> contexts) {
  stored_run r{.ids = {std::to_string(number)}};
  r.run.machine = {
      .num_hosts = 1, .cores_per_host = 8, .cpu_model = "cpu", .mpi_library = in.mpi_library};
  r.run.was.kernel = in.kernel;
  r.run.was.drivers = in.drivers;
  r.run.ended_at = "2026-01-" + std::to_string(10 + number) + "T12:00:00Z";
  r.run.contexts = std::move(contexts);
  return r;
}

experience calls_of(std::int64_t bytes, std::vector<arm_experience> arms) {
  return {.of = {.collective = "all_reduce", .num_ranks = 8, .bytes = bytes},
          .arms = std::move(arms)};
}

experience native_of(double median_s, std::int64_t bytes = 1024) {
  return calls_of(bytes, {arm_of("native", 100, median_s)});
}

const surroundings old_mpi{"MPI 1", "6.1", ""}, new_mpi{"MPI 2", "6.1", ""};

// Native's median of runs 0, 1, ... before and after.
std::vector<stored_run> runs_of(const std::vector<double>& before, const std::vector<double>& now) {
  std::vector<stored_run> runs;
  for (const double s : before) runs.push_back(run_of(int(runs.size()), old_mpi, {native_of(s)}));
  for (const double s : now) runs.push_back(run_of(int(runs.size()), new_mpi, {native_of(s)}));
  return runs;
}

}  // namespace

TEST_CASE("Calls that take longer since an upgrade are named with an interval") {
  const auto all = upgrades_of(runs_of({1.00e-5, 1.02e-5, 0.98e-5}, {1.5e-5, 1.52e-5, 1.49e-5}));
  REQUIRE(all.size() == 1);
  const upgrade& u = all[0];
  CHECK(u.before == old_mpi);
  CHECK(u.now == new_mpi);
  CHECK(u.since == "2026-01-13T12:00:00Z");
  CHECK(u.runs_before == 3);
  CHECK(u.runs_now == 3);
  REQUIRE(u.cells.size() == 1);
  CHECK(u.cells[0].is_native);
  CHECK(u.cells[0].is_shown);
  CHECK(u.cells[0].ratio == Approx(1.503).epsilon(0.01));
  CHECK(u.cells[0].low > 1.4);
  CHECK(u.cells[0].high < 1.6);
  CHECK(u.too_few == 0);
  CHECK(summary_of(u) ==
        "since 2026-01-13 (MPI library MPI 2 instead of MPI 1) 1 of 1 kinds of calls take longer "
        "and 0 shorter; the most: all_reduce of 1KiB on 8 ranks, 1.50 times as long. Details: "
        "railpass knowledge compare");
}

TEST_CASE("A run counts once, however many communicators make its calls") {
  std::vector<stored_run> runs;
  for (int number = 0; number < 4; ++number)
    runs.push_back(run_of(number, number < 2 ? old_mpi : new_mpi,
                          {native_of(1e-5, 1100), native_of(1.1e-5, 1500)}));
  const auto all = upgrades_of(runs);
  REQUIRE(all.size() == 1);
  CHECK(all[0].cells.empty());
  CHECK(all[0].too_few == 1);
}

TEST_CASE("The variance between runs decides, not the number of calls") {
  const auto all = upgrades_of(runs_of({1.0e-5, 1.6e-5, 0.7e-5}, {1.5e-5, 0.9e-5, 2.2e-5}));
  REQUIRE(all.size() == 1);
  REQUIRE(all[0].cells.size() == 1);
  CHECK_FALSE(all[0].cells[0].is_shown);
  CHECK(all[0].cells[0].low < 1);
  CHECK(all[0].cells[0].high > 1);
}

TEST_CASE("Fewer than three runs on a side are not compared") {
  const auto all = upgrades_of(runs_of({1e-5, 1e-5, 1e-5}, {9e-5, 9e-5}));
  REQUIRE(all.size() == 1);
  CHECK(all[0].cells.empty());
  CHECK(all[0].too_few == 1);
  CHECK(summary_of(all[0]).empty());
}

TEST_CASE("A machine that changes back is compared with what it was until then") {
  std::vector<stored_run> runs;
  for (int number = 0; number < 9; ++number) {
    const bool is_old = number < 3 || number >= 6;
    runs.push_back(run_of(number, is_old ? old_mpi : new_mpi, {native_of(is_old ? 1e-5 : 2e-5)}));
  }
  const auto all = upgrades_of(runs);
  REQUIRE(all.size() == 1);
  CHECK(all[0].before == new_mpi);
  CHECK(all[0].since == "2026-01-16T12:00:00Z");
  CHECK(all[0].runs_before == 3);
  CHECK(all[0].runs_now == 3);
}

TEST_CASE("Calls over other rails are not compared") {
  std::vector<stored_run> runs;
  for (int number = 0; number < 6; ++number) {
    runs.push_back(run_of(number, number < 3 ? old_mpi : new_mpi, {native_of(1e-5)}));
    if (number >= 3) runs.back().run.contexts[0].of.rails = "eth0,eth1";
  }
  const auto all = upgrades_of(runs);
  REQUIRE(all.size() == 1);
  CHECK(all[0].cells.empty());
  CHECK(all[0].too_few == 2);
}

TEST_CASE("Without a change of the machine there is nothing to compare") {
  CHECK(upgrades_of(runs_of({}, {1e-5, 1e-5, 1e-5, 1e-5})).empty());
  CHECK(upgrades_of({}).empty());
}

TEST_CASE("Kernel and drivers count as the MPI library does, other machines do not") {
  std::vector<stored_run> runs;
  for (int i = 0; i < 3; ++i)
    runs.push_back(run_of(i, {"MPI 1", "6.1", "xpmem 1"}, {native_of(1e-5)}));
  for (int i = 3; i < 6; ++i)
    runs.push_back(run_of(i, {"MPI 1", "6.2", "xpmem 2"}, {native_of(2e-5)}));
  stored_run other = run_of(7, {"MPI 9", "6.9", ""}, {native_of(9e-5)});
  other.run.machine.cpu_model = "another";
  runs.push_back(other);
  const auto all = upgrades_of(runs);
  REQUIRE(all.size() == 1);
  CHECK(text_of_change(all[0].before, all[0].now) ==
        "kernel 6.2 instead of 6.1, drivers xpmem 2 instead of xpmem 1");
  REQUIRE(all[0].cells.size() == 1);
  CHECK(all[0].cells[0].ratio == Approx(2));
}

TEST_CASE("The latest surroundings are compared with those just before") {
  std::vector<stored_run> runs;
  for (int i = 0; i < 3; ++i) runs.push_back(run_of(i, {"MPI 0", "6.1", ""}, {native_of(9e-5)}));
  for (int i = 3; i < 6; ++i) runs.push_back(run_of(i, old_mpi, {native_of(1e-5)}));
  for (int i = 6; i < 9; ++i) runs.push_back(run_of(i, new_mpi, {native_of(3e-5)}));
  const auto all = upgrades_of(runs);
  REQUIRE(all.size() == 1);
  CHECK(all[0].before == old_mpi);
  REQUIRE(all[0].cells.size() == 1);
  CHECK(all[0].cells[0].ratio == Approx(3));
}

TEST_CASE("The arm that runs used most is compared beside native; merged runs are left out") {
  std::vector<stored_run> runs;
  for (int i = 0; i < 6; ++i)
    runs.push_back(
        run_of(i, i < 3 ? old_mpi : new_mpi,
               {calls_of(4096, {arm_of("native", 10, 2e-5),
                                arm_of(i < 3 ? "ring" : "bine", 90, i < 3 ? 1e-5 : 0.5e-5)})}));
  runs.push_back(run_of(8, new_mpi, {native_of(1)}));
  runs.back().ids.push_back("another");
  const auto all = upgrades_of(runs);
  REQUIRE(all.size() == 1);
  REQUIRE(all[0].cells.size() == 2);
  CHECK(all[0].cells[0].is_native);
  CHECK(all[0].cells[0].ratio == Approx(1));
  CHECK_FALSE(all[0].cells[0].is_shown);
  CHECK_FALSE(all[0].cells[1].is_native);
  CHECK(all[0].cells[1].ratio == Approx(0.5));
  CHECK(all[0].cells[1].is_shown);
  CHECK(summary_of(all[0]).find("0 of 2 kinds of calls take longer and 1 shorter.") !=
        std::string::npos);
}

TEST_CASE("Of upgrades that change nothing, few name a cell") {
  const unsigned seed = test::new_seed();
  INFO("TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, 0.2);
  constexpr int upgrades = 400, num_cells = 20;
  int alarms = 0;
  for (int n = 0; n < upgrades; ++n) {
    std::vector<stored_run> runs;
    for (int i = 0; i < 6; ++i) {
      std::vector<experience> contexts;
      for (int c = 0; c < num_cells; ++c)
        contexts.push_back(native_of(1e-5 * std::exp(noise(random)), std::int64_t{1} << c));
      runs.push_back(run_of(i, i < 3 ? old_mpi : new_mpi, contexts));
    }
    const auto all = upgrades_of(runs);
    REQUIRE(all.size() == 1);
    alarms += int(std::ranges::any_of(all[0].cells, &cell_change::is_shown));
  }
  CHECK(alarms < upgrades / 10);  // 5 % expected
}

TEST_CASE("Of cells that take 1.5 times as long, most are named") {
  const unsigned seed = test::new_seed();
  INFO("TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, 0.05);
  int named = 0;
  constexpr int upgrades = 50;
  for (int n = 0; n < upgrades; ++n) {
    std::vector<stored_run> runs;
    for (int i = 0; i < 10; ++i) {
      std::vector<experience> contexts;
      for (int c = 0; c < 20; ++c)
        contexts.push_back(native_of((i >= 5 && c < 5 ? 1.5e-5 : 1e-5) * std::exp(noise(random)),
                                     std::int64_t{1} << c));
      runs.push_back(run_of(i, i < 5 ? old_mpi : new_mpi, contexts));
    }
    const auto all = upgrades_of(runs);
    for (const cell_change& c : all[0].cells) named += int(c.is_shown && c.ratio > 1.25);
  }
  CHECK(named > 5 * upgrades * 9 / 10);
}
