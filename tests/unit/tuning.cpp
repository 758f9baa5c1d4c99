// SPDX-License-Identifier: BSL-1.0
//
// Searches in spaces with known best combinations, and the use of their measurements.
#include "lib/tune/extract.hpp"
#include "lib/tune/parameter_file.hpp"
#include "lib/tune/results.hpp"
#include "lib/tune/searches.hpp"
#include "lib/tune/target.hpp"
#include "support/catch.hpp"
#include "support/scratch_directory.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sys/stat.h>

using namespace railpass;
using namespace railpass::internal;
using namespace railpass::internal::tune;

namespace {

using formula = std::function<double(const combination&)>;

struct world {
  space where;
  formula value;
  double noise = 0;
};

struct run_result {
  tuning found;
  std::set<combination> winners;
  std::uint64_t searched;  // launches before the final check
};

run_result tune_world(const world& w, tuning_plan plan) {
  std::mt19937_64 random(plan.seed * 7919);
  std::normal_distribution<double> noise(0, 1);
  plan.warm_ups = 0;
  journal none;
  const launcher launch = [&](const combination* c) {
    outcome o;
    o.values = {(c ? w.value(*c) : 100.0) * std::exp(w.noise * noise(random))};
    return o;
  };
  tuning found = tune::tune(w.where, {goal_of("latency")}, plan, launch, none);
  const double one = 1;
  std::set<combination> winners;
  const auto groups = tie_groups(found.measured, {&one, 1}, plan.wanted);
  winners.insert(groups.at(0).members.begin(), groups.at(0).members.end());
  const std::uint64_t searched = found.runs - found.defaults.size() - found.checks.size();
  return {std::move(found), std::move(winners), searched};
}

// Shaped like a broadcast: algorithm, segments that only some algorithms have, and two transport
// parameters that hardly matter. 275 combinations, 11 of them the best.
world broadcast(double noise) {
  return {parse_parameters("algorithm -p {linear chain pipeline binary split}\n"
                           "segment -p {1 4 8 16 64 0} -i \"algorithm linear !=\"\n"
                           "eager -p {16 64 256}\n"
                           "fragment -p {64 128 256 512} -i \"eager fragment <=\"\n",
                           "broadcast"),
          [](const combination& c) {
            const double base[] = {31, 40, 11, 22, 17}, segment[] = {1.9, 1.2, 1, 1.15, 1.6, 2.6};
            if (c[0] == 0) return base[0];
            return base[c[0]] * (1 + (segment[c[1]] - 1) * (c[0] == 2 ? 1 : 0.6)) *
                   (c[2] == 0 && c[1] > 2 ? 1.08 : 1);
          },
          noise};
}

// Best if two parameters agree, poor if only one of them is right.
world planted() {
  return {parse_parameters("a -p {1 2 3 4 5 6 7 8}\nb -p {p q r s t u v w}\nc -p {0 1 2 3 4}\n",
                           "planted"),
          [](const combination& c) {
            return c[0] == 5 && c[1] == 6 ? 5.0 : 10.0 + 2 * (c[0] == 5) + 2 * (c[1] == 6);
          },
          0.02};
}

std::set<combination> best_of(const world& w) {
  std::set<combination> best;
  double least = 1e300;
  auto c = w.where.first();
  for (bool more = true; more; more = w.where.next(*c)) {
    if (w.value(*c) < least) best.clear();
    least = std::min(least, w.value(*c));
    if (w.value(*c) == least) best.insert(*c);
  }
  return best;
}

class temporary_file {
 public:
  std::string path() const { return folder_.file("journal"); }
  void write(const std::string& text) const { std::ofstream(path()) << text; }
  std::string read() const {
    std::ifstream file(path());
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  scratch_directory folder_;
};

}  // namespace

TEST_CASE("every search finds the best of an additive space without noise") {
  const world w{parse_parameters("a -p {1 2 3 4}\nb -p {1 2 3}\nc -p {x y}\n", "w"),
                [](const combination& c) {
                  return 10.0 + (c[0] - 2) * (c[0] - 2) + 2 * c[1] + (c[2] ? 0 : 3);
                }};
  for (const auto& s : searches()) {
    INFO(s.name);
    tuning_plan plan;
    plan.search = s.name;
    const auto [found, winners, searched] = tune_world(w, plan);
    CHECK(found.recommended == combination{2, 0, 1});
    CHECK(winners == best_of(w));
    CHECK(found.complete);
    CHECK(searched <= 24 * 3);
    REQUIRE(found.cost_ratio);
    CHECK(found.cost_ratio->value == Approx(0.1));
  }
}

TEST_CASE("the default search finds brute force's best group with a fifth of the launches") {
  double model_runs = 0, brute_runs = 0, in_both = 0, in_any = 0;
  for (unsigned seed = 1; seed <= 3; ++seed) {
    INFO("seed " << seed);
    const world w = broadcast(0.02);
    CHECK(w.where.count() == 275);
    tuning_plan plan;
    plan.seed = seed;
    const auto model = tune_world(w, plan);
    plan.search = "exhaustive";
    const auto brute = tune_world(w, plan);
    CHECK(best_of(w).count(*model.found.recommended) == 1);
    for (const combination& c : model.winners)
      CHECK(model.found.measured.find(c)->runs >= plan.wanted.repetitions);
    CHECK(model.searched * 5 <= brute.searched);
    model_runs += double(model.searched);
    brute_runs += double(brute.searched);
    std::set<combination> all = model.winners;
    all.insert(brute.winners.begin(), brute.winners.end());
    in_any += double(all.size());
    in_both += double(model.winners.size() + brute.winners.size() - all.size());
  }
  CHECK(brute_runs == 3 * 3 * 275);
  CHECK(model_runs < brute_runs / 6);
  CHECK(in_both / in_any > 0.8);
}

TEST_CASE("parameters that are good only together are found") {
  const world w = planted();
  for (unsigned seed = 1; seed <= 3; ++seed) {
    INFO("seed " << seed);
    tuning_plan plan;
    plan.seed = seed;
    const auto model = tune_world(w, plan);
    CHECK(model.winners == best_of(w));
    CHECK(model.searched < 3 * 320 / 5);
    const auto effects =
        effects_of(w.where, model.found.measured, std::vector<double>{1.0}, 0.02, 0.95);
    REQUIRE(!effects.empty());
    CHECK(effects[0].parameters == std::vector<std::size_t>{0, 1});
  }
  // Tuning one parameter after the other does not find it.
  tuning_plan plan;
  plan.search = "attribute";
  CHECK(tune_world(w, plan).winners != best_of(w));
}

TEST_CASE("the default search needs the fewest launches of those that find the best") {
  std::vector<world> worlds;
  worlds.push_back(broadcast(0.01));
  worlds.push_back(planted());
  for (const world& w : worlds) {
    const double ours = double(tune_world(w, {}).searched);
    for (const auto& s : searches()) {
      tuning_plan plan;
      plan.search = s.name;
      const auto other = tune_world(w, plan);
      const auto best = best_of(w);
      std::size_t hits = 0;
      for (const combination& c : other.winners) hits += best.count(c);
      INFO(s.name << ": " << other.searched << " launches, " << hits << " of " << best.size());
      CHECK((hits < best.size() || ours <= double(other.searched)));
    }
  }
}

TEST_CASE("equal combinations end the search early") {
  const world w{parse_parameters("a -r 0 15 -t increment + 1\nb -r 0 15 -t increment + 1\n", "w"),
                [](const combination&) { return 7.0; }, 0.02};
  tuning_plan plan;
  const auto found = tune_world(w, plan);
  CHECK(found.searched < 3 * 256 / 2);
  CHECK(found.winners.size() >= 20);
}

TEST_CASE("nothing is recommended that fails beside the defaults, or was not compared") {
  const world w = broadcast(0.02);
  const tuning_plan plan;
  tuning found = tune_world(w, plan).found;
  const auto shown = [&] { return report(w.where, plan, "command", "env", found); };
  CHECK(shown().recommended());
  found.cost_ratio.reset();
  CHECK_FALSE(shown().recommended());
  CHECK(shown().finding() == "The best combination was not compared with the default.");
  found.checks.push_back({.values = {}, .failure = "killed"});
  CHECK_FALSE(shown().recommended());
  CHECK(shown().finding().find("failed") != std::string::npos);
  found.checks.clear();
  found.defaults = {{.values = {}, .failure = "killed"}};
  CHECK(shown().recommended());
}

TEST_CASE("where all is alike but for noise, nothing is recommended and nothing matters") {
  int recommended = 0, mattering = 0;
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const world w{parse_parameters("a -p {1 2 3 4}\nb -p {1 2 3}\n", "w"),
                  [](const combination&) { return 100.0; }, 0.3};
    tuning_plan plan;
    plan.seed = seed;
    plan.search = "exhaustive";
    const report shown(w.where, plan, "command", "env", tune_world(w, plan).found);
    if (shown.recommended())
      ++recommended;
    else
      CHECK(shown.finding().starts_with("No combination is shown to be better than the default"));
    for (const effect& e : shown.effects)
      if (e.shown) ++mattering;
  }
  CHECK(recommended <= 1);  // of 20 once, on average
  CHECK(mattering <= 2);
}

