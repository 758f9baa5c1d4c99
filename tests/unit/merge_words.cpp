// SPDX-License-Identifier: BSL-1.0
//
// What ranks send each other in merges: what was written is what is read, over all ranks.
#include "railpass/select/lockstep/merge_words.hpp"

#include "railpass/select/lockstep/followed_context.hpp"
#include "support/catch.hpp"

#include <array>
#include <vector>

using namespace railpass::select;

namespace {

timed_sample sample_of(double seconds, std::int32_t gap_ticks = timed_sample::no_gap) {
  return {.context = 0,
          .arm = 1,
          .explored = false,
          .call = 3,
          .arm_before = 0,
          .seconds = float(seconds),
          .gap_ticks = gap_ticks};
}

}  // namespace

TEST_CASE("a report tells the extremes over the ranks") {
  const std::array mine{sample_of(1e-3, 50), sample_of(-1), sample_of(-1)};
  std::array others{sample_of(4e-3, 20), sample_of(2e-3), sample_of(-1)};
  others[0].watches_core = others[0].gave_core = true;
  merge_report report, childs;
  report.write(7, 1234, 1e-4, {}, mine, 16);
  childs.write(7, 1234, 3e-4, {.refuses_copies = true, .has_exclusions = true}, others, 16);
  std::vector<std::int32_t> received(childs.words().begin(), childs.words().end());
  received.resize(merge_report::max_words, merge_report::neutral);
  report.add(received);

  CHECK(report.agrees());
  CHECK(report.charged_s() == Approx(3e-4).epsilon(1e-3));  // in units of 100 ns
  CHECK(report.gave_core() == 1);
  CHECK(report.found().refuses_copies);
  CHECK(report.found().has_exclusions);
  CHECK_FALSE(report.found().has_device);
  const auto both = report.times(0), one = report.times(1);
  REQUIRE((both && one));
  CHECK(both->shortest_s == Approx(1e-3).epsilon(1e-5));
  CHECK(both->longest_s == Approx(4e-3).epsilon(1e-5));
  CHECK(both->shortest_gap_s.value() == Approx(20e-7));
  CHECK(both->longest_gap_s.value() == Approx(50e-7));
  CHECK(one->longest_s == Approx(2e-3).epsilon(1e-5));
  CHECK_FALSE(one->longest_gap_s);
  CHECK_FALSE(report.times(2));
}

TEST_CASE("ranks that differ are seen in the report") {
  const auto agree = [](std::int64_t call, std::int32_t state) {
    merge_report report, childs;
    report.write(7, 1234, 0, {}, {}, 16);
    childs.write(call, state, 0, {}, {}, 16);
    report.add(childs.words());
    return report.agrees();
  };
  CHECK(agree(7, 1234));
  CHECK_FALSE(agree(8, 1234));
  CHECK_FALSE(agree(7, 1235));
  CHECK_FALSE(agree(7, -1));
  merge_report alone;
  alone.write(7, -1, 0, {}, {}, 16);
  CHECK_FALSE(alone.agrees());
}

TEST_CASE("a reply holds the next merge and as many plans as fit") {
  epoch_plan full{.incumbent = 2, .length = 100, .timed_stride = 5};
  for (int i = 0; i < int(epoch_plan::max_explore); ++i) full.explore.push_back({2 * i, i});
  merge_reply reply;
  reply.begin(true);
  int added = 0;
  while (reply.add(full, added)) ++added;
  reply.set({.gap = 10, .pace = 0, .samples = 32});
  REQUIRE(added == 8);
  CHECK(reply.words().size() == 9 + 8 * plan_words::most);
  CHECK(reply.agreed());
  CHECK(reply.next().gap == 10);
  CHECK(reply.next().pace == 0);
  CHECK(reply.next().samples == 32);
  int read = 0;
  reply.for_each_plan([&](std::span<const std::int32_t> words) {
    CHECK(words[plan_words::context] == read++);
    followed_context s;
    const std::size_t used = s.activate(words);
    CHECK(s.incumbent == 2);
    CHECK(s.explored(7) == exploration{14, 7});
    return used;
  });
  CHECK(read == added);

  reply.begin(false);
  reply.set({.has_device = true});
  CHECK_FALSE(reply.agreed());
  CHECK((reply.found().has_device && !reply.found().refuses_copies));
  CHECK(reply.words().size() == 9);
  reply.set({.has_exclusions = true});
  CHECK((reply.found().has_exclusions && !reply.found().has_device));
}

TEST_CASE("a plan's positions ascend, and its period is beyond the last one") {
  std::array<std::int32_t, plan_words::most> words{};
  const epoch_plan p{.explore = {{4, 1}, {4, 2}, {3, 3}}, .length = 0, .period = 2};
  REQUIRE(plan_words::write(p, 0, words) == plan_words::header + 3);
  for (int i = 0; i < 3; ++i)
    CHECK(plan_words::exploration_of(words[plan_words::header + std::size_t(i)]) ==
          exploration{4 + i, 1 + i});
  CHECK(words[plan_words::period] == 7);
  CHECK(words[plan_words::length] == 1);
  CHECK(plan_words::write(p, 0, std::span(words).first(plan_words::header + 2)) == 0);
}
