// SPDX-License-Identifier: BSL-1.0
#include "railpass/transport/failure.hpp"

#include <new>
#include <utility>

namespace railpass::transport {

void failure_state::note(std::string_view why) noexcept {
  if (!std::exchange(alive_, false)) return;
  try {
    reason_ = why;
  } catch (const std::bad_alloc&) {  // the reason stays unknown
  }
}

void failure_state::fail(std::string_view why) noexcept {
  note(why);
  if (!std::exchange(given_up_, true))
    for (const auto& r : rails_) r->abandon();
}

void failure_state::violated(int peer, const std::string& what) {
  fail("rank " + std::to_string(peer) + " broke the protocol of the rails: " + what);
  throw error(reason_);
}

void failure_state::end() {
  fail("");
  throw error(reason_.empty() ? "the rails have failed" : reason_);
}

void failure_state::give_up(const char* why) noexcept {
  try {
    note("rank " + std::to_string(rank_) + " cannot go on: " + why);
  } catch (const std::bad_alloc&) {
  }
  fail(why);
}

}  // namespace railpass::transport
