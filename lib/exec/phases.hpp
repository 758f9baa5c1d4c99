// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/exec/cell_executor.hpp"
#include "lib/exec/memory.hpp"
#include "lib/exec/wait_watch.hpp"

#include <cstddef>
#include <cstdint>

namespace railpass {

/// Runs schedules of phases (schedule::phases), each by the executor that is for its kind. Has the
/// scratch memory that one phase leaves to the next. Not thread safe.
class phases_executor {
 public:
  phases_executor() = default;
  phases_executor(const phases_executor&) = delete;
  phases_executor& operator=(const phases_executor&) = delete;

  /// Runs the schedule to its end. Collective over all ranks of both executors, which have to be
  /// told of all phases, also of those in which they have nothing to do. Memory is allocated,
  /// codes are returned, and error is thrown as they do.
  template <class Messages>
  int run(const schedule& s, const binding& b, Messages& messages, cell_executor& cells,
          const wait_watch& watch = {}) {
    memory_.bind(b);
    memory_.place(s);
    binding of_phase = b;
    of_phase.scratch = memory_.scratch();
    if (s.serial != serial_ || b.size.units != units_ || b.size.unit_bytes != unit_bytes_) {
      serial_ = 0;
      in_turn(s, [&](const schedule& phase, std::size_t program) {
        if (phase.places > 0)
          cells.prepare(phase, of_phase, program);
        else
          messages.prepare(phase, of_phase);
        return 0;
      });
      serial_ = s.serial;
      units_ = b.size.units;
      unit_bytes_ = b.size.unit_bytes;
    }
    return in_turn(s, [&](const schedule& phase, std::size_t program) {
      return phase.places > 0 ? cells.run(phase, of_phase, watch, program)
                              : messages.run(phase, of_phase, watch);
    });
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

  bound_memory memory_;
  // What all memory has been allocated for.
  std::uint64_t serial_ = 0;
  std::int64_t units_ = 0, unit_bytes_ = 0;
};

}  // namespace railpass
