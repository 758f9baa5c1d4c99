// SPDX-License-Identifier: BSL-1.0
#include "lib/files/files.hpp"
#include "lib/files/json_reader.hpp"
#include "lib/files/json_writer.hpp"

namespace railpass::internal::files {

namespace {

constexpr std::string_view format = "railpass rails";
constexpr int version = 1;

json curve_json(const transport::time_curve& curve) {
  json list = json::array();
  for (const auto& p : curve)
    list.push_back(
        {{"bytes", std::int64_t(p.bytes)}, {"seconds", p.seconds}, {"error_s", p.error_s}});
  return list;
}

transport::time_curve read_curve(const json_reader& r, std::string_view key) {
  transport::time_curve curve;
  for (const json_reader& p : r.list(key)) {
    p.expect_fields({"bytes", "seconds", "error_s"});
    curve.push_back({double(p.integer("bytes")), p.positive("seconds"), p.number("error_s")});
    if (curve.back().error_s < 0) p.field("error_s").fail("expected none or a positive number");
    if (curve.size() > 1 && curve[curve.size() - 2].bytes >= curve.back().bytes)
      p.field("bytes").fail("expected growing sizes");
  }
  return curve;
}

json rail_json(const transport::rail_samples& s) {
  return {{"copied", curve_json(s.copied)},
          {"pieces", curve_json(s.pieces)},
          {"rendezvous", curve_json(s.rendezvous)},
          {"two_packets", curve_json(s.two_packets)},
          {"aggregate", curve_json(s.aggregate)}};
}

transport::rail_samples read_rail(const json_reader& r) {
  r.expect_fields({"copied", "pieces", "rendezvous", "two_packets", "aggregate"});
  return {.copied = read_curve(r, "copied"),
          .pieces = read_curve(r, "pieces"),
          .rendezvous = read_curve(r, "rendezvous"),
          .two_packets = read_curve(r, "two_packets"),
          .aggregate = read_curve(r, "aggregate")};
}

transport::measured_link read_link(const json_reader& r) {
  r.expect_fields({"same_host", "marks", "memory_copy", "rails", "joint", "together"});
  transport::measured_link link;
  link.same_host = r.boolean("same_host");
  link.marks = r.words("marks");
  link.samples.memory_copy = read_curve(r, "memory_copy");
  for (const json_reader& rail : r.list("rails")) {
    link.samples.rails.push_back(read_rail(rail));
    const transport::rail_samples& s = link.samples.rails.back();
    if (s.pieces.size() + s.rendezvous.size() < 2) rail.fail("expected times of two sizes or more");
  }
  const int num_rails = int(link.samples.rails.size());
  if (num_rails == 0 || num_rails > int(transport::most_rails))
    r.field("rails").fail("expected 1 to 16 of them");
  for (const json_reader& set : r.list("joint")) {
    set.expect_fields({"rails", "bytes_per_s"});
    transport::joint_sample j;
    for (const std::int64_t rail : set.integers("rails", 0, num_rails - 1)) {
      if (!j.rails.empty() && rail <= j.rails.back())
        set.field("rails").fail("expected growing numbers");
      j.rails.push_back(int(rail));
    }
    if (j.rails.empty()) set.field("rails").fail("expected at least one");
    j.bytes_per_s = set.positive("bytes_per_s");
    link.samples.joint.push_back(std::move(j));
  }
  link.samples.together = read_curve(r, "together");
  return link;
}

}  // namespace

std::string to_json(const transport::rails_measurement& m) {
  json links = json::array();
  for (const transport::measured_link& l : m.links) {
    json rails = json::array(), joint = json::array();
    for (const transport::rail_samples& s : l.samples.rails) rails.push_back(rail_json(s));
    for (const transport::joint_sample& s : l.samples.joint)
      joint.push_back({{"rails", s.rails}, {"bytes_per_s", s.bytes_per_s}});
    links.push_back({{"same_host", l.same_host},
                     {"marks", l.marks},
                     {"memory_copy", curve_json(l.samples.memory_copy)},
                     {"rails", std::move(rails)},
                     {"joint", std::move(joint)},
                     {"together", curve_json(l.samples.together)}});
  }
  return document_text({{"format", format},
                        {"version", version},
                        {"railpass_version", m.railpass_version},
                        {"measured_at", m.measured_at},
                        {"links", std::move(links)}});
}

transport::rails_measurement parse_rails(std::string_view text, const std::string& name) {
  const json_document document(text, name);
  const json_reader top = document.expect(format, version);
  top.expect_fields({"format", "version", "railpass_version", "measured_at", "links"});
  transport::rails_measurement m{.railpass_version = top.text("railpass_version"),
                                 .measured_at = top.text("measured_at"),
                                 .links = {}};
  for (const json_reader& l : top.list("links")) m.links.push_back(read_link(l));
  return m;
}

transport::rails_measurement read_rails(const std::string& path) {
  return parse_rails(read_text(path), path);
}

}  // namespace railpass::internal::files
