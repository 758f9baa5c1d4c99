// SPDX-License-Identifier: BSL-1.0
//
// Which arm the calls of a context run by its plan, and which arm ran before.
#include "railpass/select/lockstep/followed_context.hpp"

#include "support/catch.hpp"

#include <array>
#include <vector>

using namespace railpass::select;

namespace {

void activate(followed_context& s, const epoch_plan& p) {
  std::array<std::int32_t, plan_words::most> words{};
  plan_words::write(p, 0, words);
  s.activate(words);
}

// The next call, as the lockstep makes it.
int call(followed_context& s) {
  if (s.calls != s.next_event) {
    ++s.calls;
    return s.incumbent;
  }
  const int arm = s.take_exploration().value_or(s.incumbent);
  if (s.calls >= s.next_timed) s.schedule_timed();
  s.end_eventful(arm);
  return arm;
}

std::vector<int> calls(followed_context& s, int n) {
  std::vector<int> arms;
  for (int i = 0; i < n; ++i) arms.push_back(call(s));
  return arms;
}

}  // namespace

TEST_CASE("a list runs once, or again after every period") {
  followed_context s{.id = {}};
  activate(s, {.incumbent = 1, .explore = {{1, 2}, {2, 3}}, .length = 8, .timed_stride = 3});
  CHECK(calls(s, 8) == std::vector{1, 2, 3, 1, 1, 1, 1, 1});
  activate(s, {.incumbent = 1, .explore = {{1, 2}, {2, 3}}, .timed_stride = 0, .period = 4});
  CHECK(calls(s, 8) == std::vector{1, 2, 3, 1, 1, 2, 3, 1});
}

TEST_CASE("one call in a stride is timed, at no fixed distance") {
  followed_context s{.id = {}};
  activate(s, {.incumbent = 1, .timed_stride = 10});
  std::vector<std::int64_t> distances(20, 0);
  int timed = 0;
  for (std::int64_t last = 0; s.calls < 10000;) {
    if (s.calls == s.next_event) {
      ++timed;
      if (s.calls > 0) ++distances.at(std::size_t(s.calls - last));
      last = s.calls;
    }
    call(s);
  }
  CHECK(timed == Approx(1000).epsilon(0.1));
  for (std::size_t d = 0; d < distances.size(); ++d)
    CHECK((distances[d] > 0) == (d >= 5 && d < 15));
}

TEST_CASE("the arm before a call is known across explorations and plans") {
  followed_context s{.id = {}};
  activate(s, {.incumbent = 1, .explore = {{1, 2}}, .length = 4, .timed_stride = 0});
  std::vector<int> before, ran;
  for (int i = 0; i < 8; ++i) {
    if (i == 4) activate(s, {.incumbent = 3, .explore = {{2, 2}}, .timed_stride = 0});
    before.push_back(s.arm_before());
    ran.push_back(call(s));
  }
  for (std::size_t i = 1; i < ran.size(); ++i) CHECK(before[i] == ran[i - 1]);
}

TEST_CASE("shares of arms are those of the plan's calls") {
  followed_context s{.id = {}};
  activate(s, {.incumbent = 1, .explore = {{1, 2}, {2, 2}, {3, 1}}, .length = 10});
  CHECK(s.share(1) == Approx(0.8));
  CHECK(s.share(2) == Approx(0.2));
  CHECK(s.share(4) == 0);
  (void)calls(s, 4);  // the list is exhausted
  CHECK(s.share(1) == 1);
  CHECK(s.share(2) == 0);
}

TEST_CASE("the incumbent has settled once plans have kept it and try little else, or as they say") {
  const epoch_plan quiet{.incumbent = 1, .explore = {{1, 2}, {9, 3}}, .length = 8};
  followed_context s{.id = {}};
  CHECK_FALSE(s.is_settled());
  for (int plan = 0; plan < 4; ++plan) {
    CHECK_FALSE(s.is_settled());
    activate(s, quiet);
    CHECK(s.is_settled() == (plan == 3));
    (void)calls(s, 8);
  }
  // Another incumbent, or one in three calls that tries others.
  activate(s, {.incumbent = 2, .length = 8});
  CHECK_FALSE(s.is_settled());
  activate(s, {.incumbent = 2, .length = 64});
  CHECK(s.is_settled());
  activate(s, {.incumbent = 2, .explore = {{0, 1}, {1, 1}, {2, 1}}, .length = 9});
  CHECK_FALSE(s.is_settled());
  activate(s, {.incumbent = 2, .explore = {{0, 1}, {1, 1}, {2, 1}}, .length = 9, .settled = true});
  CHECK(s.is_settled());
}
