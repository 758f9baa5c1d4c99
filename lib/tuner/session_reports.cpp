// SPDX-License-Identifier: BSL-1.0
//
// Reports of a session: lines of the trace, and where it hangs.
#include "lib/runtime/process.hpp"
#include "lib/tuner/session.hpp"
#include "railpass/base/float_environment.hpp"

#include <cstdio>
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
  const own_float_environment own;
  try {
    char text[256];
    std::snprintf(text, sizeof text, "%.9f,%s,%lld,%s,%lld,%s,%.6f,%d,%.9f", started_s,
                  joint_.communicator().c_str(), static_cast<long long>(call_number_),
                  name_of(c.op).data(), static_cast<long long>(c.message_bytes),
                  name_of(*last_arm_).c_str(), joint_.steps().share(chosen.context, chosen.arm),
                  chosen.timed ? 1 : 0, seconds);
    process_.trace(text);
  } catch (const std::bad_alloc&) {  // the call was made: it must not fail for want of a line
  }
}

}  // namespace railpass::internal
