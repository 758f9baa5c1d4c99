// SPDX-License-Identifier: BSL-1.0
//
// Preloaded under MPICH, so that more ranks than cores do not wait for each other's time slices: a
// rank that has looked for messages several times in vain sleeps for a moment. Debian's MPICH looks
// for them with ucp_worker_progress; it reads MPIR_CVAR_POLLS_BEFORE_YIELD, but never yields.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

unsigned ucp_worker_progress(void* worker) {
  static unsigned (*progress)(void*);
  static __thread int in_vain;
  if (!progress) progress = (unsigned (*)(void*))dlsym(RTLD_NEXT, "ucp_worker_progress");
  if (!progress) { /* MPI is a plug-in's */
    void* const ucp = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
    progress = (unsigned (*)(void*))dlsym(ucp, "ucp_worker_progress");
  }
  const unsigned moved = progress(worker);
  if (moved > 0) {
    in_vain = 0;
  } else if (++in_vain > 4) {
    const struct timespec moment = {.tv_sec = 0, .tv_nsec = 50000};
    nanosleep(&moment, NULL);
  }
  return moved;
}
