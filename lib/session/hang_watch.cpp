// SPDX-License-Identifier: BSL-1.0
#include "lib/session/hang_watch.hpp"

#include "lib/session/log.hpp"
#include "lib/session/own_thread.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/base/float_environment.hpp"
#include "railpass/base/settings.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

namespace railpass {

// Never destroyed, as the thread runs until the process ends.
struct hang_watch::watched {
  static constexpr double longest_sleep_s = 3600;  // whatever the setting
  std::mutex mutex;
  double after_s = 0;  // 0: there is no thread
  std::string log_place;
  wait* first = nullptr;

  static watched& all() {
    alignas(watched) static std::byte memory[sizeof(watched)];
    static watched& one = *::new (memory) watched;
    return one;
  }

  // Who begins to wait wakes nobody: that would cost more than all else. It is seen in time, as the
  // thread sleeps for no longer than a wait may last.
  [[noreturn]] void look_on() {
    std::unique_lock lock(mutex);
    for (;;) {
      wait* const next = earliest();
      const double left_s = next ? next->until_s_ - steady_clock_s() : after_s;
      if (left_s > 0) {
        lock.unlock();
        std::this_thread::sleep_for(
            std::chrono::duration<double>(std::min(left_s, longest_sleep_s)));
        lock.lock();
      } else {
        next->until_s_ = std::numeric_limits<double>::infinity();
        say(next->doing_, lock);
      }
    }
  }
  wait* earliest() const {
    wait* found = nullptr;
    for (wait* w = first; w; w = w->next_)
      if (w->until_s_ < (found ? found->until_s_ : std::numeric_limits<double>::infinity()))
        found = w;
    return found;
  }
  // A handler of records may make calls.
  void say(const char* doing, std::unique_lock<std::mutex>& lock) const {
    try {
      const std::string text =
          std::string(doing) + " for more than " + detail::show_setting(after_s) + " s";
      lock.unlock();
      write_record(log_place, text, false);
    } catch (const std::exception&) {  // nobody hears of it
    }
    if (!lock.owns_lock()) lock.lock();
  }
};

void hang_watch::begin(double after_s, std::string log_place) {
  watched& w = watched::all();
  const std::lock_guard lock(w.mutex);
  if (after_s <= 0 || w.after_s > 0) return;
  w.log_place = std::move(log_place);
  w.after_s = after_s;
  if (!start_thread([&w] { w.look_on(); })) w.after_s = 0;
}

hang_watch::wait::wait(const char* doing) : doing_(doing) {
  watched& w = watched::all();
  const std::lock_guard lock(w.mutex);
  if (w.after_s <= 0 || *doing == 0) return;
  const own_float_environment own;
  until_s_ = steady_clock_s() + w.after_s;
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

}  // namespace railpass
