// SPDX-License-Identifier: BSL-1.0
//
// Runs schedules over a rail. One engine for blocking, nonblocking and persistent calls: a call is
// started, then progress() is called until it is done; a blocking call is both at once.
#pragma once

#include "lib/exec/execution.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/base/error.hpp"

#include <array>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <vector>

namespace railpass::internal {

/// Runs schedules of messages over one rail. All ranks of the rail's communicator must start the
/// same schedules in the same order: the number of the call is the tag of its messages. Not
/// thread-safe.
///
/// Functions return 0, the rail's error code (for MPI: an MPI error code), or the first nonzero
/// code of a data hook. After a nonzero code, all calls in progress have failed, and other ranks
/// wait for data that this rank no longer sends. The caller must inform them (wait_watch::look).
template <rail R>
class executor {
 public:
  /// A call in progress.
  using call = int;

  /// The caller owns the rail. After `polls_before_yield` polls in a row without a result, the wait
  /// loop yields the core. Yielding after 4 instead of 64 polls costs an 8-byte all_reduce of 2
  /// ranks on separate cores 0.4 us, and doubles the time of 8 ranks on 2 cores, where Open MPI
  /// yields too.
  explicit executor(R& r, const windows& w = {}, unsigned polls_before_yield = 64)
      : rail_(r), windows_(w), polls_before_yield_(polls_before_yield) {}
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  /// Runs the schedule to its end. Collective over the rail's communicator. All memory is allocated
  /// before the first message: std::bad_alloc is thrown before that or not at all.
  int run(const schedule& s, const binding& b, const wait_watch& watch = {}) {
    return wait(start(s, b), watch);
  }

  /// Allocates what a call of this schedule and size needs: none that follows, alone, allocates
  /// more.
  void prepare(const schedule& s, const binding& b) {
    execution& e = calls_[std::size_t(free_call())]->work;
    e.bind(s, b, windows_, 0, 0);
    rail_.reserve(e.most_in_flight());
    e.fail(0);
  }

  /// Starts a call and does what can be done at once. Schedule, buffers and what the hooks need
  /// must live until the call has been finished.
  call start(const schedule& s, const binding& b) {
    const auto tag = static_cast<std::int32_t>(sequence_++ % num_schedule_tags);
    const call c = free_call();
    execution& e = calls_[std::size_t(c)]->work;
    e.bind(s, b, windows_, std::uint64_t(c) << 32, tag);
    rail_.reserve(std::size_t(rail_.pending()) + e.most_in_flight());
    calls_[std::size_t(c)]->used = true;
    active_.push_back(c);
    advance(e);
    return c;
  }

  /// Lets all calls in progress advance, without blocking. Whether anything moved.
  bool progress() {
    bool moved = false;
    if (rail_.pending() > 0) {
      const int ended = rail_.poll(completed_);
      if (ended < 0) {
        fail(rail_.error_code());
        return true;
      }
      for (int i = 0; i < ended; ++i) {
        const rail_token token = completed_[std::size_t(i)];
        execution& e = calls_[std::size_t(token >> 32)]->work;
        e.complete(static_cast<std::uint32_t>(token));
        if (e.code() != 0) {
          fail(e.code());
          return true;
        }
      }
      moved = ended > 0;
    }
    for (const call c : active_) {
      execution& e = calls_[std::size_t(c)]->work;
      if (!e.has_work()) continue;
      moved = true;
      if (!advance(e)) break;
    }
    return moved;
  }

  bool done(call c) const { return calls_[std::size_t(c)]->work.done(); }

  /// Ends a call that is done and returns its code; the handle is free for the next call.
  int finish(call c) {
    std::erase(active_, c);
    slot& s = *calls_[std::size_t(c)];
    s.used = false;
    s.work.end();
    return s.work.code();
  }

  /// Blocks until the call is done, and finishes it. Throws error if the schedule is one that
  /// cannot end, which the checker would have found.
  int wait(call c, const wait_watch& watch = {}) {
    if (!done(c) && !wait_loop(calls_[std::size_t(c)]->work, watch)) {
      finish(c);
      throw error("the schedule cannot end: nothing is under way and no step can start");
    }
    return finish(c);
  }

  /// Bytes of scratch memory that a call would use on this rank; the largest integer if that number
  /// does not fit.
  static std::int64_t scratch_bytes(const schedule& s, const binding& b) {
    return bound_memory::scratch_bytes(s, b);
  }

 private:
  static constexpr unsigned polls_per_clock = 1024;  // a power of two
  static constexpr unsigned empty_polls_per_look = 16;

  struct slot {
    execution work;
    bool used = false;
  };

  call free_call() {
    for (std::size_t c = 0; c < calls_.size(); ++c)
      if (!calls_[c]->used) return static_cast<call>(c);
    calls_.push_back(std::make_unique<slot>());
    active_.reserve(calls_.size());
    return static_cast<call>(calls_.size() - 1);
  }

  // False: the call will never be done.
  bool wait_loop(const execution& e, const wait_watch& watch) {
    unsigned polls = 0, empty = 0;
    std::optional<patience> left;
    const bool watching = watch.report != nullptr && watch.after_s > 0;
    do {
      if (progress()) {
        watch.note_progress();
        empty = 0;
      } else {
        if (rail_.pending() == 0) return false;
        if (++empty >= polls_before_yield_) {
          rail_.give_way();
          if (watch.look && empty % empty_polls_per_look == 0)
            if (const int code = watch.look(watch.user_data)) fail(code);
        }
      }
      if (watching && (++polls & (polls_per_clock - 1)) == 0) {
        const double now_s = watch.clock();
        if (!left) left.emplace(watch.after_s, now_s);
        if (left->is_out(now_s)) {
          try {
            const std::vector<awaited_peer> peers = e.awaited();
            watch.report(watch.user_data, peers, left->waited_s(now_s));
          } catch (const std::bad_alloc&) {  // the call goes on without the report
          }
        }
      }
    } while (!e.done());
    return true;
  }

  // False: all calls have failed.
  bool advance(execution& e) {
    const bool ok = e.advance(rail_);
    if (ok && e.code() == 0) return true;
    fail(ok ? e.code() : rail_.error_code());
    return false;
  }

  void fail(int code) {
    rail_.abandon();
    for (const call c : active_) calls_[std::size_t(c)]->work.fail(code);
  }

  R& rail_;
  windows windows_;
  unsigned polls_before_yield_;
  std::uint32_t sequence_ = 0;
  std::vector<std::unique_ptr<slot>> calls_;
  std::vector<call> active_;
  std::array<rail_token, 64> completed_{};
};

}  // namespace railpass::internal
