// SPDX-License-Identifier: BSL-1.0
//
// Which launches a characterisation makes on made-up machines, and what it says of their times.
#include "lib/characterise/gains.hpp"
#include "lib/characterise/guidelines.hpp"
#include "lib/characterise/planned.hpp"
#include "lib/characterise/schedule.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <tuple>

using namespace railpass;
using namespace railpass::internal::characterise;

namespace {

// A machine where an algorithm of the library is faster than the default from some size on, and one
// of railpass up to some size. Where these sizes are depends on collective and ranks.
class made_up_machine {
 public:
  explicit made_up_machine(std::uint64_t seed, std::vector<collective> broken = {})
      : seed_(seed), broken_(std::move(broken)) {}

  launch_record run(const launch_request& r) {
    launch_record record{.request = r, .wall_s = 0.5 + 1.3 * r.budget_s};
    record.results.num_ranks = r.num_ranks;
    for (const collective op : r.ops) {
      if (std::ranges::find(broken_, op) != broken_.end()) record.failure = "rank 1 was killed";
      for (const std::int64_t size : r.sizes) add(record.results, op, size, r.num_ranks, r.arms);
    }
    if (!record.failure.empty()) record.results.results.clear();
    ++launches_;
    return record;
  }

  bool decides(collective op, std::int64_t size, int ranks) const {
    const auto bytes = double(bytes_of(op, size, ranks));
    return bytes >= library_from(op, ranks) || bytes <= railpass_to(op, ranks);
  }

 private:
  double draw(collective op, int ranks, int what) const {
    std::mt19937_64 random(seed_ + 1000 * std::uint64_t(op) + std::uint64_t(ranks) +
                           77777 * std::uint64_t(what));
    return std::uniform_real_distribution(0.0, 1.0)(random);
  }
  static std::int64_t bytes_of(collective op, std::int64_t size, int ranks) {
    return op == collective::barrier ? ranks : (size + ranks - 1) / ranks * ranks;
  }
  double library_from(collective op, int ranks) const { return std::exp(20 * draw(op, ranks, 0)); }
  double railpass_to(collective op, int ranks) const { return std::exp(12 * draw(op, ranks, 1)); }

  void add(bench_results& to, collective op, std::int64_t size, int ranks,
           const std::vector<std::string>& arms) const {
    const std::int64_t bytes = bytes_of(op, size, ranks);
    const double native_s = 1e-6 + 1e-10 * double(bytes);
    const auto row = [&](const std::string& arm, double ratio) {
      for (const bench_result& r : to.results)
        if (r.collective == name_of(op) && r.bytes == bytes && r.arm == arm) return;
      const double noise = 1 + 0.002 * (launches_ % 3 - 1);
      to.results.push_back({.collective = std::string(name_of(op)),
                            .bytes = bytes,
                            .arm = arm,
                            .median_s = ratio * native_s,
                            .p90_s = ratio * native_s,
                            .runs = 10,
                            .ratio_to_native = ratio * (arm == "native" ? 1 : noise)});
    };
    const auto asks_for = [&](const char* arm) {
      return std::ranges::find(arms, arm) != arms.end();
    };
    row("native", 1);
    if (asks_for("native:all") || asks_for("native:late"))
      row("native:late", double(bytes) >= library_from(op, ranks) ? 0.6 : 1.4);
    if (asks_for("native:all")) row("native:slow", 3);
    if (asks_for("all") || asks_for("early"))
      row("early", double(bytes) <= railpass_to(op, ranks) ? 0.7 : 1.3);
  }

  std::uint64_t seed_;
  std::vector<collective> broken_;
  int launches_ = 0;
};

std::vector<launch_record> all_launches(const question& q, made_up_machine machine) {
  std::vector<launch_record> launches;
  while (const auto next = next_launch(q, launches)) {
    launches.push_back(machine.run(*next));
    REQUIRE(launches.size() < 5000);
  }
  return launches;
}

using cell = std::tuple<collective, int, std::int64_t>;

std::map<cell, int> launches_of_cells(const std::vector<launch_record>& launches) {
  std::map<cell, int> count;
  for (const launch_record& one : launches)
    if (one.failure.empty())
      for (const collective op : one.request.ops)
        for (const std::int64_t size : one.request.sizes)
          ++count[{op, one.request.num_ranks, size}];
  return count;
}

bool is_coarse(std::int64_t size) {
  return std::ranges::find(coarse_sizes, size) != coarse_sizes.end();
}

const question three_collectives{
    .ops = {collective::broadcast, collective::all_gather, collective::barrier},
    .ranks = {4, 6},
    .budget_s = 600};

double spent_s(const std::vector<launch_record>& launches) {
  double sum_s = 0;
  for (const launch_record& one : launches) sum_s += one.wall_s;
  return sum_s;
}

}  // namespace

