// SPDX-License-Identifier: BSL-1.0
//
// The fields of samples.
#pragma once

#include "lib/files/machine_fields.hpp"
#include "models/samples.hpp"

#include <array>

namespace railpass::internal::files {

struct link_name {
  static constexpr std::array classes{link_class::same_node, link_class::across_nodes};
  static const char* of(link_class link) {
    return link == link_class::same_node ? "same_node" : "across_nodes";
  }
  link_class read(const json_reader& r) const {
    for (const link_class link : classes)
      if (r.text() == of(link)) return link;
    r.fail("expected \"same_node\" or \"across_nodes\"");
  }
  json write(link_class link) const { return of(link); }
  json schema() const { return {{"enum", {of(classes[0]), of(classes[1])}}}; }
};

inline void visit(auto& v, is<link_sample> auto& l) {
  v("link", l.link, link_name{});
  v("bytes", l.bytes);
  v({"one_way_s", "time of a message between two ranks"}, l.one_way_s, positive{});
  v("spread_s", l.spread_s);
  v({"rendezvous_s", "one_way_s of a message in synchronous mode"}, l.rendezvous_s);
  v({"send_overhead_s", "CPU time of the sender"}, l.send_overhead_s);
  v({"receive_overhead_s", "CPU time of the receiver"}, l.receive_overhead_s);
  v({"exchange_s", "time of a message in both directions at once"}, l.exchange_s);
  v({"shift_s", "time of a message of all ranks to the next rank"}, l.shift_s);
  v({"flow_s", "time per message of shift_s with many messages in flight"}, l.flow_s);
  v({"crowd_s", "time per message of all ranks to many ranks"}, l.crowd_s);
}

inline void visit(auto& v, is<stream_sample> auto& s) {
  v("link", s.link, link_name{});
  v("bytes", s.bytes);
  v({"busy_s", "time per message of a stream"}, s.busy_s, positive{});
}

inline void visit(auto& v, is<local_sample> auto& s) {
  v("bytes", s.bytes);
  v("seconds", s.seconds);
}

template <>
inline constexpr document_format format_for<sample_set>{"railpass samples", 1,
                                                        "Results of railpass sample"};

inline void visit(auto& v, is<sample_set> auto& s) {
  auto& m = s.measured;
  const auto if_any = [&](const field& f, auto& samples) {
    visit_if(!samples.empty(), v, f, samples);
  };
  v(machine_id, s.machine_id);
  v({"sampled_at", utc_example}, s.sampled_at);
  v("links", m.links);
  v("streams", m.streams);
  v.group({"eager_limits_bytes", "largest message that leaves before its receiver is ready"},
          [&](auto& e) {
            for (const link_class link : link_name::classes) {
              std::optional<std::int64_t> limit;
              if (const auto known = m.eager_limits_bytes.find(link);
                  known != m.eager_limits_bytes.end())
                limit = known->second;
              e(link_name::of(link), limit);
              if constexpr (is_reading<decltype(v)>)
                if (limit) m.eager_limits_bytes[link] = *limit;
            }
          });
  v("copies", m.copies);
  v("reductions", m.reductions);
  v({"collectives", "times of the MPI library's own collectives"}, m.collectives);
  v({"core_share",
     "smallest share of a core that a rank got during sampling; below 0.9 times are too long"},
    m.core_share);
  if_any({"handovers",
          "from each rank of a node to the next rank through shared memory, all ranks at once"},
         m.handovers);
  if_any({"near_handovers",
          "handovers among the ranks that share a cache, if a node has several caches"},
         m.near_handovers);
  if_any({"single_copies",
          "from each rank of a node to the next rank by the kernel, all ranks at once"},
         m.single_copies);
}

}  // namespace railpass::internal::files
