// SPDX-License-Identifier: BSL-1.0
//
// How a rank comes into memory that another rank of its node has opened, and how that one is rid of
// it: railpass/schedule/checking/handovers.hpp explores both.
//
//   * A visitor says whose memory it is in before the kernel copies, then looks again whether that
//     is still open, and says when it is out. An owner whose call fails closes all that it has
//     opened, then waits until nobody is inside. So none writes into a buffer whose owner has gone
//     on, and no visitor needs to hear of a failure for that.
//   * Where the kernel refuses, since a process has given up privileges, the visitor asks the
//     owner, portion by portion, by way of the visitor's box. The owner answers whenever it waits
//     in the call, which it does not leave before the visitor.
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

/// Of one rank of a communicator.
class relay {
 public:
  relay(const cell_regions& regions, std::int32_t rank) : regions_(regions), rank_(rank) {}

  // ---- the visitor

  /// While one of these lives and has got in, the owner does not end.
  class visit {
   public:
    /// `number`: of the cell in which the owner says what it has opened.
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
  /// Asks the owner for bytes at its address, or to take those of the portion.
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

  /// Answers what is asked of this rank and is opened(visitor, address, bytes, writes): a process
  /// that the kernel protects shows its peers nothing else of its memory.
  template <class Opened>
  void answer(const Opened& opened) const {
    for (const cell_regions::entry& e : regions_) {
      if (e.rank == rank_ || !e.region.memory()) continue;
      relay_box& theirs = e.region.box();
      // Only who is asked may look further: for others the box may be changing.
      const std::uint64_t asked = std::atomic_ref(theirs.asked).load(std::memory_order_acquire);
      const std::atomic_ref answered(theirs.answered);
      if (asked != asking(asked >> bits_of_rank, rank_) ||
          answered.load(std::memory_order_relaxed) >= asked)  // others may have answered since
        continue;
      auto* const here = reinterpret_cast<std::byte*>(std::uintptr_t(theirs.address));
      const std::size_t bytes = std::min<std::size_t>(theirs.bytes, portion_bytes);
      const bool writes = theirs.writes != 0;
      if (!opened(e.rank, here, std::int64_t(bytes), writes)) continue;
      std::memcpy(writes ? here : theirs.portion, writes ? theirs.portion : here, bytes);
      answered.store(asked, std::memory_order_release);
    }
  }

  /// Closes what this rank has opened, for a call that has failed; nobody is inside after that. No
  /// rank runs a schedule in this memory any more.
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
  // One that is there, but somebody else's, counts: it can be told by no other mark.
  static bool is_alive(pid_t process) { return ::kill(process, 0) == 0 || errno != ESRCH; }

  relay_box& box(std::int32_t rank) const { return regions_[rank].box(); }
  std::atomic_ref<std::uint64_t> entered() const { return std::atomic_ref(box(rank_).entered); }

  const cell_regions& regions_;
  std::int32_t rank_;
};

}  // namespace railpass::internal
