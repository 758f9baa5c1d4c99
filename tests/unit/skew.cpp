// SPDX-License-Identifier: BSL-1.0
//
// The time of a call and the arrival imbalance of its ranks, compared with simulated ranks of known
// values. Each rank has a clock of its own, with its own rate.
#include "railpass/select/lockstep/skew.hpp"

#include "railpass/base/statistics.hpp"
#include "railpass/select/lockstep/lockstep.hpp"
#include "railpass/select/policies.hpp"
#include "railpass/select/policy/random.hpp"
#include "support/catch.hpp"
#include "support/closed_forms.hpp"
#include "support/merge_mail.hpp"

#include <array>
#include <functional>
#include <vector>

using namespace railpass;
using namespace railpass::select;

namespace {

/// Ranks that wait for all. Each rank leaves after the last arrival plus the collective's time,
/// less its own part of the finishing spread.
class ranks {
 public:
  ranks(int num_ranks, std::uint64_t seed) : random_(seed) {
    for (int r = 0; r < num_ranks; ++r) {
      offset_s_.push_back(100 * random_.uniform());
      rate_.push_back(1 + 1e-6 * random_.normal());
      left_s_.push_back(0);
      early_.push_back(r == 0 ? 1 : random_.uniform());
    }
    early_.back() = 0;
  }

  /// All ranks arrive `late_s[r]` after the end of their last call.
  /// @param finishing share of the call by which the first rank leaves before the last rank
  call_times call(double seconds, double finishing, const std::function<double(int)>& late_s) {
    std::vector<double> came_s;
    for (std::size_t r = 0; r < left_s_.size(); ++r) came_s.push_back(left_s_[r] + late_s(int(r)));
    const auto [first, last] = std::minmax_element(came_s.begin(), came_s.end());
    came_apart_s_ = *last - *first;
    const double ended_s = *last + seconds;
    call_times t{.longest_s = 0, .shortest_s = 1e9, .longest_gap_s = 0, .shortest_gap_s = 1e9};
    for (std::size_t r = 0; r < left_s_.size(); ++r) {
      const double before_s = clock_s(r, left_s_[r]), began_s = clock_s(r, came_s[r]);
      left_s_[r] = ended_s - seconds * finishing * early_[r];
      const double inside_s = clock_s(r, left_s_[r]) - began_s, gap_s = began_s - before_s;
      t.longest_s = std::max(t.longest_s, inside_s);
      t.shortest_s = std::min(t.shortest_s, inside_s);
      t.longest_gap_s = std::max(*t.longest_gap_s, gap_s);
      t.shortest_gap_s = std::min(*t.shortest_gap_s, gap_s);
    }
    return t;
  }

  /// The rank's wait in a barrier of the program after its call.
  double until_all_s(int r) const {
    return *std::max_element(left_s_.begin(), left_s_.end()) - left_s_[std::size_t(r)];
  }

  double came_apart_s() const { return came_apart_s_; }
  random_stream& random() { return random_; }

 private:
  double clock_s(std::size_t r, double true_s) const { return offset_s_[r] + rate_[r] * true_s; }

  random_stream random_;
  std::vector<double> offset_s_, rate_, left_s_, early_;
  double came_apart_s_ = 0;
};

constexpr double call_s = 50e-6;
constexpr std::array all_wait{collective::all_reduce, collective::all_gather,
                              collective::all_to_all, collective::reduce_scatter_block,
                              collective::barrier};

}  // namespace

TEST_CASE("all wait for all only where no block can be empty") {
  for (const collective op : all_collectives) {
    CAPTURE(name_of(op));
    CHECK(waits_for_all(op) == (std::ranges::find(all_wait, op) != all_wait.end()));
  }
}

