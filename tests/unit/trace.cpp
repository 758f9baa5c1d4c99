// SPDX-License-Identifier: BSL-1.0
#include "models/trace.hpp"

#include "lib/report/schedule_timeline.hpp"
#include "railpass/predict/predict.hpp"
#include "support/catch.hpp"

#include <nlohmann/json.hpp>

#include <set>

using namespace railpass;
using namespace railpass::internal;

namespace {

machine_model machine() {
  machine_model m;
  m.same_node.pieces = {{0, 0.5e-6, 0.1e-6, 0.2e-6, 0.2e-6, 0.2e-9}};
  m.across_nodes.pieces = {{0, 20e-6, 1e-6, 2e-6, 1.5e-6, 2e-9}};
  return m;
}

simulation play(collective op, std::string_view name, std::int32_t p, std::int64_t bytes,
                std::int32_t per_node = 1) {
  simulator s;
  return simulate_arm(s, machine(), parse_arm(op, name), node_layout::blocks(p, per_node),
                      {bytes, 1}, 0, true);
}

std::size_t count(const std::string& text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

// Every element closed, in order, and nothing else than elements and text.
bool well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (std::size_t i = 0; i < xml.size(); ++i) {
    if (xml[i] == '&') {
      const std::size_t end = xml.find(';', i);
      if (end == std::string::npos || end - i > 6) return false;
    }
    if (xml[i] != '<') continue;
    const std::size_t end = xml.find('>', i);
    if (end == std::string::npos) return false;
    const std::string tag = xml.substr(i + 1, end - i - 1);
    if (count(tag, "\"") % 2 != 0 || tag.find('<') != std::string::npos) return false;
    const std::string name = tag.substr(0, tag.find(' '));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    i = end;
  }
  return open.empty();
}

}  // namespace

TEST_CASE("the Chrome trace is JSON with every event once and both ends of every message") {
  for (const std::int32_t per_node : {1, 4}) {
    const simulation run =
        play(collective::all_reduce, "reduce_broadcast+segment_bytes=16KiB", 13, 200000, per_node);
    const std::string text = chrome_trace(run, {"all_reduce", "odd \"name\"\n\\", 200000, -1});
    const auto trace = nlohmann::json::parse(text);
    std::size_t slices = 0;
    std::multiset<std::int64_t> starts, ends;
    std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> threads;
    std::set<int> ranks;
    for (const auto& e : trace["traceEvents"]) {
      const std::string phase = e["ph"];
      if (phase == "X") {
        ++slices;
        threads[{e["pid"], e["tid"]}].emplace_back(e["ts"], e["dur"]);
        ranks.insert(e["pid"].get<int>());
        CHECK(e["ts"].get<double>() + e["dur"].get<double>() <= run.time_s * 1e6 + 1e-3);
      }
      if (phase == "s") starts.insert(e["id"].get<std::int64_t>());
      if (phase == "f") ends.insert(e["id"].get<std::int64_t>());
    }
    CHECK(slices == run.events.size());
    CHECK(ranks.size() == 13);
    CHECK(starts == ends);
    CHECK(starts.size() == std::size_t(run.messages));
    for (auto& [thread, list] : threads) {
      std::sort(list.begin(), list.end());
      for (std::size_t i = 1; i < list.size(); ++i)
        REQUIRE(list[i].first >= list[i - 1].first + list[i - 1].second - 1e-3);
    }
    CHECK(trace["otherData"]["arm"] == "odd \"name\" \\");
  }
}

TEST_CASE("the timeline of a binomial broadcast shows ranks, messages, time and the doubling") {
  const simulation run = play(collective::broadcast, "binomial", 16, 1 << 20);
  const std::string svg =
      report::draw_schedule_timeline(run, {"broadcast", "binomial", 1 << 20, 0});
  CHECK(well_formed(svg));
  CHECK(svg.find("broadcast: binomial, 16 ranks, 1MiB") != std::string::npos);
  CHECK(svg.find(">root 0<") != std::string::npos);
  for (int r = 1; r < 16; ++r)
    CHECK(svg.find(">rank " + std::to_string(r) + "<") != std::string::npos);
  CHECK(count(svg, "marker-end") == 15 + 1);  // and one in the legend
  CHECK(svg.find("sends 4.00 times the message") != std::string::npos);
  for (const char* reached : {">1<", ">2<", ">4<", ">8<", ">16<"})
    CHECK(svg.find(reached) != std::string::npos);
  CHECK(svg.find("time in ms") != std::string::npos);
  CHECK(count(svg, format_seconds(run.time_s)) >= 2);
  CHECK(svg.find("reducing") == std::string::npos);
}

TEST_CASE("reductions are drawn, and a collective without a root has no curve of ranks reached") {
  const std::string svg =
      report::draw_schedule_timeline(play(collective::all_reduce, "recursive_doubling", 8, 1 << 16),
                                     {"all_reduce", "recursive_doubling", 1 << 16, -1});
  CHECK(well_formed(svg));
  CHECK(svg.find("reducing") != std::string::npos);
  CHECK(svg.find("rank 0: reduce 64KiB") != std::string::npos);
  CHECK(svg.find("root") == std::string::npos);
  CHECK(svg.find("ranks that have received") == std::string::npos);
}

TEST_CASE("many messages are drawn without arrows and in bounded space") {
  const simulation run = play(collective::broadcast, "pipeline+segment_bytes=1KiB", 8, 4 << 20);
  REQUIRE(run.events.size() > 50000);
  const std::string svg =
      report::draw_schedule_timeline(run, {"broadcast", "pipeline", 4 << 20, 0});
  CHECK(well_formed(svg));
  CHECK(count(svg, "marker-end") == 0);
  CHECK(svg.size() < 100000);
}

TEST_CASE("pictures of next to nothing are still pictures") {
  for (const std::int32_t p : {1, 2, 1000})
    for (const std::int64_t bytes : {0, 1}) {
      CAPTURE(p, bytes);
      const std::string svg = report::draw_schedule_timeline(
          play(collective::broadcast, "binomial", p, bytes), {"a<b>&\"c", "x", bytes, 0});
      CHECK(well_formed(svg));
      CHECK(svg.find("nan") == std::string::npos);
      CHECK(svg.find("inf") == std::string::npos);
    }
}
