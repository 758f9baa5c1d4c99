// SPDX-License-Identifier: BSL-1.0
//
// One cell of the benchmark. A value is the time of a call after a barrier, or since a common
// instant (global_clock.hpp), on the slowest rank. In each repetition, all contestants run once, in
// a new random order that is equal on all ranks. So disturbances of the machine affect all
// contestants alike. All decisions use values that a reduction has made equal on all ranks,
// including rank 0's clock.
#include "lib/measure/bench_cell.hpp"

#include "lib/measure/global_clock.hpp"
#include "lib/measure/workload.hpp"
#include "lib/measure/wrong_results.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/base/units.hpp"
#include "railpass/mpi.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>

namespace railpass::internal::measure {
namespace {

// A communicator of all ranks, separate for each contestant. So the MPI library's data of the
// communicator is equally warm, or cold, for all contestants.
class own_communicator {
 public:
  own_communicator() { MPI_Comm_dup(MPI_COMM_WORLD, &comm_); }
  /// Takes over a communicator.
  explicit own_communicator(MPI_Comm comm) : comm_(comm) {}
  ~own_communicator() { MPI_Comm_free(&comm_); }
  own_communicator(const own_communicator&) = delete;
  own_communicator& operator=(const own_communicator&) = delete;
  MPI_Comm get() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

// Tuned from its first call on.
class tuned_communicator : public own_communicator {
 public:
  tuned_communicator() { mpi::start_tuning(get()); }
};

// The 95 % interval of the ratio of medians; none from fewer values than such an interval needs.
std::optional<interval> likely_ratio(const std::vector<double>& above,
                                     const std::vector<double>& below) {
  const auto is_enough = [](std::span<const double> sample) {
    return bounds_of_median(sample).confidence >= 0.95;
  };
  if (!is_enough(above) || !is_enough(below)) return std::nullopt;
  return ratio_of_medians(above, below, 0.95, 200);
}

class cell {
 public:
  cell(const job& j, const cell_request& r, const progress_report& p)
      : job_(j),
        request_(r),
        progress_(p),
        data_(j, r.op, r.bytes, r.root),
        begin_s_(steady_clock_s()) {
    for (const contestant& c : r.contestants) {
      runners_.push_back({.who = &c});
      if (c.what == contestant::kind::tuned && !tuned_) tuned_.emplace();
      if (c.what == contestant::kind::pinned && !pinned_) pinned_.emplace();
    }
  }

  cell_result measure() {
    try_everyone();
    settle();
    repeat();
    summarize();
    if (request_.learning > 0) learn();
    return std::move(result_);
  }

 private:
  static constexpr int most_repetitions = 1000, fewest_repetitions = 6;

  struct runner {
    const contestant* who;
    std::vector<double> times{};  // largest over the ranks
    int stride = 1;               // takes part in one of `stride` repetitions
    int turns = 1;                // calls in each of these repetitions
    bool out = false;
    std::unique_ptr<own_communicator> comm{};  // only for kind::own, once it was tried
  };

  std::string name() const {
    return std::string(name_of(request_.op)) + " " + format_bytes(request_.bytes);
  }

  // Must live during a call. Other calls of the MPI library's must not be forced, too.
  std::unique_ptr<own_algorithms::forced> force(const runner& r) const {
    if (r.who->what != contestant::kind::own) return nullptr;
    return request_.own->during_call(request_.op, r.who->own, r.who->segment_bytes);
  }

  // Failures end the job, as MPI's error handlers do by default; except where an algorithm is
  // forced.
  void call(const runner& r) {
    switch (r.who->what) {
      case contestant::kind::native:
        run_native(data_.made_on(native_.get()));
        break;
      case contestant::kind::tuned:
        call_tuned(tuned_->get(), {});
        break;
      case contestant::kind::pinned:
        call_tuned(pinned_->get(), pin(r));
        break;
      case contestant::kind::own:
        if (run_native(data_.made_on(r.comm->get())) != MPI_SUCCESS) refused_ = true;
        break;
    }
  }

  void call_tuned(MPI_Comm comm, const call_options& options) {
    auto c = data_.made_on(comm);
    run_call(c, options);
  }