TEST_CASE("Launches exceed the budget by one launch at most") {
  for (const double budget_s : {0.1, 3.0, 20.0, 90.0, 1200.0, 7200.0})
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      question q = three_collectives;
      q.budget_s = budget_s;
      const auto launches = all_launches(q, made_up_machine(seed));
      REQUIRE(!launches.empty());
      CHECK(spent_s(launches) - launches.back().wall_s <= budget_s);
    }
}

TEST_CASE("Every coarse cell is measured before any other, and deciding cells six times") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const made_up_machine machine(seed);
    const auto launches = all_launches(three_collectives, machine);
    const auto finer = std::ranges::find_if(launches, [](const launch_record& one) {
      return !std::ranges::all_of(one.request.sizes, is_coarse);
    });
    REQUIRE(finer != launches.end());
    const auto before = launches_of_cells({launches.begin(), finer});
    for (const collective op : three_collectives.ops)
      for (const int ranks : three_collectives.ranks)
        for (const std::int64_t size : coarse_sizes) {
          const auto count = before.find({op, ranks, size});
          REQUIRE(count != before.end());
          CHECK(count->second >=
                (machine.decides(op, size, ranks) ? deciding_launches : first_launches));
        }
  }
}

TEST_CASE("More budget never yields fewer launches of a cell that decides") {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    const made_up_machine machine(seed);
    std::map<cell, int> least;
    for (double budget_s = 2; budget_s < 5000; budget_s *= 1.5) {
      question q = three_collectives;
      q.budget_s = budget_s;
      const auto count = launches_of_cells(all_launches(q, machine));
      for (const auto& [which, launches] : least) {
        const auto& [op, ranks, size] = which;
        if (machine.decides(op, size, ranks)) CHECK(count.at(which) >= launches);
      }
      least = count;
    }
  }
}

TEST_CASE("The launches so far decide the next launch") {
  const auto launches = all_launches(three_collectives, made_up_machine(3));
  const auto again = all_launches(three_collectives, made_up_machine(3));
  REQUIRE(launches.size() == again.size());
  for (std::size_t i = 0; i < launches.size(); ++i) {
    CHECK(launches[i].request == again[i].request);
    const auto next = next_launch(three_collectives, std::span(launches).first(i));
    REQUIRE(next);
    CHECK(*next == launches[i].request);
  }
}

TEST_CASE("Sizes are added where the best arm changes") {
  const question q{.ops = {collective::broadcast}, .ranks = {4}, .budget_s = 1e6};
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const made_up_machine machine(seed);
    const auto launches = all_launches(q, machine);
    // No change is left between sizes that are far apart.
    const auto count = launches_of_cells(launches);
    for (auto a = count.begin(), b = std::next(a); b != count.end(); ++a, ++b) {
      const std::int64_t low = std::get<2>(a->first), high = std::get<2>(b->first);
      if (machine.decides(collective::broadcast, low, 4) !=
          machine.decides(collective::broadcast, high, 4))
        CHECK((double(high) < 1.6 * double(low) || high - low <= 16));
    }
  }
}

TEST_CASE("A library's uncertain gain is measured again beside a clear gain of railpass") {
  const question q{.ops = {collective::broadcast}, .ranks = {4}, .budget_s = 300};
  made_up_machine machine(1);
  std::vector<launch_record> launches;
  while (const auto next = next_launch(q, launches)) {
    launches.push_back(machine.run(*next));
    for (bench_result& r : launches.back().results.results) {
      double ratio = 1;
      if (r.arm == "early") ratio = 0.3;
      if (r.arm == "native:late") ratio = r.bytes == 500000 && launches.size() % 2 == 0 ? 1.1 : 0.6;
      r.median_s *= ratio / *r.ratio_to_native;
      r.ratio_to_native = ratio;
    }
  }
  const auto count = launches_of_cells(launches);
  CHECK(count.at({collective::broadcast, 4, 500000}) >= 2 * deciding_launches);
  CHECK(count.at({collective::broadcast, 4, 65536}) < 2 * deciding_launches);
}

