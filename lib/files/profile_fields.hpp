// SPDX-License-Identifier: BSL-1.0
//
// The fields of profiles.
#pragma once

#include "lib/files/machine_fields.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace railpass::internal::files {

namespace detail {

template <class Piece>
void expect_growing(const json_reader& r, const Piece& piece, const std::vector<Piece>& before) {
  if (before.empty() ? piece.from_bytes != 0 : piece.from_bytes <= before.back().from_bytes)
    r.fail("expected from_bytes 0 in the first piece and growing from_bytes in later pieces");
}

// The numbers in a point's line, in this order.
auto members_of(auto& point) {
  auto& at = point.features;
  return std::array{&at.size,          &at.ranks,     &at.ranks_per_node, &at.segments,
                    &at.segment_bytes, &at.others[0], &at.others[1],      &at.others[2],
                    &point.weight,     &point.noise,  &point.own,         &point.seconds};
}

}  // namespace detail

inline void visit(auto& v, is<time_curve::piece> auto& p) {
  v("from_bytes", p.from_bytes);
  v("alpha_s", p.alpha_s, finite{});
  v("s_per_byte", p.s_per_byte);
}
inline void check_next(const json_reader& r, const time_curve::piece& p,
                       const std::vector<time_curve::piece>& before) {
  detail::expect_growing(r, p, before);
  if (p.at_s(p.from_bytes) < 0) r.fail("expected a time >= 0 at from_bytes");
}

inline void visit(auto& v, is<link_piece> auto& p) {
  v("from_bytes", p.from_bytes);
  v("latency_s", p.latency_s);
  v("send_overhead_s", p.send_overhead_s);
  v("receive_overhead_s", p.receive_overhead_s);
  v("gap_s", p.gap_s);
  v("gap_s_per_byte", p.gap_s_per_byte);
  v("latency_s_per_byte", p.latency_s_per_byte, finite{});
  v("send_overhead_s_per_byte", p.send_overhead_s_per_byte);
  v("receive_overhead_s_per_byte", p.receive_overhead_s_per_byte);
}
inline void check_next(const json_reader& r, const link_piece& p,
                       const std::vector<link_piece>& before) {
  if (p.gap_s_per_byte + p.latency_s_per_byte < 0)
    r.fail("expected latency_s_per_byte to be at least -gap_s_per_byte");
  detail::expect_growing(r, p, before);
}

inline void visit(auto& v, is<link_model> auto& l) {
  // Infinite for a link that never waits for the receiver.
  if constexpr (is_reading<decltype(v)>)
    l.eager_limit_bytes = std::numeric_limits<double>::infinity();
  visit_if(std::isfinite(l.eager_limit_bytes), v, or_null("eager_limit_bytes", "null: none"),
           l.eager_limit_bytes);
  v({"residual_spread", "standard deviation of ln(measured time / modelled time)"},
    l.residual_spread);
  v({"pieces", "LogGP by message size"}, l.pieces, list<object<link_piece>>{.may_be_empty = false});
  v(later("exchange"), l.exchange.pieces);
  v(later("shift"), l.shift.pieces);
  v(later("flow"), l.flow.pieces);
  v(later("crowd"), l.crowd.pieces);
}

inline void visit(auto& v, is<local_model> auto& m) {
  v("alpha_s", m.alpha_s);
  v("s_per_byte", m.s_per_byte);
}

inline void visit(auto& v, is<shared_memory_model> auto& m) {
  if constexpr (is_reading<decltype(v)>) m.measured = true;
  v({"seen_s", "delay until a rank sees data that another rank has published"}, m.seen_s);
  v("copy", m.copy);
  v("single_copy", m.single_copy);
  visit_if(m.near_seen_s > 0, v,
           {"near_seen_s", "seen_s of two ranks that share a cache, if a node has several caches"},
           m.near_seen_s);
}

inline void visit(auto& v, is<machine_model> auto& m) {
  v("same_node", m.same_node);
  v("across_nodes", m.across_nodes);
  v("copy", m.copy);
  v("reduce", m.reduce);
  v("rails_per_node", m.rails_per_node, whole{.low = 1, .high = 1024});
  visit_if(m.shared.measured, v,
           {"shared_memory", "times of transfers between the ranks of a node, if measured"},
           m.shared);
}

/// Numbers in a text. A profile has thousands of points, and a program waits while they are read. A
/// line takes a quarter of the time of JSON numbers with all digits.
struct point_line {
  using point = algorithm_correction::point;

  json write(const point& p) const {
    std::string line;
    for (const double* const member : detail::members_of(p)) {
      std::array<char, 32> digits;
      const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), *member,
                                     std::chars_format::general, 6);
      line.append(line.empty() ? "" : " ").append(digits.data(), end.ptr);
    }
    return line;
  }
  point read(const json_reader& r) const {
    point p;
    const auto members = detail::members_of(p);
    const std::string_view line = r.text();
    const char *at = line.data(), *const end = at + line.size();
    std::size_t found = 0;
    for (; found < members.size() && at != end; ++found) {
      const auto parsed = std::from_chars(at, end, *members[found]);
      if (parsed.ec != std::errc() || (parsed.ptr != end && *parsed.ptr != ' ')) break;
      at = parsed.ptr + (parsed.ptr != end);
    }
    if (found < members.size() || at != end)
      r.fail("expected " + std::to_string(members.size()) + " numbers, found " + r.shown());
    for (const double* const member : members) {
      const bool may_be_negative = member == &p.weight || member == &p.own;
      if (!(std::abs(*member) <= 1e6) || (*member < 0 && !may_be_negative))
        r.fail(
            "expected numbers up to 1000000, the ninth and the eleventh from -1000000 on, found " +
            r.shown());
    }
    return p;
  }
  json schema() const {
    return {{"type", "string"},
            {"description",
             "12 numbers: size, ranks, ranks per node, segments, segment bytes, three other "
             "parameters, weight, noise, the arm's own, seconds"}};
  }
};

inline void visit(auto& v, is<algorithm_correction> auto& c) {
  v("collective", c.collective, nonempty);
  v("algorithm", c.algorithm, nonempty);
  v({"factor", "measured time / time by the algorithm's closed form"}, c.factor, positive{});
  v("points", c.points, list<point_line>{});
}

template <>
inline constexpr document_format format_for<profile>{"railpass profile", 5,
                                                     "Model of a machine (railpass fit)"};

inline void visit(auto& v, is<profile> auto& p) {
  v(machine_id, p.machine_id);
  v({"sampled_at", utc_example}, p.sampled_at);
  v("machine", p.machine);
  v("corrections", p.corrections);
  v({"measured", "times of the MPI library's own collectives"}, p.measured);
  v({"core_share",
     "smallest share of a core that a rank got during sampling; below 0.9 times are too long"},
    p.core_share);
}

}  // namespace railpass::internal::files
