// SPDX-License-Identifier: BSL-1.0
#include "lib/report/schedule_timeline.hpp"

#include "lib/report/drawing.hpp"
#include "railpass/base/units.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <vector>

namespace railpass::internal::report {

namespace {

class timeline_drawing {
 public:
  timeline_drawing(const simulation& run, const timeline_caption& caption)
      : run_(run), caption_(caption), p_(int(run.finish_s.size())) {
    has_local_ = std::any_of(run.events.begin(), run.events.end(),
                             [](const timeline_event& e) { return is_local(e.kind); });
    choose_ranks();
    lane_ = std::clamp(640.0 / double(drawn_.size()), 4.0, has_local_ ? 50.0 : 40.0);
    reached_.assign(std::size_t(p_), 0);
    std::vector<double> first(std::size_t(p_), std::numeric_limits<double>::infinity());
    for (const timeline_event& e : run.events) {
      auto& begin = first[std::size_t(e.rank)];
      if (e.begin_s >= begin) continue;
      begin = e.begin_s;
      reached_[std::size_t(e.rank)] = brings(e.kind) ? e.end_s : 0;
    }
    scale_ = width / std::max(run.time_s, 1e-12);
    choose_ticks();
  }

  std::string draw() {
    const bool spreads =
        std::any_of(reached_.begin(), reached_.end(), [](double t) { return t > 0; });
    canvas_ = drawing(left + width + right, bottom() + 46 + (spreads ? spread_height + 34 : 0));
    title();
    legend(spreads);
    grid();
    lanes();
    bars();
    arrows();
    finishes();
    if (spreads) spread(bottom() + 60);
    return canvas_.svg();
  }

 private:
  static constexpr double left = 86, width = 860, right = 96, top = 108, spread_height = 90;
  static constexpr std::string_view reached_colour = "#dbe6f7", tint = "#eef3fb";

  static std::string_view colour(step_kind kind) {
    if (gives(kind)) return colours[1];
    if (brings(kind)) return colours[2];
    return colours[kind == step_kind::reduce ? 0 : 3];
  }
  double x(double seconds) const { return left + seconds * scale_; }
  double y(std::int32_t rank) const { return top + lane_ * lane_of_[std::size_t(rank)]; }
  double bottom() const { return top + lane_ * double(drawn_.size()); }
  bool is_drawn(std::int32_t rank) const { return lane_of_[std::size_t(rank)] >= 0; }

  void choose_ranks() {
    std::set<std::int32_t> chosen;
    if (p_ > most_ranks_drawn) {
      if (caption_.root >= 0) chosen.insert(caption_.root);
      chosen.insert(std::int32_t(std::ranges::max_element(run_.finish_s) - run_.finish_s.begin()));
    }
    const int evenly = std::min(p_, most_ranks_drawn) - int(chosen.size());
    for (int i = 0; i < evenly; ++i) chosen.insert(std::int32_t(std::int64_t(i) * p_ / evenly));
    drawn_.assign(chosen.begin(), chosen.end());
    lane_of_.assign(std::size_t(p_), -1);
    for (std::size_t lane = 0; lane < drawn_.size(); ++lane)
      lane_of_[std::size_t(drawn_[lane])] = int(lane);
  }