TEST_CASE("A size is added only if the time is enough for its launches") {
  int added = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const made_up_machine machine(seed);
    for (const double budget_s : {100, 150, 225, 340, 510}) {
      const question q{.ops = {collective::broadcast}, .ranks = {4}, .budget_s = budget_s};
      for (const auto& [which, launches] : launches_of_cells(all_launches(q, machine))) {
        const std::int64_t size = std::get<2>(which);
        if (is_coarse(size) || !machine.decides(collective::broadcast, size, 4)) continue;
        CHECK(launches >= deciding_launches);
        ++added;
      }
    }
  }
  CHECK(added > 20);
}

TEST_CASE("Screenings measure all arms, later launches those that may be the best") {
  const std::vector<std::string> own{"native", "native:all", "native:all:16KiB",
                                     "native:all:128KiB"};
  const std::vector<std::string> ours{"native", "all"};
  const auto launches = all_launches(three_collectives, made_up_machine(1));
  for (int i = 0; i < 4; ++i) {
    const launch_request& r = launches[std::size_t(i)].request;
    CHECK(r.arms == (i % 2 == 0 ? own : ours));
    CHECK(r.num_ranks == (i < 2 ? 4 : 6));
    CHECK(r.ops == three_collectives.ops);
    CHECK(std::ranges::equal(r.sizes, coarse_sizes));
  }
  for (const launch_record& one : std::span(launches).subspan(4)) {
    CHECK(one.request.arms == std::vector<std::string>{"native", "early", "native:late"});
    // Short and long messages have contests of their own.
    CHECK((one.request.sizes.back() <= 131072 || one.request.sizes.front() > 131072));
  }
  question q = three_collectives;
  q.own_algorithms = false;
  CHECK(next_launch(q, {})->arms == ours);
}

TEST_CASE("Contenders include the fastest algorithms that rules may take") {
  question q = three_collectives;
  q.rules_take = [](collective op, const std::string& arm, const bench_results&) {
    return op != collective::broadcast || arm != "native:late";
  };
  const auto launches = all_launches(q, made_up_machine(1));
  for (const launch_record& one : std::span(launches).subspan(4))
    CHECK(std::ranges::count(one.request.arms, "native:slow") ==
          std::ranges::count(one.request.ops, collective::broadcast));
}

TEST_CASE("A cell where the time was not enough for any arm is screened again, for longer") {
  made_up_machine machine(1);
  std::vector<launch_record> launches;
  std::vector<double> budgets_s;
  for (int i = 0; i < 40; ++i) {
    const auto next = next_launch(three_collectives, launches);
    REQUIRE(next);
    launches.push_back(machine.run(*next));
    if (next->arms != std::vector<std::string>{"native", "all"} || next->num_ranks != 4) continue;
    std::erase_if(launches.back().results.results, [](const bench_result& r) {
      return r.collective == "broadcast" && r.bytes == 10000 && r.arm != "native";
    });
    budgets_s.push_back(next->budget_s / double(next->ops.size() * next->sizes.size()));
  }
  REQUIRE(budgets_s.size() == 2);
  CHECK(budgets_s[1] == Approx(2 * budgets_s[0]));
}

TEST_CASE("Two failures with a success between them leave nothing out") {
  const question q{.ops = {collective::broadcast}, .ranks = {4}, .budget_s = 300};
  made_up_machine machine(1);
  std::vector<launch_record> launches;
  while (const auto next = next_launch(q, launches)) {
    launches.push_back(machine.run(*next));
    if (launches.size() == 2 || launches.size() == 5) launches.back().failure = "rank 1 was killed";
  }
  CHECK(launches.size() > 10);
  CHECK(left_out(q, launches).empty());
  launches.resize(5);
  launches.push_back(launches.back());
  CHECK(left_out(q, launches) ==
        std::vector<std::string>{"broadcast on 4 ranks: measured no further, as two launches in a "
                                 "row failed, the last: rank 1 was killed"});
}

TEST_CASE("An arm that gave a wrong result in any launch is no contender") {
  const question q{.ops = {collective::broadcast}, .ranks = {4}, .budget_s = 300};
  made_up_machine machine(1);
  std::vector<launch_record> launches;
  while (const auto next = next_launch(q, launches)) {
    launches.push_back(machine.run(*next));
    if (launches.size() == 1)
      launches[0].results.notes["broadcast/8/left_out/native:late"] = "its result was wrong";
    else
      CHECK(std::ranges::count(next->arms, "native:late") == 0);
  }
  CHECK(launches.size() > 2);
}

