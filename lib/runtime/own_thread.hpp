// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/base/float_environment.hpp"

#include <csignal>
#include <exception>
#include <thread>
#include <utility>

namespace railpass::internal {

/// Does the work in a thread of its own, which handles none of the program's signals, has none of
/// its floating-point traps, and which nobody waits for. False if there is no thread to be had.
template <class Work>
bool start_thread(Work work) {
  const own_float_environment own;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool began = true;
  try {
    std::thread(std::move(work)).detach();
  } catch (const std::exception&) {
    began = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return began;
}

}  // namespace railpass::internal
