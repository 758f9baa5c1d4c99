// SPDX-License-Identifier: BSL-1.0
#include "lib/files/files.hpp"
#include "lib/files/shared_parts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace railpass::internal::files {

namespace {

constexpr std::string_view format = "railpass profile";
constexpr int version = 5;

json curve_json(const time_curve& curve) {
  json pieces = json::array();
  for (const time_curve::piece& p : curve.pieces)
    pieces.push_back(
        {{"from_bytes", p.from_bytes}, {"alpha_s", p.alpha_s}, {"s_per_byte", p.s_per_byte}});
  return pieces;
}

template <class Pieces>
void expect_next(const json_reader& r, const Pieces& before, double from_bytes) {
  if (before.empty() ? from_bytes != 0 : from_bytes <= before.back().from_bytes)
    r.fail("expected from_bytes 0 in the first piece and growing from_bytes in later pieces");
}

time_curve read_curve(const json_reader& link, std::string_view key) {
  time_curve curve;
  if (!link.has(key)) return curve;
  for (const json_reader& p : link.list(key)) {
    p.expect_fields({"from_bytes", "alpha_s", "s_per_byte"});
    const time_curve::piece piece{.from_bytes = p.number("from_bytes"),
                                  .alpha_s = p.finite("alpha_s"),
                                  .s_per_byte = p.number("s_per_byte")};
    expect_next(p, curve.pieces, piece.from_bytes);
    if (piece.alpha_s + piece.from_bytes * piece.s_per_byte < 0)
      p.fail("expected a time >= 0 at from_bytes");
    curve.pieces.push_back(piece);
  }
  return curve;
}

json link_json(const link_model& link) {
  json pieces = json::array();
  for (const link_piece& p : link.pieces)
    pieces.push_back({{"from_bytes", p.from_bytes},
                      {"latency_s", p.latency_s},
                      {"send_overhead_s", p.send_overhead_s},
                      {"receive_overhead_s", p.receive_overhead_s},
                      {"gap_s", p.gap_s},
                      {"gap_s_per_byte", p.gap_s_per_byte},
                      {"latency_s_per_byte", p.latency_s_per_byte},
                      {"send_overhead_s_per_byte", p.send_overhead_s_per_byte},
                      {"receive_overhead_s_per_byte", p.receive_overhead_s_per_byte}});
  json j;
  // A link that never waits for the receiver has no limit: null.
  if (std::isfinite(link.eager_limit_bytes))
    j["eager_limit_bytes"] = link.eager_limit_bytes;
  else
    j["eager_limit_bytes"] = nullptr;
  j["residual_spread"] = link.residual_spread;
  j["pieces"] = std::move(pieces);
  j["exchange"] = curve_json(link.exchange);
  j["shift"] = curve_json(link.shift);
  j["flow"] = curve_json(link.flow);
  j["crowd"] = curve_json(link.crowd);
  return j;
}

link_model read_link(const json_reader& r) {
  r.expect_fields(
      {"eager_limit_bytes", "residual_spread", "pieces", "exchange", "shift", "flow", "crowd"});
  link_model link;
  link.eager_limit_bytes = r.has("eager_limit_bytes") ? r.number("eager_limit_bytes")
                                                      : std::numeric_limits<double>::infinity();
  link.residual_spread = r.number("residual_spread");
  for (const json_reader& p : r.list("pieces")) {
    p.expect_fields({"from_bytes", "latency_s", "send_overhead_s", "receive_overhead_s", "gap_s",
                     "gap_s_per_byte", "latency_s_per_byte", "send_overhead_s_per_byte",
                     "receive_overhead_s_per_byte"});
    const link_piece piece{.from_bytes = p.number("from_bytes"),
                           .latency_s = p.number("latency_s"),
                           .send_overhead_s = p.number("send_overhead_s"),
                           .receive_overhead_s = p.number("receive_overhead_s"),
                           .gap_s = p.number("gap_s"),
                           .gap_s_per_byte = p.number("gap_s_per_byte"),
                           .latency_s_per_byte = p.finite("latency_s_per_byte"),
                           .send_overhead_s_per_byte = p.number("send_overhead_s_per_byte"),
                           .receive_overhead_s_per_byte = p.number("receive_overhead_s_per_byte")};
    if (piece.gap_s_per_byte + piece.latency_s_per_byte < 0)
      p.fail("expected latency_s_per_byte to be at least -gap_s_per_byte");
    expect_next(p, link.pieces, piece.from_bytes);
    link.pieces.push_back(piece);
  }
  if (link.pieces.empty()) r.fail("expected at least one piece");
  link.exchange = read_curve(r, "exchange");
  link.shift = read_curve(r, "shift");
  link.flow = read_curve(r, "flow");
  link.crowd = read_curve(r, "crowd");
  return link;
}

json local_json(const local_model& m) {
  return {{"alpha_s", m.alpha_s}, {"s_per_byte", m.s_per_byte}};
}

local_model read_local(const json_reader& r) {
  r.expect_fields({"alpha_s", "s_per_byte"});
  return {.alpha_s = r.number("alpha_s"), .s_per_byte = r.number("s_per_byte")};
}

// The numbers in a point's line, in this order.
auto members_of(auto& point) {
  auto& at = point.place;
  return std::array{&at.size,          &at.ranks,     &at.ranks_per_node, &at.segments,
                    &at.segment_bytes, &at.others[0], &at.others[1],      &at.others[2],
                    &point.weight,     &point.noise,  &point.own,         &point.seconds};
}

// A profile has thousands of points, and a program waits while they are read. A line takes a
// quarter of the time of JSON numbers with all digits.
std::string point_line(const algorithm_correction::point& p) {
  std::string line;
  for (const double* const member : members_of(p)) {
    std::array<char, 32> text;
    const auto end = std::to_chars(text.data(), text.data() + text.size(), *member,
                                   std::chars_format::general, 6);
    line.append(line.empty() ? "" : " ").append(text.data(), end.ptr);
  }
  return line;
}

algorithm_correction::point read_point(const json_reader& r) {
  algorithm_correction::point point;
  const auto members = members_of(point);
  const std::string_view line = r.text();
  const char *at = line.data(), *const end = at + line.size();
  std::size_t found = 0;
  for (; found < members.size() && at != end; ++found) {
    const auto number = std::from_chars(at, end, *members[found]);
    if (number.ec != std::errc() || (number.ptr != end && *number.ptr != ' ')) break;
    at = number.ptr + (number.ptr != end);
  }
  if (found < members.size() || at != end)
    r.fail("expected " + std::to_string(members.size()) + " numbers, found " + r.shown());
  for (const double* const member : members) {
    const bool may_be_negative = member == &point.weight || member == &point.own;
    if (!(std::abs(*member) <= 1e6) || (*member < 0 && !may_be_negative))
      r.fail("expected numbers up to 1000000, the ninth and the eleventh from -1000000 on, found " +
             r.shown());
  }
  return point;
}

json machine_json(const machine_model& m) {
  json machine{{"same_node", link_json(m.same_node)},
               {"across_nodes", link_json(m.across_nodes)},
               {"copy", local_json(m.copy)},
               {"reduce", local_json(m.reduce)},
               {"rails_per_node", m.rails_per_node}};
  if (m.shared.measured)
    machine["shared_memory"] = {{"seen_s", m.shared.seen_s},
                                {"copy", local_json(m.shared.copy)},
                                {"single_copy", local_json(m.shared.single_copy)}};
  if (m.shared.near_seen_s > 0) machine["shared_memory"]["near_seen_s"] = m.shared.near_seen_s;
  return machine;
}

machine_model read_machine(const json_reader& r) {
  r.expect_fields(
      {"same_node", "across_nodes", "copy", "reduce", "shared_memory", "rails_per_node"});
  machine_model m;
  m.same_node = read_link(r.field("same_node"));
  m.across_nodes = read_link(r.field("across_nodes"));
  m.copy = read_local(r.field("copy"));
  m.reduce = read_local(r.field("reduce"));
  m.rails_per_node = int(r.integer("rails_per_node", 1, 1024));
  if (!r.has("shared_memory")) return m;
  const json_reader shared = r.field("shared_memory");
  shared.expect_fields({"seen_s", "near_seen_s", "copy", "single_copy"});
  m.shared = {.seen_s = shared.number("seen_s"),
              .near_seen_s = shared.optional_number("near_seen_s").value_or(0),
              .copy = read_local(shared.field("copy")),
              .single_copy = read_local(shared.field("single_copy")),
              .measured = true};
  return m;
}

}  // namespace

