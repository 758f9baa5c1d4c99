// SPDX-License-Identifier: BSL-1.0
//
// The MPI libraries' own algorithms: which get a rule, and what the files of rules say.
#include "lib/libraries/library.hpp"
#include "railpass/base/error.hpp"
#include "support/catch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using namespace std::string_literals;
using namespace railpass;
using namespace railpass::internal;
using namespace railpass::internal::libraries;

namespace {

struct measured {
  std::string collective;
  std::int64_t bytes;
  std::string arm;
  double ratio;
  double spread = 0.01;  // of the launches' ratios
  int launches = 6;
};

named_bench bench(int num_ranks, const std::vector<measured>& rows,
                  const std::string& name = "own.json") {
  bench_results b{.machine_id = {.mpi_library = "Open MPI v4.1.4"},
                  .measured_at = "2026-11-29T07:00:00Z",
                  .num_ranks = num_ranks,
                  .ranks_per_node = num_ranks};
  for (const measured& m : rows) {
    bench_result r{.collective = m.collective,
                   .bytes = m.bytes,
                   .arm = m.arm,
                   .median_s = m.ratio * 1e-3,
                   .p90_s = 1,
                   .runs = 60,
                   .ratio_to_native = m.ratio};
    for (int i = 0; i < m.launches; ++i)
      r.launch_ratios.push_back(m.ratio + m.spread * (2.0 * i / (m.launches - 1) - 1));
    b.results.push_back(std::move(r));
    if (!is_own_algorithm(m.arm)) continue;
    const own_algorithm a{m.collective, parse_own_arm(m.arm).name,
                          std::int64_t(parse_own_arm(m.arm).name.size())};
    if (std::ranges::find(b.own_algorithms, a) == b.own_algorithms.end())
      b.own_algorithms.push_back(a);
  }
  return {name, std::move(b)};
}

std::string any(collective, const own_algorithm&, const bench_results&) { return {}; }

std::vector<rule> rules_of(const std::vector<named_bench>& files) {
  const rule_set all = rules_from(files, any);
  if (all.collectives.empty()) return {};
  REQUIRE(all.collectives.size() == 1);
  REQUIRE(all.collectives[0].ranks.size() == 1);
  return all.collectives[0].ranks[0].rules;
}

std::string said_by(const std::vector<named_bench>& files) {
  try {
    rules_from(files, any);
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

const std::vector<measured> two_sizes{{"broadcast", 1024, "native:chain", 0.5},
                                      {"broadcast", 1024, "native:ring", 0.6},
                                      {"broadcast", 4096, "native:chain", 0.9},
                                      {"broadcast", 4096, "native:ring", 0.7}};

}  // namespace

TEST_CASE("names of own arms") {
  CHECK(parse_own_arm("native:binomial") == own_arm{"binomial", 0});
  CHECK(parse_own_arm("native:binomial:32KiB") == own_arm{"binomial", 32768});
  CHECK(libraries::name_of({"binomial", 32768}) == "native:binomial:32768");
  CHECK(libraries::name_of({"binomial", 0}) == "native:binomial");
  for (const char* wrong : {"native:", "native::8", "native:chain:", "native:chain:-1", "chain"})
    CHECK_THROWS_AS(parse_own_arm(wrong), error);
}

TEST_CASE("the fastest gets the rule, between sizes one that is faster at both") {
  const std::vector<rule> rules = rules_of({bench(4, two_sizes)});
  REQUIRE(rules.size() == 2);
  CHECK(rules[0].from_bytes == 1024);
  CHECK(rules[0].to_bytes == 1024);
  CHECK(rules[0].algorithm.name == "chain");
  CHECK(rules[1].from_bytes == 1025);
  CHECK(rules[1].to_bytes == 4096);
  CHECK(rules[1].algorithm.name == "ring");
  CHECK(rules[1].ratio == 0.7);
}

TEST_CASE("a gain must be 5 % and beyond its uncertainty") {
  CHECK(rules_of({bench(4, {{"broadcast", 8, "native:chain", 0.96}})}).empty());
  CHECK(rules_of({bench(4, {{"broadcast", 8, "native:chain", 0.8, 0.21}})}).empty());
  CHECK(rules_of({bench(4, {{"broadcast", 8, "native:chain", 0.8, 0.19}})}).size() == 1);
  CHECK(rules_from(std::vector{bench(4, {{"broadcast", 8, "native:chain", 0.96}})}, any).left_out ==
        std::vector<std::string>{
            "broadcast on 4 ranks: no algorithm was shown to be faster than the default"});
}

TEST_CASE("an algorithm that some launches lack gets no rule") {
  const std::vector<rule> rules = rules_of({bench(
      4, {{"broadcast", 8, "native:chain", 0.5, 0.01, 5}, {"broadcast", 8, "native:ring", 0.7}})});
  REQUIRE(rules.size() == 1);
  CHECK(rules[0].algorithm.name == "ring");
}

TEST_CASE("our schedules never get a rule") {
  CHECK(rules_of({bench(4, {{"broadcast", 8, "chain", 0.1}, {"broadcast", 8, "native:chain", 2}})})
            .empty());
}

TEST_CASE("between sizes that disagree the default stays") {
  const std::vector<rule> rules = rules_of({bench(4, {{"broadcast", 8, "native:chain", 0.5},
                                                      {"broadcast", 64, "native:chain", 1.5},
                                                      {"broadcast", 512, "native:chain", 0.5}})});
  REQUIRE(rules.size() == 2);
  CHECK(rules[0].to_bytes == 8);
  CHECK(rules[1].from_bytes == 512);
  CHECK(rules[1].to_bytes == 512);
}

TEST_CASE("several placements of as many ranks must agree") {
  const named_bench other =
      bench(4, {{"broadcast", 1024, "native:ring", 0.9}, {"broadcast", 8192, "native:ring", 0.9}},
            "b.json");
  const std::vector<rule> rules = rules_of({bench(4, two_sizes), other});
  REQUIRE(rules.size() == 1);
  CHECK(rules[0].from_bytes == 1024);
  CHECK(rules[0].to_bytes == 4096);
  CHECK(rules[0].algorithm.name == "ring");
  CHECK(rules[0].ratio == 0.9);
}

TEST_CASE("what a library refuses is said once") {
  const auto refuse = [](collective, const own_algorithm& a, const bench_results&) {
    return std::string(a.name == "chain" ? "not here" : "");
  };
  const rule_set all = rules_from(std::vector{bench(4, two_sizes)}, refuse);
  REQUIRE(all.collectives.size() == 1);
  CHECK(all.collectives[0].ranks[0].rules[0].algorithm.name == "ring");
  CHECK(all.left_out == std::vector<std::string>{"broadcast by chain: not here"});
}

TEST_CASE("sizes at which bench had no time for some algorithms are named") {
  const auto left_out = [](const std::vector<measured>& rows) {
    return rules_from(std::vector{bench(4, rows)}, any).left_out;
  };
  CHECK(left_out(two_sizes).empty());
  CHECK(left_out({{"broadcast", 8, "native:chain", 0.5},
                  {"broadcast", 64, "native:chain", 0.5},
                  {"broadcast", 64, "native:ring:8", 0.5},
                  {"broadcast", 4096, "native", 1},
                  {"broadcast", 4096, "native:ring", 0.5}}) ==
        std::vector<std::string>{"broadcast of 4KiB on 4 ranks by 2 more arms: bench had time for "
                                 "them in too few launches (see --budget)"});
  CHECK(left_out({{"broadcast", 8, "native:chain", 0.5},
                  {"broadcast", 8, "native:ring", 0.5, 0.01, 5}}) ==
        std::vector<std::string>{"broadcast of 8 on 4 ranks by 1 more arms: bench had time for "
                                 "them in too few launches (see --budget)"});
}

TEST_CASE("files that cannot carry rules are named") {
  CHECK(said_by({bench(4, {{"broadcast", 8, "native:chain", 0.5, 0.1, 5}})}) ==
        "own.json: results: too few launches (5); a rule needs at least 6: run railpass bench "
        "--launches 6");
  CHECK(said_by({bench(4, {{"broadcast", 8, "chain", 0.5}})})
            .starts_with("own.json: results: no time of the MPI library's own algorithms"));
  named_bench without_native = bench(4, two_sizes);
  without_native.bench.results[0].ratio_to_native.reset();
  CHECK(said_by({without_native}).starts_with("own.json: results: no time of the arm native"));
  named_bench other = bench(8, two_sizes, "b.json");
  other.bench.machine_id.mpi_library = "Open MPI v5.0.9";
  CHECK(said_by({bench(4, two_sizes), other}) ==
        "b.json: measured with 'Open MPI v5.0.9', but own.json with 'Open MPI v4.1.4'");
  named_bench numberless = bench(4, two_sizes);
  numberless.bench.own_algorithms.clear();
  CHECK(said_by({numberless}) ==
        "own.json: own_algorithms: expected the number of 'native:chain' of broadcast");
}

namespace {

const std::string chain = "5", ring = "4";  // bench() numbers algorithms by their names' lengths

// What Open MPI does with a file of rules (coll_tuned_dynamic_file.c, coll_tuned_dynamic_rules.c).
class open_mpi {
 public:
  explicit open_mpi(const std::string& text, int version) : version_(version) {
    std::string numbers;
    bool comment = false;
    for (const char c : text) {
      comment = c == '#' || (comment && c != '\n');
      if (!comment) numbers += c;
    }
    std::istringstream in(numbers);
    const auto next = [&] {
      long value = -1;
      REQUIRE(in >> value);
      return value;
    };
    for (long c = next(); c > 0; --c) {
      auto& sizes = rules_[next()];
      for (long n = next(); n > 0; --n) {
        sizes.push_back({.num_ranks = next(), .rows = {}});
        for (long m = next(); m > 0; --m) {
          const long bytes = next(), algorithm = next(), fan_out = next(), segment = next();
          CHECK(fan_out == (std::to_string(algorithm) == chain ? 4 : 0));
          if (sizes.back().rows.empty())
            REQUIRE(bytes == 0);
          else
            CHECK(bytes > sizes.back().rows.back()[0]);
          sizes.back().rows.push_back({bytes, algorithm, segment});
        }
        if (sizes.size() > 1) CHECK(sizes.back().num_ranks >= std::prev(sizes.end(), 2)->num_ranks);
      }
    }
    long more = 0;
    CHECK_FALSE(in >> more);
  }

  // "0" is the default.
  std::string choice(int collective_id, int num_ranks, long bytes) const {
    const auto of = rules_.find(collective_id);
    if (of == rules_.end()) return "0";
    const block* best = &of->second.front();
    for (const block& b : of->second)
      if (version_ < 6 && b.num_ranks <= num_ranks) best = &b;  // otherwise of more ranks
    if (version_ >= 6) {
      const auto above = std::ranges::find_if(
          of->second, [&](const block& b) { return num_ranks <= b.num_ranks - 1; });
      best = above != of->second.end() ? &*above : &of->second.back();
    }
    std::array<long, 3> row{0, 0, 0};
    for (const auto& r : best->rows)
      if (r[0] <= bytes) row = r;
    return std::to_string(row[1]) + (row[2] > 0 ? ":" + std::to_string(row[2]) : "");
  }

 private:
  struct block {
    long num_ranks;
    std::vector<std::array<long, 3>> rows;
  };
  int version_;
  std::map<long, std::vector<block>> rules_;
};

}  // namespace

TEST_CASE("rules of Open MPI") {
  const int version = GENERATE(4, 6);
  std::vector<measured> segmented = two_sizes;
  segmented.push_back({"broadcast", 4096, "native:ring:1024", 0.3});
  const rule_set rules =
      rules_from(std::vector{bench(4, segmented), bench(5, two_sizes), bench(8, two_sizes)}, any);
  const rules_file file = openmpi_library.write(rules, "");
  const open_mpi library(file.text, version);
  constexpr int bcast = 7, allreduce = 2;
  for (const int p : {4, 5, 8}) {
    CAPTURE(p);
    CHECK(library.choice(bcast, p, 0) == "0");
    CHECK(library.choice(bcast, p, 1023) == "0");
    CHECK(library.choice(bcast, p, 1024) == chain);
    CHECK(library.choice(bcast, p, 1025) == ring);
    CHECK(library.choice(bcast, p, 4095) == ring);
    CHECK(library.choice(bcast, p, 4096) == (p == 4 ? ring + ":1024" : ring));
    CHECK(library.choice(bcast, p, 4097) == "0");
    CHECK(library.choice(bcast, p, 1L << 40) == "0");
    CHECK(library.choice(allreduce, p, 1024) == "0");
  }
  for (const int p : {1, 2, 3, 6, 7, 9, 1000}) CHECK(library.choice(bcast, p, 1024) == "0");
  CHECK(file.settings.size() == 2);
}

TEST_CASE("Open MPI has no rules above 2 GiB, and for a barrier no sizes") {
  constexpr std::int64_t limit = std::int64_t{1} << 31;
  const rule_set rules =
      rules_from(std::vector{bench(4, {{"broadcast", 1, "native:chain", 0.5},
                                       {"broadcast", 2 * limit, "native:chain", 0.5},
                                       {"barrier", 4, "native:ring", 0.5}})},
                 any);
  const open_mpi library(openmpi_library.write(rules, "").text, 4);
  CHECK(library.choice(7, 4, limit - 1) == chain);
  CHECK(library.choice(7, 4, limit) == "0");
  CHECK(library.choice(6, 4, 0) == ring);
}

TEST_CASE("what rules of Open MPI may say") {
  const bench_results here{};
  const auto why_not = [&](collective op, const std::string& name, bool commutative = false) {
    return openmpi_library.why_not(op, {std::string(name_of(op)), name, 1}, here, commutative);
  };
  CHECK(why_not(collective::broadcast, "chain").empty());
  CHECK(why_not(collective::all_reduce, "recursive_doubling").empty());
  CHECK(why_not(collective::all_reduce, "ring").starts_with("Open MPI would take it also for"));
  CHECK(why_not(collective::all_reduce, "ring", true).empty());
  CHECK(why_not(collective::scatter, "binomial", true).starts_with("ranks may read different"));
  CHECK_FALSE(why_not(collective::all_gatherv, "ring", true).empty());
  CHECK_FALSE(why_not(collective::gatherv, "ring", true).empty());
}

TEST_CASE("on several nodes Open MPI 5 needs one more setting") {
  named_bench nodes = bench(4, two_sizes);
  nodes.bench.machine_id.num_hosts = 2;
  const rules_file file = openmpi_library.write(rules_from(std::vector{nodes}, any), "");
  CHECK(std::ranges::find(file.settings, "OMPI_MCA_coll_han_priority=0") != file.settings.end());
  CHECK_THAT(file.text, ContainsSubstring("HAN"));
}

namespace {

// As in MPICH's file: other trees and names of algorithms are there, too.
const std::string mpich_file = std::string("\0ELF", 4) +
                               R"({"collective=bcast":{"composition=MPIDI_Bcast_alpha":{}}})" +
                               '\0' +
                               R"({"collective=bcast":{"comm_type=intra":{
  "comm_size<8":{"algorithm=MPIR_Bcast_intra_binomial":{}},
  "comm_size=any":{"avg_msg_size<=2048":{"algorithm=MPIR_Bcast_intra_binomial":{}},
                   "avg_msg_size=any":{"algorithm=MPIR_Bcast_intra_smp":{}}}},
 "comm_type=inter":{"algorithm=MPIR_Bcast_inter_remote":{}}},
 "collective=allreduce":{"comm_type=intra":{"algorithm=MPIR_Allreduce_intra_smp":{}}},
 "collective=scan":{"algorithm=MPIR_Scan_intra_smp":{}}})" +
                               '\0' +
                               "algorithm=MPIR_Bcast_intra_chain\0algorithm=MPIR_Bcast_intra_ring\0"
                               "algorithm=MPIR_Bcast_intra_pipelined_ring\0"
                               "algorithm=MPIR_Bcast_allcomm_nb\0algorithm=MPIR_Bcast_intra_smp\0"
                               "algorithm=MPIR_Allreduce_intra_ring\0"
                               "algorithm=MPIR_Allreduce_intra_reduce_scatter_allgather\0"s;

