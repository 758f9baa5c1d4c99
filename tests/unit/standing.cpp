// SPDX-License-Identifier: BSL-1.0
#include "railpass/select/lockstep/standing.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <initializer_list>

using railpass::select::after;
using railpass::select::is_native;
using railpass::select::standing;
using railpass::select::turn;

namespace {

constexpr standing all_standings[] = {standing::undecided, standing::tuned,  standing::stopping,
                                      standing::apart,     standing::native, standing::ended};
constexpr turn all_turns[] = {turn::agreement, turn::refusal,   turn::failure,
                              turn::fallback,  turn::departure, turn::end};

standing after_all(std::initializer_list<turn> turns) {
  standing now = standing::undecided;
  for (const turn t : turns) now = after(now, t);
  return now;
}

}  // namespace

TEST_CASE("A turn that has been taken changes nothing when it is taken again") {
  for (const standing now : all_standings)
    for (const turn what : all_turns) CHECK(after(after(now, what), what) == after(now, what));
}

TEST_CASE("Tuning begins by an agreement alone and never begins again") {
  for (const standing now : all_standings)
    for (const turn what : all_turns)
      if (after(now, what) == standing::tuned && now != standing::tuned) {
        CHECK(now == standing::undecided);
        CHECK(what == turn::agreement);
      }
}

TEST_CASE("What has ended stays ended, and calls that fail become native only at the end") {
  for (const turn what : all_turns) {
    CHECK(after(standing::ended, what) == standing::ended);
    CHECK(after(standing::apart, what) == (what == turn::end ? standing::ended : standing::apart));
  }
}

TEST_CASE("After a failure calls become native by the ranks' agreement alone") {
  for (const turn what : all_turns)
    CHECK(is_native(after(standing::stopping, what)) ==
          (what == turn::fallback || what == turn::end));
}

TEST_CASE("A communicator goes through these states") {
  using enum turn;
  CHECK(after_all({}) == standing::undecided);
  CHECK(after_all({refusal}) == standing::native);
  CHECK(after_all({agreement}) == standing::tuned);
  CHECK(after_all({agreement, refusal}) == standing::native);
  CHECK(after_all({agreement, failure}) == standing::stopping);
  CHECK(after_all({agreement, failure, fallback}) == standing::native);
  CHECK(after_all({agreement, failure, departure}) == standing::apart);
  CHECK(after_all({agreement, departure, fallback}) == standing::apart);
  CHECK(after_all({agreement, failure, fallback, failure}) == standing::native);
  CHECK(after_all({agreement, failure, fallback, departure}) == standing::apart);
  CHECK(after_all({agreement, end}) == standing::ended);
}
