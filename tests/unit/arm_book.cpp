// SPDX-License-Identifier: BSL-1.0
#include "railpass/select/policy/arm_book.hpp"

#include "support/catch.hpp"

#include <limits>

using namespace railpass::select;

namespace {

void add(arm_book& book, const std::vector<observation>& merged) {
  book.add(merged, book.calls() + std::ssize(merged));
}

}  // namespace

TEST_CASE("a book has an arm's samples of the latest synchronisation and sums over all") {
  arm_book book;
  CHECK(book.find(3) == nullptr);
  add(book, {{.arm = 3, .seconds = 4, .after_itself = false},
             {.arm = 3, .seconds = 2},
             {.arm = 1, .seconds = 5}});
  add(book, {{.arm = 1, .seconds = 7}, {.arm = 1, .seconds = 9}});
  const arm_times &first = *book.find(3), &second = *book.find(1);
  CHECK(book.calls() == 5);
  CHECK(book.calls_before() == 3);
  CHECK(book.merged().size() == 2);
  CHECK(book.find_latest(3) == nullptr);
  CHECK(book.find_latest(1) == &second);
  CHECK(first.all_s == std::vector<double>{4, 2});
  CHECK(first.after_itself_s == std::vector<double>{2});
  CHECK(first.level_s == 2);  // of the call after itself
  CHECK(first.level_before_s == 0);
  CHECK(first.last_seen == 3);
  CHECK(second.level_s == 7);
  CHECK(second.level_before_s == 5);
  CHECK(second.sums.samples == 3);
  CHECK(second.sums.mean_s() == 7);
}

TEST_CASE("times that are not positive and finite do not count") {
  arm_book book;
  add(book, {{0, 0},
             {0, -1},
             {0, std::numeric_limits<double>::infinity()},
             {0, std::numeric_limits<double>::quiet_NaN()}});
  CHECK(book.find(0) == nullptr);
  CHECK(book.merged().empty());
}

TEST_CASE("the usual time is that of the latest samples") {
  arm_book book;
  for (int i = 1; i <= 20; ++i) add(book, {{.arm = 0, .seconds = double(i)}});
  const arm_times& a = *book.find(0);
  CHECK(a.usual_s() == 18);
  CHECK(a.latest_few_s() == std::vector<double>{20, 19, 18, 17, 16});
  CHECK(a.latest_s().size() == arm_times::many);
  CHECK(std::ranges::min(a.latest_s()) == 6);
}

TEST_CASE("slow calls count for an arm that clearly has more than all other arms") {
  arm_book book;
  const auto play = [&](int arm, double slow_s) {
    for (int i = 0; i < 10; ++i)
      add(book, {{.arm = arm, .seconds = 1},
                 {.arm = arm, .seconds = 1},
                 {.arm = arm, .seconds = 1},
                 {.arm = arm, .seconds = slow_s}});
  };
  play(0, 5);
  CHECK(book.find(0)->slow.slow == 10);
  CHECK(book.find(0)->slow.excess == 30);  // beyond twice the usual time
  play(1, 1);
  CHECK(book.tail(0) == Approx(30.0 / 37));
  CHECK(book.tail(1) == 0);
  play(1, 5);
  play(1, 5);
  CHECK(book.tail(0) == 0);
}