struct mpich_call {
  std::int64_t num_ranks, bytes;
  bool commutative = true, built_in = true;
  std::int64_t count = 1 << 20;
};

// What MPICH does with a selection (csel.c): it decides conditions on the communicator above all
// others when it makes the communicator. All other conditions wait for calls, where "<" is "<=".
std::string choice(const nlohmann::ordered_json& tree, const mpich_call& call,
                   bool is_in_call = false) {
  const auto holds = [&](const std::string& key) {
    const std::size_t end = key.find_first_of("=<");
    const std::string name = key.substr(0, end), condition = key.substr(end);
    if (condition == "=any") return true;
    if (key == "comm_type=intra") return true;
    if (key == "comm_type=inter") return false;
    if (name == "is_commutative") return (condition == "=yes") == call.commutative;
    if (name == "is_op_built_in") return (condition == "=yes") == call.built_in;
    if (key == "count<pow2") return call.count < 4;
    const std::int64_t value = name == "comm_size" ? call.num_ranks : call.bytes;
    if (condition.starts_with("<=")) return value <= std::stoll(condition.substr(2));
    REQUIRE(condition.starts_with("<"));
    return value < std::stoll(condition.substr(1)) + (is_in_call ? 1 : 0);
  };
  for (const auto& [key, branch] : tree.items()) {
    if (key.starts_with("algorithm=")) return key.substr(10);
    is_in_call = is_in_call || !key.starts_with("comm_");
    if (holds(key)) return choice(branch, call, is_in_call);
  }
  FAIL("no branch");
  return {};
}

}  // namespace

