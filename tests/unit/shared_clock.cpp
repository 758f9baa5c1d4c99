// SPDX-License-Identifier: BSL-1.0
//
// The cost of a call to the program by a clock that all ranks share, compared with a replay of the
// same ranks in which the call costs nothing.
#include "railpass/select/lockstep/lockstep.hpp"
#include "railpass/select/policies.hpp"
#include "railpass/select/policy/random.hpp"
#include "support/catch.hpp"
#include "support/merge_mail.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

using namespace railpass;
using namespace railpass::select;

namespace {

constexpr std::size_t root = 1;
constexpr double up_s = 3e6;  // since the clock's beginning

struct times {
  std::vector<double> came_s, left_s, next_s;
};

rank_role role_of(collective op, std::size_t rank) { return {dependence_in(op), rank == root}; }

/// A rank leaves when all awaited ranks have arrived, each that long ago; `factor` 0: the call
/// costs nothing.
times replay(collective op, const std::vector<double>& came_s,
             const std::vector<std::vector<double>>& delays_s, const std::vector<double>& between_s,
             double factor) {
  times t{came_s, {}, {}};
  for (std::size_t to = 0; to < came_s.size(); ++to) {
    double left_s = came_s[to] + factor * delays_s[to][to];
    for (std::size_t from = 0; from < came_s.size(); ++from)
      if (role_of(op, to).waits() && role_of(op, from).is_awaited() &&
          (dependence_in(op) != dependence::on_lower || from < to))
        left_s = std::max(left_s, came_s[from] + factor * delays_s[from][to]);
    t.left_s.push_back(left_s);
    t.next_s.push_back(left_s + between_s[to]);
  }
  return t;
}

timed_sample sample_of(collective op, const times& t, std::size_t rank) {
  return {.context = 0,
          .arm = 0,
          .explored = false,
          .call = 1,
          .arm_before = 0,
          .seconds = float(t.left_s[rank] - t.came_s[rank]),
          .role = role_of(op, rank),
          .came_s = t.came_s[rank],
          .left_s = t.left_s[rank],
          .next_s = t.next_s[rank]};
}

merge_report report_of(const timed_sample& one, const rank_findings& found = {},
                       const clock_offset& clock = {}) {
  merge_report report;
  report.share_clock();
  report.write(1, 1, 0, found, {&one, 1}, merge_report::min_samples, clock);
  return report;
}

}  // namespace

TEST_CASE("who waits for whom follows from what a collective promises") {
  using enum collective;
  for (const collective op : all_collectives) {
    CAPTURE(name_of(op));
    const rank_role of_root{dependence_in(op), true}, of_other{dependence_in(op), false};
    switch (dependence_in(op)) {
      case dependence::unknown:
        CHECK_FALSE(waits_for_all(op));
        break;
      case dependence::all_on_all:
        CHECK(waits_for_all(op));
        CHECK((of_root.waits() && of_root.is_awaited()));
        CHECK((of_other.waits() && of_other.is_awaited()));
        break;
      case dependence::all_on_root:
        CHECK((op == broadcast || op == scatter));
        CHECK((!of_root.waits() && of_root.is_awaited()));
        CHECK((of_other.waits() && !of_other.is_awaited()));
        break;
      case dependence::root_on_all:
        CHECK((op == reduce || op == gather));
        CHECK((of_root.waits() && of_root.is_awaited()));
        CHECK((!of_other.waits() && of_other.is_awaited()));
        break;
      case dependence::on_lower:
        CHECK((op == scan || op == exscan));
        CHECK((of_other.waits() && of_other.is_awaited()));
        break;
    }
  }
  for (const collective op : {gatherv, all_gatherv, all_to_allw})
    CHECK(dependence_in(op) == dependence::unknown);
}

