// SPDX-License-Identifier: BSL-1.0
#include "lib/report/knowledge_analysis.hpp"
#include "lib/report/knowledge_page.hpp"
#include "railpass/base/error.hpp"
#include "support/catch.hpp"

#include <nlohmann/json.hpp>

using namespace railpass;
using namespace railpass::internal;
using namespace railpass::knowledge;

namespace {

arm_experience ran(std::string arm, double median_s) {
  return {.arm = std::move(arm),
          .calls = 50,
          .times = {.samples = 40,
                    .mean_s = 1.1 * median_s,
                    .spread = 0.1,
                    .quantiles = {
                        .low_s = 0.8 * median_s, .median_s = median_s, .high_s = 1.5 * median_s}}};
}

experience context(std::int64_t bytes, std::vector<arm_experience> arms, int num_ranks = 16) {
  return {.of = {.collective = "broadcast", .num_ranks = num_ranks, .bytes = bytes},
          .arms = std::move(arms),
          .first_at = "2026-01-30T12:00:00Z",
          .last_at = "2026-01-31T12:00:00Z"};
}

/// Binomial is the best arm up to 4 KiB, a pipeline beyond.
std::vector<experience> broadcasts(int num_ranks = 16) {
  std::vector<experience> known;
  for (const int octave : {6, 8, 10, 12, 14, 16}) {
    const double bytes = double(1 << octave);
    known.push_back(
        context(1 << octave,
                {ran("native", 3e-5 + bytes * 3e-9), ran("binomial", 1e-5 + bytes * 3e-9),
                 ran("pipeline+segment_bytes=8KiB", 3e-5 + bytes * 1e-9)},
                num_ranks));
  }
  return known;
}

std::vector<nlohmann::json> charts_of(const std::string& html) {
  constexpr std::string_view begin = "<script type=\"application/json\">", end = "</script>";
  std::vector<nlohmann::json> charts;
  for (std::size_t at = html.find(begin); at != std::string::npos; at = html.find(begin, at + 1)) {
    const std::size_t from = at + begin.size();
    charts.push_back(nlohmann::json::parse(html.substr(from, html.find(end, from) - from)));
  }
  return charts;
}

const nlohmann::json& series_of(const nlohmann::json& chart, const std::string& name) {
  for (const auto& s : chart["series"])
    if (s["name"] == name) return s;
  FAIL("no series " << name);
  return chart;
}

}  // namespace

TEST_CASE("the analysis shows best arms, those as good and how far they are similar") {
  const auto groups = report::analyse_knowledge(broadcasts());
  REQUIRE(groups.size() == 1);
  CHECK(groups.front().title == "broadcast, 16 ranks, 1 per node, world");
  const std::string problems = groups.front().problems.csv();
  CHECK_THAT(problems, ContainsSubstring("64,binomial,1.02e-05,-,6 octaves\n"));
  CHECK_THAT(problems, ContainsSubstring("65536,pipeline+segment_bytes=8KiB,9.55e-05,-,"));
  // By lengths they are as far as their bytes say.
  CHECK_THAT(
      report::analyse_knowledge(broadcasts(), {.by = metric::lengths}).front().problems.csv(),
      ContainsSubstring("64,binomial,1.02e-05,-,4032\n"));
  CHECK_THAT(report::analyse_knowledge(broadcasts(), {.p_max = 9}).front().problems.csv(),
             ContainsSubstring("\"native, pipeline+segment_bytes=8KiB\""));
}

TEST_CASE("the analysis says how good predictions from other sizes are") {
  const auto groups = report::analyse_knowledge(broadcasts());
  const std::string predictors = groups.front().predictors.csv();
  CHECK_THAT(predictors, ContainsSubstring("closest,0.667,"));
  CHECK_THAT(predictors, ContainsSubstring("curves,1,0,"));
  CHECK_THAT(predictors, ContainsSubstring("always binomial,0.667,"));
}

TEST_CASE("of very many sizes some are judged") {
  std::vector<experience> known;
  for (int i = 0; i < 1000; ++i)
    known.push_back(context(64 + 8 * i, {ran("native", 2e-5), ran("binomial", 1e-5)}));
  const auto groups = report::analyse_knowledge(known);
  CHECK_THAT(groups.front().predictors.csv(),
             ContainsSubstring("\"predictor, 63 sizes\"") && ContainsSubstring("curves,1,0,0"));
}

TEST_CASE("one size alone predicts nothing, and sizes of other shapes do not count") {
  std::vector<experience> known{context(64, {ran("native", 1)}), context(128, {ran("native", 1)})};
  known.back().of.kind = "part";
  const auto groups = report::analyse_knowledge(known);
  REQUIRE(groups.size() == 2);
  for (const auto& g : groups) CHECK(g.predictors.empty());
  known.front().arms.front().times.quantiles.median_s = 0;
  CHECK_THROWS_AS(report::analyse_knowledge(known), error);
}