  static call_options pin(const runner& r) {
    call_options options;
    options.arm = r.who->label;
    return options;
  }

  // This rank's time.
  template <class F>
  static double time_of(F&& work) {
    PMPI_Barrier(MPI_COMM_WORLD);
    const double begin_s = steady_clock_s();
    work();
    return steady_clock_s() - begin_s;
  }

  // This rank's time of a call after a barrier.
  double time_of_call(const runner& r) {
    PMPI_Barrier(MPI_COMM_WORLD);
    const auto now = force(r);
    const double begin_s = steady_clock_s();
    call(r);
    return steady_clock_s() - begin_s;
  }

  // Time of a call in a repetition; infinite if this rank was late.
  double time_of_round(const runner& r) {
    if (!clock_) return time_of_call(r);
    const auto now = force(r);
    const double begin_s = clock_->begin_round();
    call(r);
    const double end_s = clock_->now_s();
    return std::isfinite(begin_s) ? end_s - begin_s : begin_s;
  }

  // Replaces values by their maxima over the ranks. Returns rank 0's time since the start.
  double agree(std::vector<double>& values) const {
    values.push_back(job_.rank == 0 ? steady_clock_s() - begin_s_ : 0);
    PMPI_Allreduce(MPI_IN_PLACE, values.data(), int(values.size()), MPI_DOUBLE, MPI_MAX,
                   MPI_COMM_WORLD);
    const double spent_s = values.back();
    values.pop_back();
    return spent_s;
  }

  // Runs every contestant once with its result checked, and once timed. Arms run in the order of
  // their predictions. After half of the budget, the remaining arms are left out.
  void try_everyone() {
    double spent_s = 0;
    for (runner& r : runners_) {
      progress_(0.3 * spent_s / request_.budget_s, name() + ", trying " + r.who->label);
      if (spent_s > request_.budget_s / 2 && !r.who->asked_for) {
        leave_out(r, r.who->what == contestant::kind::own ? "the time was not enough"
                                                          : "the time was not enough; predicted " +
                                                                format_seconds(r.who->predicted_s));
        continue;
      }
      if (r.who->what == contestant::kind::own)
        r.comm = std::make_unique<own_communicator>(
            request_.own->communicator(request_.op, r.who->own, r.who->segment_bytes));
      data_.prepare();
      refused_ = false;
      time_of_call(r);
      std::vector<double> seen{data_.is_right() ? 0.0 : 1.0, refused_ ? 1.0 : 0.0, 0.0};
      if (r.who->what == contestant::kind::pinned &&
          mpi::last_arm(pinned_->get()) != name_of(r.who->pinned))
        seen[1] = 1;
      seen[2] = time_of_call(r);
      spent_s = agree(seen);
      const bool wrong = seen[0] > 0 && seen[1] == 0;
      if (wrong) result_.wrong.push_back(r.who->label);
      if (seen[1] > 0)
        leave_out(r, r.who->what == contestant::kind::own
                         ? "the MPI library refuses it here"
                         : "cannot run here; the MPI library's own ran instead");
      else if (wrong && r.who->what != contestant::kind::native)
        leave_out(r, wrong_result);
      else
        r.times.push_back(seen[2]);
    }
  }

  void leave_out(runner& r, const std::string& why) {
    r.out = true;
    result_.left_out.emplace_back(r.who->label, why);
  }

  double best_median_s() const {
    double best_s = INFINITY;
    for (const runner& r : runners_)
      if (!r.out) best_s = std::min(best_s, median(r.times));
    return best_s;
  }