std::string to_json(const profile& p) {
  json corrections = json::array(), measured = json::array();
  for (const algorithm_correction& c : p.corrections) {
    json points = json::array();
    for (const algorithm_correction::point& at : c.points) points.push_back(point_line(at));
    corrections.push_back({{"collective", c.collective},
                           {"algorithm", c.algorithm},
                           {"factor", c.factor},
                           {"points", std::move(points)}});
  }
  for (const collective_time& t : p.measured) measured.push_back(collective_time_json(t));
  json document{{"format", format},
                {"version", version},
                {"machine_id", fingerprint_json(p.machine_id)},
                {"sampled_at", p.sampled_at},
                {"machine", machine_json(p.machine)},
                {"corrections", std::move(corrections)},
                {"measured", std::move(measured)}};
  put_optional(document, "core_share", p.core_share);
  return document_text(document);
}

profile parse_profile(std::string_view text, const std::string& name) {
  const json_document document(text, name);
  const json_reader top = document.expect(format, version);
  if (top.integer("version", 1) < version)
    throw error(name + ": the version of this profile is no longer supported: expected version " +
                std::to_string(version) +
                "; run `railpass fit` again on the original samples and bench results");
  top.expect_fields({"format", "version", "machine_id", "sampled_at", "machine", "corrections",
                     "measured", "core_share"});
  profile p;
  p.machine_id = read_fingerprint(top.field("machine_id"));
  p.sampled_at = top.text("sampled_at");
  p.core_share = top.optional_number("core_share");
  p.machine = read_machine(top.field("machine"));
  for (const json_reader& c : top.list("corrections")) {
    c.expect_fields({"collective", "algorithm", "factor", "points"});
    algorithm_correction correction{.collective = c.name("collective"),
                                    .algorithm = c.name("algorithm"),
                                    .factor = c.positive("factor"),
                                    .points = {}};
    for (const json_reader& at : c.list("points")) correction.points.push_back(read_point(at));
    p.corrections.push_back(std::move(correction));
  }
  for (const json_reader& t : top.list("measured")) p.measured.push_back(read_collective_time(t));
  return p;
}

profile read_profile(const std::string& path) { return parse_profile(read_text(path), path); }

profile read_profile(const std::string& path, const fingerprint& here) {
  profile p = read_profile(path);
  if (const std::string why = mismatch(p.machine_id, here); !why.empty())
    throw error(path + ": this profile is for another machine: " + why);
  return p;
}

}  // namespace railpass::internal::files