  void title() {
    std::map<std::int32_t, std::int64_t> sent;
    for (const timeline_event& e : run_.events)
      if (gives(e.kind)) sent[e.rank] += e.bytes;
    canvas_.text(left, 30,
                 caption_.collective + ": " + caption_.arm + ", " + std::to_string(p_) +
                     " ranks, " + format_bytes(caption_.bytes),
                 {.size = 20, .bold = true});
    std::string facts = "all ranks are done after " + format_seconds(run_.time_s) + "; " +
                        std::to_string(run_.messages) + " messages";
    const auto busiest = std::max_element(
        sent.begin(), sent.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (busiest != sent.end())
      facts += "; the busiest sender, rank " + std::to_string(busiest->first) + ", sends " +
               fixed(double(busiest->second) / std::max<double>(1, double(caption_.bytes)), 2) +
               " times the message";
    if (int(drawn_.size()) < p_)
      facts += "; drawn are " + std::to_string(drawn_.size()) + " of the ranks";
    canvas_.text(left, 50, facts + " (simulated)", {.colour = faint_ink});
  }

  void legend(bool spreads) {
    double at = left;
    const auto entry = [&](std::string_view fill, std::string_view name, double advance) {
      canvas_.rectangle(at, 66, 14, 12, fill);
      canvas_.text(at + 19, 76, name);
      at += advance;
    };
    entry(colour(step_kind::send), "sending", 86);
    entry(colour(step_kind::receive), "receiving", 96);
    if (has_local_) {
      entry(colour(step_kind::reduce), "reducing", 92);
      entry(colour(step_kind::copy), "copying", 90);
    }
    if (spreads) entry(reached_colour, "has received something", 172);
    if (draws_arrows()) {
      canvas_.line(at, 72, at + 28, 72, {.colour = faint_ink, .width = 1.2, .arrow = true});
      canvas_.text(at + 34, 76,
                   "a message, from the start of its sending to the end of its receiving");
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

  void grid() {
    const char* name = unit_ == 1 ? "s" : unit_ == 1e3 ? "ms" : unit_ == 1e6 ? "us" : "ns";
    for (int i = 0; i * tick_s_ <= run_.time_s * (1 + 1e-9); ++i) {
      const double at = x(i * tick_s_);
      canvas_.line(at, top - 4, at, bottom() + 5);
      canvas_.text(at, bottom() + 19, fixed(i * tick_s_ * unit_, tick_decimals_),
                   {.anchor = "middle", .colour = faint_ink});
    }
    canvas_.text(left + width / 2, bottom() + 36, std::string("time in ") + name,
                 {.anchor = "middle", .colour = faint_ink});
  }

  // Only every n-th rank has a label, so that labels do not overlap.
  bool is_named(std::int32_t rank) const {
    return lane_of_[std::size_t(rank)] % std::max(1, int(std::ceil(13 / lane_))) == 0;
  }

  void lanes() {
    for (const std::int32_t r : drawn_) {
      canvas_.line(left, y(r) + lane_, left + width, y(r) + lane_, {.colour = faint_grid_colour});
      const double from = x(reached_[std::size_t(r)]), to = x(run_.finish_s[std::size_t(r)]);
      if (to > from) canvas_.rectangle(from, y(r) + 0.5, to - from, lane_ - 1, tint);
      if (is_named(r))
        canvas_.text(left - 10, y(r) + lane_ / 2 + 4,
                     (r == caption_.root ? "root " : "rank ") + std::to_string(r),
                     {.anchor = "end", .bold = r == caption_.root});
    }
  }

  struct row {
    double offset, height;
  };
  // Receives above, sends below, local work between, because a rank may do all three at once.
  row row_of(step_kind kind) const {
    // Arrows between neighbours need visible room.
    const double margin = lane_ >= 24 ? 4 : lane_ >= 10 ? 1.5 : 0.5, usable = lane_ - 2 * margin;
    if (!has_local_) return {margin + (brings(kind) ? 0 : usable / 2), usable / 2 - 0.5};
    if (brings(kind)) return {margin, usable * 0.38};
    if (gives(kind)) return {margin + usable * 0.62, usable * 0.38};
    return {margin + usable * 0.4, usable * 0.2};
  }

  struct wide_bar {
    const timeline_event* first;
    double end_s;
    std::size_t count;
    bool same_peer;
  };

  // Bars closer than half a pixel are merged; if there are very many bars, also over larger
  // distances.
  void bars() {
    constexpr std::size_t most_bars = 20000;
    std::vector<wide_bar> drawn;
    for (double near = 0.5; drawn = bars_of(near), drawn.size() > most_bars && near < width;)
      near *= 2;
    for (const wide_bar& b : drawn) bar(*b.first, b.end_s, b.count, b.same_peer);
  }
  std::vector<wide_bar> bars_of(double near) const {
    std::vector<const timeline_event*> events;
    for (const timeline_event& e : run_.events)
      if (is_drawn(e.rank)) events.push_back(&e);
    std::stable_sort(events.begin(), events.end(), [](const auto* a, const auto* b) {
      if (a->rank != b->rank) return a->rank < b->rank;
      if (a->kind != b->kind) return a->kind < b->kind;
      return a->begin_s < b->begin_s;
    });
    std::vector<wide_bar> drawn;
    for (std::size_t i = 0; i < events.size();) {
      const timeline_event& e = *events[i];
      double end = e.end_s;
      bool same_peer = true;
      std::size_t next = i + 1;
      while (next < events.size() && events[next]->rank == e.rank && events[next]->kind == e.kind &&
             (events[next]->begin_s - end) * scale_ < near &&
             ((events[next]->end_s - events[next]->begin_s) * scale_ < 6 * near ||
              (e.end_s - e.begin_s) * scale_ < 6 * near)) {
        end = std::max(end, events[next]->end_s);
        same_peer = same_peer && events[next]->peer == e.peer;
        ++next;
      }
      drawn.push_back({&e, end, next - i, same_peer});
      i = next;
    }
    return drawn;
  }
  void bar(const timeline_event& e, double end_s, std::size_t count, bool same_peer) {
    const auto [offset, height] = row_of(e.kind);
    const double begin = x(e.begin_s), w = std::max(0.6, (end_s - e.begin_s) * scale_);
    const double gap = w > 4 ? 0.6 : 0;
    canvas_.rectangle(
        begin, y(e.rank) + offset, w - gap, height, colour(e.kind),
        "rank " + std::to_string(e.rank) + ": " +
            (count == 1 ? describe(e) : std::to_string(count) + " times, first " + describe(e)) +
            ", " + format_seconds(e.begin_s) + " to " + format_seconds(end_s));
    if (!same_peer || height < 10.5 || e.peer == e.rank) return;
    std::string label = (gives(e.kind) ? "to " : "from ") + std::to_string(e.peer);
    if (double(label.size()) * 6 + 6 > w) label = std::to_string(e.peer);
    if (double(label.size()) * 6 + 4 > w) return;
    canvas_.text(begin + w / 2, y(e.rank) + offset + height / 2 + 3.7, label,
                 {.anchor = "middle", .size = 10.5, .colour = paper, .on_a_bar = true});
  }

  bool draws_arrows() const {
    return run_.messages > 0 && run_.messages <= 160 && lane_ >= 9 && int(drawn_.size()) == p_;
  }

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
      canvas_.line(x(from.begin_s), y(from.rank) + send_row.offset + (down ? send_row.height : 0),
                   x(e.end_s), y(e.rank) + receive_row.offset + (down ? 0 : receive_row.height),
                   {.colour = faint_ink,
                    .width = 1.1,
                    .opacity = run_.messages <= 64 ? 0.8 : 0.45,
                    .arrow = true});
    }
  }

  void finishes() {
    canvas_.text(left + width + 8, top - 8, "done after", {.size = 11, .colour = faint_ink});
    for (const std::int32_t r : drawn_) {
      const double at = x(run_.finish_s[std::size_t(r)]);
      canvas_.line(at, y(r) + 1, at, y(r) + lane_ - 1, {.colour = colours[4], .width = 1.6});
      if (is_named(r))
        canvas_.text(left + width + 8, y(r) + lane_ / 2 + 4,
                     format_seconds(run_.finish_s[std::size_t(r)]), {.size = 11});
    }
  }

  // The number of ranks that have received something, over time: shows the doubling of a tree or
  // the slope of a chain.
  void spread(double from_y) {
    std::vector<double> times = reached_;
    std::sort(times.begin(), times.end());
    const auto level = [&](double count) { return from_y + spread_height * (1 - count / p_); };
    canvas_.text(left, from_y - 8, "ranks that have received something (or began with it)",
                 {.colour = faint_ink});
    canvas_.line(left, from_y + spread_height, left + width, from_y + spread_height);
    std::vector<std::pair<double, double>> steps{{left, level(0)}};
    struct label {
      double at_x, at_y;
      std::size_t count;
    };
    std::vector<label> labels;
    for (std::size_t i = 0; i < times.size();) {
      std::size_t next = i;
      while (next < times.size() && (times[next] - times[i]) * scale_ < 1) ++next;
      steps.emplace_back(x(times[i]), steps.back().second);
      steps.emplace_back(x(times[i]), level(double(next)));
      if (labels.empty() || x(times[i]) - labels.back().at_x > 24)
        labels.push_back({x(times[i]), level(double(next)), next});
      else
        labels.back() = {labels.back().at_x, level(double(next)), next};
      i = next;
    }
    steps.emplace_back(left + width, steps.back().second);
    std::vector<std::pair<double, double>> corners = steps;
    corners.emplace_back(left + width, level(0));
    canvas_.area(corners, reached_colour);
    canvas_.curve(steps, {.colour = colour(step_kind::send), .width = 1.5});
    for (const label& l : labels)
      canvas_.text(l.at_x + 4, std::max(from_y + 9, l.at_y - 4), std::to_string(l.count),
                   {.size = 11});
  }

  const simulation& run_;
  const timeline_caption& caption_;
  int p_;
  bool has_local_ = false;
  double lane_ = 0, scale_ = 1, tick_s_ = 1, unit_ = 1;
  int tick_decimals_ = 0;
  std::vector<std::int32_t> drawn_;  // ranks, from top to bottom
  std::vector<int> lane_of_;         // by rank; -1: not drawn
  std::vector<double> reached_;      // by rank: 0, or the end of the first receive
  drawing canvas_{0, 0};
};

}  // namespace

std::string draw_schedule_timeline(const simulation& run, const timeline_caption& caption) {
  return timeline_drawing(run, caption).draw();
}

}  // namespace railpass::internal::report