TEST_CASE("no algorithm lets a rank leave so early that it seems to come late") {
  simulator play;
  double most = 0;
  for (const collective op : all_wait)
    for (const arm& a : arms_of(op)) {
      if (a.base->is_native()) continue;
      for (const int p : {3, 8, 13}) {
        if (!eligible(*a.base, {.num_ranks = p, .units = p})) continue;
        const std::vector<schedule> schedules = build_all(a, p, true);
        for (const std::int64_t bytes : {8, 16384}) {
          const message_size size =
              describe(op).what == promise::all_arrive
                  ? message_size{p, 1}
                  : message_size{(traits_of(op).blocks ? p : 1) * bytes / 8, 8};
          if (schedules[0].segment_bytes >= bytes) continue;
          for (const machine_model& m : two_networks())
            for (const int ranks_per_node : {1, 4}) {
              CAPTURE(name_of(op), name_of(a), p, bytes, ranks_per_node);
              const simulation& s = play.run({.machine = m,
                                              .nodes = node_layout::blocks(p, ranks_per_node),
                                              .schedules = schedules,
                                              .size = size});
              const double first_s = *std::ranges::min_element(s.finish_s);
              REQUIRE(first_s >= (1 - finishing_spread) * s.time_s);
              most = std::max(most, 1 - first_s / s.time_s);
            }
        }
      }
    }
  CHECK(most > 0.7);  // the bound is not far off
}

TEST_CASE("a rank that is late by many calls is in the skew and not in the time") {
  const unsigned seed = GENERATE(range(1U, 21U));
  const double late_calls = GENERATE(10, 100, 2000);
  CAPTURE(seed, late_calls);
  ranks all(2 + int(seed % 7), seed);
  const double finishing = 0.5 * all.random().uniform(), late_s = late_calls * call_s;
  usual_lateness usual;
  for (int i = 0; i < 50; ++i) {
    const call_times t =
        all.call(call_s, finishing, [&](int r) { return r == 1 ? late_s : 0.01 * call_s; });
    const double skew = skew_s(t).value(), off_s = finishing * call_s + 2e-5 * late_s;
    if (i == 0) continue;  // ranks began at different times
    usual.learn(t, call_s);
    CHECK(skew == Approx(all.came_apart_s()).margin(1.01 * off_s));
    for (const collective op : all_wait) {
      const double seconds =
          duration_s(waiting_in(op), t, usual.is_most(), usual.finishing_s(call_s));
      if (i < 4) {
        CHECK(seconds == t.longest_s);  // one late rank is no habit
        continue;
      }
      CHECK(seconds > (1 - finishing) * call_s * 0.99);
      CHECK(seconds < call_s + 1.01 * off_s);
    }
    CHECK(duration_s(waiting_in(collective::broadcast), t, usual.is_most()) == t.longest_s);
    CHECK(duration_s(waiting_in(collective::all_gatherv), t, usual.is_most()) == t.longest_s);
  }
}

TEST_CASE("what ranks wait is counted as long as they come a few calls apart") {
  const unsigned seed = GENERATE(range(1U, 21U));
  const double late_calls = GENERATE(0.0, 0.1, 1, 5, 50);
  CAPTURE(seed, late_calls);
  ranks all(2 + int(seed % 7), seed);
  const double finishing = 0.8 * all.random().uniform();
  usual_lateness usual;
  for (int i = 0; i < 100; ++i) {
    const call_times t = all.call(call_s, finishing, [&](int) {
      return -std::log(1 - all.random().uniform()) * late_calls * call_s;
    });
    usual.learn(t, call_s);
    const double seconds = duration_s(waiting_in(collective::all_reduce), t, usual.is_most(),
                                      usual.finishing_s(call_s));
    CHECK(seconds >= t.shortest_s);
    CHECK(seconds <= t.longest_s);
    if (late_calls <= 1) CHECK(seconds == t.longest_s);
    if (late_calls == 50 && i >= 20) CHECK(seconds < (2 + finishing) * call_s);
  }
}

