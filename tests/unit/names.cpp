// SPDX-License-Identifier: BSL-1.0
//
// What is said of names that are not known.
#include "railpass/base/names.hpp"

#include "railpass/select/policy/random.hpp"
#include "support/catch.hpp"

#include <array>
#include <functional>

using namespace railpass;

TEST_CASE("letters apart are counted as by trying everything") {
  // The shortest way of one word to the other, step by step; each place is edited at most once.
  const std::function<std::size_t(std::string_view, std::string_view)> by_trying =
      [&](std::string_view a, std::string_view b) -> std::size_t {
    if (a.empty() || b.empty()) return a.size() + b.size();
    std::size_t least = by_trying(a.substr(1), b.substr(1)) + (a[0] == b[0] ? 0 : 1);
    least = std::min(least, by_trying(a.substr(1), b) + 1);
    least = std::min(least, by_trying(a, b.substr(1)) + 1);
    if (a.size() > 1 && b.size() > 1 && a[0] == b[1] && a[1] == b[0])
      least = std::min(least, by_trying(a.substr(2), b.substr(2)) + 1);
    return least;
  };
  select::random_stream random(3);
  const auto word = [&] {
    std::string result(std::size_t(random.below(6)), ' ');
    for (char& c : result) c = char('a' + random.below(3));
    return result;
  };
  for (int i = 0; i < 1000; ++i) {
    const std::string a = word(), b = word();
    CAPTURE(a, b);
    REQUIRE(letters_apart(a, b) == by_trying(a, b));
  }
}

TEST_CASE("names are the same however MPI's users write them") {
  for (const char* const one :
       {"neighbor_all_to_allw", "MPI_Neighbor_alltoallw", "NeighborAllToAllW"})
    CHECK(is_same_name(one, "neighbor_all_to_allw"));
  for (const char* const one : {"neighbor_all_to_allv", "all_to_allw", "MPI_", ""})
    CHECK_FALSE(is_same_name(one, "neighbor_all_to_allw"));
}

TEST_CASE("the name that was meant is told, and none where none is like it") {
  constexpr std::array<std::string_view, 4> known{"broadcast", "barrier", "all_reduce", "scan"};
  CHECK(did_you_mean("brodcast", known) == "; did you mean 'broadcast'?");
  CHECK(did_you_mean("barreir", known) == "; did you mean 'barrier'?");
  CHECK(did_you_mean("san", known) == "; did you mean 'scan'?");
  CHECK(did_you_mean("teleport", known).empty());
  CHECK(did_you_mean("", known).empty());
  CHECK(expected_one_of("scam", known) ==
        "'scam': expected one of broadcast, barrier, all_reduce, scan; did you mean 'scan'?");
  CHECK(expected_one_of("x", std::array<std::string_view, 1>{"native"}) ==
        "'x': expected one of native");
}
