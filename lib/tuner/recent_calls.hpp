// SPDX-License-Identifier: BSL-1.0
//
// Remembers classified calls. Loops of programs repeat calls, many of which take less than a
// microsecond, so their arguments are examined once.
#pragma once

#include "lib/buffers/call_buffers.hpp"
#include "lib/call/call.hpp"
#include "lib/call/eligibility.hpp"
#include "railpass/base/hash.hpp"
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

/// A call that is eligible for tuning, and how it runs with the chosen arm.
struct recent_call {
  call as{};                    ///< including its lengths
  std::uint64_t asked = 0;      ///< number of the arm named by options, see arm_table; 0: no arm
  const arm* pinned = nullptr;  ///< by options or a setting; null: the context chooses
  select::context_id context{};
  const arm* chosen = nullptr;  ///< null: not chosen yet
  const arm* runs = nullptr;    ///< the chosen arm, or native if that arm is not eligible
  /// Whether the call can run as below; otherwise each call decides again.
  bool is_ready = false;
  std::shared_ptr<const schedule> plan{};  ///< null: native
  call_buffers::as_they_are buffers{};     ///< of the plan
  std::uint64_t arm_number = 0;            ///< for the call's mark
};

/// For one communicator, and for calls without handles that may change their meaning: no tables,
/// and only MPI's own types and operations. Buffers may move, but not relative to each other.
class recent_calls {
 public:
  /// Null if the call is unknown.
  recent_call* find(const call& c, std::uint64_t asked) {
    recent_call& known = entry_of(mark_of(c, asked)).known;
    return known.asked == asked && is_same(known.as, c) ? &known : nullptr;
  }

  /// Keeps an eligible call if it was also the last call that missed its entry, so that calls that
  /// are never repeated cost nothing. `pinned` must live until the communicator's last call, or
  /// until another arm gets its number.
  void keep(const call& c, int rank, const select::context_id& context, std::uint64_t asked = 0,
            const arm* pinned = nullptr) {
    const std::uint64_t mark = mark_of(c, asked);
    entry& here = entry_of(mark);
    if (std::exchange(here.missed, mark) != mark) return;
    if (has_tables(c) || !names_only_predefined(c, rank)) return;
    here.known = {};
    here.known.as = c;
    here.known.asked = asked;
    here.known.pinned = pinned;
    here.known.context = context;
  }

  /// Forgets all facts about arms.
  void forget_arms() {
    for (entry& one : entries_) one.known.chosen = nullptr;
  }

 private:
  struct entry {
    std::uint64_t missed = 0;
    recent_call known;
  };

  // Equal for equal calls.
  static std::uint64_t mark_of(const call& c, std::uint64_t asked) {
    std::uint64_t n = std::uint64_t(c.receive.count + c.send.count) * 31 + std::uint64_t(c.op);
    n = (n + asked) * 31 + std::uint64_t(c.root);
    if (is_somewhere(c.send) && is_somewhere(c.receive)) n += 31 * distance(c.send, c.receive);
    return scattered(n);
  }
  entry& entry_of(std::uint64_t mark) { return entries_[mark >> 60]; }
  static bool has_tables(const call& c) {
    return c.send.counts || c.receive.counts || c.send.types || c.receive.types;
  }
  // Whether a collective has tables does not vary.
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
  std::array<entry, 16> entries_;
};

}  // namespace railpass::internal