  // Lets the tuned call learn, if time permits: a thousand calls, then until the last calls all
  // took the same arm. Repetitions thus measure a converged call; `learn` shows the first calls.
  void settle() {
    constexpr int fewest_calls = 1000, most_calls = 4000, same_calls = 100, calls_per_look = 10;
    const auto tuned = std::find_if(runners_.begin(), runners_.end(), [](const runner& r) {
      return r.who->what == contestant::kind::tuned;
    });
    if (tuned == runners_.end()) return;
    std::deque<std::string> arms;
    for (int calls = 0; calls < most_calls; calls += calls_per_look) {
      for (int i = 0; i < calls_per_look; ++i) {
        time_of_call(*tuned);
        arms.push_back(mpi::last_arm(tuned_->get()));
      }
      while (arms.size() > same_calls) arms.pop_front();
      const bool same = arms.size() == same_calls &&
                        std::all_of(arms.begin(), arms.end(),
                                    [&](const std::string& a) { return a == arms.front(); });
      std::vector<double> none;
      const double spent_s = agree(none);
      progress_(0.3 + 0.2 * calls / most_calls, name() + ", learning");
      if (agreed(int(same)) && calls + calls_per_look >= fewest_calls) break;
      if (spent_s > 0.6 * request_.budget_s && calls + calls_per_look >= 2 * calls_per_look) break;
    }
    tuned->times.assign(1, time_of_call(*tuned));
    agree(tuned->times);
    if (!arms.empty()) result_.tuned_arm = arms.back();
  }

  // Slow arms take part in fewer repetitions; the two main contestants take part more often.
  void set_strides() {
    const double best_s = best_median_s();
    const auto arms =
        std::count_if(runners_.begin(), runners_.end(), [](const runner& r) { return !r.out; });
    for (runner& r : runners_) {
      if (r.out) continue;
      const bool arm =
          r.who->what == contestant::kind::pinned || r.who->what == contestant::kind::own;
      const double ratio = median(r.times) / best_s;
      r.turns = arm ? 1 : std::clamp(int(arms / 8), 1, 8);
      r.stride = arm && ratio > 1.25 ? std::clamp(int(std::min(100.0, 3 * ratio)), 3, 16) : 1;
    }
  }

  void repeat() {
    std::mt19937_64 random(request_.seed);
    constexpr double synchronise_every_s = 0.5;
    if (request_.round_time) clock_.emplace();
    double synchronised_at_s = 0;
    for (int repetition = 1; repetition <= most_repetitions; ++repetition) {
      if ((repetition & (repetition - 1)) == 0) set_strides();  // at 1, 2, 4, 8, ...
      std::vector<runner*> order;
      for (runner& r : runners_)
        if (!r.out && repetition % r.stride == 0)
          order.insert(order.end(), std::size_t(r.turns), &r);
      std::shuffle(order.begin(), order.end(), random);
      std::vector<double> times;
      for (const runner* r : order) times.push_back(time_of_round(*r));
      const double spent_s = agree(times);
      for (std::size_t i = 0; i < order.size(); ++i) {
        const bool late = !std::isfinite(times[i]);
        if (clock_) clock_->round_was_late(late);
        if (late)
          ++result_.late_rounds;
        else
          order[i]->times.push_back(times[i]);
      }
      if (clock_ && spent_s - synchronised_at_s > synchronise_every_s) {
        clock_->synchronise();
        synchronised_at_s = spent_s;
      }
      result_.repetitions = repetition;
      progress_(std::max(spent_s / request_.budget_s, double(repetition) / most_repetitions),
                name() + ", repetition " + std::to_string(repetition));
      const bool enough = repetition >= fewest_repetitions;
      if (spent_s > (enough ? 1.0 : 3.0) * request_.budget_s) break;
    }
  }

