// SPDX-License-Identifier: BSL-1.0
//
// Pictures of a simulated collective: a trace for Perfetto or chrome://tracing, and a timeline as
// SVG that stands alone. Both need simulation_setup::record.
#pragma once

#include "models/simulator.hpp"
#include "railpass/base/units.hpp"
#include "railpass/base/xml.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace railpass {

/// What the picture is of.
struct timeline_caption {
  std::string collective;
  std::string arm;
  std::int64_t bytes = 0;
  std::int32_t root = 0;  ///< -1: the collective has none
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
  }
  return {};
}

}  // namespace detail

/// Chrome trace event JSON (also read by Perfetto): a process per rank, with threads for what it
/// receives, computes and sends, and an arrow per message. Times are in microseconds, as the format
/// has them.
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
  // Slices of one thread must not overlap: as many threads per kind as there are rails in use.
  static constexpr std::array rows{"receive", "compute", "send"};
  std::map<std::pair<std::int32_t, int>, std::vector<double>> ends;
  for (const timeline_event* e : events) {
    const int row = e->kind == step_kind::receive ? 0 : e->kind == step_kind::send ? 2 : 1;
    auto& threads = ends[{e->rank, row}];
    std::size_t thread = 0;
    while (thread < threads.size() && threads[thread] > e->begin_s) ++thread;
    const std::string place =
        "\"pid\":" + std::to_string(e->rank) + ",\"tid\":" + std::to_string(row * 64 + int(thread));
    if (thread == threads.size()) {
      threads.push_back(0);
      add("\"ph\":\"M\",\"name\":\"thread_name\"," + place + ",\"args\":{\"name\":\"" +
          rows[std::size_t(row)] + "\"}");
    }
    threads[thread] = e->end_s;
    add("\"ph\":\"X\",\"name\":" + detail::json_text(detail::describe(*e)) + ",\"cat\":\"" +
        rows[std::size_t(row)] + "\"," + place + ",\"ts\":" + time(e->begin_s) + ",\"dur\":" +
        time(e->end_s - e->begin_s) + ",\"args\":{\"bytes\":" + std::to_string(e->bytes) +
        ",\"step\":" + std::to_string(e->step) + ",\"round\":" + std::to_string(e->round) +
        ",\"segment\":" + std::to_string(e->segment) + "}");
    if (e->message < 0) continue;
    const bool sends = e->kind == step_kind::send;
    add(std::string("\"ph\":") + (sends ? "\"s\"" : "\"f\",\"bp\":\"e\"") +
        ",\"name\":\"message\",\"cat\":\"message\",\"id\":" + std::to_string(e->message) + ',' +
        place + ",\"ts\":" + time(sends ? e->begin_s : e->end_s));
  }
  return text + "\n]}\n";
}

namespace detail {

class timeline_drawing {
 public:
  timeline_drawing(const simulation& run, const timeline_caption& caption)
      : run_(run), caption_(caption), p_(int(run.finish_s.size())) {
    has_local_ = std::any_of(run.events.begin(), run.events.end(), [](const timeline_event& e) {
      return e.kind == step_kind::reduce || e.kind == step_kind::copy;
    });
    lane_ = std::clamp(640.0 / p_, 4.0, has_local_ ? 50.0 : 40.0);
    reached_.assign(std::size_t(p_), 0);
    std::vector<double> first(std::size_t(p_), std::numeric_limits<double>::infinity());
    for (const timeline_event& e : run.events) {
      auto& begin = first[std::size_t(e.rank)];
      if (e.begin_s >= begin) continue;
      begin = e.begin_s;
      reached_[std::size_t(e.rank)] = e.kind == step_kind::receive ? e.end_s : 0;
    }
    scale_ = width / std::max(run.time_s, 1e-12);
    choose_ticks();
  }

  std::string draw() {
    const bool spreads =
        std::any_of(reached_.begin(), reached_.end(), [](double t) { return t > 0; });
    const double bottom = top + lane_ * p_;
    const double height = bottom + 46 + (spreads ? spread_height + 34 : 0);
    svg_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " +
           number(left + width + right) + ' ' + number(height) + "\" width=\"" +
           number(left + width + right) + "\" height=\"" + number(height) +
           "\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"#222\">\n"
           "<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7.5\" refY=\"4\" "
           "markerWidth=\"7\" markerHeight=\"7\" orient=\"auto-start-reverse\">"
           "<path d=\"M0 0.8 L8 4 L0 7.2 z\" fill=\"#444\"/></marker></defs>\n"
           "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
    title();
    legend(spreads);
    grid(bottom);
    lanes();
    bars();
    arrows();
    finishes();
    if (spreads) spread(bottom + 60);
    return svg_ + "</svg>\n";
  }

