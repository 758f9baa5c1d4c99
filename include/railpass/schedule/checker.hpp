// SPDX-License-Identifier: BSL-1.0
//
// Proves that the schedules of all ranks together keep the promise of their collective. No MPI and
// no data: every unit of memory holds a symbol instead of a value.
//
// Proved properties, for one number of ranks and one size:
// - messages: messages of an ordered pair of ranks are posted in one order only, whatever the
//   timing. The k-th send matches the k-th receive, and both have equal lengths.
// - data: every unit of every rank's output is as railpass/schedule/promise.hpp says. The result of
//   a reduction has every contribution once, in rank order if the operation does not commute. The
//   result of an all_reduce is the same expression, operand for operand, on all ranks, and
//   therefore has the same bits, although rounding is not associative. The input is not written
//   (unless it is the output), no memory is named that a rank does not have, and no memory is read
//   before it is written.
// - arrival in a barrier: each rank's end comes, by dependencies and messages, after the start of
//   every other rank.
// - races: two instances of steps that touch the same memory, one of them writing, are ordered by
//   dependencies. A message occupies its memory from posting to completion. The data are therefore
//   the same in any order of the steps.
// - ending: with synchronous sends, which end only when their receive is posted, all ranks reach
//   the end. The executor has at most 64 messages in flight each way, but a step with none in
//   flight may always start one. The execution with one message per step in flight ends in any
//   order of turns, because steps never compete; a larger window only posts more messages. That
//   execution is the proof; another execution with the executor's window moves the data.
// - memory: a schedule has at most 64 KiB up to 64 ranks. Its size cannot grow with the number of
//   segments, which is unknown when a schedule is built.
//
// Phases are proved one by one, each with the data of the phase before. A rank starts a phase when
// it has ended the phase before, so phases that end on their own also end in sequence.
//
// The parts: checking/form.hpp checks each schedule alone, including its memory; unrolled.hpp
// writes out the instances of all steps; order.hpp checks orders (messages, races, arrival);
// play.hpp matches messages and checks the end; data.hpp has the symbols.
//
// Roots: except for reductions in rank order, schedules use virtual ranks, which the executor
// renames one to one (physical_rank). A proof for one root is therefore a proof for all roots; the
// root of a check only serves to name ranks.
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
  checker(const checker&) = delete;  // its parts hold references to each other
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
