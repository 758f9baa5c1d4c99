/* SPDX-License-Identifier: BSL-1.0 */
/* What bench/rails does to the TCP sockets of a program: with MULTIPATH they are multipath ones, with
 * POLICED_BYTES_PER_S each carries no more than that. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

int socket(int domain, int type, int protocol) {
  int (*const real)(int, int, int) = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
  const int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
  const char* const policed = getenv("POLICED_BYTES_PER_S");
  int fd = -1;
  if (domain != AF_INET || kind != SOCK_STREAM) return real(domain, type, protocol);
  if (getenv("MULTIPATH")) fd = real(domain, type, IPPROTO_MPTCP);
  if (fd < 0) fd = real(domain, type, protocol);
  if (fd >= 0 && policed) {
    const unsigned rate = (unsigned)strtoul(policed, 0, 10);
    setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate);
  }
  return fd;
}
