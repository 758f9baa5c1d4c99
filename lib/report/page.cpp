// SPDX-License-Identifier: BSL-1.0
#include "lib/report/page.hpp"

#include "lib/files/files.hpp"
#include "lib/report/assets.hpp"
#include "lib/report/style.hpp"
#include "lib/report/xml.hpp"
#include "railpass/base/units.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <unistd.h>

namespace railpass::internal::report {

namespace {

using json = nlohmann::ordered_json;

// Escapes text so that it cannot end the enclosing element.
std::string inside_script(const json& data) {
  std::string text;
  for (const char c : data.dump(-1, ' ', false, json::error_handler_t::replace))
    text += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return text;
}

json to_json(const chart_axis& axis) {
  json j{{"title", axis.title}, {"unit", axis.unit}, {"logarithmic", axis.logarithmic}};
  if (!axis.names.empty()) j["names"] = axis.names;
  return j;
}

json to_json(const chart_point& p) {
  json j{{"x", p.x}, {"y", p.y}};
  if (p.low && p.high) {
    j["low"] = *p.low;
    j["high"] = *p.high;
  }
  if (!p.hint.empty()) j["hint"] = p.hint;
  return j;
}

// A series keeps the colour of its name, unless another series of the chart has that colour.
json to_json(const chart& drawn, std::map<std::string, std::size_t>& colour_of) {
  std::array<bool, colours.size()> taken{};
  const auto colour = [&](const std::string& name) {
    std::size_t c = colour_of.try_emplace(name, colour_of.size() % colours.size()).first->second;
    if (taken[c] && drawn.series.size() <= colours.size())
      c = std::ranges::find(taken, false) - taken.begin();
    taken[c] = true;
    return colours[c];
  };
  static constexpr std::array marks{"bars", "points", "curve"};
  json series = json::array();
  for (const chart_series& s : drawn.series) {
    json points = json::array();
    for (const chart_point& p : s.points) points.push_back(to_json(p));
    series.push_back({{"name", s.name},
                      {"mark", marks[std::size_t(s.drawn_as)]},
                      {"colour", colour(s.name)},
                      {"points", std::move(points)}});
  }
  return {{"x", to_json(drawn.x)},
          {"y", to_json(drawn.y)},
          {"sideways", drawn.sideways},
          {"series", std::move(series)}};
}

std::string shown(double value, const chart_axis& axis) {
  if (!axis.names.empty()) return axis.names.at(std::size_t(value));
  if (axis.unit == "s") return format_seconds(value);
  if (axis.unit == "B") return format_bytes(std::llround(value));
  return number(value) + (axis.unit.empty() ? "" : " " + axis.unit);
}

// The numbers of a chart; of very many points, the first, and how many more there are.
table numbers_of(const chart& drawn) {
  constexpr std::size_t most_rows = 200;
  const auto any = [&](auto has) {
    return std::ranges::any_of(drawn.series,
                               [&](const auto& s) { return std::ranges::any_of(s.points, has); });
  };
  const bool series = drawn.series.size() > 1,
             ranges = any([](const chart_point&p) { return p.low && p.high; }),
             hints = any([](const chart_point&p) { return !p.hint.empty(); });
  std::vector<std::string> titles{drawn.x.title, drawn.y.title};
  if (ranges) titles.insert(titles.end(), {"from", "to"});
  if (series) titles.emplace_back("series");
  if (hints) titles.emplace_back("what");
  table lines(titles);
  std::size_t rows = 0;
  for (const chart_series& s : drawn.series)
    for (const chart_point& p : s.points) {
      if (++rows > most_rows) continue;
      std::vector<std::string> row{shown(p.x, drawn.x), shown(p.y, drawn.y)};
      if (ranges)
        for (const auto& end : {p.low, p.high}) row.push_back(end ? shown(*end, drawn.y) : "-");
      if (series) row.push_back(s.name);
      if (hints) row.push_back(p.hint);
      lines.add(std::move(row));
    }
  if (rows > most_rows) {
    std::vector<std::string> last(titles.size());
    last.front() = std::to_string(rows - most_rows) + " more";
    lines.add(std::move(last));
  }
  return lines;
}

std::string folded(std::string_view title, const table& lines, bool open) {
  return std::string("<details") + (open ? " open" : "") + "><summary>" + xml_text(title) +
         "</summary>\n" + lines.html() + "</details>\n";
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown host";
}

void page::element(std::string_view name, std::string_view words, std::string_view style) {
  body_ += '<' + std::string(name);
  if (!style.empty()) body_ += " class=\"" + std::string(style) + '"';
  body_ += '>' + xml_text(words) + "</" + std::string(name) + ">\n";
}

void page::section(std::string_view title) { element("h2", title); }
void page::text(std::string_view words) { element("p", words); }
void page::finding(std::string_view words) { element("p", words, "finding"); }
void page::code(std::string_view words) {
  body_ += "<p><code>" + xml_text(words) + "</code></p>\n";
}

void page::add(const table& lines) { body_ += lines.html(); }
void page::add_folded(std::string_view title, const table& lines) {
  body_ += folded(title, lines, false);
}

void page::add(const chart& drawn) {
  has_charts_ = true;
  body_ += "<figure class=\"chart\"><figcaption>" + xml_text(drawn.title) +
           "</figcaption>\n<script type=\"application/json\">" +
           inside_script(to_json(drawn, colour_of_)) + "</script>\n" +
           folded("Numbers", numbers_of(drawn), true) + "</figure>\n";
}

void page::add_picture(std::string_view svg) {
  body_ += "<figure class=\"picture\">" + std::string(svg) + "</figure>\n";
}

std::string page::html() const {
  const auto script = [](std::string_view text) {
    return "<script>" + std::string(text) + "</script>\n";
  };
  const auto variable = [](const char* name, std::string_view colour) {
    return std::string("--") + name + ": " + std::string(colour) + "; ";
  };
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         // The browser enforces that the page loads nothing from elsewhere.
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
         "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         xml_text(title_) + "</title>\n<style>\n:root { " + variable("ink", ink) +
         variable("faint-ink", faint_ink) + variable("grid", grid_colour) +
         variable("faint-grid", faint_grid_colour) + variable("paper", paper) + "}\n" +
         std::string(page_css) + "</style></head>\n<body>\n<h1>" + xml_text(title_) +
         "</h1>\n<p class=\"origin\">" + xml_text(host_name() + ", " + files::utc_now()) +
         "</p>\n" + body_ + (has_charts_ ? script(chart_js) + script(page_js) : "") +
         "</body></html>\n";
}

}  // namespace railpass::internal::report