 private:
  static constexpr double left = 86, width = 860, right = 96, top = 108, spread_height = 90;
  static constexpr std::array<std::string_view, 4> colours{"#3b7dd8", "#f0932b", "#4aa564",
                                                           "#9b8bb4"};  // by step_kind
  static constexpr std::string_view tint = "#eef3fb";

  static std::string number(double x) {
    std::string text = fixed(x, 2);
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
    return text;
  }
  double x(double seconds) const { return left + seconds * scale_; }
  double y(std::int32_t rank) const { return top + lane_ * rank; }

  void text(double at_x, double at_y, std::string_view content, std::string_view attributes = "") {
    svg_ += "<text x=\"" + number(at_x) + "\" y=\"" + number(at_y) + "\" " +
            std::string(attributes) + '>' + xml_text(content) + "</text>\n";
  }
  void line(double x1, double y1, double x2, double y2, std::string_view attributes) {
    svg_ += "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) +
            "\" y2=\"" + number(y2) + "\" " + std::string(attributes) + "/>\n";
  }
  void rectangle(double at_x, double at_y, double w, double h, std::string_view fill,
                 std::string_view hint = "") {
    svg_ += "<rect x=\"" + number(at_x) + "\" y=\"" + number(at_y) + "\" width=\"" + number(w) +
            "\" height=\"" + number(h) + "\" fill=\"" + std::string(fill) + '"';
    svg_ += hint.empty() ? std::string("/>\n") : "><title>" + xml_text(hint) + "</title></rect>\n";
  }

  void title() {
    std::map<std::int32_t, std::int64_t> sent;
    for (const timeline_event& e : run_.events)
      if (e.kind == step_kind::send) sent[e.rank] += e.bytes;
    text(left, 30,
         caption_.collective + ": " + caption_.arm + ", " + std::to_string(p_) + " ranks, " +
             format_bytes(caption_.bytes),
         "font-size=\"20\" font-weight=\"bold\"");
    std::string facts = "all ranks are done after " + format_seconds(run_.time_s) + "; " +
                        std::to_string(run_.messages) + " messages";
    const auto busiest = std::max_element(
        sent.begin(), sent.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (busiest != sent.end())
      facts += "; the busiest sender, rank " + std::to_string(busiest->first) + ", sends " +
               fixed(double(busiest->second) / std::max<double>(1, double(caption_.bytes)), 2) +
               " times the message";
    text(left, 50, facts + " (simulated)", "fill=\"#555\"");
  }

  void legend(bool spreads) {
    double at = left;
    const auto entry = [&](std::string_view fill, std::string_view name, double advance) {
      rectangle(at, 66, 14, 12, fill);
      text(at + 19, 76, name);
      at += advance;
    };
    entry(colours[std::size_t(step_kind::send)], "sending", 86);
    entry(colours[std::size_t(step_kind::receive)], "receiving", 96);
    if (has_local_) {
      entry(colours[std::size_t(step_kind::reduce)], "reducing", 92);
      entry(colours[std::size_t(step_kind::copy)], "copying", 90);
    }
    if (spreads) entry("#dbe6f7", "has received something", 172);
    if (draws_arrows()) {
      line(at, 72, at + 28, 72, "stroke=\"#444\" stroke-width=\"1.2\" marker-end=\"url(#head)\"");
      text(at + 34, 76, "a message, from the start of its sending to the end of its receiving");
    }
  }

  void choose_ticks() {
    const double rough = run_.time_s > 0 ? run_.time_s / 8 : 1e-6;
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    tick_s_ = power;
    for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
      tick_s_ = factor * power;
      if (tick_s_ >= 0.8 * rough) break;
    }
    unit_ = run_.time_s >= 1 ? 1 : run_.time_s >= 1e-3 ? 1e3 : run_.time_s >= 1e-6 ? 1e6 : 1e9;
    tick_decimals_ = std::clamp(int(std::ceil(-std::log10(tick_s_ * unit_) - 1e-9)), 0, 9);
  }