  void summarize() {
    const auto native = std::find_if(runners_.begin(), runners_.end(), [](const runner& r) {
      return r.who->what == contestant::kind::native;
    });
    double best_arm_s = INFINITY;
    for (const runner& r : runners_)
      if (!r.out &&
          (r.who->what == contestant::kind::native || r.who->what == contestant::kind::pinned)) {
        const double m = median(r.times);
        if (m < best_arm_s) best_ = &r;
        best_arm_s = std::min(best_arm_s, m);
      }
    for (const runner& r : runners_) {
      if (r.out) continue;
      bench_result row{.collective = std::string(name_of(request_.op)),
                       .bytes = request_.bytes,
                       .arm = r.who->label,
                       .median_s = median(r.times),
                       .p90_s = quantile(r.times, 0.9),
                       .runs = std::int64_t(r.times.size()),
                       .spread_s = robust_spread(r.times)};
      if (std::isfinite(best_arm_s)) row.ratio_to_best = row.median_s / best_arm_s;
      const bool tuned = r.who->what == contestant::kind::tuned;
      if (tuned && best_) {
        if (const auto likely = likely_ratio(r.times, best_->times)) {
          row.best_low = likely->low;
          row.best_high = likely->high;
          if (!no_slower(likely->low, likely->high, best_arm_s))
            result_.missed.push_back({"the best arm, " + best_->who->label, *likely});
        }
      }
      if (native != runners_.end()) {
        row.ratio_to_native = row.median_s / median(native->times);
        const auto likely = &r == &*native ? std::nullopt : likely_ratio(r.times, native->times);
        if (likely) {
          row.ratio_low = likely->low;
          row.ratio_high = likely->high;
          if (tuned && !no_slower(likely->low, likely->high, median(native->times)))
            result_.missed.push_back({"native", *likely});
        }
      }
      result_.rows.push_back(std::move(row));
    }
  }

  // The first calls of a fresh context. The order of tuned call, native and best arm rotates.
  void learn() {
    if (!best_) return;
    const tuned_communicator fresh;
    const std::array<std::function<void()>, 3> calls{
        [&] { call_tuned(fresh.get(), {}); }, [&] { run_native(data_.made_on(native_.get())); },
        [&] { call(*best_); }};
    const std::size_t kinds = best_->who->what == contestant::kind::native ? 2 : 3;
    std::array<std::vector<double>, 3> times;
    for (int i = 0; i < request_.learning; ++i) {
      for (std::size_t k = 0; k < kinds; ++k) {
        const std::size_t next = (std::size_t(i) + k) % kinds;
        times[next].push_back(time_of(calls[next]));
      }
      if (i % 16 == 0) progress_(double(i) / request_.learning, name() + ", first calls");
    }
    for (std::size_t k = 0; k < kinds; ++k) agree(times[k]);
    if (kinds == 2) times[2] = times[1];
    for (std::size_t first = 0, end = 100; first < times[0].size(); first = end, end *= 10)
      result_.learning.push_back(learning_of(times, first, std::min(end, times[0].size())));
  }

  learning_result learning_of(const std::array<std::vector<double>, 3>& times, std::size_t first,
                              std::size_t end) const {
    const auto part = [&](std::size_t kind) {
      return std::span(times[kind]).subspan(first, end - first);
    };
    const auto total = [](std::span<const double> s) {
      return std::accumulate(s.begin(), s.end(), 0.0);
    };
    const std::span tuned = part(0), native = part(1), best = part(2);
    const paired_ratio to_native = ratio_of_pairs(tuned, native);
    return {.collective = std::string(name_of(request_.op)),
            .bytes = request_.bytes,
            .first_call = std::int64_t(first) + 1,
            .calls = std::int64_t(tuned.size()),
            .total_s = total(tuned),
            .native_total_s = total(native),
            .ratio_to_native = to_native.ratio,
            .native_low = to_native.bounds.low,
            .native_high = to_native.bounds.high,
            .best_arm = best_->who->label,
            .best_total_s = total(best),
            .ratio_to_best = ratio_of_pairs(tuned, best).ratio,
            .worst_call_s = *std::max_element(tuned.begin(), tuned.end()),
            .best_median_s = median(best),
            .best_worst_call_s = *std::max_element(best.begin(), best.end())};
  }

  const job& job_;
  const cell_request& request_;
  const progress_report& progress_;
  workload data_;
  double begin_s_;
  own_communicator native_;
  std::optional<tuned_communicator> tuned_, pinned_;  // if there are such contestants
  std::optional<global_clock> clock_;                 // empty: calls start after a barrier
  std::vector<runner> runners_;
  const runner* best_ = nullptr;
  bool refused_ = false;  // a call with a forced algorithm has returned an error
  cell_result result_;
};

}  // namespace

cell_result measure_cell(const job& j, const cell_request& request,
                         const progress_report& progress) {
  return cell(j, request, progress).measure();
}

}  // namespace railpass::internal::measure
