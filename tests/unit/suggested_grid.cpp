// SPDX-License-Identifier: BSL-1.0
#include "models/halo.hpp"
#include "support/catch.hpp"

#include <array>
#include <cmath>
#include <optional>
#include <random>

using namespace railpass;

namespace {

machine_model slow_between_hosts() {
  machine_model m;
  m.same_node = hockney_link(1e-6, 1e-10);
  m.across_nodes = hockney_link(1e-5, 1e-9);
  return m;
}

// The time of an exchange said once more: every message looked for at both ends, over plain arrays.
double time_by_hand(const grid_query& q, std::array<int, 3> g) {
  const int p = int(q.host_of_rank.size());
  const auto place = [&](int rank) {
    return std::array{rank / (g[1] * g[2]), rank / g[2] % g[1], rank % g[2]};
  };
  std::vector<double> rank_s(std::size_t(p), 0), host_s(std::size_t(p), 0);
  double way_s = 0;
  for (int a = 0; a < p; ++a)
    for (int dx = -1; dx <= 1; ++dx)
      for (int dy = -1; dy <= 1; ++dy)
        for (int dz = -1; dz <= 1; ++dz) {
          const std::array step{dx, dy, dz};
          const int crossed = (dx != 0) + (dy != 0) + (dz != 0);
          if (crossed == 0 || (crossed > 1 && !q.corners)) continue;
          const std::array from = place(a);
          std::array<int, 3> to{};
          double bytes = q.element_bytes;
          bool there = true;
          for (std::size_t k = 0; k < 3; ++k) {
            to[k] = from[k] + step[k];
            if (to[k] < 0 || to[k] >= g[k]) {
              there = there && q.periodic[k];
              to[k] = (to[k] + g[k]) % g[k];
            }
            std::int64_t begin = 0, end = 0;  // of the block: the first ones are larger
            for (int c = 0; c <= from[k]; ++c) {
              begin = end;
              end += q.global[k] / g[k] + (c < q.global[k] % g[k] ? 1 : 0);
            }
            bytes *= double(step[k] ? q.width : end - begin);
          }
          if (!there) continue;
          const int b = (to[0] * g[1] + to[1]) * g[2] + to[2];
          if (a == b) {
            rank_s[std::size_t(a)] += q.machine.copy.alpha_s + bytes * q.machine.copy.s_per_byte;
            continue;
          }
          const bool near = q.host_of_rank[std::size_t(a)] == q.host_of_rank[std::size_t(b)];
          const link_piece& link = (near ? q.machine.same_node : q.machine.across_nodes).pieces[0];
          (near ? rank_s[std::size_t(a)] : host_s[std::size_t(q.host_of_rank[std::size_t(a)])]) +=
              link.gap_s + bytes * link.gap_s_per_byte;
          way_s = std::max(way_s, link.latency_s);
        }
  return *std::max_element(rank_s.begin(), rank_s.end()) +
         *std::max_element(host_s.begin(), host_s.end()) + way_s;
}

}  // namespace

TEST_CASE("the suggested grid is the best of all, by a count of its own") {
  std::mt19937 random(7);
  const machine_model machine = slow_between_hosts();
  for (int trial = 0; trial < 150; ++trial) {
    const int p = 1 + int(random() % 24);
    grid_query q{.machine = machine};
    for (int k = 0; k < 3; ++k) {
      q.global.push_back(1 + std::int64_t(random() % (k == 2 ? 200 : 60)));
      q.periodic.push_back(random() % 2 == 0);
    }
    q.width = 1 + std::int64_t(random() % 3);
    q.element_bytes = double(1 + random() % 100);
    q.corners = random() % 2 == 0;
    const int ranks_per_host = 1 + int(random() % 5);
    for (int r = 0; r < p; ++r)
      q.host_of_rank.push_back(trial % 2 ? r / ranks_per_host
                                         : r % ((p + ranks_per_host - 1) / ranks_per_host));
    const std::vector<int> best = best_grid(q);
    double least_s = -1;
    for (int x = 1; x <= p; ++x)
      for (int y = 1; y <= p; ++y)
        for (int z = 1; z <= p; ++z) {
          if (x * y * z != p) continue;
          const std::array g{x, y, z};
          bool fits = true;
          for (std::size_t k = 0; k < 3; ++k) fits = fits && q.global[k] / g[k] >= q.width;
          if (!fits) continue;
          const double s = time_by_hand(q, g);
          if (least_s < 0 || s < least_s) least_s = s;
        }
    CAPTURE(trial, p, q.width, q.corners);
    CHECK(best.empty() == (least_s < 0));
    if (best.empty()) continue;
    CHECK(best[0] * best[1] * best[2] == p);
    CHECK(time_by_hand(q, {best[0], best[1], best[2]}) == Approx(least_s).epsilon(1e-6));
  }
}