TEST_CASE("the cost of a call is by how much it delays the rank that comes last to the next one") {
  const unsigned seed = GENERATE(range(1U, 51U));
  const double late = GENERATE(0, 1, 10);
  CAPTURE(seed, late);
  random_stream random(seed);
  const std::size_t p = 2 + seed % 8;
  constexpr double call_s = 1e-2;  // far more than what counts as coming together
  for (const collective op :
       {collective::all_reduce, collective::broadcast, collective::reduce, collective::scatter,
        collective::gather, collective::barrier, collective::scan}) {
    CAPTURE(name_of(op));
    std::vector<double> came_s, between_s;
    std::vector<std::vector<double>> delays_s(p);
    for (std::size_t r = 0; r < p; ++r) {
      came_s.push_back(up_s + late * call_s * random.uniform());
      between_s.push_back(late * call_s * random.uniform());
      for (std::size_t to = 0; to < p; ++to) delays_s[r].push_back(call_s * random.uniform());
    }
    const times t = replay(op, came_s, delays_s, between_s, 1),
                free = replay(op, came_s, delays_s, between_s, 0);
    merge_report all = report_of(sample_of(op, t, 0));
    for (std::size_t r = 1; r < p; ++r) all.add(report_of(sample_of(op, t, r)).words());
    const auto seen = all.times(0);
    REQUIRE((seen && seen->on_shared_clock));
    const double cost_s = seen->on_shared_clock->cost_s();
    std::vector<double> sorted_s = t.next_s;
    std::ranges::sort(sorted_s);
    const auto last = std::size_t(std::ranges::max_element(t.next_s) - t.next_s.begin());
    if (sorted_s[p - 1] - sorted_s[p - 2] > 1e-5)
      CHECK(cost_s == Approx(t.left_s[last] - free.left_s[last]).margin(1e-8));
    // Without the call another rank may arrive last.
    const double saved_s = std::ranges::max(t.next_s) - std::ranges::max(free.next_s);
    CHECK(cost_s > saved_s - 1e-5);
    if (std::ranges::max(free.next_s) == free.next_s[last])
      CHECK(cost_s == Approx(saved_s).margin(1e-5));
  }
}

TEST_CASE("of ranks that come to the next call together the one that held up the other counts") {
  const std::vector<std::vector<double>> delays_s{{2e-3, 9e-3}, {2e-3, 9e-3}};
  times t = replay(collective::all_reduce, {up_s, up_s}, delays_s, {0, 0}, 1);
  const auto cost_s = [&](std::size_t first) {
    merge_report all = report_of(sample_of(collective::all_reduce, t, first));
    all.add(report_of(sample_of(collective::all_reduce, t, 1 - first)).words());
    return all.times(0)->on_shared_clock->cost_s();
  };
  for (const std::size_t first : {0, 1}) {
    // Rank 0 arrives a message after rank 1, at the same time, a message before it, and long after
    // it.
    const std::array later_s{2e-6, 1e-7, -2e-6, 1e-3}, costs_s{9e-3, 9e-3, 2e-3, 2e-3};
    for (std::size_t i = 0; i < later_s.size(); ++i) {
      t.next_s = {t.left_s[1] + later_s[i], t.left_s[1]};
      CHECK(cost_s(first) == Approx(costs_s[i]).epsilon(1e-5));
    }
  }
}

TEST_CASE("a report tells of a shared clock only what all ranks know") {
  const times t = replay(collective::all_reduce, {up_s, up_s}, {{1, 1}, {1, 1}}, {1, 1}, 1);
  const timed_sample one = sample_of(collective::all_reduce, t, 0);
  CHECK(report_of(one).times(0)->on_shared_clock);
  merge_report differs = report_of(one);
  differs.add(report_of(one, {.lacks_clock = true}).words());
  CHECK_FALSE(differs.times(0)->on_shared_clock);
  timed_sample last = one;
  last.next_s = -1;
  CHECK_FALSE(report_of(last).times(0)->on_shared_clock);
  merge_report lost = report_of(one);
  lost.add(report_of(one, {}, clock_offset::unknown()).words());
  CHECK_FALSE(lost.times(0)->on_shared_clock);
}

TEST_CASE("clocks that differ show the same cost as one clock, and how exact that is") {
  const unsigned seed = GENERATE(range(1U, 21U));
  CAPTURE(seed);
  random_stream random(seed);
  const std::size_t p = 2 + seed % 4;
  std::vector<double> came_s, between_s;
  std::vector<std::vector<double>> delays_s(p);
  for (std::size_t r = 0; r < p; ++r) {
    came_s.push_back(up_s + 1e-2 * random.uniform());
    between_s.push_back(1e-2 * random.uniform());
    for (std::size_t to = 0; to < p; ++to) delays_s[r].push_back(1e-2 * random.uniform());
  }
  const times t = replay(collective::all_reduce, came_s, delays_s, between_s, 1);
  std::array<merge_report, 2> by;  // one clock, and clocks that differ
  constexpr double error_s = 3e-6;
  for (std::size_t r = 0; r < p; ++r) {
    timed_sample one = sample_of(collective::all_reduce, t, r);
    const merge_report same = report_of(one);
    const double ahead_s = 2000 * random.uniform() - 1000;
    for (double* const stamp : {&one.came_s, &one.left_s, &one.next_s}) *stamp += ahead_s;
    clock_offset offset = clock_offset::unknown();
    offset.learn(one.next_s, -ahead_s - error_s, -ahead_s + error_s);
    const merge_report own = report_of(one, {}, offset);
    if (r == 0) {
      by = {same, own};
    } else {
      by[0].add(same.words());
      by[1].add(own.words());
    }
  }
  const auto same = by[0].times(0)->on_shared_clock, own = by[1].times(0)->on_shared_clock;
  REQUIRE((same && own));
  CHECK(own->cost_s() == Approx(same->cost_s()).margin(1e-7));
  CHECK(same->error_s == 0);
  CHECK(own->error_s >= error_s);
  CHECK(own->error_s < error_s + 100e-3 * clock_offset::largest_drift);
}

