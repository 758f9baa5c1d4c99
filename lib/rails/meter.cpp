// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/meter.hpp"

#include "railpass/base/clock.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/transport/strategy.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

namespace railpass::internal {

namespace {

using transport::joint_sample;
using transport::link_samples;
using transport::measured_time;
using transport::operation_ptr;
using transport::time_curve;

constexpr std::int64_t KiB = 1 << 10, MiB = 1 << 20;
constexpr std::int64_t eager_sizes[] = {64,      256,      1 * KiB,  4 * KiB,
                                        8 * KiB, 16 * KiB, 32 * KiB, 64 * KiB};
constexpr std::int64_t pair_sizes[] = {128, 512, 2 * KiB, 8 * KiB, 16 * KiB, 32 * KiB, 64 * KiB};
constexpr std::int64_t rendezvous_sizes[] = {64,       256,      1 * KiB,   4 * KiB,   16 * KiB,
                                             32 * KiB, 64 * KiB, 128 * KiB, 256 * KiB, 512 * KiB,
                                             1 * MiB,  2 * MiB,  4 * MiB};
constexpr std::int64_t together_sizes[] = {8 * KiB,   16 * KiB,  32 * KiB,  64 * KiB,
                                           128 * KiB, 256 * KiB, 512 * KiB, 1 * MiB};
constexpr std::int64_t most_bytes = 4 * MiB;

// These sizes are measured even if the budget is spent: a rail has no estimate otherwise.
bool needed(std::int64_t bytes) { return bytes == 64 || bytes == 64 * KiB; }

constexpr int most_rounds = 31;
constexpr double long_s = 2e-3;                          // measured in every fourth round only
constexpr double single_share = 0.6, joint_share = 0.2;  // of the budget; the rest: together
constexpr int joint_messages = 8, joint_repetitions = 3;

enum tag : int { asked = 1, ready, measured, answered };

// Request of the measuring rank to its peer. Both have the same machine family: see connect.cpp.
struct request {
  std::uint32_t rails = 0;  // a bit set; empty: end of the measurement
  std::int32_t messages = 0;
  std::int64_t bytes = 0;  // of each
};

// Uses only the rails in `rails`, and holds small messages back while `hold` is set.
class probe final : public transport::strategy {
 public:
  std::uint32_t rails = 1;
  bool hold = false;
  bool aggregate = false;

  std::size_t small(std::size_t idle_rail, const transport::rails_view& view,
                    std::span<const std::int64_t> sizes) const override {
    transport::rail_outlook some[transport::most_rails];
    if (hold ||
        transport::soonest(restricted(view, some).rails, double(sizes.front())) != idle_rail)
      return 0;
    return aggregate ? sizes.size() : 1;
  }
  std::int64_t large(std::size_t idle_rail, const transport::rails_view& view,
                     const transport::large_view& l) const override {
    transport::rail_outlook some[transport::most_rails];
    return transport::detail::exact_share(idle_rail, restricted(view, some), l);
  }

 private:
  transport::rails_view restricted(const transport::rails_view& view,
                                   transport::rail_outlook* some) const {
    std::ranges::copy(view.rails, some);
    for (std::size_t r = 0; r < view.rails.size(); ++r)
      if ((rails >> r & 1) == 0) some[r].busy_s = std::numeric_limits<double>::infinity();
    transport::rails_view result = view;
    result.rails = {some, view.rails.size()};
    return result;
  }
};

// One end of a link: replaces the strategy by the probe, and exchanges messages.
class end_of_link {
 public:
  end_of_link(open_transport& rails, int peer, double deadline_s)
      : rails_(rails), peer_(peer), deadline_s_(deadline_s), memory_(std::size_t(most_bytes)) {
    auto how = std::make_unique<probe>();
    probe_ = how.get();
    before_ = rails_.with([&](transport::transport& t) { return t.use(std::move(how)); });
  }
  ~end_of_link() {
    rails_.with([&](transport::transport& t) { t.use(std::move(before_)); });
  }
  end_of_link(const end_of_link&) = delete;
  end_of_link& operator=(const end_of_link&) = delete;

