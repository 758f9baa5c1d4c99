// SPDX-License-Identifier: BSL-1.0
//
// JSON form of a context's knowledge: for files that people read, and packed in files of the store.
#pragma once

#include "lib/files/shared_parts.hpp"
#include "railpass/knowledge/collection.hpp"
#include "railpass/knowledge/joined.hpp"

#include <set>

namespace railpass::internal::files {

inline constexpr std::size_t longest_name = 400;  // in knowledge

namespace detail {

inline std::string short_text(const json_reader& r, std::string_view key) {
  std::string text = r.text(key);
  if (text.size() > longest_name)
    r.field(key).fail("expected at most " + std::to_string(longest_name) + " characters");
  return text;
}

inline std::string short_name(const json_reader& r, std::string_view key) {
  if (short_text(r, key).empty()) r.field(key).fail("expected a name, found an empty text");
  return r.text(key);
}

inline std::string point_in_time(const json_reader& r, std::string_view key) {
  std::string utc = r.text(key);
  if (!utc.empty() && !knowledge::seconds_of(utc))
    r.field(key).fail("expected a time such as 2026-01-31T12:00:00Z, found " +
                      r.field(key).shown());
  return utc;
}

// Also as a number of single precision, which the store keeps.
inline double call_time(const json_reader& r, std::string_view key) {
  const double seconds = r.number(key);
  if (seconds > 1e9 || float(seconds) < 1e-15f || float(seconds) > 1e9f)
    r.field(key).fail("expected the seconds of a call, found " + r.field(key).shown());
  return seconds;
}

inline double logarithm(const json_reader& r, std::string_view key) {
  const double x = r.finite(key);
  if (std::abs(x) > 100) r.field(key).fail("expected a logarithm, found " + r.field(key).shown());
  return x;
}

inline double spread(const json_reader& r, std::string_view key) {
  if (logarithm(r, key) < 0) r.field(key).fail("expected a number >= 0");
  return r.finite(key);
}

}  // namespace detail

inline json arm_experience_json(const knowledge::arm_experience& a) {
  json j{{"arm", a.arm},       {"calls", a.calls}, {"samples", a.samples},   {"mean_s", a.mean_s},
         {"spread", a.spread}, {"low_s", a.low_s}, {"median_s", a.median_s}, {"high_s", a.high_s}};
  if (a.prior) j["prior"] = {{"mean_s", a.prior->mean_s}, {"spread", a.prior->spread}};
  if (a.pairs) {
    j["pairs"] = {{"pairs", a.pairs->pairs}, {"wins", a.pairs->wins}, {"gain", a.pairs->gain}};
    put_optional(j["pairs"], "deviation", a.pairs->deviation);
  }
  return j;
}

inline knowledge::arm_experience read_arm_experience(const json_reader& r) {
  r.expect_fields({"arm", "calls", "samples", "mean_s", "spread", "low_s", "median_s", "high_s",
                   "prior", "pairs"});
  knowledge::arm_experience a{.arm = detail::short_name(r, "arm"),
                              .calls = r.integer("calls"),
                              .samples = r.integer("samples", 1),
                              .mean_s = detail::call_time(r, "mean_s"),
                              .spread = detail::spread(r, "spread"),
                              .low_s = detail::call_time(r, "low_s"),
                              .median_s = detail::call_time(r, "median_s"),
                              .high_s = detail::call_time(r, "high_s")};
  if (a.low_s > a.median_s || a.median_s > a.high_s)
    r.field("median_s").fail("expected a time between low_s and high_s");
  if (r.has("prior")) {
    const json_reader p = r.field("prior");
    p.expect_fields({"mean_s", "spread"});
    a.prior = {.mean_s = detail::call_time(p, "mean_s"), .spread = detail::spread(p, "spread")};
  }
  if (r.has("pairs")) {
    const json_reader p = r.field("pairs");
    p.expect_fields({"pairs", "wins", "gain", "deviation"});
    a.pairs = select::pair_record{.pairs = p.integer("pairs", 1),
                                  .wins = p.integer("wins"),
                                  .gain = detail::logarithm(p, "gain")};
    if (p.has("deviation")) a.pairs->deviation = detail::spread(p, "deviation");
    if (a.pairs->wins > a.pairs->pairs) p.field("wins").fail("expected at most pairs");
  }
  return a;
}

inline json experience_json(const knowledge::experience& e) {
  json arms = json::array();
  for (const knowledge::arm_experience& a : e.arms) arms.push_back(arm_experience_json(a));
  return {{"collective", e.of.collective},
          {"operation", e.of.operation},
          {"num_ranks", e.of.num_ranks},
          {"ranks_per_node", e.of.ranks_per_node},
          {"kind", e.of.kind},
          {"rails", e.of.rails},
          {"bytes", e.of.bytes},
          {"runs", e.runs},
          {"first_at", e.first_at},
          {"last_at", e.last_at},
          {"arms", std::move(arms)}};
}

inline knowledge::experience read_experience(const json_reader& r) {
  r.expect_fields({"collective", "operation", "num_ranks", "ranks_per_node", "kind", "rails",
                   "bytes", "runs", "first_at", "last_at", "arms"});
  knowledge::experience e{
      .of = {.collective = detail::short_name(r, "collective"),
             .operation = detail::short_name(r, "operation"),
             .num_ranks = int(r.integer("num_ranks", 1, largest_count)),
             .ranks_per_node = int(r.integer("ranks_per_node", 1, largest_count)),
             .kind = detail::short_name(r, "kind"),
             .rails = detail::short_text(r, "rails"),
             .bytes = r.integer("bytes")},
      .runs = r.integer("runs", 1),
      .first_at = detail::point_in_time(r, "first_at"),
      .last_at = detail::point_in_time(r, "last_at")};
  std::set<std::string> names;
  for (const json_reader& a : r.list("arms")) {
    e.arms.push_back(read_arm_experience(a));
    if (!names.insert(e.arms.back().arm).second) a.fail("expected each arm once");
  }
  return e;
}

inline json conditions_json(const knowledge::conditions& c) {
  json j{{"railpass_version", c.railpass_version}, {"governor", c.governor}};
  put_optional(j, "load", c.load);
  return j;
}

inline knowledge::conditions read_conditions(const json_reader& r) {
  r.expect_fields({"railpass_version", "governor", "load"});
  return {.railpass_version = detail::short_text(r, "railpass_version"),
          .governor = detail::short_text(r, "governor"),
          .load = r.optional_number("load")};
}

/// Whether this is a name that a run may have in a store: its end and a random number, such as
/// 20260131T120000Z-0123456789abcdef.
inline bool is_run_id(std::string_view text) {
  constexpr std::string_view shape = "ddddddddTddddddZ-xxxxxxxxxxxxxxxx";
  return std::equal(text.begin(), text.end(), shape.begin(), shape.end(), [](char c, char s) {
    const bool digit = c >= '0' && c <= '9';
    return s == 'd' ? digit : s == 'x' ? digit || (c >= 'a' && c <= 'f') : c == s;
  });
}

/// This value, a list of them.
inline std::vector<std::string> read_run_ids(const json_reader& r) {
  std::vector<std::string> ids;
  for (const json_reader& id : r.items()) {
    ids.push_back(id.text());
    if (!is_run_id(ids.back()))
      id.fail("expected the name of a run such as 20260131T120000Z-0123456789abcdef, found " +
              id.shown());
  }
  return ids;
}

}  // namespace railpass::internal::files
