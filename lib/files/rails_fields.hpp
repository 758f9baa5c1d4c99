// SPDX-License-Identifier: BSL-1.0
//
// The fields of measurements of rails.
#pragma once

#include "lib/files/fields.hpp"
#include "railpass/transport/sampling.hpp"

#include <algorithm>
#include <functional>

namespace railpass::internal::files {

/// A text, or the text of an integer.
struct word {
  std::string read(const json_reader& r) const { return r.word(); }
  json schema() const { return text{}.schema(); }
};

/// A whole number that is kept as a double.
struct whole_double {
  double read(const json_reader& r) const { return double(whole{}.read(r)); }
  json write(double x) const { return std::int64_t(x); }
  json schema() const { return whole{}.schema(); }
};

struct rail_number {
  int read(const json_reader& r) const {
    return int(r.integer(0, std::int64_t(transport::most_rails) - 1));
  }
  json schema() const { return whole{}.schema(); }
};

inline void visit(auto& v, is<transport::measured_time> auto& t) {
  v("bytes", t.bytes, whole_double{});
  v("seconds", t.seconds, positive{});
  v({"error_s", "standard error of the median"}, t.error_s);
}
inline void check_next(const json_reader& r, const transport::measured_time& t,
                       const transport::time_curve& before) {
  if (!before.empty() && t.bytes <= before.back().bytes)
    r.field("bytes").fail("expected growing sizes");
}

inline void visit(auto& v, is<transport::rail_samples> auto& s) {
  v("copied", s.copied);
  v("pieces", s.pieces);
  v("rendezvous", s.rendezvous);
  v("two_packets", s.two_packets);
  v("aggregate", s.aggregate);
}
inline void check(const json_reader& r, const transport::rail_samples& s) {
  if (s.pieces.size() + s.rendezvous.size() < 2) r.fail("expected times of two sizes or more");
}

inline void visit(auto& v, is<transport::joint_sample> auto& s) {
  v("rails", s.rails, list<rail_number>{.may_be_empty = false});
  v("bytes_per_s", s.bytes_per_s, positive{});
}
inline void check(const json_reader& r, const transport::joint_sample& s) {
  if (std::ranges::adjacent_find(s.rails, std::greater_equal{}) != s.rails.end())
    r.field("rails").fail("expected growing numbers");
}

inline void visit(auto& v, is<transport::measured_link> auto& l) {
  v("same_host", l.same_host);
  v({"marks", "host, interface, address, MTU and nominal speed of both ends"}, l.marks,
    list<word>{});
  v("memory_copy", l.samples.memory_copy);
  v("rails", l.samples.rails,
    list<object<transport::rail_samples>>{.may_be_empty = false, .most = transport::most_rails});
  v({"joint", "bandwidth of sets of rails that send at the same time"}, l.samples.joint);
  v("together", l.samples.together);
}
inline void check(const json_reader& r, const transport::measured_link& l) {
  for (const json_reader& joint : r.list("joint"))
    joint.integers("rails", 0, std::int64_t(l.samples.rails.size()) - 1);
}

template <>
inline constexpr document_format format_for<transport::rails_measurement>{
    "railpass rails", 1, "Measurements of rails (RAILPASS_RAILS_PROFILE)"};

inline void visit(auto& v, is<transport::rails_measurement> auto& m) {
  v("railpass_version", m.railpass_version);
  v({"measured_at", utc_example}, m.measured_at);
  v("links", m.links);
}

}  // namespace railpass::internal::files