  operation_ptr send(int tag, const void* from, std::int64_t bytes) {
    auto* const data = static_cast<std::byte*>(const_cast<void*>(from));
    return rails_.with([&](transport::transport& t) {
      return t.send(peer_, tag, {{data, std::size_t(bytes)}});
    });
  }
  operation_ptr receive(int tag, void* to, std::int64_t bytes) {
    return rails_.with([&](transport::transport& t) {
      return t.receive(peer_, tag, {{static_cast<std::byte*>(to), std::size_t(bytes)}});
    });
  }
  void wait(const operation_ptr& op) {
    if (rails_.wait([&](transport::transport&) { return op->done(); }, deadline_s_)) return;
    const std::string why =
        "rank " + std::to_string(peer_) + " did not answer while the rails to it were measured";
    rails_.with([&](transport::transport& t) { t.fail(why); });
    throw error(why);
  }

 protected:
  open_transport& rails_;
  int peer_;
  double deadline_s_;
  std::vector<std::byte> memory_;
  probe* probe_ = nullptr;

 private:
  std::unique_ptr<transport::strategy> before_;
};

double deadline_of(double budget_s) { return steady_clock_s() + 60 + 10 * budget_s; }

class meter : end_of_link {
 public:
  meter(open_transport& rails, int peer, double budget_s)
      : end_of_link(rails, peer, deadline_of(budget_s)), budget_s_(budget_s) {
    num_rails_ = rails.with([](transport::transport& t) { return t.rails().size(); });
    answer_s_.assign(num_rails_, 0);
    link_.rails.resize(num_rails_);
    link_.least_bytes = 1;
  }

  link_samples measure() {
    link_samples samples;
    samples.memory_copy = memory_copy();
    samples.rails.resize(num_rails_);
    const double began_s = steady_clock_s();
    measure_rails(samples, began_s + single_share * budget_s_);
    if (num_rails_ > 1) {
      learn(samples);
      set_thresholds(0, sizeof(request));
      measure_joint(samples);
      const std::vector<int> combining =
          transport::rails_that_combine(samples.joint, int(num_rails_));
      if (combining.size() > 1) measure_together(samples, set_of(combining), began_s + budget_s_);
    }
    const request end;
    wait(send(asked, &end, sizeof end));
    return samples;
  }

 private:
  struct cell {
    time_curve* curve;
    std::size_t rail;
    std::int64_t bytes;
    std::int32_t messages = 1;
    bool aggregate = false;
    std::int64_t copy_bytes = 0, eager_bytes = std::int64_t(transport::most_eager_bytes);
    std::vector<double> times_s{};
    double cost_s = 0;

    bool same_thresholds(const cell& other) const {
      return copy_bytes == other.copy_bytes && eager_bytes == other.eager_bytes;
    }
  };

  static std::uint32_t set_of(const std::vector<int>& rails) {
    std::uint32_t set = 0;
    for (const int r : rails) set |= 1u << r;
    return set;
  }

  // The median, with its standard error for normal noise. The first time includes the warm-up of
  // connections, and counts only if there are at most two times.
  static measured_time typical(std::int64_t bytes, std::vector<double> times_s) {
    if (times_s.size() > 2) times_s.erase(times_s.begin());
    return {double(bytes), median(times_s),
            1.2533 * robust_spread(times_s) / std::sqrt(double(times_s.size()))};
  }

  // Cost of a message that arrives before its receive is posted.
  time_curve memory_copy() const {
    time_curve curve;
    for (const std::int64_t bytes : eager_sizes) {
      std::vector<double> times_s;
      for (int k = 0; k < 9; ++k) {
        const double began_s = steady_clock_s();
        std::vector<std::byte> kept(static_cast<std::size_t>(bytes));
        std::memcpy(kept.data(), memory_.data(), kept.size());
        const volatile std::byte last = kept.back();
        static_cast<void>(last);
        times_s.push_back(steady_clock_s() - began_s);
      }
      curve.push_back({double(bytes), std::max(1e-9, median(times_s))});
    }
    return curve;
  }

  void set_thresholds(std::int64_t copy_bytes, std::int64_t eager_bytes) {
    for (transport::rail_profile& r : link_.rails)
      r.thresholds = {.copy_bytes = copy_bytes,
                      .eager_bytes = eager_bytes,
                      .aggregate_bytes = std::int64_t(transport::most_eager_bytes)};
    rails_.with([&](transport::transport& t) { t.know(peer_, link_); });
  }

