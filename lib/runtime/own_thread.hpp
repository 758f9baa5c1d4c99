// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/base/float_environment.hpp"

#include <csignal>
#include <exception>
#include <thread>
#include <utility>

namespace railpass::internal {

/// Does the work in a separate thread, which handles no signals of the program, has no
/// floating-point traps, and is never waited for. False if no thread can be made.
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
