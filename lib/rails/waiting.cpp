// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/waiting.hpp"

#include "railpass/base/clock.hpp"
#include "railpass/transport/split.hpp"

#include <algorithm>
#include <array>
#include <poll.h>
#include <time.h>

namespace railpass::internal {

namespace {

constexpr unsigned polls_before_yield = 64;
constexpr unsigned least_patience = 128, most_patience = 512;  // polls before it sleeps
constexpr double soon_s = 50e-6;  // about what waking up takes, and as much again

}  // namespace

waiting::waiting(std::span<const std::unique_ptr<transport::packet_rail>> rails)
    : patience_(most_patience) {
  for (const auto& r : rails) descriptors_.push_back(r->descriptor());
  if (!std::ranges::all_of(descriptors_, [](int d) { return d >= 0; })) descriptors_.clear();
}

bool waiting::give_way(unsigned empty) {
  const unsigned patience = patience_.load(std::memory_order_relaxed);
  if (empty <= patience || descriptors_.empty()) {
    if (empty >= polls_before_yield) yields_.offer_core();
    return false;
  }
  std::array<pollfd, transport::most_rails> readable;
  std::size_t n = 0;
  for (const int d : descriptors_) readable[n++] = {.fd = d, .events = POLLIN, .revents = 0};
  const timespec at_most{.tv_sec = 0, .tv_nsec = 200'000};
  const double began_s = steady_clock_s();
  const bool came = ppoll(readable.data(), nfds_t(n), &at_most, nullptr) > 0;
  // A rank that polls for late messages keeps the core from threads with work. The kernel then
  // gives the rank less time when it has work itself.
  const bool soon = came && steady_clock_s() - began_s < soon_s;
  patience_.store(std::clamp(soon ? 2 * patience : patience / 2, least_patience, most_patience),
                  std::memory_order_relaxed);
  return true;
}

}  // namespace railpass::internal
