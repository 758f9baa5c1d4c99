// SPDX-License-Identifier: BSL-1.0
//
// Preloaded into the ranks of an emulated cluster, where there are more ranks than cores. MPI
// libraries poll their sockets with a timeout of zero and rarely give the core away; the rank that
// has something to do then waits for a whole time slice of one that has not. After a few empty polls
// in a row this makes the next one wait in the kernel for a short time, from which a packet wakes it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>

enum { empty_polls_before_waiting = 4, longest_wait_ns = 50000, timer_slack_ns = 1000 };

typedef int epoll_wait_function(int, struct epoll_event*, int, int);
typedef int poll_function(struct pollfd*, nfds_t, int);

static epoll_wait_function* next_epoll_wait;
static poll_function* next_poll;
static __thread int empty_polls;

__attribute__((constructor)) static void find_next(void) {
  // otherwise the kernel rounds the short wait up to twice its length
  prctl(PR_SET_TIMERSLACK, timer_slack_ns, 0, 0, 0);
  next_epoll_wait = (epoll_wait_function*)dlsym(RTLD_NEXT, "epoll_wait");
  next_poll = (poll_function*)dlsym(RTLD_NEXT, "poll");
}

// Counts the outcome of a poll that did not wait; true if the caller should now wait a little.
static int should_wait(int found, int timeout_ms) {
  if (found != 0 || timeout_ms != 0) {
    empty_polls = 0;
    return 0;
  }
  return ++empty_polls >= empty_polls_before_waiting;
}

static int wait_a_little(struct pollfd* descriptors, nfds_t number) {
  const struct timespec bound = {0, longest_wait_ns};
  const int found = ppoll(descriptors, number, &bound, 0);
  if (found != 0) empty_polls = 0;
  return found;
}

int epoll_wait(int epoll, struct epoll_event* events, int most, int timeout_ms) {
  if (!next_epoll_wait) find_next();
  const int found = next_epoll_wait(epoll, events, most, timeout_ms);
  if (!should_wait(found, timeout_ms)) return found;
  struct pollfd descriptor = {epoll, POLLIN, 0};
  return wait_a_little(&descriptor, 1) > 0 ? next_epoll_wait(epoll, events, most, 0) : 0;
}

int poll(struct pollfd* descriptors, nfds_t number, int timeout_ms) {
  if (!next_poll) find_next();
  const int found = next_poll(descriptors, number, timeout_ms);
  return should_wait(found, timeout_ms) ? wait_a_little(descriptors, number) : found;
}
