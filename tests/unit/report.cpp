// SPDX-License-Identifier: BSL-1.0
#include "lib/report/page.hpp"
#include "support/catch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace railpass;
using namespace railpass::internal;
using report::chart, report::mark;

namespace {

std::string between(const std::string& text, std::string_view from, std::string_view to) {
  const std::size_t begin = text.find(from);
  REQUIRE(begin != std::string::npos);
  return text.substr(begin + from.size(), text.find(to, begin) - begin - from.size());
}

report::table times() {
  report::table lines({"arm", "median", "what"});
  lines.add({"pipeline", "12 us", "a|b"});
  lines.add({"<é>", "-", "one, \"two\""});
  return lines;
}

}  // namespace

TEST_CASE("a table is laid out by characters, words left and numbers right") {
  CHECK(times().text() ==
        "arm       median  what\n"
        "pipeline   12 us  a|b\n"
        "<é>            -  one, \"two\"\n");
}

TEST_CASE("a table for documents and programs has its cells escaped") {
  CHECK_THAT(times().markdown(), ContainsSubstring("| pipeline | 12 us | a\\|b |"));
  CHECK_THAT(times().csv(), ContainsSubstring("<é>,-,\"one, \"\"two\"\"\"\n"));
  CHECK_THAT(times().html(),
             ContainsSubstring("<td>&lt;é&gt;</td><td class=\"number\">-</td><td>one,"));
}

TEST_CASE("a table that is too wide wraps words, then continues below") {
  report::table words({"name", "what it is"});
  words.add({"binomial", "a tree, in which ranks pass on what they have; few rounds"});
  CHECK(words.text(40) ==
        "name      what it is\n"
        "binomial  a tree, in which ranks pass on\n"
        "          what they have; few rounds\n");
  report::table numbers({"arm", "first", "second", "third"});
  numbers.add({"ring", "1111111", "2222222", "3333333"});
  CHECK(numbers.text(24) ==
        "arm     first   second\n"
        "ring  1111111  2222222\n"
        "\n"
        "arm     third\n"
        "ring  3333333\n");
  CHECK(numbers.text(0) == numbers.text(31));
  report::table pairs({"operation", "arm", "first", "second"}, 2);
  pairs.add({"scan", "ring", "1111111", "2222222"});
  pairs.add({"scan", "tree", "3333333", "4444444"});
  CHECK(pairs.text(26) ==
        "operation  arm     first\n"
        "scan       ring  1111111\n"
        "scan       tree  3333333\n"
        "\n"
        "arm    second\n"
        "ring  2222222\n"
        "tree  4444444\n");
  pairs.add({"gather", "ring", "5555555", "6666666"});
  CHECK_THAT(pairs.text(26), ContainsSubstring("scan       tree  4444444\n"
                                               "gather     ring  6666666\n"));
  report::table letters({"a", "b"});
  letters.add({"x", "ééééééééééééééééééééé"});
  CHECK(letters.text(19) == "a  b\nx  éééééééééééééééé\n   ééééé\n");
}

TEST_CASE("rows that differ in their first cell alone are one") {
  report::table lines({"arm", "time"});
  for (const char* arm : {"linear", "chain", "pipeline"}) lines.add_folded({arm, "5 us"});
  lines.add_folded({"native", "6 us"});
  lines.add_folded({"ring", "6 us"});
  CHECK(lines.text() ==
        "arm              time\n"
        "linear, 2 alike  5 us\n"
        "native, 1 alike  6 us\n");
  CHECK(lines.rows() == 2);
}

TEST_CASE("programs get numbers without units, and a title before each row") {
  report::table lines({"arm", "time", "size", "95 %", "of"});
  lines.add({"ring", "12.5 us", "64KiB", "3.0 %", "2 of 3"});
  lines.add({"4-ary", "1.00 s", "8", "-", "5..6"});
  CHECK(lines.csv("cell, one") ==
        "of,arm,time,size,95 %,of\n"
        "\"cell, one\",ring,1.25e-05,65536,0.03,2 of 3\n"
        "\"cell, one\",4-ary,1,8,-,5..6\n");
}

TEST_CASE("a page has its host, its date, and in the words that it is given no markup") {
  report::page p("a <title>");
  p.section("first & last");
  p.add(times());
  const std::string html = p.html();
  CHECK_THAT(html, ContainsSubstring("<h1>a &lt;title&gt;</h1>\n<p class=\"origin\">"));
  CHECK_THAT(html, ContainsSubstring("<h2>first &amp; last</h2>"));
  CHECK(html.find("<script") == std::string::npos);  // only charts need one
  CHECK(html.size() < 5000);
}

