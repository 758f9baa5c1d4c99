// SPDX-License-Identifier: BSL-1.0
//
// Preloaded into programs that know nothing of it: what a process may have come to once MPI is
// initialised. HOSTILE names it:
//   signals  SIGALRM every 5 ms, which interrupts system calls
//   files    no more than 24 open files
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>

static void on_alarm(int number) { (void)number; }

static void interrupt_often(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_alarm;  // without SA_RESTART
  // The C library loses text whose writing a signal interrupts.
  setvbuf(stdout, NULL, _IOFBF, 1 << 16);
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval every = {{0, 5000}, {0, 5000}};
  setitimer(ITIMER_REAL, &every, NULL);
}

static int turn_hostile(int code) {
  const char* const how = getenv("HOSTILE");
  if (how && strcmp(how, "signals") == 0) interrupt_often();
  if (how && strcmp(how, "files") == 0) {
    const struct rlimit few = {24, 24};
    setrlimit(RLIMIT_NOFILE, &few);
  }
  return code;
}

int MPI_Init(int* argc, char*** argv) {
  return turn_hostile(((int (*)(int*, char***))dlsym(RTLD_NEXT, "MPI_Init"))(argc, argv));
}

int MPI_Init_thread(int* argc, char*** argv, int wanted, int* got) {
  return turn_hostile(((int (*)(int*, char***, int, int*))dlsym(RTLD_NEXT, "MPI_Init_thread"))(
      argc, argv, wanted, got));
}

int MPI_Finalize(void) {
  const struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &never, NULL);
  return ((int (*)(void))dlsym(RTLD_NEXT, "MPI_Finalize"))();
}