  // Time from the first send to the peer's answer.
  double there_and_back_s(std::uint32_t rails, std::int64_t bytes, int messages, bool aggregate) {
    const request r{.rails = rails, .messages = messages, .bytes = bytes};
    probe_->rails = rails;
    probe_->aggregate = aggregate;
    char is_ready = 0, answer[16] = "";
    const operation_ptr got_ready = receive(ready, &is_ready, sizeof is_ready),
                        got_answer = receive(answered, answer, sizeof answer);
    const operation_ptr asking = send(asked, &r, sizeof r);
    wait(got_ready);
    wait(asking);
    std::vector<operation_ptr> sends;
    const double began_s = steady_clock_s();
    probe_->hold = messages > 1;
    for (int k = 0; k < messages; ++k) sends.push_back(send(measured, memory_.data(), bytes));
    if (probe_->hold) {
      probe_->hold = false;
      rails_.with([](transport::transport& t) { t.progress(); });
    }
    wait(got_answer);
    const double took_s = steady_clock_s() - began_s;
    for (const operation_ptr& op : sends) wait(op);
    return took_s;
  }

  // A message takes at least as long as its answer, even if the answer's time was disturbed.
  static double one_way_s(double took_s, double answer_s) {
    return std::max(took_s / 2, took_s - answer_s);
  }

  double answer_s(std::uint32_t rails) const {
    double least_s = std::numeric_limits<double>::infinity();
    for (std::size_t r = 0; r < num_rails_; ++r)
      if (rails >> r & 1) least_s = std::min(least_s, answer_s_[r]);
    return least_s;
  }

  void measure(cell& c) {
    const double began_s = steady_clock_s();
    const double took_s =
        there_and_back_s(1u << c.rail, c.bytes / c.messages, c.messages, c.aggregate);
    c.times_s.push_back(one_way_s(took_s, answer_s_[c.rail]));
    c.cost_s = steady_clock_s() - began_s;
  }

  std::vector<cell> cells_of(link_samples& samples) const {
    constexpr auto all = std::int64_t(transport::most_eager_bytes);
    std::vector<cell> cells;
    for (std::size_t r = 0; r < num_rails_; ++r) {
      transport::rail_samples& s = samples.rails[r];
      for (const std::int64_t b : eager_sizes) cells.push_back({&s.pieces, r, b});
      for (const std::int64_t b : pair_sizes) {
        cells.push_back({&s.two_packets, r, b, 2, false});
        cells.push_back({&s.aggregate, r, b, 2, true});
      }
      for (const std::int64_t b : eager_sizes) cells.push_back({&s.copied, r, b, 1, false, all});
      for (const std::int64_t b : rendezvous_sizes)
        cells.push_back({&s.rendezvous, r, b, 1, false, 0, sizeof(request)});
    }
    return cells;
  }

  // Measures in rounds over all cells, so that a disturbance affects all cells alike.
  void measure_rails(link_samples& samples, double until_s) {
    std::vector<cell> cells = cells_of(samples);
    set_thresholds(0, std::int64_t(transport::most_eager_bytes));
    for (std::size_t r = 0; r < num_rails_; ++r) {
      std::vector<double> times_s;
      for (int k = 0; k < 9; ++k) times_s.push_back(there_and_back_s(1u << r, 16, 1, false) / 2);
      answer_s_[r] = typical(16, times_s).seconds;
    }
    const cell* last = nullptr;
    std::vector<double> s_per_byte(num_rails_, 0);
    for (int round = 0; round < most_rounds; ++round) {
      for (cell& c : cells) {
        const double left_s = until_s - steady_clock_s();
        const bool must = round == 0 && needed(c.bytes) && c.messages == 1;
        if (!must) {
          if (round == 0
                  ? 2 * s_per_byte[c.rail] * double(c.bytes) > left_s / 4
                  : c.times_s.empty() || c.cost_s > left_s || (c.cost_s > long_s && round % 4 != 0))
            continue;
        }
        if (!last || !c.same_thresholds(*last)) set_thresholds(c.copy_bytes, c.eager_bytes);
        last = &c;
        measure(c);
        if (c.bytes >= 16 * KiB) s_per_byte[c.rail] = c.times_s.back() / double(c.bytes);
      }
      if (steady_clock_s() > until_s) break;
    }
    for (const cell& c : cells)
      if (!c.times_s.empty()) c.curve->push_back(typical(c.bytes, c.times_s));
  }

