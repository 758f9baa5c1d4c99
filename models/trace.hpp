// SPDX-License-Identifier: BSL-1.0
//
// Writes a simulated collective as a trace for Perfetto or chrome://tracing. The simulation must be
// recorded (simulation_setup::record).
#pragma once

#include "models/simulator.hpp"
#include "railpass/base/units.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace railpass {

/// The simulated call.
struct timeline_caption {
  std::string collective;
  std::string arm;
  std::int64_t bytes = 0;
  std::int32_t root = 0;  ///< -1: the collective has no root
};

namespace detail {

inline std::string json_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 32 ? ' ' : c;
  }
  return result + '"';
}

}  // namespace detail

/// Whether a step gives data to other ranks, or brings data from other ranks; otherwise it is
/// local.
constexpr bool gives(step_kind k) {
  return k == step_kind::send || shows(k) || k == step_kind::put;
}
constexpr bool brings(step_kind k) {
  return k == step_kind::receive || (looks(k) && k != step_kind::put);
}

/// The action of a rank in words: "send 8KiB to 3".
inline std::string describe(const timeline_event& e) {
  const std::string size = format_bytes(e.bytes);
  switch (e.kind) {
    case step_kind::send:
      return "send " + size + " to " + std::to_string(e.peer);
    case step_kind::receive:
      return "receive " + size + " from " + std::to_string(e.peer);
    case step_kind::reduce:
      return "reduce " + size;
    case step_kind::copy:
      return "copy " + size;
    case step_kind::publish:
      return "publish " + size;
    case step_kind::fetch:
      return "fetch " + size + " from " + std::to_string(e.peer);
    case step_kind::combine:
      return "combine " + size + " from " + std::to_string(e.peer);
    case step_kind::offer:
      return "offer " + size + " to " + std::to_string(e.peer);
    case step_kind::get:
      return "get " + size + " from " + std::to_string(e.peer);
    case step_kind::invite:
      return "invite " + size + " of " + std::to_string(e.peer);
    case step_kind::put:
      return "put " + size + " to " + std::to_string(e.peer);
  }
  return {};
}

/// Returns Chrome trace event JSON (also for Perfetto): a process per rank with threads for
/// receiving, computing and sending, and an arrow per message. Times are in microseconds, as the
/// format requires.
inline std::string chrome_trace(const simulation& run, const timeline_caption& caption) {
  const auto time = [](double seconds) { return fixed(seconds * 1e6, 4); };
  std::string text = "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"collective\":" +
                     detail::json_text(caption.collective) +
                     ",\"arm\":" + detail::json_text(caption.arm) +
                     ",\"bytes\":" + std::to_string(caption.bytes) +
                     ",\"ranks\":" + std::to_string(run.finish_s.size()) + "},\"traceEvents\":[";
  bool first = true;
  const auto add = [&](const std::string& event) {
    text += first ? "\n{" : ",\n{";
    first = false;
    text += event + '}';
  };
  for (std::size_t r = 0; r < run.finish_s.size(); ++r) {
    const std::string pid = "\"pid\":" + std::to_string(r);
    add("\"ph\":\"M\",\"name\":\"process_name\"," + pid + ",\"args\":{\"name\":\"rank " +
        std::to_string(r) + "\"}");
    add("\"ph\":\"M\",\"name\":\"process_sort_index\"," + pid +
        ",\"args\":{\"sort_index\":" + std::to_string(r) + "}");
  }

  std::vector<const timeline_event*> events;
  for (const timeline_event& e : run.events) events.push_back(&e);
  std::stable_sort(events.begin(), events.end(),
                   [](const auto* a, const auto* b) { return a->begin_s < b->begin_s; });
  // Slices of one thread must not overlap, so each kind has as many threads as rails in use.
  static constexpr std::array rows{"receive", "compute", "send"};
  std::map<std::pair<std::int32_t, int>, std::vector<double>> ends;
  for (const timeline_event* e : events) {
    const int row = brings(e->kind) ? 0 : gives(e->kind) ? 2 : 1;
    auto& threads = ends[{e->rank, row}];
    std::size_t thread = 0;
    while (thread < threads.size() && threads[thread] > e->begin_s) ++thread;
    const std::string thread_ids =
        "\"pid\":" + std::to_string(e->rank) + ",\"tid\":" + std::to_string(row * 64 + int(thread));
    if (thread == threads.size()) {
      threads.push_back(0);
      add("\"ph\":\"M\",\"name\":\"thread_name\"," + thread_ids + ",\"args\":{\"name\":\"" +
          rows[std::size_t(row)] + "\"}");
    }
    threads[thread] = e->end_s;
    add("\"ph\":\"X\",\"name\":" + detail::json_text(describe(*e)) + ",\"cat\":\"" +
        rows[std::size_t(row)] + "\"," + thread_ids + ",\"ts\":" + time(e->begin_s) + ",\"dur\":" +
        time(e->end_s - e->begin_s) + ",\"args\":{\"bytes\":" + std::to_string(e->bytes) +
        ",\"step\":" + std::to_string(e->step) + ",\"round\":" + std::to_string(e->round) +
        ",\"segment\":" + std::to_string(e->segment) + "}");
    if (e->message < 0) continue;
    const bool sends = e->kind == step_kind::send;
    add(std::string("\"ph\":") + (sends ? "\"s\"" : "\"f\",\"bp\":\"e\"") +
        ",\"name\":\"message\",\"cat\":\"message\",\"id\":" + std::to_string(e->message) + ',' +
        thread_ids + ",\"ts\":" + time(sends ? e->begin_s : e->end_s));
  }
  return text + "\n]}\n";
}

}  // namespace railpass