TEST_CASE("what makes no difference that shows stays at its default") {
  const world w{parse_parameters("a -d 1 -p {1 2}\nb -d 3 -p {1 2 3 4}\n", "w"),
                [](const combination& c) { return c[0] == 0 ? 100.0 : 50.0; }, 0.05};
  for (unsigned seed = 1; seed <= 3; ++seed) {
    tuning_plan plan;
    plan.seed = seed;
    plan.search = "exhaustive";
    CHECK(tune_world(w, plan).found.recommended == combination{1, 2});
  }
}

TEST_CASE("limits are kept") {
  const world w = broadcast(0.02);
  for (const auto& s : searches()) {
    INFO(s.name);
    tuning_plan plan;
    plan.search = s.name;
    plan.most_runs = 25;
    const auto found = tune_world(w, plan);
    CHECK(found.found.runs <= 25);
    CHECK(found.found.recommended.has_value());
  }
}

TEST_CASE("a tuning that ends anywhere goes on from its journal") {
  const world w = broadcast(0);
  tuning_plan plan;
  plan.warm_ups = 1;
  temporary_file file;
  const auto launch_until = [&](int most) {
    int launches = 0;
    const launcher launch = [&](const combination* c) {
      if (launches++ == most) throw interrupted("stop");
      outcome o;
      if (c && (*c)[0] == 1)
        o.failure = "a chain \xff breaks";
      else
        o.values = {c ? w.value(*c) : 50.0};
      return o;
    };
    journal kept(file.path(), "me", 1);
    return tune::tune(w.where, {goal_of("latency")}, plan, launch, kept);
  };
  const auto summary = [&](const tuning& t) {
    std::string text = std::to_string(t.measured.records().size());
    for (const auto& [what, r] : t.measured.records())
      for (const std::uint16_t level : what)
        text += std::to_string(level) + (r.failed() ? "!" : " ");
    return text;
  };
  const tuning whole = launch_until(1 << 20);
  std::filesystem::remove(file.path());
  int stops = 0;
  for (bool done = false; !done; ++stops) {
    try {
      const tuning t = launch_until(31);
      CHECK(summary(t) == summary(whole));
      CHECK(t.recommended == whole.recommended);
      CHECK(t.runs == whole.runs + std::uint64_t(stops));  // each stop cut one launch off
      done = true;
    } catch (const interrupted&) {
    }
    // A line that a crash cut short.
    if (stops % 2) std::ofstream(file.path(), std::ios::app) << "{\"why\":\"sea";
  }
  CHECK(stops > 2);
  CHECK_THROWS_WITH(journal(file.path(), "somebody else", 1),
                    ContainsSubstring("other parameters"));
  const std::string kept = file.read();
  for (std::size_t at = 0; at < kept.size(); at += 1009) {
    std::string damaged = kept;
    damaged[at] = '\x01';
    file.write(damaged);
    try {
      journal j(file.path(), "me", 1);
    } catch (const error&) {
    }
  }
}

