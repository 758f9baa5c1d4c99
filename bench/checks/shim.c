// SPDX-License-Identifier: BSL-1.0
//
// A library that is loaded below railpass, instead of functions of the MPI library: it plants wrong
// elements, and counts checks. Programs find its variables by their names.
#define _GNU_SOURCE
#include <mpi.h>

#include <dlfcn.h>
#include <string.h>

// The next calls of this rank alter nothing, a message of railpass, or a result of the MPI library.
enum { nothing, message, result };
int planted_in = nothing;
int planted_bytes = 0;      // the length of messages and results that are altered
long altered_elements = 0;  // so far
long calls_of[3];           // messages and results of that length
long sent_check_words = 0;  // messages with the words of a check: one a check on 2 ranks

enum { check_words = 20 };

static void* real(const char* name) { return dlsym(RTLD_NEXT, name); }

static int takes(int what, long bytes) {
  if (bytes != planted_bytes) return 0;
  ++calls_of[what];
  if (planted_in != what) return 0;
  planted_in = nothing;
  ++altered_elements;
  return 1;
}

int PMPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
  static int (*next)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  static char wrong[1 << 16];  // until the next altered message, long after this one has gone
  if (!next) next = real("PMPI_Isend");
  if (type == MPI_INT32_T && count == check_words) ++sent_check_words;
  if (type == MPI_BYTE && count <= (int)sizeof wrong && takes(message, count)) {
    memcpy(wrong, data, (size_t)count);
    wrong[0] ^= 1;
    data = wrong;
  }
  return next(data, count, type, to, tag, comm, request);
}

static int add_up(const void* in, void* out, int count, MPI_Datatype type, MPI_Op operation,
                  MPI_Comm comm) {
  static int (*next)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
  if (!next) next = real("PMPI_Allreduce");
  const int code = next(in, out, count, type, operation, comm);
  int bytes = 0;
  PMPI_Type_size(type, &bytes);
  if (takes(result, (long)bytes * count)) *(char*)out ^= 1;
  return code;
}

// The preload library leaves a function alone whose two names belong to different libraries.
int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op operation,
                  MPI_Comm comm) {
  return add_up(in, out, count, type, operation, comm);
}
int PMPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op operation,
                   MPI_Comm comm) {
  return add_up(in, out, count, type, operation, comm);
}