namespace {

struct seen_by_leader {
  std::optional<double> cost_share;
  double mean_s = 0;
};

/// Two ranks alternate `op` with a call in which all wait. Their clocks are 1000 s apart, and rank
/// 1 knows its offset within `error_s`; 0: one clock.
seen_by_leader after_calls(collective op, double error_s) {
  constexpr double call_s = 1e-3;
  const context_key key{.op = op, .size_class = 4};
  const std::array ahead_s{0.0, error_s > 0 ? 1000.0 : 0.0};
  std::array steps{lockstep({}, 0, 2), lockstep({}, 1, 2)};
  for (lockstep& one : steps) one.share_clock();
  test::merge_mail mail;
  std::array now_s{up_s, up_s};
  for (int i = 0; i < 200; ++i) {
    for (std::size_t r = 0; r < steps.size(); ++r) {
      const double shown_s = now_s[r] + ahead_s[r];
      if (steps[r].awaits_next()) steps[r].note_next(shown_s, dependence::all_on_all);
      if (ahead_s[r] > 0) {
        clock_offset known = clock_offset::unknown();
        known.learn(shown_s, -ahead_s[r] - error_s, -ahead_s[r] + error_s);
        steps[r].know_clock(known);
      }
      steps[r].begin_call();
    }
    REQUIRE(mail.make_steps(
        steps, [](int, merge_outcome outcome) { REQUIRE(outcome == merge_outcome::agreed); }));
    const std::array came_s = now_s;
    plan_message plan{};
    for (std::size_t r = 0; r < steps.size(); ++r) {
      timed_call c = steps[r].next_call(key);
      if (c.needs_first_plan) {
        if (r == 0)
          plan = steps[0].lead(
              c.context,
              make_policy("round_robin",
                          {.priors = {{.arm = 0, .native = true, .measured_only = true}}}));
        steps[r].adopt(c.context, plan);
        c = steps[r].next_call(key);
      }
      // Rank 0 leaves early, and arrives last at the next call.
      now_s[r] = std::ranges::max(came_s) + (r == 0 ? 0.25 : 1) * call_s;
      if (c.timed) {
        steps[r].record(c, now_s[r] - came_s[r], steps[r].gap_s(c, came_s[r]));
        steps[r].await_next(c, came_s[r] + ahead_s[r], now_s[r] + ahead_s[r],
                            {dependence_in(op), r == 1});
      }
      if (c.notes_end) steps[r].note_end(c, now_s[r]);
    }
    now_s[0] += 2 * call_s;
    now_s[1] += call_s;
  }
  const std::vector<arm_record> records = steps[0].records(0);
  REQUIRE(records.size() == 1);
  REQUIRE(records[0].sums.samples > 5);
  return {steps[0].cost_share(0), records[0].sums.mean_s()};
}

}  // namespace

TEST_CASE("a timed call counts until each rank's next call on the communicator") {
  const seen_by_leader seen = after_calls(collective::all_reduce, 0);
  CHECK(seen.mean_s == Approx(0.25e-3).epsilon(1e-3));
  CHECK(seen.cost_share == 1.0);
}

TEST_CASE("clocks of their own show what a call costs if they are known exactly enough") {
  for (const collective op : {collective::reduce, collective::broadcast}) {
    CAPTURE(name_of(op));
    CHECK(after_calls(op, 1e-6).cost_share > 0.9);
    CHECK_FALSE(after_calls(op, 100e-6).cost_share);
  }
  for (const collective op : {collective::all_reduce, collective::scan})
    CHECK_FALSE(after_calls(op, 1e-6).cost_share);
}

TEST_CASE("what a call costs shows only where the next one waits for all ranks") {
  using enum dependence;
  for (const dependence before : {unknown, all_on_all, all_on_root, root_on_all, on_lower}) {
    CHECK(last_counts(before, all_on_all));
    CHECK_FALSE(last_counts(before, all_on_root));
    CHECK_FALSE(last_counts(before, unknown));
    CHECK_FALSE(last_counts(before, on_lower));
    CHECK(last_counts(before, root_on_all) == (before == root_on_all));
  }
}
