// SPDX-License-Identifier: BSL-1.0
//
// Reports of a session: lines of the trace, and where it hangs.
#include "lib/runtime/process.hpp"
#include "lib/tuner/session.hpp"

#include <new>

namespace railpass::internal {

void session::tell_wait(void* self, std::span<const awaited_peer> peers, double waited_s) {
  auto& s = *static_cast<session*>(self);
  try {
    const std::string doing = "arm " + name_of(*s.last_arm_);
    s.joint_.tell_wait(doing, peers, waited_s);
    if (!s.in_memory_) return;
    for (const awaited_peer& p : peers)
      if (s.in_memory_->runs.is_native(p.rank, std::uint64_t(s.call_number_)))
        s.joint_.differ("rank " + std::to_string(p.rank) + " has left call " +
                        std::to_string(s.call_number_) + " to the MPI library, and rank " +
                        std::to_string(s.rank_) + " waits for that rank (" + doing + ")");
  } catch (const std::bad_alloc&) {  // the wait goes on without the report
  }
}

void session::trace(const call& c, const select::timed_call& chosen, double started_s,
                    double seconds) {
  process_.trace([&] {
    return trace_line{.started_s = started_s,
                      .communicator = joint_.communicator(),
                      .call = call_number_,
                      .operation = name_of(c.op),
                      .bytes = c.message_bytes,
                      .arm = name_of(*last_arm_),
                      .probability = joint_.steps().share(chosen.context, chosen.arm),
                      .timed = chosen.timed,
                      .seconds = seconds};
  });
}

}  // namespace railpass::internal