  void grid(double bottom) {
    const char* name = unit_ == 1 ? "s" : unit_ == 1e3 ? "ms" : unit_ == 1e6 ? "us" : "ns";
    for (int i = 0; i * tick_s_ <= run_.time_s * (1 + 1e-9); ++i) {
      const double at = x(i * tick_s_);
      line(at, top - 4, at, bottom + 5, "stroke=\"#ddd\"");
      text(at, bottom + 19, fixed(i * tick_s_ * unit_, tick_decimals_),
           "text-anchor=\"middle\" fill=\"#555\"");
    }
    text(left + width / 2, bottom + 36, std::string("time in ") + name,
         "text-anchor=\"middle\" fill=\"#555\"");
  }

  // Every so many ranks are named, so that names do not overlap.
  int named_every() const { return std::max(1, int(std::ceil(13 / lane_))); }

  void lanes() {
    for (std::int32_t r = 0; r < p_; ++r) {
      line(left, y(r + 1), left + width, y(r + 1), "stroke=\"#e8e8e8\"");
      const double from = x(reached_[std::size_t(r)]), to = x(run_.finish_s[std::size_t(r)]);
      if (to > from) rectangle(from, y(r) + 0.5, to - from, lane_ - 1, tint);
      if (r % named_every() == 0)
        text(left - 10, y(r) + lane_ / 2 + 4,
             (r == caption_.root ? "root " : "rank ") + std::to_string(r),
             r == caption_.root ? "text-anchor=\"end\" font-weight=\"bold\""
                                : "text-anchor=\"end\"");
    }
  }

  struct row {
    double offset, height;
  };
  // Receives above, sends below, local work between: a rank may do all at once.
  row row_of(step_kind kind) const {
    // Arrows between neighbours need room to be seen.
    const double margin = lane_ >= 24 ? 4 : lane_ >= 10 ? 1.5 : 0.5, usable = lane_ - 2 * margin;
    if (!has_local_)
      return {margin + (kind == step_kind::receive ? 0 : usable / 2), usable / 2 - 0.5};
    if (kind == step_kind::receive) return {margin, usable * 0.38};
    if (kind == step_kind::send) return {margin + usable * 0.62, usable * 0.38};
    return {margin + usable * 0.4, usable * 0.2};
  }

  // Neighbours closer than half a pixel become one bar, whatever their number.
  void bars() {
    std::vector<const timeline_event*> events;
    for (const timeline_event& e : run_.events) events.push_back(&e);
    std::stable_sort(events.begin(), events.end(), [](const auto* a, const auto* b) {
      if (a->rank != b->rank) return a->rank < b->rank;
      if (a->kind != b->kind) return a->kind < b->kind;
      return a->begin_s < b->begin_s;
    });
    for (std::size_t i = 0; i < events.size();) {
      const timeline_event& e = *events[i];
      double end = e.end_s;
      bool same_peer = true;
      std::size_t next = i + 1;
      while (next < events.size() && events[next]->rank == e.rank && events[next]->kind == e.kind &&
             (events[next]->begin_s - end) * scale_ < 0.5 &&
             ((events[next]->end_s - events[next]->begin_s) * scale_ < 3 ||
              (e.end_s - e.begin_s) * scale_ < 3)) {
        end = std::max(end, events[next]->end_s);
        same_peer = same_peer && events[next]->peer == e.peer;
        ++next;
      }
      bar(e, end, next - i, same_peer);
      i = next;
    }
  }
  void bar(const timeline_event& e, double end_s, std::size_t count, bool same_peer) {
    const auto [offset, height] = row_of(e.kind);
    const double begin = x(e.begin_s), w = std::max(0.6, (end_s - e.begin_s) * scale_);
    const double gap = w > 4 ? 0.6 : 0;
    rectangle(
        begin, y(e.rank) + offset, w - gap, height, colours[std::size_t(e.kind)],
        "rank " + std::to_string(e.rank) + ": " +
            (count == 1 ? describe(e) : std::to_string(count) + " times, first " + describe(e)) +
            ", " + format_seconds(e.begin_s) + " to " + format_seconds(end_s));
    if (!same_peer || height < 10.5 || e.peer == e.rank) return;
    std::string label = (e.kind == step_kind::send ? "to " : "from ") + std::to_string(e.peer);
    if (double(label.size()) * 6 + 6 > w) label = std::to_string(e.peer);
    if (double(label.size()) * 6 + 4 > w) return;
    text(begin + w / 2, y(e.rank) + offset + height / 2 + 3.7, label,
         "text-anchor=\"middle\" font-size=\"10.5\" fill=\"#fff\" pointer-events=\"none\"");
  }

