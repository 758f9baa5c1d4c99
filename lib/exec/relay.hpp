// SPDX-License-Identifier: BSL-1.0
//
// How a rank enters memory that another rank of its node has opened, and how the owner closes the
// memory. railpass/schedule/checking/handovers.hpp explores both.
//
// * A visitor first notes the owner of the memory. It then checks that the memory is still open,
//   lets the kernel copy, and notes when it has left. An owner whose call fails closes its memory,
//   then waits until no rank is inside. So no rank writes into a buffer whose owner has continued,
//   and no visitor needs to hear of a failure for that.
// * The kernel refuses if a process has given up privileges. The visitor then asks the owner for
//   portions, through the visitor's box. The owner answers whenever it waits in the call, and
//   leaves the call after the visitor.
#pragma once

#include "lib/exec/cells.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sched.h>

namespace railpass::internal {

/// For one rank of a communicator.
class relay {
 public:
  relay(const cell_regions& regions, std::int32_t rank) : regions_(regions), rank_(rank) {}

  // ---- the visitor

  /// While a visit lives and has got in, the owner's call does not end.
  class visit {
   public:
    /// `number`: of the cell in which the owner shows the opened memory.
    visit(const relay& by, std::int32_t owner, std::uint64_t number) : entered_(by.entered()) {
      entered_.store(std::uint64_t(owner) + 1, std::memory_order_seq_cst);
      is_in_ = by.regions_[owner].still_shows(cell_ring::opened, number);
    }
    ~visit() { entered_.store(0, std::memory_order_release); }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;
    bool is_in() const { return is_in_; }

   private:
    std::atomic_ref<std::uint64_t> entered_;
    bool is_in_ = false;
  };

  static constexpr std::size_t portion_bytes = sizeof(relay_box::portion);
  /// Asks the owner for bytes at its address or, if `writes`, to write the portion there.
  void ask(std::int32_t owner, std::byte* address, std::size_t bytes, bool writes) const {
    relay_box& mine = box(rank_);
    mine.address = reinterpret_cast<std::uintptr_t>(address);
    mine.bytes = bytes;
    mine.writes = writes ? 1 : 0;
    const std::uint64_t times = (mine.asked >> bits_of_rank) + 1;
    std::atomic_ref(mine.asked).store(asking(times, owner), std::memory_order_release);
  }
  bool is_answered() const {
    relay_box& mine = box(rank_);
    return std::atomic_ref(mine.answered).load(std::memory_order_acquire) == mine.asked;
  }
  std::byte* portion() const { return box(rank_).portion; }

  // ---- the owner

  /// Answers requests to this rank for which opened(visitor, address, bytes, writes) is true. A
  /// process that the kernel protects shows its peers no other memory.
  template <class Opened>
  void answer(const Opened& opened) const {
    for (const cell_regions::entry& e : regions_) {
      if (e.rank == rank_ || !e.region.memory()) continue;
      relay_box& theirs = e.region.box();
      // Only the rank asked may read further: for other ranks, the box may be changing.
      const std::uint64_t asked = std::atomic_ref(theirs.asked).load(std::memory_order_acquire);
      const std::atomic_ref answered(theirs.answered);
      if (asked != asking(asked >> bits_of_rank, rank_) ||
          answered.load(std::memory_order_relaxed) >= asked)  // another rank may have answered
        continue;
      auto* const here = reinterpret_cast<std::byte*>(std::uintptr_t(theirs.address));
      const std::size_t bytes = std::min<std::size_t>(theirs.bytes, portion_bytes);
      const bool writes = theirs.writes != 0;
      if (!opened(e.rank, here, std::int64_t(bytes), writes)) continue;
      std::memcpy(writes ? here : theirs.portion, writes ? theirs.portion : here, bytes);
      answered.store(asked, std::memory_order_release);
    }
  }

  /// After a failed call: closes all memory that this rank has opened; afterwards no rank is
  /// inside. No rank runs a further schedule in this memory.
  void close_all() const {
    regions_[rank_].hide_all(cell_ring::opened);
    for (const cell_regions::entry& e : regions_)
      while (e.rank != rank_ && e.region.memory() &&
             std::atomic_ref(e.region.box().entered).load(std::memory_order_seq_cst) ==
                 std::uint64_t(rank_) + 1 &&
             is_alive(e.region.process()))
        sched_yield();
  }

 private:
  static constexpr unsigned bits_of_rank = 24;
  static constexpr std::uint64_t asking(std::uint64_t times, std::int32_t owner) {
    return times << bits_of_rank | (std::uint64_t(owner) + 1);
  }
  // A foreign process with this number counts as alive, because it cannot be distinguished.
  static bool is_alive(pid_t process) { return ::kill(process, 0) == 0 || errno != ESRCH; }

  relay_box& box(std::int32_t rank) const { return regions_[rank].box(); }
  std::atomic_ref<std::uint64_t> entered() const { return std::atomic_ref(box(rank_).entered); }

  const cell_regions& regions_;
  std::int32_t rank_;
};

}  // namespace railpass::internal