TEST_CASE("ranks that leave early and wait for the others are not late") {
  const unsigned seed = GENERATE(range(1U, 21U));
  CAPTURE(seed);
  ranks all(2 + int(seed % 7), seed);
  const double finishing = 0.89 * all.random().uniform();
  usual_lateness usual;
  for (int i = 0; i < 50; ++i) {
    std::vector<double> waits_s;
    for (int r = 0; r < 9; ++r) waits_s.push_back(r < 2 + int(seed % 7) ? all.until_all_s(r) : 0);
    const call_times t =
        all.call(call_s, finishing, [&](int r) { return waits_s[std::size_t(r)]; });
    usual.learn(t, call_s);
    CHECK(duration_s(waiting_in(collective::all_reduce), t, usual.is_most(),
                     usual.finishing_s(call_s)) == t.longest_s);
    CHECK(t.longest_s == Approx(call_s).epsilon(1e-4));
  }
}

TEST_CASE("ranks that left a slow call early are not late for the quick one that follows") {
  const unsigned seed = GENERATE(range(1U, 21U));
  CAPTURE(seed);
  const int num_ranks = 2 + int(seed % 7);
  ranks all(num_ranks, seed);
  usual_lateness usual;
  double before_s = 0;
  for (int i = 0; i < 100; ++i) {
    const double seconds = call_s * std::pow(30.0, all.random().uniform()),
                 finishing = 0.89 * all.random().uniform();
    std::vector<double> waits_s;
    for (int r = 0; r < num_ranks; ++r) waits_s.push_back(all.until_all_s(r));
    const call_times t =
        all.call(seconds, finishing, [&](int r) { return waits_s[std::size_t(r)]; });
    if (i > 0) {
      CAPTURE(seconds, before_s);
      usual.learn(t, before_s);
      CHECK(duration_s(waiting_in(collective::all_reduce), t, true, usual.finishing_s(before_s)) ==
            t.longest_s);
    }
    before_s = t.longest_s;
  }
}

TEST_CASE("the faster of two arms has the lower times when ranks are late by many calls") {
  const unsigned seed = GENERATE(range(1U, 11U));
  CAPTURE(seed);
  ranks all(8, seed);
  std::vector<double> slow, fast;
  usual_lateness usual;
  for (int i = 0; i < 400; ++i) {
    const call_times t = all.call(call_s * (i % 2 ? 1.1 : 1), 0.1, [&](int) {
      return -std::log(1 - all.random().uniform()) * 20 * call_s;
    });
    usual.learn(t, call_s);
    (i % 2 ? slow : fast)
        .push_back(duration_s(waiting_in(collective::all_reduce), t, usual.is_most(),
                              usual.finishing_s(call_s)));
  }
  CHECK(median(fast) < median(slow));
}

TEST_CASE("where ranks often come later than they left apart, all calls are measured alike") {
  const unsigned seed = GENERATE(range(1U, 21U));
  const double finishing = GENERATE(0.0, 0.3);
  CAPTURE(seed, finishing);
  ranks all(8, seed);
  usual_lateness usual;
  int hardly_late = 0;
  for (int i = 0; i < 200; ++i) {
    // The last rank arrives a call after the first one, on average.
    const call_times t = all.call(call_s, finishing, [&](int) {
      return -std::log(1 - all.random().uniform()) * 0.4 * call_s;
    });
    if (i == 0) continue;  // ranks began at different times
    usual.learn(t, call_s);
    if (i < 50) continue;
    if (skew_s(t).value() < finishing_spread * call_s) ++hardly_late;
    const double seconds =
        duration_s(waiting_in(collective::all_reduce), t, true, usual.finishing_s(call_s));
    CHECK(seconds > (1 - finishing) * call_s * 0.999);
    CHECK(seconds < (1 + finishing) * call_s * 1.001);
  }
  CHECK(hardly_late > 30);
}

TEST_CASE("without gaps the slowest rank counts") {
  const call_times t{.longest_s = 1, .shortest_s = 0.1};
  CHECK_FALSE(skew_s(t));
  CHECK(duration_s(waiting_in(collective::all_reduce), t, true) == 1);
}