  bool draws_arrows() const { return run_.messages > 0 && run_.messages <= 160 && lane_ >= 9; }

  void arrows() {
    if (!draws_arrows()) return;
    std::map<std::int64_t, const timeline_event*> sent;
    for (const timeline_event& e : run_.events)
      if (e.kind == step_kind::send) sent[e.message] = &e;
    for (const timeline_event& e : run_.events) {
      if (e.kind != step_kind::receive) continue;
      const timeline_event& from = *sent.at(e.message);
      const row send_row = row_of(step_kind::send), receive_row = row_of(step_kind::receive);
      const bool down = e.rank > from.rank;
      line(x(from.begin_s), y(from.rank) + send_row.offset + (down ? send_row.height : 0),
           x(e.end_s), y(e.rank) + receive_row.offset + (down ? 0 : receive_row.height),
           std::string("stroke=\"#444\" stroke-width=\"1.1\" stroke-opacity=\"") +
               (run_.messages <= 64 ? "0.8" : "0.45") + "\" marker-end=\"url(#head)\"");
    }
  }

  void finishes() {
    text(left + width + 8, top - 8, "done after", "fill=\"#555\" font-size=\"11\"");
    for (std::int32_t r = 0; r < p_; ++r) {
      const double at = x(run_.finish_s[std::size_t(r)]);
      line(at, y(r) + 1, at, y(r) + lane_ - 1, "stroke=\"#c0392b\" stroke-width=\"1.6\"");
      if (r % named_every() == 0)
        text(left + width + 8, y(r) + lane_ / 2 + 4, format_seconds(run_.finish_s[std::size_t(r)]),
             "font-size=\"11\"");
    }
  }

  // How many ranks have received something, against time: the doubling of a tree, the slope of a
  // chain.
  void spread(double from_y) {
    std::vector<double> times = reached_;
    std::sort(times.begin(), times.end());
    const auto level = [&](double count) { return from_y + spread_height * (1 - count / p_); };
    text(left, from_y - 8, "ranks that have received something (or began with it)",
         "fill=\"#555\"");
    line(left, from_y + spread_height, left + width, from_y + spread_height, "stroke=\"#999\"");
    std::string path = "M" + number(left) + ' ' + number(level(0));
    struct label {
      double at_x, at_y;
      std::size_t count;
    };
    std::vector<label> labels;
    for (std::size_t i = 0; i < times.size();) {
      std::size_t next = i;
      while (next < times.size() && (times[next] - times[i]) * scale_ < 1) ++next;
      path += " H" + number(x(times[i])) + " V" + number(level(double(next)));
      if (labels.empty() || x(times[i]) - labels.back().at_x > 24)
        labels.push_back({x(times[i]), level(double(next)), next});
      else
        labels.back() = {labels.back().at_x, level(double(next)), next};
      i = next;
    }
    const std::string outline = path + " H" + number(left + width);
    svg_ += "<path d=\"" + outline + " V" + number(level(0)) + " Z\" fill=\"#dbe6f7\"/>\n";
    svg_ += "<path d=\"" + outline + "\" fill=\"none\" stroke=\"#3b7dd8\" stroke-width=\"1.5\"/>\n";
    for (const label& l : labels)
      text(l.at_x + 4, std::max(from_y + 9, l.at_y - 4), std::to_string(l.count),
           "font-size=\"11\"");
  }

  const simulation& run_;
  const timeline_caption& caption_;
  int p_;
  bool has_local_ = false;
  double lane_ = 0, scale_ = 1, tick_s_ = 1, unit_ = 1;
  int tick_decimals_ = 0;
  std::vector<double> reached_;  // by rank: 0, or the end of the first receive
  std::string svg_;
};

}  // namespace detail

/// A timeline with a lane per rank: what it sends and receives, reduces and copies, and an arrow
/// per message if there are few enough. For a collective that spreads from a root, a curve below
/// shows how many ranks it has reached.
inline std::string timeline_svg(const simulation& run, const timeline_caption& caption) {
  return detail::timeline_drawing(run, caption).draw();
}

}  // namespace railpass
