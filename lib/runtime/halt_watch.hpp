// SPDX-License-Identifier: BSL-1.0
//
// Where the calls of this process stand, in a file once they make no progress. If the run is
// killed, the next run reads the files of all ranks: lib/store/halts.hpp.
#pragma once

#include "collectives/registry.hpp"

#include <atomic>
#include <cstdint>
#include <string>

namespace railpass::internal {

class halt_watch {
  struct watched;

 public:
  /// From now on, a thread looks at the calls each `period_s` seconds, if there are communicators
  /// to watch (0: never). Calls that have not moved since the thread last looked are written to the
  /// store that the setting `knowledge` names. Before, the thread judges runs that were killed and
  /// left records in this store, because rank 0 may have another store (see write_record for
  /// `log`): once, and not while another process judges. `mpi_library`: text of
  /// MPI_Get_library_version. Throws std::bad_alloc.
  static void begin(double period_s, const std::string& knowledge, const std::string& mpi_library,
                    const std::string& log);
  /// Removes the file. MPI ends.
  static void end();

  /// The calls of a communicator. The threads that make the calls write, one at a time, and the
  /// watching thread reads.
  class calls {
   public:
    /// `name` must outlive this object.
    calls(const std::string& name, int rank, int num_ranks)
        : name_(name), rank_(rank), num_ranks_(num_ranks) {}
    calls(const calls&) = delete;
    calls& operator=(const calls&) = delete;
    ~calls() { leave(); }

    /// Call once. `id` is equal on all ranks of the communicator. Cannot fail.
    void join(std::uint64_t id);
    /// The communicator ends.
    void leave();

    /// This rank begins the call with this number.
    [[gnu::hot]] void begin(std::int64_t number, collective op, std::int64_t bytes) {
      last_.store(std::uint64_t(number) << op_bits | std::uint64_t(op), std::memory_order_release);
      bytes_.store(bytes, std::memory_order_relaxed);
    }
    /// Counts steps of arms that have ended.
    std::atomic<std::uint64_t>& progress() { return progress_; }

    /// During its life, the rank is inside an arm of railpass.
    class inside {
     public:
      inside(calls& of, const arm& by) : of_(of) {
        of_.inside_.store(&by, std::memory_order_release);
      }
      ~inside() { of_.inside_.store(nullptr, std::memory_order_release); }
      inside(const inside&) = delete;
      inside& operator=(const inside&) = delete;

     private:
      calls& of_;
    };

   private:
    friend struct watched;
    static constexpr unsigned op_bits = 8;
    struct state {
      std::uint64_t last = 0;
      const arm* inside = nullptr;
      std::int64_t bytes = 0;
      std::uint64_t progress = 0;
      friend bool operator==(const state&, const state&) = default;
    };
    state seen() const {
      return {last_.load(std::memory_order_acquire), inside_.load(std::memory_order_acquire),
              bytes_.load(std::memory_order_relaxed), progress_.load(std::memory_order_relaxed)};
    }

    std::atomic<std::uint64_t> last_{0};  // number and collective of the last call
    std::atomic<const arm*> inside_{nullptr};
    std::atomic<std::int64_t> bytes_{0};
    std::atomic<std::uint64_t> progress_{0};
    const std::string& name_;
    int rank_, num_ranks_;
    // The watching thread, join() and leave() use these members under a lock.
    std::uint64_t id_ = 0;
    bool is_watched_ = false;
    state before_{};
    int unchanged_ = 0;  // looks in a row without a change
    calls* next_ = nullptr;
  };
};

}  // namespace railpass::internal
