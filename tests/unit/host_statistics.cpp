// SPDX-License-Identifier: BSL-1.0
//
// Ledgers of ranks, and the hosts that they name.
#include "railpass/select/statistics/host_statistics.hpp"

#include "support/catch.hpp"
#include "support/seed.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <utility>

using namespace railpass;
using namespace railpass::select;

namespace {

// A call of a rank adds these times to 1 ms outside of calls and 1 ms inside.
struct doing {
  double late_s = 0;
  double starved_share = 0;
  bool knows_starved = true;
};
using plan = std::function<doing(int rank, int call)>;

rank_ledger ledger_of(int rank, int calls, const plan& p) {
  rank_ledger l;
  double starved_s = 0, passed_s = 0;
  for (int i = 0; i < calls; ++i) {
    const doing now = p(rank, i);
    const timed_stay s{.came_s = 1, .left_s = 1.001, .next_s = 1.002 + now.late_s};
    passed_s += s.next_s - s.came_s;
    starved_s += now.starved_share * (s.next_s - s.came_s);
    if (!l.add(s)) continue;
    l.end_batch(now.knows_starved ? passed_s : 0, starved_s);
    starved_s = passed_s = 0;
  }
  return l;
}

std::vector<host_statistics> hosts_after(int num_hosts, int ranks_per_host, int calls,
                                         const plan& p) {
  std::vector<rank_ledger> ledgers;
  std::vector<int> host_of_rank;
  for (int r = 0; r < num_hosts * ranks_per_host; ++r) {
    ledgers.push_back(ledger_of(r, calls, p));
    host_of_rank.push_back(r / ranks_per_host);
  }
  return hosts_of(ledgers, host_of_rank, std::vector<link_times>(std::size_t(num_hosts)));
}

// Seconds of an exchange between two hosts.
using exchange = std::function<double(int host, int other)>;

std::vector<host_statistics> hosts_with_links(int num_hosts, const exchange& seconds,
                                              double starved_share_of_last = 0) {
  std::vector<rank_ledger> ledgers;
  std::vector<int> host_of_rank;
  std::vector<link_times> links{std::size_t(num_hosts)};
  for (int h = 0; h < num_hosts; ++h) {
    host_of_rank.push_back(h);
    ledgers.push_back(ledger_of(h, 64, [&](int, int) {
      return doing{.starved_share = h + 1 == num_hosts ? starved_share_of_last : 0};
    }));
  }
  for (std::size_t t = 0; t < link_times::num_trials; ++t)
    for (int round = 0; round < link_rounds(num_hosts); ++round)
      for (int h = 0; h < num_hosts; ++h)
        if (const int other = link_partner(h, round, num_hosts); other != h)
          links[std::size_t(h)].add(t, seconds(h, other));
  return hosts_of(ledgers, host_of_rank, links);
}

bool is_named(const std::optional<host_difference>& d) { return d && d->is_named; }
bool is_named(const host_statistics& h) {
  return is_named(h.late_s) || is_named(h.starved_share) || is_named(h.link_factor);
}

}  // namespace

TEST_CASE("batches keep the sums of all calls and become longer") {
  const int calls = GENERATE(3, 4, 63, 64, 65, 500, 5000);
  CAPTURE(calls);
  double outside_s = 0;
  const rank_ledger l =
      ledger_of(0, calls, [&](int, int call) { return doing{.late_s = 1e-3 * (call % 7)}; });
  std::int64_t entered = 0;
  for (const ledger_batch& b : l.batches()) {
    CHECK(b.calls == l.batches().front().calls);
    entered += b.calls;
    outside_s += b.outside_s;
  }
  double expected_s = 0;
  for (int i = 0; i < entered; ++i) expected_s += 1e-3 + 1e-3 * (i % 7);
  CHECK(outside_s == Approx(expected_s));
  CHECK(l.total().calls == entered);
  CHECK(l.total().outside_s == Approx(expected_s));
  CHECK(l.batches().size() < rank_ledger::most_batches);
  if (calls >= 64) CHECK(l.batches().size() >= rank_ledger::most_batches / 2);
  if (entered > 0) CHECK(calls - entered < l.batches().front().calls);
}