TEST_CASE("the selection of MPICH") {
  const rule_set rules =
      rules_from(std::vector{bench(4, two_sizes), bench(8, two_sizes), bench(9, two_sizes)}, any);
  const rules_file file = mpich_library.write(rules, mpich_file);
  CHECK(file.settings ==
        std::vector<std::string>{"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE={file}"});
  const auto all = nlohmann::ordered_json::parse(file.text);
  const auto& bcast = all.at("collective=bcast");
  for (const int p : {4, 8, 9}) {
    CAPTURE(p);
    const std::string small = "MPIR_Bcast_intra_binomial",
                      large = p < 8 ? small : "MPIR_Bcast_intra_smp";
    CHECK(choice(bcast, {p, 0}) == small);
    CHECK(choice(bcast, {p, 1023}) == small);
    CHECK(choice(bcast, {p, 1024}) == "MPIR_Bcast_intra_chain");
    CHECK(choice(bcast, {p, 1025}) == "MPIR_Bcast_intra_ring");
    CHECK(choice(bcast, {p, 4096}) == "MPIR_Bcast_intra_ring");
    CHECK(choice(bcast, {p, 4097}) == large);
  }
  for (const int p : {1, 3, 5, 7, 10}) {
    CHECK(choice(bcast, {p, 1024}) == "MPIR_Bcast_intra_binomial");
    CHECK(choice(bcast, {p, 4096}) ==
          (p < 8 ? "MPIR_Bcast_intra_binomial" : "MPIR_Bcast_intra_smp"));
  }
  // All that has no rule is the library's own.
  CHECK(bcast.at("comm_type=inter").contains("algorithm=MPIR_Bcast_inter_remote"));
  CHECK(choice(all.at("collective=allreduce"), {4, 1024}) == "MPIR_Allreduce_intra_smp");
  CHECK(choice(all.at("collective=scan"), {4, 1024}) == "MPIR_Scan_intra_smp");
}