TEST_CASE("a limited tuning that is resumed makes the launches that it would have made") {
  const world w = broadcast(0);
  const launcher launch = [&](const combination* c) {
    outcome o;
    o.values = {c ? w.value(*c) : 100.0};
    return o;
  };
  for (const auto& s : searches()) {
    CAPTURE(s.name);
    tuning_plan plan;
    plan.search = s.name;
    plan.most_runs = 90;
    const temporary_file file;
    const auto tune_until = [&](std::uint64_t most) {
      journal kept(file.path(), "me", 1);
      return tune::tune(w.where, {goal_of("latency")}, plan, launch, kept,
                        [&](std::uint64_t runs, double, double) {
                          if (runs == most) throw interrupted("stop");
                        });
    };
    const auto counts = [](const tuning& t) {
      std::map<combination, int> launches;
      for (const auto& [what, r] : t.measured.records()) launches[what] = r.runs;
      return launches;
    };
    const tuning whole = tune_until(1000);
    std::filesystem::remove(file.path());
    CHECK_THROWS_AS(tune_until(whole.runs * 2 / 3), interrupted);
    CHECK_THROWS_AS(tune_until(whole.runs * 5 / 6), interrupted);
    const tuning resumed = tune_until(1000);
    CHECK(counts(resumed) == counts(whole));
    CHECK(resumed.runs == whole.runs);
    CHECK(resumed.recommended == whole.recommended);
  }
}

