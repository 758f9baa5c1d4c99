// SPDX-License-Identifier: BSL-1.0
//
// Proves that the schedules of all ranks together do what their collective promises. No MPI, no
// data: every unit of memory holds a symbol instead of a value.
//
// What is proved, for one number of ranks and one size
//   messages  of an ordered pair of ranks are posted in one order only, whatever the timing, the
//             k-th send meets the k-th receive, and both are equally long.
//   data      every unit of every rank's output is what railpass/schedule/promise.hpp says.
//             Reductions: it has every contribution once, in rank order if the operation does not
//             commute; an all_reduce's is the same expression, operand for operand, on all ranks:
//             thus the same bits, though rounding is not associative. The input is not written
//             (unless it is the output), no memory is named that a rank does not have, and nothing
//             is read before it has been written.
//   arrival   of a barrier: each rank's end comes, by dependencies and messages, after the
//   beginning
//             of every other rank.
//   races     two instances of steps that touch the same memory, one of them writing, are ordered
//             by dependencies. A message occupies its memory from posting to completion. So the
//             data are as above in whatever order the steps run.
//   ending    with synchronous sends, which end only when their receive is posted, all ranks reach
//             the end. The executor has at most 64 messages in flight each way, but a step with
//             none in flight may always start one. The play in which each step has one at a time
//             ends whatever the order of turns, as no step ever competes with another; and with a
//             larger window more messages are posted, never fewer. That play is the proof; another
//             one with the executor's window moves the data.
//   memory    of a schedule is at most 64 KiB up to 64 ranks. It cannot grow with the number of
//             segments, which building a schedule does not know.
//
// Phases are proved one by one, each with the data that the one before has left: a rank begins one
// when it has ended the one before, so if all of them end on their own, they do one behind another.
//
// By what: checking/form.hpp looks at each schedule alone, also for its memory; unrolled.hpp writes
// out the instances of all steps; order.hpp has what comes before what (order of messages, races,
// arrival); play.hpp lets messages meet and looks for the end; data.hpp has the symbols.
//
// Roots: but for reductions in rank order, schedules are written in virtual ranks, and the executor
// renames them one to one (physical_rank). What is proved for one root is thereby proved for all;
// the root of a check only serves to name ranks.
#pragma once

#include "railpass/schedule/checking/call.hpp"
#include "railpass/schedule/checking/data.hpp"
#include "railpass/schedule/checking/form.hpp"
#include "railpass/schedule/checking/order.hpp"
#include "railpass/schedule/checking/play.hpp"
#include "railpass/schedule/checking/unrolled.hpp"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace railpass {

/// Keeps its memory from check to check.
class checker {
 public:
  checker() = default;
  checker(const checker&) = delete;  // its parts refer to one another
  checker& operator=(const checker&) = delete;

  /// Checks the schedules of all ranks, in the order of their virtual ranks.
  check_result check(std::span<const schedule> schedules, const check_case& c) {
    call_.set(schedules, c);
    call_.found.ok = check_all();
    return std::move(call_.found);
  }

 private:
  static constexpr std::int32_t max_in_flight = 64;

  bool check_all() {
    const std::span<const schedule> all = call_.schedules;
    if (all.empty()) return call_.fail("no schedules");
    if (!checking::check_memory(call_) || !checking::check_phases(call_)) return false;
    for (const schedule& s : all)
      if (call_.found.all_ready_at_start)
        call_.found.all_ready_at_start = all_ready_at_start(s, call_.size);
    const bool arrival = call_.what == promise::all_arrive;
    data_.put();
    order_.forget_arrivals();
    for (std::size_t k = 0; k < phases_of(all[0]).size(); ++k) {
      set_phase(all, k);
      if (!checking::check_form(call_) || !steps_.expand() || !order_.check_posting_order() ||
          !order_.check_races() || !play_.run(max_in_flight, &data_))
        return false;
      if (arrival) order_.note_arrivals(play_.met());
      if (call_.prove_ending && !play_.run(1, nullptr)) return false;
    }
    return arrival ? order_.check_arrivals() : data_.check();
  }
  void set_phase(std::span<const schedule> all, std::size_t number) {
    if (all[0].phases.empty()) return;
    phase_.clear();
    for (const schedule& s : all) phase_.push_back(s.phases[number]);
    call_.schedules = phase_;
    call_.phase_text = " phase " + std::to_string(number);
  }

  checking::checked_call call_;
  checking::unrolled steps_{call_};
  checking::order_checks order_{call_, steps_};
  checking::symbolic_data data_{call_, steps_};
  checking::play play_{call_, steps_};
  std::vector<schedule> phase_;  // of all ranks
};

}  // namespace railpass
