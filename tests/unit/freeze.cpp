// SPDX-License-Identifier: BSL-1.0
//
// Plans: their choice from knowledge, their file, and the arm that each call gets.
#include "railpass/knowledge/freeze.hpp"

#include "lib/files/files.hpp"
#include "lib/tuner/plan_table.hpp"
#include "support/catch.hpp"

#include <map>

using namespace railpass;
using namespace railpass::knowledge;
using railpass::internal::plan_table;

namespace {

struct known_arm {
  double mean_s = 1e-3;
  double spread = 0.1;
  std::int64_t samples = 100;
};

experience known_of(std::string collective, std::int64_t bytes,
                    const std::map<std::string, known_arm>& arms) {
  experience e{.of = {.collective = std::move(collective), .num_ranks = 8, .bytes = bytes}};
  for (const auto& [name, a] : arms)
    e.arms.push_back({.arm = name,
                      .calls = a.samples,
                      .times = {.samples = a.samples,
                                .mean_s = a.mean_s,
                                .spread = a.spread,
                                .quantiles = {a.mean_s, a.mean_s, a.mean_s}}});
  return e;
}

planned_calls broadcasts(std::int64_t from, std::int64_t to, std::string variant) {
  return {.collective = "broadcast",
          .num_ranks = 8,
          .from_bytes = from,
          .to_bytes = to,
          .variant = std::move(variant)};
}

std::string refusal_of(const std::string& text) {
  try {
    static_cast<void>(internal::files::parse_plan(text, "p.json"));
  } catch (const error& problem) {
    return problem.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a size class gets the arm whose gain over native is surest") {
  const frozen f = freeze(std::vector{
      known_of("broadcast", 1000, {{"native", {10e-6}}, {"binomial", {8e-6}}, {"chain", {9e-6}}}),
  });
  CHECK(f.calls == std::vector{broadcasts(512, 1023, "binomial")});
  CHECK(f.left_out.empty());
}

TEST_CASE("a gain within its uncertainty is no gain") {
  const std::map<std::string, known_arm> few{{"native", {10e-6, 0.5, 4}},
                                             {"chain", {9e-6, 0.5, 4}}};
  CHECK(freeze(std::vector{known_of("broadcast", 1000, few)}).calls ==
        std::vector{broadcasts(512, 1023, "native")});
  // A single call may be lucky, and its spread is unknown.
  CHECK(freeze(std::vector{known_of("broadcast", 1000,
                                    {{"native", {10e-6, 0.3, 400}}, {"chain", {9e-6, 0, 1}}})})
            .calls == std::vector{broadcasts(512, 1023, "native")});
  // Without a time of native, nothing is known about a gain.
  CHECK(freeze(std::vector{known_of("broadcast", 1000, {{"chain", {1e-6}}})}).calls ==
        std::vector{broadcasts(512, 1023, "native")});
}

TEST_CASE("arms that this railpass does not have are left out") {
  CHECK(freeze(std::vector{known_of("broadcast", 1000,
                                    {{"native", {10e-6}}, {"of_old", {5e-6}}, {"chain", {8e-6}}})})
            .calls == std::vector{broadcasts(512, 1023, "chain")});
}

TEST_CASE("comparisons at the same time count more than means") {
  experience e = known_of("broadcast", 1000, {{"native", {10e-6}}, {"chain", {20e-6}}});
  e.arms[0].pairs = select::pair_record{.pairs = 50, .wins = 40, .gain = 0.2, .deviation = 0.01};
  REQUIRE(e.arms[0].arm == "chain");
  CHECK(freeze(std::vector{e}).calls == std::vector{broadcasts(512, 1023, "chain")});
}

TEST_CASE("Sizes between known ones take an arm that gains at both, or stay native") {
  const auto at = [](std::int64_t bytes, double binomial_s, double chain_s) {
    return known_of("broadcast", bytes,
                    {{"native", {10e-6}}, {"binomial", {binomial_s}}, {"chain", {chain_s}}});
  };
  CHECK(freeze(std::vector{at(1024, 5e-6, 6e-6), at(1 << 14, 8e-6, 7e-6)}).calls ==
        std::vector{broadcasts(1024, 2047, "binomial"), broadcasts(2048, (1 << 15) - 1, "chain")});
  CHECK(
      freeze(std::vector{at(1024, 5e-6, 20e-6), at(1 << 14, 20e-6, 7e-6)}).calls ==
      std::vector{broadcasts(1024, 2047, "binomial"), broadcasts(1 << 14, (1 << 15) - 1, "chain")});
  CHECK(freeze(std::vector{at(1024, 5e-6, 20e-6), at(1 << 14, 20e-6, 20e-6)}).calls ==
        std::vector{broadcasts(1024, 2047, "binomial"),
                    broadcasts(1 << 14, (1 << 15) - 1, "native")});
  CHECK(freeze(std::vector{at(1024, 20e-6, 20e-6), at(1 << 14, 20e-6, 20e-6)}).calls ==
        std::vector{broadcasts(1024, (1 << 15) - 1, "native")});
  // Of another shape.
  experience part = at(1 << 14, 5e-6, 5e-6);
  part.of.num_ranks = 4;
  CHECK(freeze(std::vector{at(1024, 5e-6, 5e-6), part}).calls.size() == 2);
}

TEST_CASE("neighbouring size classes with one variant are one entry, and a wide gap stays native") {
  const std::map<std::string, known_arm> good{{"native", {10e-6}}, {"binomial", {8e-6}}};
  const std::map<std::string, known_arm> bad{{"native", {10e-6}}, {"binomial", {12e-6}}};
  const frozen f =
      freeze(std::vector{known_of("broadcast", 2048, good), known_of("broadcast", 0, good),
                         known_of("broadcast", 1024, good), known_of("broadcast", 600, bad),
                         known_of("broadcast", 1 << 20, good)});
  CHECK(f.calls == std::vector{broadcasts(0, 1, "binomial"), broadcasts(512, 1023, "native"),
                               broadcasts(1024, 4095, "binomial"),
                               broadcasts(1 << 20, (2 << 20) - 1, "binomial")});
}

TEST_CASE("the problem that took most time decides for its size class") {
  experience often = known_of("broadcast", 600, {{"native", {10e-6}}, {"chain", {8e-6}}});
  experience rare = known_of("broadcast", 700, {{"native", {10e-6}}, {"binomial", {8e-6}}});
  for (arm_experience& a : often.arms) a.calls = 10000;
  CHECK(freeze(std::vector{often, rare}).calls == std::vector{broadcasts(512, 1023, "chain")});
  CHECK(freeze(std::vector{rare, often}).calls == std::vector{broadcasts(512, 1023, "chain")});
}

TEST_CASE("where only pairs of ranks know the size, calls stay native, and are named") {
  const frozen f = freeze(
      std::vector{known_of("all_to_allv", 100, {{"native", {10e-6}}, {"pairwise", {8e-6}}}),
                  known_of("all_to_allv", 1 << 20, {{"native", {10e-3}}, {"scattered", {8e-3}}})});
  CHECK(f.calls.empty());
  CHECK(f.left_out == std::vector<std::string>{
                          "all_to_allv stays native: no single rank knows the sizes of its calls"});
}

TEST_CASE("function sets and calls between neighbours are left out, and named") {
  const frozen f = freeze(std::vector{known_of("step", 8, {{"native", {1e-6}}}),
                                      known_of("step", 64, {{"native", {1e-6}}})});
  CHECK(f.calls.empty());
  CHECK(f.left_out.size() == 1);
}

TEST_CASE("a plan survives its file") {
  plan p{.machine = {.num_hosts = 1, .cores_per_host = 4, .cpu_model = "x", .mpi_library = "y"},
         .written_at = "2026-01-31T12:00:00Z",
         .calls = {broadcasts(0, 1023, "pipeline+segment_bytes=8KiB"),
                   {.collective = "all_reduce",
                    .operation = "builtin",
                    .num_ranks = 64,
                    .ranks_per_node = 16,
                    .rails = "eth1",
                    .from_bytes = 4,
                    .variant = "ring"}}};
  CHECK(internal::files::parse_plan(internal::files::to_json(p), "p.json") == p);
}

TEST_CASE("a wrong plan is refused with its place") {
  const std::string start =
      R"({"format": "railpass plan", "version": 1, "machine_id": {"num_hosts": 1, "cores_per_host": 1,
          "cpu_model": "", "mpi_library": ""}, "written_at": "2026-01-31T12:00:00Z", "calls": [)";
  const auto refused = [&](std::string collective, std::string sizes, std::string variant) {
    return refusal_of(start + R"({"collective": ")" + collective +
                      R"(", "operation": "none", "num_ranks": 8, "ranks_per_node": 1, )" + sizes +
                      R"(, "variant": ")" + variant + R"("}]})");
  };
  CHECK(refused("broadcast", R"("from_bytes": 0)", "binomial").empty());
  CHECK_THAT(refused("bcast", R"("from_bytes": 0)", "binomial"),
             ContainsSubstring("calls[0].collective"));
  CHECK_THAT(refused("broadcast", R"("from_bytes": 8, "to_bytes": 7)", "binomial"),
             ContainsSubstring("calls[0].to_bytes"));
  CHECK_THAT(refused("broadcast", R"("from_bytes": 0)", "binomal"),
             ContainsSubstring("calls[0].variant"));
  CHECK_THAT(refused("all_to_allv", R"("from_bytes": 1)", "linear"),
             ContainsSubstring("pairs of ranks"));
}