TEST_CASE("MPICH takes rules for reductions only where they are right") {
  const rule_set rules = rules_from(
      std::vector{bench(4, {{"all_reduce", 8, "native:ring", 0.5},
                            {"all_reduce", 64, "native:reduce_scatter_allgather", 0.5}})},
      any);
  const auto tree = nlohmann::ordered_json::parse(mpich_library.write(rules, mpich_file).text)
                        .at("collective=allreduce");
  const std::string standard = "MPIR_Allreduce_intra_smp", ring_of_8 = "MPIR_Allreduce_intra_ring",
                    scattered = "MPIR_Allreduce_intra_reduce_scatter_allgather";
  CHECK(choice(tree, {.num_ranks = 4, .bytes = 8}) == ring_of_8);
  CHECK(choice(tree, {.num_ranks = 4, .bytes = 8, .commutative = false}) == standard);
  CHECK(choice(tree, {.num_ranks = 4, .bytes = 64}) == scattered);
  CHECK(choice(tree, {.num_ranks = 4, .bytes = 64, .built_in = false}) == standard);
  CHECK(choice(tree, {.num_ranks = 4, .bytes = 64, .count = 3}) == standard);
}

TEST_CASE("a selection never ends with its last page") {
  // MPICH reads the mapped file up to a zero.
  const rule_set none{};
  for (std::size_t more = 0; more < 4097; more += 1) {
    const std::string file =
        R"({"collective=bcast":{"algorithm=MPIR_)" + std::string(more, 'x') + R"(":{}}})";
    REQUIRE(mpich_library.write(none, file).text.size() % 4096 != 0);
  }
}

