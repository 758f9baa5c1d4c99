// SPDX-License-Identifier: BSL-1.0
#include "lib/tune/extract.hpp"

#include "lib/files/files.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <re2/re2.h>

namespace railpass::internal::tune {

namespace {

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += std::log(v);
  return std::exp(sum / double(values.size()));
}

double positive(std::string_view word) {
  double value = 0;
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failure != std::errc{} || end != word.data() + word.size() || !std::isfinite(value) ||
      value <= 0)
    throw error("found '" + std::string(word.substr(0, 40)) + "', expected a number > 0");
  return value;
}

std::shared_ptr<const RE2> compiled(const std::string& pattern) {
  RE2::Options options(RE2::Latin1);  // bytes: a command may print anything
  options.set_log_errors(false);
  auto made = std::make_shared<const RE2>(pattern, options);
  if (!made->ok())
    throw error("'" + pattern + "': not a regular expression of RE2: " + made->error());
  return made;
}

measurements parse(const std::string& format, std::string_view text) {
  if (format == "osu") return files::parse_osu(text, "its output", {.num_ranks = 1});
  if (format == "imb") return files::parse_imb(text, "its output", {});
  if (format == "netpipe") return files::parse_netpipe(text, "its output", {});
  measurements found;
  for (const bench_result& r : files::parse_bench(text, "its output").results)
    found.collectives.push_back({.collective = r.collective,
                                 .arm = r.arm,
                                 .num_ranks = 1,
                                 .ranks_per_node = 1,
                                 .bytes = r.bytes,
                                 .median_s = r.median_s});
  return found;
}

}  // namespace

goal goal_of(std::string_view metric) {
  for (const goal& g : {goal{"latency", "", false}, goal{"bandwidth", "", true},
                        goal{"time", "s", false}, goal{"memory", "bytes", false}})
    if (g.name == metric) return g;
  throw error("'" + std::string(metric) + "': expected latency, bandwidth, time or memory");
}

extractor::extractor(const extraction& wanted) : wanted_(wanted) {
  const auto measured_outside = [](const goal& g) {
    return g.name == "time" || g.name == "memory";
  };
  std::size_t needed = 0;
  for (goal& g : wanted_.goals) {
    needed += !measured_outside(g);
    if (!wanted_.format.empty() && !measured_outside(g)) g.unit = g.higher_is_better ? "B/s" : "s";
  }
  static constexpr std::string_view formats[] = {"railpass", "osu", "imb", "netpipe"};
  if (!wanted_.format.empty() &&
      std::find(std::begin(formats), std::end(formats), wanted_.format) == std::end(formats))
    throw error("'" + wanted_.format + "': expected railpass, osu, imb or netpipe");
  if (!wanted_.format.empty() && !wanted_.patterns.empty())
    throw error("expected either patterns or a format");
  if (!wanted_.sizes_bytes.empty() && wanted_.format.empty())
    throw error("message sizes are chosen from the rows of a format; a pattern takes every match");
  if (wanted_.format.empty() && wanted_.patterns.size() != needed &&
      wanted_.patterns.size() != wanted_.goals.size())
    throw error("expected " + std::to_string(needed) +
                " patterns (for each metric but time and memory), or a format");
  for (const std::string& p : wanted_.patterns) patterns_.push_back(compiled(p));
  if (patterns_.size() == wanted_.goals.size())
    for (goal& g : wanted_.goals) g.unit.clear();
}

double extractor::from_pattern(std::size_t pattern, std::string_view text) const {
  const RE2& wanted = *patterns_[pattern];
  const std::size_t group = wanted.NumberOfCapturingGroups() > 0 ? 1 : 0;
  std::vector<double> found;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const re2::StringPiece line(text.data(), end);
    text.remove_prefix(std::min(end + 1, text.size()));
    re2::StringPiece parts[2];
    if (wanted.Match(line, 0, end, RE2::UNANCHORED, parts, int(group) + 1))
      found.push_back(positive({parts[group].data(), parts[group].size()}));
  }
  if (found.empty()) throw error("the output has no match of '" + wanted_.patterns[pattern] + "'");
  return geometric_mean(found);
}

std::vector<double> extractor::values(const command_result& done, std::string_view text) const {
  measurements rows;
  const bool by_pattern = wanted_.format.empty();
  const bool all_by_pattern = by_pattern && patterns_.size() == wanted_.goals.size();
  const bool reads_rows =
      !by_pattern && std::any_of(wanted_.goals.begin(), wanted_.goals.end(), [](const goal& g) {
        return g.name == "latency" || g.name == "bandwidth";
      });
  if (reads_rows) rows = parse(wanted_.format, text);
  std::vector<double> result;
  std::size_t next_pattern = 0;
  for (const goal& g : wanted_.goals) {
    if (!all_by_pattern && (g.name == "time" || g.name == "memory")) {
      const double value = g.name == "time" ? done.wall_s : double(done.peak_memory_bytes);
      if (!(value > 0)) throw error("its " + g.name + " could not be measured");
      result.push_back(value);
      continue;
    }
    if (by_pattern) {
      result.push_back(from_pattern(next_pattern++, text));
      continue;
    }
    std::vector<std::pair<std::int64_t, double>> sizes;
    if (g.name == "latency") {
      for (const auto& l : rows.links) sizes.emplace_back(l.bytes, l.one_way_s);
      for (const auto& c : rows.collectives) sizes.emplace_back(c.bytes, c.median_s);
    } else {
      for (const auto& s : rows.streams) sizes.emplace_back(s.bytes, double(s.bytes) / s.busy_s);
      if (sizes.empty())
        for (const auto& l : rows.links)
          if (l.bytes > 0) sizes.emplace_back(l.bytes, double(l.bytes) / l.one_way_s);
    }
    std::vector<double> chosen;
    for (const auto& [bytes, value] : sizes)
      if (wanted_.sizes_bytes.empty() ||
          std::find(wanted_.sizes_bytes.begin(), wanted_.sizes_bytes.end(), bytes) !=
              wanted_.sizes_bytes.end())
        chosen.push_back(value);
    for (const std::int64_t bytes : wanted_.sizes_bytes)
      if (std::none_of(sizes.begin(), sizes.end(),
                       [&](const auto& row) { return row.first == bytes; }))
        throw error("its output has no " + g.name + " for " + std::to_string(bytes) + " bytes");
    if (chosen.empty()) throw error("its output has no " + g.name);
    result.push_back(geometric_mean(chosen));
  }
  return result;
}

}  // namespace railpass::internal::tune