TEST_CASE("differences are those of a host's mean from the mean of all other hosts") {
  const unsigned seed = test::new_seed();
  CAPTURE(seed);
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> any(0, 1e-3);
  const int num_hosts = 2 + int(random() % 4), ranks = 1 + int(random() % 3);
  std::vector<std::vector<double>> late(std::size_t(num_hosts * ranks), std::vector<double>(32));
  for (auto& of_rank : late)
    for (double& s : of_rank) s = any(random);
  const auto hosts = hosts_after(num_hosts, ranks, 32, [&](int rank, int call) {
    return doing{.late_s = late[std::size_t(rank)][std::size_t(call)]};
  });
  REQUIRE(hosts.size() == std::size_t(num_hosts));
  for (const host_statistics& h : hosts) {
    double own = 0, others = 0;
    for (int r = 0; r < num_hosts * ranks; ++r)
      for (const double s : late[std::size_t(r)])
        (r / ranks == h.host ? own : others) += s / (32.0 * ranks);
    REQUIRE(h.late_s);
    CHECK(h.late_s->value == Approx(own - others / (num_hosts - 1)).margin(1e-12));
    CHECK(h.late_s->low <= h.late_s->value);
    CHECK(h.late_s->value <= h.late_s->high);
    CHECK(h.first_rank == h.host * ranks);
    CHECK(h.num_ranks == ranks);
  }
}

TEST_CASE("a host is named for what it does, and no other host") {
  const unsigned seed = test::new_seed();
  CAPTURE(seed);
  std::mt19937 random(seed);
  std::exponential_distribution<double> noise(1 / 0.2e-3);
  const int kind = GENERATE(0, 1), bad = GENERATE(0, 3);
  CAPTURE(kind, bad);
  const auto hosts = hosts_after(4, 2, 64, [&](int rank, int) {
    doing d{.late_s = noise(random), .starved_share = 0.1};
    if (rank / 2 != bad) return d;
    if (kind == 0) d.late_s += 1e-3;
    if (kind == 1) d.starved_share = 0.5;
    return d;
  });
  for (const host_statistics& h : hosts) {
    CHECK(is_named(h.late_s) == (kind == 0 && h.host == bad));
    CHECK(is_named(h.starved_share) == (kind == 1 && h.host == bad));
  }
}

TEST_CASE("noise names a host in at most one run of a hundred") {
  std::mt19937 random(7);  // a fixed one, because one run of many would have more than its share
  std::normal_distribution<double> normal;
  constexpr int runs = 1000;
  int named = 0;
  for (int i = 0; i < runs; ++i) {
    // Batches of a host vary together, as a host that is disturbed for a while.
    const auto hosts = hosts_after(4, 1, 64, [&, phase = 0.0](int, int call) mutable {
      if (call % 8 == 0) phase = normal(random);
      return doing{.late_s = 1e-3 * std::exp(phase + 0.5 * normal(random)),
                   .starved_share = 0.5 / (1 + std::exp(-phase))};
    });
    named += std::ranges::any_of(hosts, [](const auto& h) { return is_named(h); });
  }
  CHECK(named <= runs / 100);
}

TEST_CASE("small differences are not named, however certain they are") {
  const auto hosts = hosts_after(3, 1, 64, [](int rank, int call) {
    const double bit = 1e-9 * (call / 4 % 2);
    if (rank > 0) return doing{.late_s = bit, .starved_share = 0.1};
    return doing{.late_s = 5e-5 + bit, .starved_share = 0.15};
  });
  CHECK(hosts[0].late_s->low > 0);
  CHECK(hosts[0].starved_share->low > 0);
  for (const host_statistics& h : hosts) CHECK(!is_named(h));
}