TEST_CASE("what MPICH's file must have") {
  const rule_set rules = rules_from(std::vector{bench(4, two_sizes)}, any);
  CHECK_THROWS_WITH(mpich_library.write(rules, "no tree"), ContainsSubstring("--library"));
  CHECK_THROWS_WITH(
      mpich_library.write(rules,
                          R"({"collective=bcast":{"comm_type=intra":{"algorithm=MPIR_x":{}}}})"),
      ContainsSubstring("no algorithm"));
}

TEST_CASE("MPICH's algorithms stand in the description of the variable") {
  // MPICH 4.0 leaves out the ends of lines, 5.0 does not.
  for (const char* end : {"", "\n"}) {
    const std::string e = end;
    const algorithm_variable variable{
        .description = "Variable to select bcast algorithm" + e +
                       "auto - Internal algorithm selection (overridden with X_FILE)" + e +
                       "chain       - Force chain" + e + "unknown - Force what has no rule" + e +
                       "nb - Force nonblocking algorithm" + e + "smp - Force smp algorithm" + e +
                       "pipelined_ring        - Force Ring" + e + "ring - Force Ring",
        .values = {}};
    const std::vector<own_algorithm> found =
        mpich_library.algorithms(collective::broadcast, variable, mpich_file);
    CHECK(found == std::vector<own_algorithm>{{"broadcast", "chain", 1},
                                              {"broadcast", "nb", 3},
                                              {"broadcast", "pipelined_ring", 5},
                                              {"broadcast", "ring", 6}});
  }
}