TEST_CASE("a merge brings what all ranks measured, and the leader keeps both apart") {
  constexpr double late_s = 5e-3;
  const collective op = GENERATE(collective::all_reduce, collective::broadcast);
  const bool gives_core = GENERATE(false, true);
  CAPTURE(name_of(op), gives_core);
  const context_key key{.op = op, .size_class = 4};
  std::array steps{lockstep({}, 0, 3), lockstep({}, 1, 3), lockstep({}, 2, 3)};
  test::merge_mail mail;
  double now_s = 1000;
  for (int i = 0; i < 300; ++i) {
    for (lockstep& ls : steps) ls.begin_call();
    REQUIRE(mail.make_steps(
        steps, [](int, merge_outcome outcome) { REQUIRE(outcome == merge_outcome::agreed); }));
    timed_call c;
    plan_message plan{};
    for (std::size_t r = 0; r < steps.size(); ++r) {
      c = steps[r].next_call(key);
      if (c.needs_first_plan) {
        if (r == 0)
          plan = steps[0].lead(
              c.context,
              make_policy("native", {.priors = {{.native = true, .measured_only = true}}}));
        steps[r].adopt(c.context, plan);
        c = steps[r].next_call(key);
      }
      const double own_s = 1e5 * double(r);  // another clock
      const double began_s = own_s + now_s + (r == 2 ? late_s : 0);
      const double ended_s = own_s + now_s + late_s + call_s;
      if (c.timed)
        steps[r].record(c, ended_s - began_s, steps[r].gap_s(c, began_s), gives_core && r == 1);
      if (c.notes_end) steps[r].note_end(c, ended_s);
    }
    now_s += late_s + call_s + 1e-4;
  }
  const auto records = steps[0].records(0);
  REQUIRE(records.size() == 1);
  REQUIRE(records[0].sums.samples > 10);
  const std::span<const double> skews = steps[0].skews_s(0);
  REQUIRE(skews.size() > 5);
  CHECK(median(skews) == Approx(late_s).epsilon(1e-3));
  // The first calls have no end to count from; on shared cores a few pass before lateness is usual.
  const double waited_s = records[0].sums.sum_s - double(records[0].sums.samples) * call_s;
  if (op == collective::broadcast)
    CHECK(waited_s == Approx(double(records[0].sums.samples) * late_s).epsilon(1e-3));
  else if (gives_core)
    CHECK((waited_s > 3.9 * late_s && waited_s < double(records[0].sums.samples) * late_s / 2));
  else
    CHECK(waited_s < 3.1 * late_s);
}

TEST_CASE("cores are shared if they are given away in many of the calls, and no longer than that") {
  const int per_merge = GENERATE(1, 2, 3, 16, 64);
  CAPTURE(per_merge);
  const auto merges = [&](core_sharing& cores, double share, int calls) {
    random_stream random(7);
    for (int merged = 0; merged < calls; merged += per_merge) {
      int away = 0;
      for (int i = 0; i < per_merge; ++i) away += random.uniform() < share ? 1 : 0;
      cores.learn(per_merge, away);
    }
  };
  core_sharing cores;
  cores.learn(0, 0);
  CHECK_FALSE(cores.is_usual());
  merges(cores, 0.01, 300);
  CHECK_FALSE(cores.is_usual());
  merges(cores, 0.9, 60);
  CHECK(cores.is_usual());
  merges(cores, 0.01, 100);
  CHECK_FALSE(cores.is_usual());
}

