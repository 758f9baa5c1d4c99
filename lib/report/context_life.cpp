// SPDX-License-Identifier: BSL-1.0
#include "lib/report/context_life.hpp"

#include "lib/report/drawing.hpp"
#include "railpass/base/error.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/base/units.hpp"
#include "railpass/select/lockstep/context.hpp"

#include <cmath>
#include <map>
#include <tuple>

namespace railpass::internal::report {

namespace {

constexpr std::string_view native_colour = "#5c6b73", rare_colour = "#c9b27c";

// One call of the context.
struct point {
  int arm = 0, in_use = 0;
  double seconds = 0;
};

struct context_calls {
  std::string title;
  std::vector<point> points;
};

context_calls choose(const files::call_trace& trace, const context_choice& which) {
  using key = std::tuple<int, int, int>;
  const auto key_of = [](const files::traced_call& c) {
    return key{c.communicator, c.collective, int(select::size_class_of(c.bytes))};
  };
  std::map<key, std::size_t> count;
  for (const files::traced_call& c : trace.calls) {
    if (!which.collective.empty() && trace.name(c.collective) != which.collective) continue;
    if (which.bytes && select::size_class_of(c.bytes) != select::size_class_of(*which.bytes))
      continue;
    ++count[key_of(c)];
  }
  if (count.empty()) throw error("the trace has no calls of that collective and size");
  const key most =
      std::ranges::max_element(count, {}, [](const auto& entry) { return entry.second; })->first;

  context_calls result;
  int in_use = -1;
  for (const files::traced_call& c : trace.calls) {
    if (key_of(c) != most) continue;
    // Most of a plan's calls take the arm in use.
    if (in_use < 0 || c.probability > 0.5) in_use = c.arm;
    result.points.push_back({.arm = c.arm, .in_use = in_use, .seconds = c.seconds});
  }
  const auto& [communicator, collective, size_class] = most;
  const std::int64_t from = select::smallest_bytes(std::uint8_t(size_class));
  result.title = trace.name(collective);
  if (from > 0 || size_class > 0)
    result.title += " of " + format_bytes(from) + " to below " + format_bytes(2 * from);
  result.title += ", communicator " + trace.name(communicator);
  return result;
}

class picture {
 public:
  picture(const files::call_trace& trace, context_calls life)
      : trace_(trace), life_(std::move(life)), canvas_(left + width + right, bottom + 34) {
    std::map<int, std::size_t> calls;
    std::vector<double> seconds;
    for (const point& p : life_.points) {
      ++calls[p.arm];
      seconds.push_back(std::max(p.seconds, 1e-9));
    }
    for (const auto& [arm, count] : calls) arms_.push_back(arm);
    std::ranges::stable_sort(arms_, [&](int a, int b) { return calls[a] > calls[b]; });
    low_s_ = quantile(seconds, 0.002) / 1.15;
    high_s_ = std::max(quantile(seconds, 0.998) * 1.15, 2 * low_s_);
  }

  std::string draw() {
    canvas_.text(left, 26, life_.title, {.size = 17});
    canvas_.text(
        left, 45,
        "time of each call on this rank; dots: calls that tried another arm; line: the arm "
        "in use, median; below: the name of the arm in use");
    grid();
    curves();
    dots();
    strip();
    legend();
    return canvas_.svg();
  }

 private:
  static constexpr double left = 76, width = 800, right = 226, top = 62, height = 330,
                          bottom = top + height + 62;

  std::size_t last() const { return life_.points.size() - 1; }
  // The beginning, in which most is decided, has as much room as what follows.
  double x(double call) const {
    return left + width * std::log1p(call / 8) / std::log1p(std::max(1.0, double(last())) / 8);
  }
  double y(double seconds) const {
    const double part = std::log(seconds / low_s_) / std::log(high_s_ / low_s_);
    return top + height * (1 - std::clamp(part, 0.0, 1.0));
  }
  std::string_view colour(int arm) const {
    if (trace_.name(arm) == "native") return native_colour;
    std::size_t index = 0;
    for (const int other : arms_) {
      if (other == arm) return index < colours.size() ? colours[index] : rare_colour;
      if (trace_.name(other) != "native") ++index;
    }
    return rare_colour;
  }

