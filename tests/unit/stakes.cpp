// SPDX-License-Identifier: BSL-1.0
//
// In which calls so much is at stake that their communicator begins to be tuned at once.
#include "railpass/knowledge/stakes.hpp"

#include "support/catch.hpp"

#include <cstdint>
#include <string>
#include <vector>

using namespace railpass;
using namespace railpass::knowledge;

namespace {

arm_experience taking(const std::string& arm, double seconds, std::int64_t calls) {
  return {.arm = arm,
          .calls = calls,
          .times = {.samples = calls, .mean_s = seconds, .quantiles = {.median_s = seconds}}};
}

experience of(const std::string& collective, std::int64_t bytes, double native_s, double best_s,
              std::int64_t calls = 100) {
  return {.of = {.collective = collective, .num_ranks = 4, .ranks_per_node = 2, .bytes = bytes},
          .arms = {taking("native", native_s, calls), taking("pairwise", best_s, calls)}};
}

stakes known(const std::vector<experience>& all) { return stakes::of_knowledge(all, 4, 2); }

}  // namespace

TEST_CASE("nothing is at stake where not all ranks are known to run railpass") {
  for (const collective op : all_collectives) CHECK(!stakes().are_high(op, std::int64_t{1} << 40));
}

TEST_CASE("without knowledge the size tells, where all ranks know it") {
  const stakes sizes = stakes::of_sizes(false), on_one_host = stakes::of_sizes(true);
  for (const collective op : {collective::broadcast, collective::all_reduce, collective::reduce,
                              collective::all_gather, collective::all_to_all, collective::scan}) {
    CHECK(sizes.are_high(op, 262144));
    CHECK(sizes.are_high(op, std::int64_t{1} << 60));
    CHECK(!sizes.are_high(op, 262143));
    CHECK(!sizes.are_high(op, 0));
    CHECK(on_one_host.are_high(op, 1 << 20));
    CHECK(!on_one_host.are_high(op, (1 << 20) - 1));
  }
  for (const collective op : {collective::gatherv, collective::scatterv, collective::all_gatherv,
                              collective::reduce_scatter, collective::all_to_allv,
                              collective::all_to_allw, collective::barrier})
    CHECK(!sizes.are_high(op, std::int64_t{1} << 30));
}

TEST_CASE("knowledge tells of sizes that it has, by what native takes beyond the best arm") {
  const stakes told =
      known({of("all_to_all", 4096, 900e-6, 100e-6), of("all_to_all", 1 << 20, 900e-6, 899e-6),
             of("broadcast", 4096, 20e-6, 10e-6), of("all_to_allv", 1 << 20, 900e-6, 100e-6)});
  CHECK(told.are_high(collective::all_to_all, 4096));
  CHECK(told.are_high(collective::all_to_all, 8191));
  CHECK(!told.are_high(collective::all_to_all, 8192));
  CHECK(!told.are_high(collective::all_to_all, 1 << 20));
  CHECK(told.are_high(collective::all_to_all, 1 << 21));
  CHECK(!told.are_high(collective::broadcast, 4096));
  CHECK(told.are_high(collective::broadcast, 1 << 20));
  CHECK(!told.are_high(collective::all_to_allv, 1 << 20));
}

TEST_CASE("a run that was too short to find a faster arm does not keep the next one from trying") {
  CHECK(known({of("broadcast", 1 << 20, 900e-6, 950e-6, 4)})
            .are_high(collective::broadcast, 1 << 20));
  CHECK(!known({of("broadcast", 1 << 20, 900e-6, 950e-6, 50)})
             .are_high(collective::broadcast, 1 << 20));
  experience only_native = of("broadcast", 1 << 20, 900e-6, 950e-6);
  only_native.arms.pop_back();
  CHECK(known({only_native}).are_high(collective::broadcast, 1 << 20));
}

TEST_CASE("ranks of one host have less at stake") {
  CHECK(stakes::of_knowledge({}, 4, 2).are_high(collective::broadcast, 300000));
  CHECK(!stakes::of_knowledge({}, 4, 4).are_high(collective::broadcast, 300000));
}

TEST_CASE("what other ranks took, or ranks that were further apart, tells nothing") {
  const std::vector<experience> all{of("broadcast", 4096, 900e-6, 100e-6)};
  CHECK(stakes::of_knowledge(all, 4, 2).are_high(collective::broadcast, 4096));
  CHECK(!stakes::of_knowledge(all, 8, 2).are_high(collective::broadcast, 4096));
  CHECK(!stakes::of_knowledge(all, 4, 1).are_high(collective::broadcast, 4096));
}

TEST_CASE("where one operation gains and another does not the call is worth it") {
  experience slow = of("all_reduce", 1 << 20, 900e-6, 100e-6),
             fast = of("all_reduce", 1 << 20, 900e-6, 900e-6);
  slow.of.operation = "builtin";
  fast.of.operation = "user_ordered";
  CHECK(known({slow, fast}).are_high(collective::all_reduce, 1 << 20));
  CHECK(known({fast, slow}).are_high(collective::all_reduce, 1 << 20));
}
