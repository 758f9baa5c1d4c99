// SPDX-License-Identifier: BSL-1.0
#include "railpass/select/lockstep/exclusions.hpp"

#include "support/catch.hpp"

using namespace railpass;
using namespace railpass::select;

namespace {

const algorithm& ring = *find_algorithm(collective::all_reduce, "ring");
const algorithm& native = *find_algorithm(collective::all_reduce, "native");

bool is_excluded(const exclusion& e, const excludable_call& c, const algorithm& a = ring) {
  exclusions table;
  REQUIRE(table.add(e));
  CHECK(table.has(a, c) == excludes(e, a, c));
  return table.has(a, c);
}

}  // namespace

TEST_CASE("An exclusion holds for its algorithm and for all calls that it names") {
  CHECK(is_excluded({.what = &ring}, {.bytes = 8, .num_ranks = 4}));
  CHECK_FALSE(is_excluded({.what = &ring}, {.bytes = 8, .num_ranks = 4}, native));
  CHECK(is_excluded({.what = &native}, {}, native));

  const exclusion few{.what = &ring, .from_ranks = 3, .to_ranks = 5};
  CHECK_FALSE(is_excluded(few, {.num_ranks = 2}));
  CHECK(is_excluded(few, {.num_ranks = 3}));
  CHECK(is_excluded(few, {.num_ranks = 5}));
  CHECK_FALSE(is_excluded(few, {.num_ranks = 6}));

  const exclusion on_hosts{.what = &ring, .from_hosts = 2};
  CHECK_FALSE(is_excluded(on_hosts, {.num_hosts = 1}));
  CHECK(is_excluded(on_hosts, {.num_hosts = 1000}));

  const exclusion of_users{.what = &ring, .operation = operation_class::user_ordered};
  CHECK(is_excluded(of_users, {.operation = operation_class::user_ordered}));
  CHECK_FALSE(is_excluded(of_users, {.operation = operation_class::builtin}));
}

// All calls of a context take the same arm.
TEST_CASE("An exclusion holds for all sizes of a size class, or for none") {
  const exclusion e{.what = &ring, .from_bytes = 100, .to_bytes = 300};
  CHECK_FALSE(is_excluded(e, {.bytes = 63}));
  CHECK(is_excluded(e, {.bytes = 64}));
  CHECK(is_excluded(e, {.bytes = 511}));
  CHECK_FALSE(is_excluded(e, {.bytes = 512}));
}

TEST_CASE("Sizes do not matter where not all ranks know them") {
  const algorithm& pairwise = *find_algorithm(collective::all_to_allv, "pairwise");
  CHECK(is_excluded({.what = &pairwise, .from_bytes = 1 << 20}, {.bytes = 0}, pairwise));
  const algorithm& barrier = *find_algorithm(collective::barrier, "native");
  CHECK(is_excluded({.what = &barrier, .from_bytes = 1 << 20}, {.bytes = 4}, barrier));
}

TEST_CASE("Ranks that add the same exclusions in any order have the same table") {
  const exclusion one{.what = &ring, .to_ranks = 8}, other{.what = &native, .from_bytes = 4096};
  exclusions a, b;
  CHECK(a.empty());
  a.add(one);
  CHECK_FALSE(a.has_native());
  a.add(other);
  a.add(one);
  b.add(other);
  CHECK(a.mark() != b.mark());
  b.add(one);
  CHECK(a == b);
  CHECK(a.mark() == b.mark());
  CHECK(a.all().size() == 2);
  CHECK(a.has_native());
}

TEST_CASE("A full table refuses further exclusions and keeps those that it has") {
  exclusions table;
  for (int i = 1; i <= int(exclusions::most); ++i)
    REQUIRE(table.add({.what = &ring, .from_ranks = i, .to_ranks = i}));
  CHECK_FALSE(table.add({.what = &ring, .from_ranks = 1000}));
  CHECK(table.add({.what = &ring, .from_ranks = 7, .to_ranks = 7}));
  CHECK(table.all().size() == exclusions::most);
}

TEST_CASE("An exclusion survives its words but for the ends of its size classes") {
  for (const exclusion& e : {exclusion{.what = &ring}, exclusion{.what = &native,
                                                       .operation = operation_class::none,
                                                       .from_bytes = 4096,
                                                       .to_bytes = 8191,
                                                       .from_ranks = 2,
                                                       .to_ranks = 2000000000,
                                                       .from_hosts = 3,
                                                       .to_hosts = 3}}) {
    const exclusion back = exclusion_of(words_of(e));
    CHECK(words_of(back) == words_of(e));
    CHECK(text_of(back) == text_of(e));
    CHECK(back.operation == e.operation);
  }
}

TEST_CASE("An exclusion says what it names") {
  CHECK(text_of({.what = &ring}) == "all_reduce ring");
  CHECK(text_of({.what = &native,
                 .operation = operation_class::builtin,
                 .from_bytes = 65536,
                 .from_ranks = 2,
                 .to_ranks = 8}) ==
        "all_reduce native, operations builtin, 64KiB or more, 2 to 8 ranks");
  CHECK(text_of({.what = &ring, .to_bytes = 1023, .from_hosts = 4, .to_hosts = 4}) ==
        "all_reduce ring, 0 to 1023, 4 hosts");
}
