// SPDX-License-Identifier: BSL-1.0
//
// The fields of knowledge in JSON files and in the store. The store keeps the values of a context
// without names, so new fields of contexts and arms come last.
#pragma once

#include "lib/files/statistics_fields.hpp"
#include "railpass/knowledge/collection.hpp"
#include "railpass/knowledge/joined.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace railpass::internal::files {

inline constexpr std::size_t longest_name = 400;  // in knowledge
inline constexpr text short_text{.longest = longest_name};
inline constexpr text short_name{.may_be_empty = false, .longest = longest_name};

/// A point in time, or nothing.
struct utc {
  std::string read(const json_reader& r) const {
    std::string value = r.text();
    if (!value.empty() && !knowledge::seconds_of(value))
      r.fail("expected a time such as 2026-01-31T12:00:00Z, found " + r.shown());
    return value;
  }
  json schema() const { return text{}.schema(); }
};

/// Seconds of a call, also as a number of single precision, which the store keeps.
struct call_time {
  double read(const json_reader& r) const {
    const double seconds = r.number();
    if (seconds > 1e9 || float(seconds) < 1e-15f || float(seconds) > 1e9f)
      r.fail("expected the seconds of a call, found " + r.shown());
    return seconds;
  }
  json schema() const { return positive{}.schema(); }
};

struct logarithm {
  double read(const json_reader& r) const {
    const double x = r.finite();
    if (std::abs(x) > 100) r.fail("expected a logarithm, found " + r.shown());
    return x;
  }
  json schema() const { return finite{}.schema(); }
};

struct log_spread {
  double read(const json_reader& r) const {
    const double x = logarithm{}.read(r);
    if (x < 0) r.fail("expected a number >= 0");
    return x;
  }
  json schema() const { return number{}.schema(); }
};

/// Whether this is a name that a run may have in a store: its end and a random number, such as
/// 20260131T120000Z-0123456789abcdef.
inline bool is_run_id(std::string_view text) {
  constexpr std::string_view shape = "ddddddddTddddddZ-xxxxxxxxxxxxxxxx";
  return std::equal(text.begin(), text.end(), shape.begin(), shape.end(), [](char c, char s) {
    const bool digit = c >= '0' && c <= '9';
    return s == 'd' ? digit : s == 'x' ? digit || (c >= 'a' && c <= 'f') : c == s;
  });
}

struct run_id {
  std::string read(const json_reader& r) const {
    if (!is_run_id(r.text()))
      r.fail("expected the name of a run such as 20260131T120000Z-0123456789abcdef, found " +
             r.shown());
    return r.text();
  }
  json schema() const { return {{"type", "string"}, {"pattern", "^\\d{8}T\\d{6}Z-[0-9a-f]{16}$"}}; }
};

// As in statistics, within the limits of knowledge.
struct known_estimate : object<select::time_estimate> {
  select::time_estimate read(const json_reader& r) const {
    const select::time_estimate b = object::read(r);
    call_time{}.read(r.field("mean_s"));
    log_spread{}.read(r.field("spread"));
    return b;
  }
};
struct known_pairs : object<select::pair_record> {
  select::pair_record read(const json_reader& r) const {
    const select::pair_record p = object::read(r);
    logarithm{}.read(r.field("gain"));
    if (p.deviation) log_spread{}.read(r.field("deviation"));
    return p;
  }
};

inline void visit(auto& v, is<knowledge::arm_experience> auto& a) {
  v("arm", a.arm, short_name);
  v("calls", a.calls);
  v("samples", a.times.samples, whole{.low = 1});
  v("mean_s", a.times.mean_s, call_time{});
  v("spread", a.times.spread, log_spread{});
  v({"low_s", "10 % quantile"}, a.times.quantiles.low_s, call_time{});
  v("median_s", a.times.quantiles.median_s, call_time{});
  v({"high_s", "90 % quantile"}, a.times.quantiles.high_s, call_time{});
  v("prior", a.prior, known_estimate{});
  v(compared, a.pairs, known_pairs{});
}
inline void check(const json_reader& r, const knowledge::arm_experience& a) {
  const select::time_quantiles& q = a.times.quantiles;
  if (q.low_s > q.median_s || q.median_s > q.high_s)
    r.field("median_s").fail("expected a time between low_s and high_s");
}

inline void visit(auto& v, is<knowledge::experience> auto& e) {
  v("collective", e.of.collective, short_name);
  v("operation", e.of.operation, short_name);
  v("num_ranks", e.of.num_ranks, one_or_more);
  v("ranks_per_node", e.of.ranks_per_node, one_or_more);
  v({"kind", "world: the communicator of all ranks; part: any other communicator"}, e.of.kind,
    short_name);
  v("rails", e.of.rails, short_text);
  v("bytes", e.of.bytes);
  v("runs", e.runs, whole{.low = 1});
  v("first_at", e.first_at, utc{});
  v("last_at", e.last_at, utc{});
  v("arms", e.arms);
}
inline void check(const json_reader& r, const knowledge::experience& e) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < e.arms.size(); ++i)
    if (!names.insert(e.arms[i].arm).second) r.list("arms")[i].fail("expected each arm once");
}

inline void visit(auto& v, is<knowledge::conditions> auto& c) {
  v("railpass_version", c.railpass_version, short_text);
  v({"governor", "governor of the first core's frequency"}, c.governor, short_text);
  v("load", c.load);
  visit_if(!c.kernel.empty(), v, later("kernel", "release of the kernel"), c.kernel, short_text);
  visit_if(!c.drivers.empty(), v, later("drivers", "versions of drivers"), c.drivers, short_text);
}

inline void visit(auto& v, is<knowledge::stored_run> auto& r) {
  v({"ids", "names that identify the run"}, r.ids, list<run_id>{.may_be_empty = false});
  v(machine_id, r.run.machine);
  v("was", r.run.was);
  v("ended_at", r.run.ended_at, utc{});
  v("contexts", r.run.contexts);
}

template <>
inline constexpr document_format format_for<knowledge::collection>{
    "railpass knowledge", 1, "Knowledge of earlier runs (railpass knowledge export)"};

inline void visit(auto& v, is<knowledge::collection> auto& c) {
  v("written_at", c.written_at, utc{});
  v("runs", c.runs);
}

}  // namespace railpass::internal::files