TEST_CASE("a chart is data for the script, and a table without it") {
  report::page p("charts");
  p.add(chart{.title = "times",
              .x = {.title = "size", .unit = "B", .logarithmic = true},
              .y = {.title = "time", .unit = "s", .logarithmic = true},
              .series = {{.name = "</script><b>",
                          .drawn_as = mark::curve,
                          .points = {{.x = 1024, .y = 2e-6, .low = 1e-6, .high = 3e-6},
                                     {.x = 2048, .y = 4e-6}}},
                         {.name = "other", .points = {{.x = 1024, .y = 1, .hint = "slow"}}}}});
  p.add(chart{.title = "shares",
              .x = {.title = "parameter", .names = {"a", "b"}},
              .y = {.title = "share", .unit = "%"},
              .series = {{.name = "s", .drawn_as = mark::bars, .points = {{.x = 1, .y = 12.5}}}},
              .sideways = true});
  const std::string html = p.html();

  const auto data =
      nlohmann::json::parse(between(html, "<script type=\"application/json\">", "</script>"));
  CHECK(data["x"]["logarithmic"] == true);
  REQUIRE(data["series"].size() == 2);
  CHECK(data["series"][0]["name"] == "</script><b>");
  CHECK(data["series"][0]["mark"] == "curve");
  CHECK(data["series"][0]["points"][0]["high"] == 3e-6);
  CHECK_FALSE(data["series"][0]["points"][1].contains("high"));
  CHECK(data["series"][1]["points"][0]["hint"] == "slow");

  const std::string numbers = between(html, "<details open>", "</details>");
  CHECK_THAT(numbers, ContainsSubstring("1KiB") && ContainsSubstring("2.00 us") &&
                          ContainsSubstring("3.00 us") && ContainsSubstring("slow") &&
                          ContainsSubstring("&lt;/script&gt;"));
  CHECK_THAT(html, ContainsSubstring("<td>b</td><td class=\"number\">12.5 %</td>"));
}

TEST_CASE(
    "what has the same name has the same colour in all charts of a page, and no other's in one") {
  report::page p("charts");
  p.add(chart{.title = "", .x = {}, .y = {}, .series = {{.name = "ring"}, {.name = "native"}}});
  std::vector<report::chart_series> many;
  for (int i = 0; i < 7; ++i) many.push_back({.name = "arm " + std::to_string(i)});
  many.push_back({.name = "native"});
  p.add(chart{.title = "", .x = {}, .y = {}, .series = many});
  const std::string html = p.html();
  std::vector<std::vector<std::pair<std::string, std::string>>> charts;  // name, colour
  static constexpr std::string_view begins = "<script type=\"application/json\">";
  for (std::size_t at = html.find(begins); at != std::string::npos;
       at = html.find(begins, at + 1)) {
    const std::size_t from = at + begins.size();
    const auto data = nlohmann::json::parse(html.substr(from, html.find("</script>", from) - from));
    charts.emplace_back();
    for (const auto& one : data.at("series"))
      charts.back().emplace_back(one.at("name"), one.at("colour"));
  }
  REQUIRE(charts.size() == 2);
  const auto colour_in = [](const auto& of, const std::string& name) {
    return std::ranges::find(of, name, &std::pair<std::string, std::string>::first)->second;
  };
  CHECK(colour_in(charts[0], "native") == colour_in(charts[1], "native"));
  std::set<std::string> different;
  for (const auto& [name, colour] : charts[1]) different.insert(colour);
  CHECK(different.size() == 8);
}

TEST_CASE("of very many points a page without its script says how many more there are") {
  report::page p("charts");
  chart many{.title = "times",
             .x = {.title = "call"},
             .y = {.title = "time", .unit = "s"},
             .series = {{.name = "s"}}};
  for (int i = 0; i < 250; ++i) many.series[0].points.push_back({.x = double(i), .y = 1e-6});
  p.add(many);
  CHECK_THAT(p.html(), ContainsSubstring("50 more"));
}

TEST_CASE("a page with charts stands alone and stays small") {
  report::page p("charts");
  p.add(chart{.title = "empty", .x = {.title = "x"}, .y = {.title = "y"}});
  const std::string html = p.html();
  CHECK_THAT(html, ContainsSubstring("Chart.js v"));
  CHECK(html.find(" src=") == std::string::npos);
  CHECK(html.find("<link") == std::string::npos);
  CHECK(html.size() < 300000);
}