TEST_CASE("A launch that hangs leaves most of the budget, and none is ended that measures") {
  const question q{.ops = {collective::broadcast, collective::all_reduce, collective::reduce,
                           collective::reduce_scatter_block, collective::gather,
                           collective::scatter, collective::all_gather, collective::all_to_all,
                           collective::scan, collective::barrier},
                   .ranks = {4}};
  CHECK(limit_s(next_launch(q, {})->budget_s) < 0.5 * q.budget_s);
  for (const double budget_s : {1.0, 10.0, 100.0, 1000.0}) CHECK(limit_s(budget_s) > 3 * budget_s);
}

TEST_CASE("A forgiven failure counts with its time alone") {
  launch_record forgiven{.request = {.num_ranks = 4}, .wall_s = 400, .failure = "was killed"};
  const std::vector<launch_record> once{forgiven}, often{forgiven, forgiven};
  const auto next = next_launch(three_collectives, once);
  REQUIRE(next);
  CHECK(next->ops == three_collectives.ops);
  CHECK(!next_launch(three_collectives, often));
}

TEST_CASE("A collective that fails is launched alone once, and then left out") {
  const made_up_machine machine(1, {collective::all_gather});
  const auto launches = all_launches(three_collectives, machine);
  std::map<int, int> failed;
  for (const launch_record& one : launches)
    if (!one.failure.empty()) ++failed[one.request.num_ranks];
  CHECK(failed == std::map<int, int>{{4, 2}, {6, 2}});
  const auto count = launches_of_cells(launches);
  for (const int ranks : three_collectives.ranks) {
    CHECK(!count.contains({collective::all_gather, ranks, 1024}));
    CHECK(count.at({collective::broadcast, ranks, 1024}) >= first_launches);
  }
  CHECK(left_out(three_collectives, launches) ==
        std::vector<std::string>{"all_gather on 4 ranks: left out, as two launches in a row "
                                 "failed, the last: rank 1 was killed",
                                 "all_gather on 6 ranks: left out, as two launches in a row "
                                 "failed, the last: rank 1 was killed"});
}

TEST_CASE("Numbers of ranks on which no algorithm of railpass has a time are named") {
  auto launches = all_launches(three_collectives, made_up_machine(1));
  for (launch_record& one : launches)
    if (one.request.num_ranks == 6)
      std::erase_if(one.results.results, [](const bench_result& r) { return r.arm == "early"; });
  const auto sentences = left_out(three_collectives, launches);
  REQUIRE(sentences.size() == 1);
  CHECK_THAT(sentences[0],
             ContainsSubstring("railpass on 6 ranks: no algorithm of railpass has a time"));
}

TEST_CASE("What the time was too short for is named") {
  question one = three_collectives, both = three_collectives;
  one.ranks = {4};
  const auto launches = all_launches(one, made_up_machine(1));
  CHECK(left_out(one, launches).empty());
  both.ranks = {4, 8};
  CHECK(left_out(both, launches) ==
        std::vector<std::string>{"broadcast, all_gather, barrier on 8 ranks: not measured yet; run "
                                 "the command again, with a larger --budget if its time is over"});
}

TEST_CASE("The time of a launch is estimated from earlier launches on as many ranks") {
  const launch_request next{.num_ranks = 4, .budget_s = 9};
  CHECK(estimated_s(next, {}) == Approx(10));
  const std::vector<launch_record> launches{
      {.request = {.num_ranks = 4, .budget_s = 4}, .wall_s = 10},
      {.request = {.num_ranks = 8, .budget_s = 4}, .wall_s = 100}};
  CHECK(estimated_s(next, launches) == Approx(20));
}

namespace {

struct native_time {
  std::string collective;
  std::int64_t bytes;
  double time_us;
  double spread = 0.01;  // of the launches
};

bench_results bench_of_native(const std::vector<native_time>& times, int launches = 6) {
  bench_results b{.num_ranks = 4};
  for (const native_time& t : times) {
    bench_result r{.collective = t.collective,
                   .bytes = t.bytes,
                   .arm = "native",
                   .median_s = t.time_us * 1e-6};
    for (int i = 0; i < launches; ++i)
      r.launch_medians_s.push_back(r.median_s * (1 + t.spread * (2.0 * i / (launches - 1) - 1)));
    b.results.push_back(std::move(r));
  }
  return b;
}

}  // namespace