TEST_CASE("long domains are cut across, square ones both ways") {
  const machine_model machine = slow_between_hosts();
  grid_query q{.machine = machine, .global = {100000, 100}, .periodic = {false, false}};
  q.host_of_rank.assign(8, 0);
  CHECK(best_grid(q) == std::vector<int>{8, 1});
  q.global = {100, 100000};
  CHECK(best_grid(q) == std::vector<int>{1, 8});
  q.global = {100000, 100000};
  CHECK(best_grid(q) == std::vector<int>{4, 2});
  q.host_of_rank.assign(16, 0);
  CHECK(best_grid(q) == std::vector<int>{4, 4});
  q.global = {3, 3};
  q.width = 2;
  CHECK(best_grid(q).empty());
}

TEST_CASE("of very many ranks those of some hosts are looked at, and the grid is as good") {
  const machine_model machine = slow_between_hosts();
  grid_query q{
      .machine = machine, .global = {4096, 4096, 4096, 64}, .periodic = {true, true, true, true}};
  for (int rank = 0; rank < 1 << 16; ++rank) q.host_of_rank.push_back(rank / 64);
  judge_ranks(q);
  CHECK(q.judged.size() % 64 == 0);
  CHECK((q.judged.size() >= 64 && q.judged.size() < 4096));
  q.periodic.assign(4, GENERATE(true, false));
  const std::vector<int> best = best_grid(q);
  REQUIRE(best.size() == 4);
  const auto all_s = [&](const std::vector<int>& extents) {
    grid_query all = q;
    all.judged.clear();
    return exchange_s(all, {extents, q.periodic});
  };
  CHECK(all_s(best) < 1.02 * all_s({16, 16, 16, 16}));
  CHECK(all_s(best) < 0.5 * all_s({1 << 12, 16, 1, 1}));
}

TEST_CASE(
    "what exchanges took counts where it is known, and what the model is off by there elsewhere") {
  const machine_model machine = slow_between_hosts();
  grid_query q{.machine = machine, .global = {1000, 1000}, .periodic = {false, false}};
  q.host_of_rank.assign(4, 0);
  REQUIRE(best_grid(q) == std::vector<int>{2, 2});
  const auto took = [&](std::vector<int> extents, double times_predicted, double spread) {
    return [=, &q](const process_grid& g) -> std::optional<measured_exchange> {
      if (g.extents != extents) return std::nullopt;
      return measured_exchange{std::log(exchange_s(q, g) * times_predicted), spread};
    };
  };
  // One grid alone is known: all others are off by as much.
  CHECK(best_grid(q, took({2, 2}, 5, 0.1)) == std::vector<int>{2, 2});
  CHECK(best_grid(q, took({4, 1}, 0.1, 0.1)) == std::vector<int>{2, 2});
  const auto all_but = [&](std::vector<int> slow, double spread) {
    return [=, &q](const process_grid& g) -> std::optional<measured_exchange> {
      return measured_exchange{std::log(exchange_s(q, g) * (g.extents == slow ? 20 : 1)), spread};
    };
  };
  CHECK(best_grid(q, all_but({2, 2}, 0.1)) == std::vector<int>{4, 1});
  CHECK(best_grid(q, all_but({2, 2}, 10)) == std::vector<int>{2, 2});  // nobody knows
}

TEST_CASE("lengths of messages are those of the longest on each side") {
  const machine_model machine = slow_between_hosts();
  grid_query q{.machine = machine, .global = {7, 10}, .periodic = {true, false}};
  q.host_of_rank.assign(6, 0);
  // Blocks of 7 x 4 elements at most where the second dimension is cut alone: no neighbour is met
  // across the first one but oneself.
  CHECK(message_lengths(q, {{1, 6}, q.periodic}, 14) == std::vector<std::int64_t>{0, 7 * 8});
  CHECK(message_lengths(q, {{2, 3}, q.periodic}, 14) == std::vector<std::int64_t>{4 * 8, 4 * 8});
  q.corners = true;
  CHECK(message_lengths(q, {{2, 3}, q.periodic}, 14) ==
        std::vector<std::int64_t>{4 * 8, 4 * 8, 8, 8});
  CHECK(message_lengths(q, {{2, 3}, q.periodic}, 3) == std::vector<std::int64_t>{4 * 8, 4 * 8, 16});
}
