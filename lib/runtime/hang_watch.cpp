// SPDX-License-Identifier: BSL-1.0
#include "lib/runtime/hang_watch.hpp"

#include "lib/runtime/log.hpp"
#include "lib/runtime/own_thread.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/base/float_environment.hpp"
#include "railpass/base/settings.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

namespace railpass::internal {

namespace {

bool user_hears_of_wait(int rank, double waited_s, double after_s) {
  static std::atomic<double> longest_s{0};
  if (waited_s < after_s * rank / 2) return false;
  double before_s = longest_s.load();
  while (waited_s > before_s)
    if (longest_s.compare_exchange_weak(before_s, waited_s)) return true;
  return false;
}

}  // namespace

wait_report report_of_wait(std::string text, int rank, double waited_s, double after_s) {
  const bool for_user = user_hears_of_wait(rank, waited_s, after_s);
  if (for_user)
    text +=
        " (no error if other ranks are only late; RAILPASS_HANG_REPORT=0 switches this report off)";
  return {std::move(text), for_user};
}

// Never destroyed, as the thread runs until the process ends.
struct hang_watch::watched {
  static constexpr double longest_sleep_s = 3600;  // whatever the setting
  std::mutex mutex;
  double after_s = 0;  // 0: there is no thread
  std::string destination;
  wait* first = nullptr;

  static watched& all() {
    alignas(watched) static std::byte memory[sizeof(watched)];
    static watched& one = *::new (memory) watched;
    return one;
  }

  // A thread that starts to wait wakes no other thread, because that would cost more than the rest.
  // The watching thread sleeps no longer than a wait may last, so it sees the wait in time.
  [[noreturn]] void look_on() {
    std::unique_lock lock(mutex);
    for (;;) {
      wait* const next = earliest();
      const double left_s = next ? until_s(*next) - steady_clock_s() : after_s;
      if (left_s > 0) {
        lock.unlock();
        std::this_thread::sleep_for(
            std::chrono::duration<double>(std::min(left_s, longest_sleep_s)));
        lock.lock();
      } else {
        const double waited_s = next->next_report_s_;
        next->next_report_s_ *= 2;
        say(next->rank_, next->doing_, waited_s, lock);
      }
    }
  }
  static double until_s(const wait& w) { return w.began_s_ + w.next_report_s_; }
  wait* earliest() const {
    wait* found = first;
    for (wait* w = first; w; w = w->next_)
      if (until_s(*w) < until_s(*found)) found = w;
    return found;
  }
  // A handler of records may make calls.
  void say(int rank, const char* doing, double waited_s, std::unique_lock<std::mutex>& lock) const {
    try {
      const wait_report report = report_of_wait(
          std::string(doing) + " for more than " + railpass::detail::show_setting(waited_s) + " s",
          rank, waited_s, after_s);
      lock.unlock();
      write_record(destination, report.text, report.for_user);
    } catch (const std::exception&) {  // the report is lost
    }
    if (!lock.owns_lock()) lock.lock();
  }
};

void hang_watch::begin(double after_s, std::string destination) {
  watched& w = watched::all();
  const std::lock_guard lock(w.mutex);
  if (after_s <= 0 || w.after_s > 0) return;
  w.destination = std::move(destination);
  w.after_s = after_s;
  if (!start_thread([&w] { w.look_on(); })) w.after_s = 0;
}

hang_watch::wait::wait(int rank, const char* doing) : rank_(rank), doing_(doing) {
  watched& w = watched::all();
  const std::lock_guard lock(w.mutex);
  if (w.after_s <= 0 || *doing == 0) return;
  const own_float_environment own;
  began_s_ = steady_clock_s();
  next_report_s_ = w.after_s;
  next_ = std::exchange(w.first, this);
}

hang_watch::wait::~wait() {
  watched& w = watched::all();
  const std::lock_guard lock(w.mutex);
  for (wait** at = &w.first; *at; at = &(*at)->next_)
    if (*at == this) {
      *at = next_;
      break;
    }
}

}  // namespace railpass::internal