TEST_CASE("A guideline is violated where the difference exceeds what launches differ by") {
  const auto found = violations_of(
      bench_of_native({{"all_gather", 1000, 30}, {"gather", 1000, 10}, {"broadcast", 1024, 15}}));
  REQUIRE(found.size() == 1);
  CHECK(found[0].rule == "all_gather <= gather + broadcast");
  CHECK(found[0].num_ranks == 4);
  CHECK(found[0].bytes == 1000);
  CHECK(found[0].time_s == Approx(30e-6));
  CHECK(found[0].others_s == Approx(25e-6));
  // Launches differ by more, the difference is small, a part is missing, or is of another size.
  CHECK(violations_of(
            bench_of_native(
                {{"all_gather", 1000, 30, 0.3}, {"gather", 1000, 10}, {"broadcast", 1000, 15}}))
            .empty());
  CHECK(
      violations_of(bench_of_native(
                        {{"all_gather", 1000, 26}, {"gather", 1000, 10}, {"broadcast", 1000, 15}}))
          .empty());
  CHECK(violations_of(bench_of_native({{"all_gather", 1000, 30}, {"gather", 1000, 10}})).empty());
  CHECK(
      violations_of(bench_of_native(
                        {{"all_gather", 1000, 30}, {"gather", 1000, 10}, {"broadcast", 2000, 15}}))
          .empty());
}

TEST_CASE("Violations and cliffs that rest on fewer than six launches are not certain") {
  const std::vector<native_time> times{{"all_gather", 1000, 30},
                                       {"gather", 1000, 10},
                                       {"broadcast", 1000, 15},
                                       {"broadcast", 2000, 60}};
  for (const int launches : {2, 5, 6, 8}) {
    const auto found = violations_of(bench_of_native(times, launches));
    REQUIRE(found.size() == 1);
    CHECK(found[0].is_certain == (launches >= 6));
    const auto cliffs = cliffs_of(bench_of_native(times, launches));
    REQUIRE(cliffs.size() == 1);
    CHECK(cliffs[0].is_certain == (launches >= 6));
  }
  // One of the collectives is enough to make a violation uncertain.
  bench_results mixed = bench_of_native(times);
  mixed.results[1].launch_medians_s.resize(2);
  CHECK(!violations_of(mixed).at(0).is_certain);
}

TEST_CASE("Every guideline is found, and only collectives that exist are named") {
  for (const guideline& g : guidelines()) {
    std::vector<native_time> times{{g.collective, 1024, 100}};
    for (const std::string& other : g.others) {
      CHECK(std::ranges::count(collectives_list, other, &collective_traits::name) == 1);
      times.push_back({other, 1024, 20});
    }
    const auto found = violations_of(bench_of_native(times));
    CHECK(std::ranges::count(found, name_of(g), &violation::rule) == 1);
  }
}

TEST_CASE("A cliff is a time that grows more than the size, or falls") {
  const auto found = cliffs_of(bench_of_native({{"broadcast", 1000, 10},
                                                {"broadcast", 2000, 15},
                                                {"broadcast", 4000, 40},
                                                {"broadcast", 8000, 30},
                                                {"broadcast", 16000, 59}}));
  REQUIRE(found.size() == 2);
  CHECK(found[0].from_bytes == 2000);
  CHECK(found[0].to_bytes == 4000);
  CHECK(!found[0].falls());
  CHECK(found[1].from_bytes == 4000);
  CHECK(found[1].falls());
  CHECK(cliffs_of(bench_of_native({{"broadcast", 1000, 10, 0.3}, {"broadcast", 2000, 22, 0.3}}))
            .empty());
}

