// SPDX-License-Identifier: BSL-1.0
// After the rounds each rank knows the words of each other rank exactly once, and no rank sends
// itself a message or sends a rank two messages in one round.
#include "lib/tuner/agreement_round.hpp"

#include "support/catch.hpp"

#include <set>
#include <vector>

using railpass::internal::agreement_round;

TEST_CASE("an agreement counts the words of each rank once") {
  for (int p = 1; p <= 600; ++p) {
    CAPTURE(p);
    // How often the rank knows the words of the rank so many ranks before; all ranks are alike.
    std::vector<int> known(std::size_t(p), 0);
    for (int unit = agreement_round::first_unit(p - 1); unit > 0; unit /= agreement_round::radix) {
      const agreement_round round(p - 1, unit);
      std::vector<int> more = known;
      std::set<int> peers;
      for (int i = 0; i < round.messages(); ++i) {
        REQUIRE(round.distance(i) > 0);
        REQUIRE(round.distance(i) < p);
        REQUIRE(peers.insert(round.distance(i)).second);
        for (int far = 0; far + round.distance(i) < p; ++far)
          more[std::size_t(far + round.distance(i))] +=
              far == 0 ? int(round.has_own(i)) : known[std::size_t(far)];
      }
      known = more;
    }
    CHECK(known[0] == 0);
    for (int far = 1; far < p; ++far) CHECK(known[std::size_t(far)] == 1);
  }
}