TEST_CASE("what is no journal, or not this one's, is refused and left as it is") {
  const temporary_file file;
  const std::string header = R"({"format":"railpass tune journal","version":1,"identity":"me"})"
                             "\n";
  const std::string begin = R"({"why":"search","levels":[1]})"
                            "\n";
  for (const std::string text :
       {"x", R"({"my":"one line without newline"})", "{\"format\":\"x", "\n", "[]\n", "3\n",
        "{\"format\":\"railpass tune journal\",\"version\":1,\"identity\":\"you\"}"}) {
    file.write(text);
    CHECK_THROWS_WITH(journal(file.path(), "me", 1), ContainsSubstring(file.path()));
    CHECK(file.read() == text);
  }
  for (const std::string line :
       {R"({"why":"search","levels":[1],"took_s":1})",
        R"({"why":"search","levels":[1],"took_s":1,"values":[]})",
        R"({"why":"search","levels":[1],"took_s":1,"values":[1,2]})",
        R"({"why":"search","levels":[1],"took_s":1,"failure":""})",
        R"({"why":"search","levels":[65536]})", R"({"why":"luck","levels":[1]})", R"([1])"}) {
    const std::string text = header + begin + line + "\n{\"cut";
    file.write(text);
    CHECK_THROWS_WITH(journal(file.path(), "me", 1), ContainsSubstring("line 3"));
    CHECK(file.read() == text);
  }
  file.write(header + std::string(100000, '[') + '\n');
  CHECK_THROWS_WITH(journal(file.path(), "me", 1), ContainsSubstring("line 2"));
  // A file whose first line was cut short.
  file.write(header.substr(0, 20));
  CHECK(journal(file.path(), "me", 1).earlier().empty());
  CHECK(file.read() == header);
  // A path that is no regular file.
  std::filesystem::remove(file.path());
  REQUIRE(::mkfifo(file.path().c_str(), 0600) == 0);
  CHECK_THROWS_WITH(journal(file.path(), "me", 1), ContainsSubstring("not a journal"));
}