TEST_CASE("Gains are those whose interval over the launches ends below 1") {
  bench_results b = bench_of_native({{"broadcast", 1000, 10}, {"broadcast", 2000, 10}});
  const auto add = [&](std::int64_t bytes, const std::string& arm, double ratio, int launches) {
    b.results.push_back({.collective = "broadcast",
                         .bytes = bytes,
                         .arm = arm,
                         .median_s = ratio * 1e-5,
                         .ratio_to_native = ratio,
                         .launch_ratios = std::vector<double>(std::size_t(launches), ratio)});
  };
  add(1000, "native:chain", 0.64, 6);
  add(1000, "native:linear", 0.5, 5);
  add(1000, "native:lucky", 0.1, 2);
  add(1000, "binomial", 0.81, 6);
  add(2000, "native:chain", 1.2, 6);
  add(2000, "binomial", 0.36, 6);
  CHECK(surest(b, "broadcast", 1000, arms_of::library)->arm == "native:chain");
  CHECK(fastest(b, "broadcast", 1000, arms_of::library)->arm == "native:linear");
  CHECK(surest(b, "broadcast", 2000, arms_of::library) == nullptr);
  CHECK(!is_undecided(b, "broadcast", 1000, arms_of::railpass));
  const auto gains = gains_of(b);
  REQUIRE(gains.size() == 1);
  CHECK(gains[0].undecided == 0);
  CHECK(gains[0].sizes == std::vector<std::int64_t>{1000, 2000});
  CHECK(gains[0].library_ratio == Approx(0.8));
  CHECK(gains[0].railpass_ratio == Approx(0.54));
  add(4000, "native", 1, 2);
  add(4000, "binomial", 0.9, 2);
  CHECK(is_undecided(b, "broadcast", 4000, arms_of::railpass));
  CHECK(gains_of(b)[0].undecided == 1);
  // Neither plan nor rules take native for the size.
  const bench_results kept = decided(b, arms_of::railpass);
  CHECK(kept.results.size() == b.results.size() - 2);
  CHECK(std::ranges::count(kept.results, 4000, &bench_result::bytes) == 0);
  // Unless an arm that gains at sizes around was slower there.
  add(4000, "chain", 1.3, 2);
  add(8000, "chain", 0.5, 6);
  CHECK(std::ranges::count(decided(b, arms_of::railpass).results, 4000, &bench_result::bytes) == 0);
  add(2000, "chain", 0.5, 6);
  const bench_results around = decided(b, arms_of::railpass);
  CHECK(std::ranges::count(around.results, 4000, &bench_result::bytes) == 1);
  CHECK(std::ranges::find(around.results, 4000, &bench_result::bytes)->arm == "native");
}

TEST_CASE("Sizes between two gains take an arm that gains at both, or stay native") {
  bench_results b = bench_of_native(
      {{"broadcast", 1000, 10}, {"broadcast", 10000, 10}, {"broadcast", 100000, 10}});
  for (bench_result& native : b.results) {
    native.p90_s = native.median_s;
    native.runs = 10;
  }
  for (const auto& [bytes, arm, ratio, launches] :
       std::vector<std::tuple<std::int64_t, std::string, double, int>>{
           {1000, "binomial", 0.5, 6},
           {1000, "chain", 0.7, 6},
           {10000, "binomial", 0.9, 6},
           {10000, "chain", 0.8, 6},
           {10000, "pipeline", 0.4, 6},
           {30000, "native", 1, 4},
           {30000, "pipeline", 0.3, 4},  // too few launches
           {100000, "linear", 0.6, 6},
           // Two sizes of one class: no arm that gains at one of them only.
           {500000, "native", 1, 6},
           {500000, "chain", 0.2, 6},
           {500000, "pipeline", 0.9, 6},
           {420000, "native", 1, 6},
           {420000, "chain", 1.1, 6},
           {420000, "pipeline", 0.9, 6}})
    b.results.push_back({.collective = "broadcast",
                         .bytes = bytes,
                         .arm = arm,
                         .median_s = ratio * 1e-5,
                         .p90_s = ratio * 1e-5,
                         .runs = 10,
                         .ratio_to_native = ratio,
                         .launch_ratios = std::vector<double>(std::size_t(launches), ratio)});
  const std::vector<internal::libraries::named_bench> benches{{"bench_4.json", b}};
  std::map<std::int64_t, std::string> variant_at;
  for (const std::int64_t bytes : {1000, 3000, 10000, 30000, 100000, 500000})
    for (const knowledge::planned_calls& c : plan_of(benches))
      if (c.from_bytes <= bytes && bytes <= *c.to_bytes) variant_at[bytes] = c.variant;
  CHECK(variant_at == std::map<std::int64_t, std::string>{{1000, "binomial"},
                                                          {3000, "chain"},
                                                          {10000, "pipeline"},
                                                          {100000, "linear"},
                                                          {500000, "pipeline"}});
  b.results.push_back(b.results.back());
  b.results.back().bytes = 100000;
  b.results.back().arm = "pipeline";
  b.results.back().ratio_to_native = 0.7;
  b.results.back().launch_ratios.assign(6, 0.7);
  std::string between;
  for (const knowledge::planned_calls& c :
       plan_of(std::vector<internal::libraries::named_bench>{{"bench_4.json", b}}))
    if (c.from_bytes <= 30000 && 30000 <= *c.to_bytes) between = c.variant;
  CHECK(between == "pipeline");
}
