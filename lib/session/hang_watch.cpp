// SPDX-License-Identifier: BSL-1.0
#include "lib/session/hang_watch.hpp"

#include "lib/session/log.hpp"
#include "lib/session/own_thread.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/base/settings.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

namespace railpass {

// Never destroyed, as the thread runs until the process ends.
struct hang_watch::watched {
  std::mutex mutex;
  std::condition_variable changed;
  double after_s = 0;  // 0: there is no thread
  std::string log_place;
  wait* first = nullptr;

  static watched& all() {
    alignas(watched) static std::byte memory[sizeof(watched)];
    static watched& one = *::new (memory) watched;
    return one;
  }

  [[noreturn]] void look_on() {
    std::unique_lock lock(mutex);
    for (;;) {
      wait* const next = earliest();
      const double left_s = next ? next->until_s_ - steady_clock_s() : 0;
      if (!next) {
        changed.wait(lock);
      } else if (left_s > 0) {
        changed.wait_for(lock, std::chrono::duration<double>(left_s));
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
  if (start_thread([&w] { w.look_on(); })) w.after_s = after_s;
}

hang_watch::wait::wait(const char* doing) : doing_(doing) {
  watched& w = watched::all();
  const std::lock_guard lock(w.mutex);
  if (w.after_s <= 0 || *doing == 0) return;
  until_s_ = steady_clock_s() + w.after_s;
  next_ = std::exchange(w.first, this);
  w.changed.notify_one();
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