  // The samples so far decide how the rails share messages.
  void learn(const link_samples& samples) {
    for (std::size_t r = 0; r < num_rails_; ++r) {
      const transport::rail_samples& s = samples.rails[r];
      link_.rails[r].time = transport::delivery_time(s.pieces, s.rendezvous);
    }
  }

  std::vector<std::vector<int>> sets() const {
    std::vector<std::vector<int>> result;
    const int n = int(num_rails_);
    for (int r = 0; r < n; ++r) result.push_back({r});
    if (n > 2 && n <= 4)
      for (int a = 0; a < n; ++a)
        for (int b = a + 1; b < n; ++b) result.push_back({a, b});
    result.emplace_back();
    for (int r = 0; r < n; ++r) result.back().push_back(r);
    return result;
  }

  // Bandwidths of sets of rails. The best of several tries counts, as disturbances only slow rails.
  void measure_joint(link_samples& samples) {
    const std::vector<std::vector<int>> all = sets();
    const double each_s = joint_share * budget_s_ / double(all.size() * joint_repetitions);
    for (const std::vector<int>& rails : all) samples.joint.push_back({rails, 0});
    for (int k = 0; k < joint_repetitions; ++k)
      for (joint_sample& s : samples.joint) {
        double bytes_per_s = 0;
        for (const int r : s.rails) bytes_per_s += link_.rails[std::size_t(r)].time.bytes_per_s();
        const auto bytes = std::clamp<std::int64_t>(
            std::int64_t(bytes_per_s * each_s / joint_messages), 32 * KiB, most_bytes);
        const std::uint32_t set = set_of(s.rails);
        const double took_s =
            one_way_s(there_and_back_s(set, bytes, joint_messages, false), answer_s(set));
        s.bytes_per_s = std::max(s.bytes_per_s, double(bytes * joint_messages) / took_s);
      }
  }

  void measure_together(link_samples& samples, std::uint32_t set, double until_s) {
    std::vector<std::vector<double>> times_s(std::size(together_sizes));
    std::vector<double> cost_s(std::size(together_sizes), 0);
    for (int round = 0; round < most_rounds; ++round) {
      for (std::size_t i = 0; i < std::size(together_sizes); ++i) {
        const double left_s = until_s - steady_clock_s();
        if (round == 0 ? i > 3 && 2 * cost_s[i - 1] > left_s / 2
                       : times_s[i].empty() || cost_s[i] > left_s ||
                             (cost_s[i] > long_s && round % 4 != 0))
          continue;
        const double took_s = there_and_back_s(set, together_sizes[i], 1, false);
        times_s[i].push_back(one_way_s(took_s, answer_s(set)));
        cost_s[i] = took_s;
      }
      if (steady_clock_s() > until_s) break;
    }
    for (std::size_t i = 0; i < std::size(together_sizes); ++i)
      if (!times_s[i].empty()) samples.together.push_back(typical(together_sizes[i], times_s[i]));
  }

  double budget_s_;
  std::size_t num_rails_ = 1;
  std::vector<double> answer_s_;  // by rail: one-way time of the answer
  transport::link_profile link_;
};

class server : end_of_link {
 public:
  using end_of_link::end_of_link;

  void serve() {
    for (;;) {
      request r;
      wait(receive(asked, &r, sizeof r));
      if (r.rails == 0) return;
      if (r.messages < 1 || r.messages > joint_messages || r.bytes < 0 || r.bytes > most_bytes)
        throw error("an invalid request of the measuring rank");
      probe_->rails = r.rails;
      std::vector<operation_ptr> messages;
      for (int k = 0; k < r.messages; ++k)
        messages.push_back(receive(measured, memory_.data(), r.bytes));
      const char is_ready = 1, answer[16] = "";
      wait(send(ready, &is_ready, sizeof is_ready));
      for (const operation_ptr& m : messages) wait(m);
      wait(send(answered, answer, sizeof answer));
    }
  }
};

}  // namespace

link_samples measure_link(open_transport& rails, int peer, double budget_s) {
  return meter(rails, peer, budget_s).measure();
}

void serve_measurement(open_transport& rails, int peer, double budget_s) {
  server(rails, peer, deadline_of(budget_s)).serve();
}

}  // namespace railpass::internal
