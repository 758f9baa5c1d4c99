// SPDX-License-Identifier: BSL-1.0
//
// Preloaded, counts what shows the algorithm of a broadcast. Open MPI's algorithms are functions that
// its component tuned finds by their names. MPICH hides its own, so its messages are counted, which it
// sends through UCX. When the process ends, one line on standard error: "seen NAME COUNT ...".
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static long pipeline, binomial, sent;

#define NEXT(function) \
  static __typeof__(function)* next; \
  if (!next) next = (__typeof__(function)*)dlsym(RTLD_NEXT, #function)

#define OPEN_MPI_BROADCAST(algorithm) \
  int ompi_coll_base_bcast_intra_##algorithm(void* data, int count, void* type, int root, \
                                             void* comm, void* module, uint32_t segment_bytes)

OPEN_MPI_BROADCAST(pipeline) {
  NEXT(ompi_coll_base_bcast_intra_pipeline);
  ++pipeline;
  return next(data, count, type, root, comm, module, segment_bytes);
}

OPEN_MPI_BROADCAST(binomial) {
  NEXT(ompi_coll_base_bcast_intra_binomial);
  ++binomial;
  return next(data, count, type, root, comm, module, segment_bytes);
}

void* ucp_tag_send_nbx(void* to, const void* data, size_t count, uint64_t tag, const void* how) {
  NEXT(ucp_tag_send_nbx);
  ++sent;
  return next(to, data, count, tag, how);
}

__attribute__((destructor)) static void tell(void) {
  if (pipeline + binomial + sent > 0)
    fprintf(stderr, "seen pipeline %ld binomial %ld sent %ld\n", pipeline, binomial, sent);
}