TEST_CASE("numbers are found in what commands print") {
  command_result done;
  done.wall_s = 2;
  done.peak_memory_bytes = 4096;
  const auto values = [&](extraction wanted, const std::string& text) {
    return extractor(wanted).values(done, text);
  };
  const extraction latency{{goal_of("latency")}, {"lat: ([0-9.e-]+)"}, "", {}};
  CHECK(values(latency, "x\nlat: 2.5 us\n") == std::vector<double>{2.5});
  CHECK(values(latency, "lat: 2\nlat: 8")[0] == Approx(4));
  CHECK_THROWS_WITH(values(latency, "late: 3"), ContainsSubstring("lat: "));
  CHECK_THROWS_WITH(values(latency, "lat: 0"), ContainsSubstring("> 0"));
  CHECK_THROWS_WITH(values(latency, "lat: ..."), ContainsSubstring("'...'"));
  CHECK_THROWS_WITH(values(latency, "lat: 1e999"), ContainsSubstring("> 0"));
  CHECK_THROWS_AS(values(latency, std::string(1 << 20, 'x')), error);
  // Nested repetitions take time proportional to the line.
  const extraction nested{{goal_of("latency")}, {"iteration: (([0-9]+\\.?)+) us"}, "", {}};
  CHECK_THROWS_WITH(values(nested, "iteration: " + std::string(1 << 20, '1') + " ms"),
                    ContainsSubstring("no match"));
  CHECK(values(nested, "iteration: 12.5 us")[0] == Approx(12.5));
  CHECK(values({{goal_of("latency")}, {"[0-9]+"}, "", {}}, "\xff took 7 \xb5s")[0] == Approx(7));
  for (const char* wrong : {"(", "a(?=b)", "(a)\\1"})
    CHECK_THROWS_WITH(extractor({{goal_of("latency")}, {wrong}, "", {}}),
                      ContainsSubstring("not a regular expression of RE2"));
  const extraction both{{goal_of("time"), goal_of("memory")}, {}, "", {}};
  CHECK(values(both, "") == std::vector<double>{2, 4096});
  const std::string osu =
      "# OSU MPI Latency Test\n# Size  Latency (us)\n8 2.0\n64 8.0\n"
      "# OSU MPI Bandwidth Test\n# Size  Bandwidth (MB/s)\n64 100.0\n";
  extraction wanted{{goal_of("latency"), goal_of("bandwidth")}, {}, "osu", {}};
  CHECK(values(wanted, osu)[0] == Approx(4e-6));
  CHECK(values(wanted, osu)[1] == Approx(1e8));
  wanted.sizes_bytes = {64};
  CHECK(values(wanted, osu)[0] == Approx(8e-6));
  wanted.sizes_bytes = {8};
  CHECK_THROWS_WITH(values(wanted, osu), ContainsSubstring("no bandwidth for 8 bytes"));
  const extraction netpipe{{goal_of("bandwidth")}, {}, "netpipe", {1000}};
  CHECK(values(netpipe, "Latency: 0.00001\n  1  0.6  0.00001\n 1000  400.0  0.00002\n")[0] ==
        Approx(5e7));
  const extraction imb{{goal_of("latency")}, {}, "imb", {}};
  CHECK(values(imb,
               "# Benchmarking PingPong \n# #processes = 2 \n       #bytes #repetitions      "
               "t[usec]   Mbytes/sec\n  4   1000   3.00   1.0\n")[0] == Approx(3e-6));
  CHECK_THROWS_AS(extractor({{goal_of("latency")}, {}, "", {}}), error);
  CHECK_THROWS_AS(extractor({{goal_of("latency")}, {"x"}, "osu", {}}), error);
}

TEST_CASE("targets name variables and words") {
  const settings_list settings{{"eager", "4k"}, {"b", "{eager}"}};
  CHECK(tune::apply(find_target("openmpi"), "run", settings).environment[0].first ==
        "OMPI_MCA_eager");
  CHECK(variable_of(find_target("mpich"), "X") == "MPIR_CVAR_X");
  CHECK(variable_of(find_target("mpich"), "MPIR_CVAR_X") == "MPIR_CVAR_X");
  CHECK(variable_of(find_target("intel"), "X") == "I_MPI_X");
  CHECK(variable_of(find_target("ucx"), "X") == "UCX_X");
  CHECK(variable_of(find_target("ofi"), "X") == "FI_X");
  CHECK(variable_of(find_target("env"), "X") == "X");
  CHECK(tune::apply(find_target("words"), "run {b} {eager} {c}", settings).line ==
        "run {eager} 4k {c}");
  CHECK(settings_file(find_target("env"), {{"a", "it's"}}) ==
        "# Found by railpass tune.\nexport a='it'\\''s'\n");
  CHECK(settings_file(find_target("ucx"), {{"A", "$(x) `y`"}}) ==
        "# Found by railpass tune.\nexport UCX_A='$(x) `y`'\n");
  CHECK(settings_file(find_target("openmpi"), {{"a", "1"}, {"OMPI_MCA_b", "2"}}) ==
        "# Found by railpass tune.\na = 1\nb = 2\n");
  CHECK(settings_file(find_target("words"), {{"a", "1"}}) == "# Found by railpass tune.\na='1'\n");
}

