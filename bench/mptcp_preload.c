/* SPDX-License-Identifier: BSL-1.0 */
/* Makes TCP sockets of a program multipath ones, so that bench/rails can compare with those. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

int socket(int domain, int type, int protocol) {
  int (*const real)(int, int, int) = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
  const int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (domain == AF_INET && kind == SOCK_STREAM && (protocol == 0 || protocol == IPPROTO_TCP)) {
    const int fd = real(domain, type, IPPROTO_MPTCP);
    if (fd >= 0) return fd;
  }
  return real(domain, type, protocol);
}