TEST_CASE("where ranks share cores an arm does not seem faster by letting the others come later") {
  // As measured on 8 ranks of 2 cores: ranks that have arrived work first, and late ranks arrive
  // when these wait. Arms with more work are slower and delay the late ranks further.
  const unsigned seed = GENERATE(range(1U, 11U));
  CAPTURE(seed);
  constexpr std::array arm_s{5 * call_s, 7 * call_s}, apart{0.45, 0.78};
  const context_key key{.op = collective::all_reduce, .size_class = 4};
  std::array steps{lockstep({}, 0, 2), lockstep({}, 1, 2)};
  test::merge_mail mail;
  random_stream random(seed);
  double now_s = 0;
  for (int i = 0; i < 2000; ++i) {
    for (lockstep& ls : steps) {
      ls.begin_call();
      ls.begin_steps(now_s);
    }
    REQUIRE(mail.make_steps(
        steps, [](int, merge_outcome outcome) { REQUIRE(outcome == merge_outcome::agreed); }));
    const double share = 0.12 * random.normal(), slow = std::exp(0.15 * random.normal());
    plan_message plan{};
    double ended_s = now_s;
    for (std::size_t r = 0; r < steps.size(); ++r) {
      timed_call c = steps[r].next_call(key);
      if (c.needs_first_plan) {
        if (r == 0)
          plan = steps[0].lead(
              c.context, make_policy("epsilon_greedy",
                                     {.priors = {{.arm = 0, .native = true, .measured_only = true},
                                                 {.arm = 1}}}));
        steps[r].adopt(c.context, plan);
        c = steps[r].next_call(key);
      }
      const auto a = std::size_t(c.arm);
      const double came_apart = std::clamp(apart[a] + share, 0.0, 0.97);
      ended_s = now_s + slow * arm_s[a];
      const double began_s = r == 0 ? now_s : now_s + came_apart * (ended_s - now_s);
      if (c.timed) steps[r].record(c, ended_s - began_s, steps[r].gap_s(c, began_s), r == 0);
      if (c.notes_end) steps[r].note_end(c, ended_s);
    }
    now_s = ended_s + 10 * call_s;
  }
  for (const arm_record& record : steps[0].records(0)) {
    REQUIRE(record.sums.samples > 20);
    CHECK(record.sums.mean_s() == Approx(arm_s[std::size_t(record.arm)]).epsilon(0.12));
  }
}

TEST_CASE("an arm that is tried after a slower one is not taken to be quicker than it is") {
  constexpr std::array arm_s{20 * call_s, call_s};
  constexpr double early = 0.7;  // of a call, on rank 0
  const context_key key{.op = collective::all_reduce, .size_class = 4};
  std::array steps{lockstep({}, 0, 2), lockstep({}, 1, 2)};
  std::array ended_s{0.0, 0.0};
  test::merge_mail mail;
  double now_s = 0;
  for (int i = 0; i < 200; ++i) {
    for (lockstep& ls : steps) ls.begin_call();
    REQUIRE(mail.make_steps(
        steps, [](int, merge_outcome outcome) { REQUIRE(outcome == merge_outcome::agreed); }));
    plan_message plan{};
    for (std::size_t r = 0; r < steps.size(); ++r) {
      timed_call c = steps[r].next_call(key);
      if (c.needs_first_plan) {
        if (r == 0)
          plan = steps[0].lead(
              c.context,
              make_policy("star_mpi", {.priors = {{.arm = 0, .native = true, .measured_only = true},
                                                  {.arm = 1}}}));
        steps[r].adopt(c.context, plan);
        c = steps[r].next_call(key);
      }
      const double seconds = arm_s[std::size_t(c.arm)];
      ended_s[r] = now_s + (r == 0 ? 1 - early : 1) * seconds;
      if (c.timed) steps[r].record(c, ended_s[r] - now_s, steps[r].gap_s(c, now_s));
      if (c.notes_end) steps[r].note_end(c, ended_s[r]);
    }
    now_s = std::max(ended_s[0], ended_s[1]) + 1e-4;  // the program waits for all
  }
  for (const arm_record& record : steps[0].records(0)) {
    CAPTURE(record.arm, record.sums.samples);
    REQUIRE(record.sums.samples > 0);
    CHECK(record.sums.mean_s() == Approx(arm_s[std::size_t(record.arm)]).epsilon(1e-3));
  }
}