TEST_CASE("what libraries report becomes a file of parameters") {
  const auto ompi = parse_reported(
      find_target("openmpi"),
      "mca:btl:tcp:version:\"mca:2\"\n"
      "mca:coll:tuned:param:alg:value:\"0\"\nmca:coll:tuned:param:alg:type:int\n"
      "mca:coll:tuned:param:alg:enumerator:value:0:ignore\n"
      "mca:coll:tuned:param:alg:enumerator:value:1:linear\n"
      "mca:x:y:param:on:value:true\nmca:x:y:param:on:type:bool\nmca:x:y:param:on:help:\"a: b\"\n");
  REQUIRE(ompi.size() == 2);
  CHECK(ompi[0].values == std::vector<std::string>{"0", "1"});
  CHECK(ompi[1].help == "a: b");
  const auto ucx = parse_reported(find_target("ucx"),
                                  "#\n# Threshold for rendezvous\n#\n# syntax:    memory units\n#\n"
                                  "UCX_RNDV_THRESH=8192\n\n# a\n# syntax:    [y|n]\nUCX_A=y\n");
  REQUIRE(ucx.size() == 2);
  CHECK(ucx[0].name == "RNDV_THRESH");
  CHECK(ucx[0].default_value == "8192");
  CHECK(ucx[1].values == std::vector<std::string>{"y", "n"});
  const auto mpich = parse_reported(
      find_target("mpich"),
      "2 MPI Control Variables\n\tMPIR_CVAR_A_KVAL =2\tSCOPE_ALL_EQ\tNo-object\tMPI_INT\tBASIC\tk "
      "of a\n"
      "\tMPIR_CVAR_FILE=\tSCOPE_LOCAL\tNo-object\tMPI_CHAR\tBASIC\ta file = its name\n");
  REQUIRE(mpich.size() == 2);
  CHECK(mpich[0].name == "A_KVAL");
  CHECK(mpich[0].default_value == "2");
  CHECK(mpich[0].type == "MPI_INT");
  CHECK(mpich[1].help == "a file = its name");
  const auto ofi = parse_reported(
      find_target("ofi"),
      "# FI_LOG_INTERVAL: Integer\n# Delay in ms between messages (default 2000)\n\n"
      "# FI_HMEM: Boolean (0/1, on/off)\n# Disable it (default: no).\n\n"
      "# FI_TCP_IFACE: String\n# Specify interface name\n# FI_X: is mentioned (default: all of "
      "them)\n");
  REQUIRE(ofi.size() == 3);
  CHECK(ofi[0].name == "LOG_INTERVAL");
  CHECK(ofi[0].type == "Integer");
  CHECK(ofi[0].default_value == "2000");
  CHECK(ofi[0].help == "Delay in ms between messages (default 2000)");
  CHECK(ofi[1].values == std::vector<std::string>{"0", "1"});
  CHECK(ofi[1].default_value == "no");
  CHECK(ofi[2].name == "TCP_IFACE");
  CHECK(ofi[2].default_value.empty());
  std::string text = proposal(ompi) + proposal(ucx);
  for (std::size_t at = 0; (at = text.find("\n#", at)) != std::string::npos; ++at)
    if (text[at + 2] != ' ') text.erase(at + 1, 1);
  CHECK(parse_parameters(text, "proposal").count(condition_rule::none) == 2 * 2 * 7 * 2);
}

TEST_CASE("a Pareto front of two goals") {
  const space where = parse_parameters("a -p {1 2 3}\nb -p {1 2}\n", "w");
  table measured({goal_of("latency"), goal_of("memory")});
  const double values[3][2][2] = {{{1, 9}, {2, 9}}, {{2, 4}, {2, 5}}, {{3, 1}, {4, 1}}};
  auto c = where.first();
  for (bool more = true; more; more = where.next(*c)) {
    outcome o;
    o.values = {values[(*c)[0]][(*c)[1]][0], values[(*c)[0]][(*c)[1]][1]};
    measured.add(*c, o);
  }
  CHECK(pareto_front(measured, {}) == std::vector<combination>{{0, 0}, {1, 0}, {2, 0}});
}
