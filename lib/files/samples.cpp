// SPDX-License-Identifier: BSL-1.0
#include "lib/files/files.hpp"
#include "lib/files/shared_parts.hpp"

namespace railpass::internal::files {

namespace {

constexpr std::string_view format = "railpass samples";
constexpr int version = 1;

json local_json(const std::vector<local_sample>& samples) {
  json list = json::array();
  for (const local_sample& s : samples)
    list.push_back({{"bytes", s.bytes}, {"seconds", s.seconds}});
  return list;
}

std::string_view name_of(link_class link) {
  return link == link_class::same_node ? "same_node" : "across_nodes";
}

link_class read_link(const json_reader& r) {
  const std::string name = r.text("link");
  for (const link_class link : {link_class::same_node, link_class::across_nodes})
    if (name == name_of(link)) return link;
  r.field("link").fail("expected \"same_node\" or \"across_nodes\"");
}

std::vector<local_sample> read_local(const json_reader& top, std::string_view key) {
  std::vector<local_sample> samples;
  for (const json_reader& s : top.list(key)) {
    s.expect_fields({"bytes", "seconds"});
    samples.push_back({.bytes = s.integer("bytes"), .seconds = s.number("seconds")});
  }
  return samples;
}

}  // namespace

std::string to_json(const sample_set& s) {
  json links = json::array();
  for (const link_sample& l : s.measured.links) {
    json j{{"link", name_of(l.link)}, {"bytes", l.bytes}, {"one_way_s", l.one_way_s}};
    put_optional(j, "spread_s", l.spread_s);
    put_optional(j, "rendezvous_s", l.rendezvous_s);
    put_optional(j, "send_overhead_s", l.send_overhead_s);
    put_optional(j, "receive_overhead_s", l.receive_overhead_s);
    put_optional(j, "exchange_s", l.exchange_s);
    put_optional(j, "shift_s", l.shift_s);
    put_optional(j, "flow_s", l.flow_s);
    put_optional(j, "crowd_s", l.crowd_s);
    links.push_back(std::move(j));
  }
  json streams = json::array();
  for (const stream_sample& l : s.measured.streams)
    streams.push_back({{"link", name_of(l.link)}, {"bytes", l.bytes}, {"busy_s", l.busy_s}});
  json eager = json::object();
  for (const auto& [link, bytes] : s.measured.eager_limits_bytes)
    eager[std::string(name_of(link))] = bytes;
  json collectives = json::array();
  for (const collective_time& t : s.measured.collectives)
    collectives.push_back(collective_time_json(t));
  json document{{"format", format},
                {"version", version},
                {"machine_id", fingerprint_json(s.machine_id)},
                {"sampled_at", s.sampled_at},
                {"links", std::move(links)},
                {"streams", std::move(streams)},
                {"eager_limits_bytes", std::move(eager)},
                {"copies", local_json(s.measured.copies)},
                {"reductions", local_json(s.measured.reductions)},
                {"collectives", std::move(collectives)}};
  put_optional(document, "core_share", s.measured.core_share);
  if (!s.measured.handovers.empty()) document["handovers"] = local_json(s.measured.handovers);
  if (!s.measured.near_handovers.empty())
    document["near_handovers"] = local_json(s.measured.near_handovers);
  if (!s.measured.single_copies.empty())
    document["single_copies"] = local_json(s.measured.single_copies);
  return document_text(document);
}

sample_set parse_samples(std::string_view text, const std::string& name) {
  const json_document document(text, name);
  const json_reader top = document.expect(format, version);
  top.expect_fields({"format", "version", "machine_id", "sampled_at", "links", "streams",
                     "eager_limits_bytes", "copies", "reductions", "handovers", "near_handovers",
                     "single_copies", "collectives", "core_share"});
  sample_set s;
  s.machine_id = read_fingerprint(top.field("machine_id"));
  s.sampled_at = top.text("sampled_at");
  for (const json_reader& l : top.list("links")) {
    l.expect_fields({"link", "bytes", "one_way_s", "spread_s", "rendezvous_s", "send_overhead_s",
                     "receive_overhead_s", "exchange_s", "shift_s", "flow_s", "crowd_s"});
    s.measured.links.push_back({.link = read_link(l),
                                .bytes = l.integer("bytes"),
                                .one_way_s = l.positive("one_way_s"),
                                .spread_s = l.optional_number("spread_s"),
                                .rendezvous_s = l.optional_number("rendezvous_s"),
                                .send_overhead_s = l.optional_number("send_overhead_s"),
                                .receive_overhead_s = l.optional_number("receive_overhead_s"),
                                .exchange_s = l.optional_number("exchange_s"),
                                .shift_s = l.optional_number("shift_s"),
                                .flow_s = l.optional_number("flow_s"),
                                .crowd_s = l.optional_number("crowd_s")});
  }
  for (const json_reader& l : top.list("streams")) {
    l.expect_fields({"link", "bytes", "busy_s"});
    s.measured.streams.push_back(
        {.link = read_link(l), .bytes = l.integer("bytes"), .busy_s = l.positive("busy_s")});
  }
  const json_reader eager = top.field("eager_limits_bytes");
  eager.expect_fields({name_of(link_class::same_node), name_of(link_class::across_nodes)});
  for (const link_class link : {link_class::same_node, link_class::across_nodes})
    if (eager.has(name_of(link)))
      s.measured.eager_limits_bytes[link] = eager.integer(name_of(link));
  s.measured.core_share = top.optional_number("core_share");
  s.measured.copies = read_local(top, "copies");
  s.measured.reductions = read_local(top, "reductions");
  if (top.has("handovers")) s.measured.handovers = read_local(top, "handovers");
  if (top.has("near_handovers")) s.measured.near_handovers = read_local(top, "near_handovers");
  if (top.has("single_copies")) s.measured.single_copies = read_local(top, "single_copies");
  for (const json_reader& t : top.list("collectives"))
    s.measured.collectives.push_back(read_collective_time(t));
  return s;
}

sample_set read_samples(const std::string& path) { return parse_samples(read_text(path), path); }

}  // namespace railpass::internal::files