TEST_CASE("a page of knowledge has the map of best arms and times with bands") {
  std::vector<experience> known = broadcasts();
  for (const experience& e : broadcasts(32)) known.push_back(e);
  const auto charts = charts_of(report::knowledge_page(known, {}));
  REQUIRE(charts.size() == 3);
  const auto& binomial = series_of(charts[0], "binomial");
  CHECK(binomial["points"].size() == 8);
  CHECK(binomial["points"][0]["x"] == 64);
  CHECK(binomial["points"][0]["y"] == 16);
  CHECK(binomial["points"][4]["y"] == 32);
  CHECK(binomial["points"][0]["hint"] == "binomial, 10.2 us, native 2.96 times");
  CHECK(series_of(charts[0], "pipeline")["points"].size() == 4);
  const auto& native = series_of(charts[1], "native");  // though it is the best one nowhere
  CHECK(native["points"].size() == 6);
  CHECK(native["points"][0]["low"].get<double>() == Approx(0.8 * (3e-5 + 64 * 3e-9)));
  CHECK(native["points"][0]["high"].get<double>() == Approx(1.5 * (3e-5 + 64 * 3e-9)));
}

TEST_CASE("a page of knowledge shows how best arms changed from run to run") {
  const auto run = [](std::string ended_at, double binomial_s) {
    return run_record{.ended_at = std::move(ended_at),
                      .contexts = {context(64, {ran("native", 2e-5), ran("binomial", binomial_s)}),
                                   context(128, {ran("native", 2e-5)})}};
  };
  // Not in their order.
  const std::vector<run_record> runs{run("2026-01-31T12:00:00Z", 4e-5),
                                     run("2026-01-30T12:00:00Z", 1e-5),
                                     run("2026-02-01T12:00:00Z", 4e-5)};
  const std::vector<experience> known{runs.front().contexts.front()};
  const std::string html = report::knowledge_page(known, runs);
  const auto charts = charts_of(html);
  REQUIRE(charts.size() == 2);
  CHECK(charts[1]["x"]["names"][0] == "2026-01-30T12:00:00Z");
  const auto& points = series_of(charts[1], "64, broadcast, 16 ranks, 1 per node, world")["points"];
  REQUIRE(points.size() == 3);
  CHECK(points[0]["y"].get<double>() == Approx(0.5));
  CHECK(points[1]["y"] == 1);
  CHECK(points[1]["hint"] == "native, 20.0 us");
  CHECK_THAT(html, ContainsSubstring(
                       "2 contexts were used by several runs; the best arm changed 1 times."));
  CHECK_THAT(html, ContainsSubstring("2026-01-31T12:00:00Z</td><td>native</td><td>binomial</td>"));
}

TEST_CASE(
    "a page of knowledge tells predictions that were wrong from those that said they may be") {
  experience e = context(64, {ran("native", 1e-5), ran("linear", 1e-5), ran("ring", 1e-5)});
  e.arms[1].prior = select::time_estimate{.mean_s = 4e-5, .spread = 0.3};
  e.arms[2].prior = select::time_estimate{.mean_s = 4e-5, .spread = 1.5};
  const std::string html = report::knowledge_page(std::vector{e}, {});
  CHECK_THAT(html, ContainsSubstring("1 of 2 predictions missed"));
  const auto charts = charts_of(html);
  const auto& wrong = series_of(charts.back(), "wrong")["points"];
  REQUIRE(wrong.size() == 1);
  CHECK(wrong[0]["hint"] == "linear, 64, broadcast, 16 ranks, 1 per node, world");
  CHECK(series_of(charts.back(), "as predicted")["points"].size() == 1);
  CHECK_THAT(html, ContainsSubstring("<td class=\"number\">0.28</td>"));
}

TEST_CASE("a page of no knowledge says so, and names are words on it") {
  CHECK_THAT(report::knowledge_page({}, {}), ContainsSubstring("Nothing has been learnt yet."));
  const std::vector<experience> known{context(64, {ran("</script><b>", 1e-5)})};
  CHECK(report::knowledge_page(known, {}).find("<b>") == std::string::npos);
}

TEST_CASE("a page of much knowledge stays small enough to be opened") {
  std::vector<experience> known;
  for (int ranks = 2; ranks < 202; ++ranks)
    for (const experience& e : broadcasts(ranks)) known.push_back(e);
  const std::string html = report::knowledge_page(known, {});
  CHECK(charts_of(html).size() == 25);
  CHECK_THAT(html, ContainsSubstring("176 more numbers of ranks"));
  CHECK(html.size() < 1500000);
}