TEST_CASE("MPICH's algorithms that end or stop a program are not forced") {
  const std::string file =
      "algorithm=MPIR_Reduce_scatter_intra_noncommutative\0"
      "algorithm=MPIR_Reduce_scatter_intra_pairwise\0"s;
  const algorithm_variable variable{.description = "auto - x\nnoncommutative - y\npairwise - z",
                                    .values = {}};
  CHECK(mpich_library.algorithms(collective::reduce_scatter, variable, file) ==
        std::vector<own_algorithm>{{"reduce_scatter", "pairwise", 2}});
}

TEST_CASE("Intel MPI's algorithms are the numbers of the variable's range") {
  const auto found = [](const std::string& description) {
    return intelmpi_library.algorithms(collective::broadcast, {description, {}}, "");
  };
  CHECK(found("<presetid> - Preset identifier$ range: 0-2 @Alias:# I_MPI_ADJUST_BCAST") ==
        std::vector<own_algorithm>{
            {"broadcast", "0", 0}, {"broadcast", "1", 1}, {"broadcast", "2", 2}});
  CHECK(found("Controls bcast algorithm filter").empty());
  CHECK(found("range: 0-x").empty());
  std::map<std::string, collective> settings;
  for (const collective op : all_collectives)
    CHECK(settings.emplace(intelmpi_library.setting_of(op), op).second);
  CHECK(settings.at("I_MPI_ADJUST_ALLREDUCE") == collective::all_reduce);
}

TEST_CASE("the library of a mark") {
  CHECK(find("Open MPI v4.1.4, package: Debian OpenMPI") == &openmpi_library);
  CHECK(find("MPICH Version:      4.0.2") == &mpich_library);
  CHECK(find("Intel(R) MPI Library 2021.19") == &intelmpi_library);
  CHECK(find("MVAPICH Version:      4.0") == nullptr);
}