TEST_CASE("what ranks do not know, or know of different calls, is not compared") {
  const auto few = hosts_after(2, 1, 15, [](int, int) { return doing{}; });
  for (const host_statistics& h : few) CHECK(!h.late_s);

  const auto one_does_not_know =
      hosts_after(2, 1, 64, [](int rank, int) { return doing{.knows_starved = rank == 0}; });
  for (const host_statistics& h : one_does_not_know) {
    CHECK(h.late_s);
    CHECK(!h.starved_share);
  }
  const std::vector<rank_ledger> unlike{ledger_of(0, 60, [](int, int) { return doing{}; }),
                                        ledger_of(1, 64, [](int, int) { return doing{}; })};
  for (const host_statistics& h : hosts_of(unlike, std::vector{0, 1}, std::vector<link_times>(2)))
    CHECK(!h.late_s);
}

TEST_CASE("hosts meet in pairs, and no two hosts meet twice") {
  for (int num_hosts = 2; num_hosts < 70; ++num_hosts) {
    CAPTURE(num_hosts);
    std::set<std::pair<int, int>> met;
    std::vector<int> partners(std::size_t(num_hosts), 0);
    for (int round = 0; round < link_rounds(num_hosts); ++round)
      for (int h = 0; h < num_hosts; ++h) {
        const int other = link_partner(h, round, num_hosts);
        REQUIRE((other >= 0 && other < num_hosts));
        REQUIRE(link_partner(other, round, num_hosts) == h);
        if (other == h) continue;
        REQUIRE(met.insert({h, other}).second);
        ++partners[std::size_t(h)];
      }
    CHECK(std::ranges::min(partners) >= std::min(3, num_hosts - 1));
  }
}

TEST_CASE("a host is named for its slow link, and its partners are not") {
  const unsigned seed = test::new_seed();
  CAPTURE(seed);
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, 0.1);
  const int num_hosts = GENERATE(3, 4, 5, 8, 33), slow = GENERATE(0, 1, 2);
  CAPTURE(num_hosts, slow);
  const auto hosts = hosts_with_links(num_hosts, [&](int h, int other) {
    return 5e-3 * (h == slow || other == slow ? 2 : 1) * std::exp(noise(random));
  });
  for (const host_statistics& h : hosts) {
    REQUIRE(h.link_factor);
    CHECK(is_named(h) == (h.host == slow));
    CHECK(is_named(h.link_factor) == (h.host == slow));
    if (h.host == slow) CHECK(h.link_factor->value == Approx(2).epsilon(0.2));
    CHECK(h.link_factor->low > 0);
  }
}

TEST_CASE("noise of exchanges names a host in at most one run of a hundred") {
  std::mt19937 random(11);  // a fixed one, because one run of many would have more than its share
  std::normal_distribution<double> normal;
  constexpr int runs = 1000;
  int named = 0;
  for (int i = 0; i < runs; ++i) {
    const auto hosts =
        hosts_with_links(4, [&](int, int) { return 5e-3 * std::exp(0.5 * normal(random)); });
    named += std::ranges::any_of(hosts, [](const auto& h) { return is_named(h); });
  }
  CHECK(named <= runs / 100);
}

TEST_CASE("links of two hosts, and of a host without cores, stay unknown") {
  for (const host_statistics& h : hosts_with_links(2, [](int, int) { return 5e-3; }))
    CHECK(!h.link_factor);
  const auto hosts = hosts_with_links(
      4, [](int h, int other) { return h == 3 || other == 3 ? 20e-3 : 5e-3; }, 0.8);
  for (const host_statistics& h : hosts) {
    CHECK(h.link_factor.has_value() == (h.host != 3));
    CHECK(is_named(h.starved_share) == (h.host == 3));
    CHECK(!is_named(h.link_factor));
  }
}

TEST_CASE("Student's distribution has its quantiles") {
  CHECK(students_t(10, 0.05) == Approx(2.228).epsilon(0.002));
  CHECK(students_t(3, 0.01) == Approx(5.841).epsilon(0.05));
  CHECK(students_t(7, 0.002) == Approx(4.785).epsilon(0.01));
  CHECK(two_sided(students_t(5, 0.03), 5) == Approx(0.03));
}