TEST_CASE("a communicator finds the arms of its shape") {
  plan p{.calls = {broadcasts(512, 1023, "binomial"), broadcasts(1024, 2047, "native")}};
  p.calls.push_back(p.calls[0]);
  p.calls.back().ranks_per_node = 4;
  p.calls.back().variant = "chain";
  p.calls.push_back(p.calls[0]);
  p.calls.back().rails = "eth1";
  p.calls.back().variant = "linear";
  const auto arm_of = [&](int num_ranks, int ranks_per_node, bool over_rails, std::int64_t bytes) {
    plan_table table(p, num_ranks, "eth1");
    table.keep(ranks_per_node, over_rails);
    const arm* const found =
        table.find(collective::broadcast, select::operation_class::none, bytes);
    return found ? name_of(*found) : "native";
  };
  CHECK(arm_of(8, 1, false, 512) == "binomial");
  CHECK(arm_of(8, 1, false, 1023) == "binomial");
  CHECK(arm_of(8, 1, false, 511) == "native");
  CHECK(arm_of(8, 1, false, 1024) == "native");
  CHECK(arm_of(8, 4, false, 600) == "chain");
  CHECK(arm_of(8, 1, true, 600) == "linear");
  CHECK(arm_of(8, 2, false, 600) == "native");
  CHECK(arm_of(4, 1, false, 600) == "native");
  CHECK(plan_table::has_any(p, 8));
  CHECK_FALSE(plan_table::has_any(p, 4));
}
