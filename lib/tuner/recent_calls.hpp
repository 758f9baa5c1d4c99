// SPDX-License-Identifier: BSL-1.0
//
// Loops of programs make the same calls again and again, many of which take less than a
// microsecond: what their arguments mean is found out once.
#pragma once

#include "lib/buffers/call_buffers.hpp"
#include "lib/call/call.hpp"
#include "lib/call/judgement.hpp"
#include "railpass/schedule/schedule.hpp"
#include "railpass/select/lockstep/context.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

namespace railpass {
struct arm;
}

namespace railpass::internal {

/// A call that was judged to be ours, and what the arm that was chosen for it comes to.
struct recent_call {
  call as{};                ///< with its lengths
  std::uint64_t asked = 0;  ///< by options for the arm of that number, see arm_table; 0: by none
  const arm* pinned = nullptr;  ///< by these or by a setting; null: it is chosen in the context
  select::context_id context{};
  const arm* chosen = nullptr;  ///< null: none was yet
  const arm* runs = nullptr;    ///< that, or native where that is not eligible
  /// Whether the call can run as below; else it must be asked each time how.
  bool is_ready = false;
  std::shared_ptr<const schedule> plan{};  ///< null: native
  call_buffers::as_they_are buffers{};     ///< of the plan
  std::uint64_t arm_number = 0;            ///< of its mark
};

/// Of one communicator, and of calls that name nothing which may come to mean something else: no
/// tables, and MPI's own types and operations only. Buffers may lie elsewhere, but not differently
/// to each other.
class recent_calls {
 public:
  /// Null if the call is none of these.
  recent_call* find(const call& c, std::uint64_t asked) {
    recent_call& known = place_of(mark_of(c, asked)).known;
    return known.asked == asked && is_same(known.as, c) ? &known : nullptr;
  }

  /// A call that was judged to be ours on this rank: kept if it was the last one that missed its
  /// place, so that calls which are never made again cost nothing. `pinned` outlives the
  /// communicator's last call, or that by which another arm gets its number.
  void keep(const call& c, int rank, const select::context_id& context, std::uint64_t asked = 0,
            const arm* pinned = nullptr) {
    const std::uint64_t mark = mark_of(c, asked);
    place& here = place_of(mark);
    if (std::exchange(here.missed, mark) != mark) return;
    if (has_tables(c) || !names_only_predefined(c, rank)) return;
    here.known = {};
    here.known.as = c;
    here.known.asked = asked;
    here.known.pinned = pinned;
    here.known.context = context;
  }

  /// What is known of arms holds no longer.
  void forget_arms() {
    for (place& one : places_) one.known.chosen = nullptr;
  }

 private:
  struct place {
    std::uint64_t missed = 0;
    recent_call known;
  };

  // Equal for calls that are the same.
  static std::uint64_t mark_of(const call& c, std::uint64_t asked) {
    std::uint64_t n = std::uint64_t(c.receive.count + c.send.count) * 31 + std::uint64_t(c.op);
    n = (n + asked) * 31 + std::uint64_t(c.root);
    if (is_somewhere(c.send) && is_somewhere(c.receive)) n += 31 * distance(c.send, c.receive);
    return n * 0x9e3779b97f4a7c15u;
  }
  place& place_of(std::uint64_t mark) { return places_[mark >> 60]; }
  static bool has_tables(const call& c) {
    return c.send.counts || c.receive.counts || c.send.types || c.receive.types;
  }
  // A collective always has tables or never.
  static bool is_same(const call& a, const call& b) {
    return a.message_bytes > 0 && a.op == b.op && a.receive.count == b.receive.count &&
           a.receive.type == b.receive.type && a.operation == b.operation && a.root == b.root &&
           a.send.count == b.send.count && a.send.type == b.send.type && a.is_large == b.is_large &&
           lie_alike(a, b);
  }
  static bool lie_alike(const call& a, const call& b) {
    if (a.send.memory == b.send.memory && a.receive.memory == b.receive.memory) return true;
    const bool sends = is_somewhere(a.send), receives = is_somewhere(a.receive);
    if (sends != is_somewhere(b.send) || receives != is_somewhere(b.receive)) return false;
    if (!sends) return a.send.memory == b.send.memory;
    if (!receives) return a.receive.memory == b.receive.memory;
    return distance(a.send, b.send) == distance(a.receive, b.receive);
  }
  static bool is_somewhere(const call_side& s) { return s.memory && !s.in_place(); }
  static std::uintptr_t distance(const call_side& from, const call_side& to) {
    return reinterpret_cast<std::uintptr_t>(to.memory) -
           reinterpret_cast<std::uintptr_t>(from.memory);
  }
  std::array<place, 16> places_;
};

}  // namespace railpass::internal