  void grid() {
    for (double decade = std::pow(10, std::floor(std::log10(low_s_))); decade < high_s_;
         decade *= 10)
      for (const int times : {1, 2, 5}) {
        const double seconds = times * decade;
        if (seconds < low_s_ || seconds > high_s_) continue;
        canvas_.line(left, y(seconds), left + width, y(seconds));
        canvas_.text(left - 8, y(seconds) + 4, format_seconds(seconds), {.anchor = "end"});
      }
    for (double decade = 1; decade <= double(last()); decade *= 10)
      for (const int times : {1, 3}) {
        if (times * decade > double(last())) continue;
        canvas_.line(x(times * decade), top, x(times * decade), top + height);
        canvas_.text(x(times * decade), bottom, number(times * decade), {.anchor = "middle"});
      }
    canvas_.text(left + width / 2, bottom + 20, "call of the context", {.anchor = "middle"});
  }

  // The arm in use: the median of the times within a few pixels.
  void curves() {
    constexpr double step = 4;
    std::vector<std::pair<double, double>> points;
    std::vector<double> here;
    int arm = life_.points.front().in_use;
    double until = left + step;
    const auto close = [&] {
      if (!here.empty()) points.emplace_back(until - step / 2, y(median(here)));
      here.clear();
    };
    const auto draw_line = [&] {
      if (points.size() == 1) canvas_.circle(points[0].first, points[0].second, 1.5, colour(arm));
      if (points.size() > 1) canvas_.curve(points, {.colour = colour(arm), .width = 1.5});
      points.clear();
    };
    for (std::size_t i = 0; i <= last(); ++i) {
      const point& p = life_.points[i];
      while (x(double(i)) >= until) {
        close();
        until += step;
      }
      if (p.in_use != arm) {
        close();
        draw_line();
        arm = p.in_use;
      }
      if (p.arm == p.in_use) here.push_back(std::max(p.seconds, 1e-9));
    }
    close();
    draw_line();
  }

  void dots() {
    // Draws one of many points at the same position.
    std::map<std::tuple<int, int, int>, int> drawn;
    for (std::size_t i = 0; i <= last(); ++i) {
      const point& p = life_.points[i];
      if (p.arm == p.in_use) continue;
      const double at_x = x(double(i)), at_y = y(std::max(p.seconds, 1e-9));
      if (drawn[{int(at_x / 3), int(at_y / 3), p.arm}]++ > 0) continue;
      canvas_.circle(at_x, at_y, 2.5, colour(p.arm),
                     "call " + std::to_string(i) + ": " + trace_.name(p.arm) + ", " +
                         format_seconds(p.seconds));
    }
  }

  void strip() {
    for (std::size_t i = 0; i <= last();) {
      std::size_t end = i;
      while (end <= last() && life_.points[end].in_use == life_.points[i].in_use) ++end;
      const int arm = life_.points[i].in_use;
      const double from = x(double(i)), to = x(double(std::min(end, last())));
      canvas_.rectangle(from, bottom - 40, to - from, 22, colour(arm),
                        trace_.name(arm) + " in use from call " + std::to_string(i));
      i = end;
    }
  }

  void legend() {
    double at_y = top + 10;
    std::size_t shown = 0;
    for (const int arm : arms_) {
      if (shown++ == colours.size() + 1) break;
      canvas_.circle(left + width + 18, at_y - 4, 4, colour(arm));
      std::string name = trace_.name(arm);
      if (name.size() > 26) name = name.substr(0, 23) + "...";
      canvas_.text(left + width + 28, at_y, name);
      at_y += 18;
    }
    if (shown <= arms_.size() && arms_.size() > colours.size() + 1) {
      canvas_.circle(left + width + 18, at_y - 4, 4, rare_colour);
      canvas_.text(left + width + 28, at_y,
                   std::to_string(arms_.size() - colours.size() - 1) + " others");
    }
  }

  const files::call_trace& trace_;
  context_calls life_;
  drawing canvas_;
  std::vector<int> arms_;  // the most used first
  double low_s_ = 0, high_s_ = 0;
};

}  // namespace

std::string draw_context_life(const files::call_trace& trace, const context_choice& which) {
  return picture(trace, choose(trace, which)).draw();
}

}  // namespace railpass::internal::report
