// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/exec/binding.hpp"
#include "lib/exec/cell_executor.hpp"
#include "lib/exec/memory.hpp"
#include "lib/exec/wait_watch.hpp"

#include <cstddef>
#include <cstdint>

namespace railpass::internal {

/// Runs schedules of phases (schedule::phases), each with the executor of its kind. Owns the
/// scratch memory that a phase leaves to the next phase. Not thread-safe.
class phases_executor {
 public:
  phases_executor() = default;
  phases_executor(const phases_executor&) = delete;
  phases_executor& operator=(const phases_executor&) = delete;

  /// Runs the schedule to its end. Collective over all ranks of both executors. Ranks must pass all
  /// phases, including phases without work for them. Allocates, returns codes and throws like the
  /// executors.
  template <class Messages>
  int run(const schedule& s, const binding& b, Messages& messages, cell_executor& cells,
          const wait_watch& watch = {}) {
    const bool prepared = s.serial != 0 && s.serial == serial_ && needs_as_much(b);
    memory_.bind(b);
    memory_.lay_out(s);
    scratch_ = memory_.scratch();
    binding of_phase = b;
    of_phase.scratch = &scratch_;
    if (!prepared) {
      serial_ = 0;
      in_turn(s, [&](const schedule& phase, std::size_t program) {
        if (phase.places > 0)
          cells.prepare(phase, of_phase, program);
        else
          messages.prepare(phase, of_phase);
        return 0;
      });
      serial_ = s.serial;
    }
    const int code = in_turn(s, [&](const schedule& phase, std::size_t program) {
      return phase.places > 0 ? cells.run(phase, of_phase, watch, program)
                              : messages.run(phase, of_phase, watch);
    });
    if (code == 0) memory_.give_back();
    return code;
  }

 private:
  template <class Act>
  static int in_turn(const schedule& s, const Act& act) {
    std::size_t in_memory = 0;
    for (const schedule& phase : s.phases) {
      const std::size_t program = in_memory % cell_executor::num_programs;
      if (phase.places > 0) ++in_memory;
      if (const int code = act(phase, program)) return code;
    }
    return 0;
  }

  // As the last call.
  bool needs_as_much(const binding& b) const {
    const binding& before = memory_.bound();
    return b.size.units == before.size.units && b.size.unit_bytes == before.size.unit_bytes &&
           (b.hooks.pack != nullptr) == (before.hooks.pack != nullptr) && b.layout == before.layout;
  }

  bound_memory memory_;
  scratch_buffers scratch_{};
  std::uint64_t serial_ = 0;  // of the schedule that all memory has been allocated for
};

}  // namespace railpass::internal
