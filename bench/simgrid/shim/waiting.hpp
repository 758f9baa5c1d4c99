// SPDX-License-Identifier: BSL-1.0
//
// Included before every source. Polls cost no simulated time, so a loop of them would last for
// ever: railpass waits where it would give its core to others, after polls in vain. In between no
// time passes and nothing can end, so only the first poll of each request asks SMPI.
#pragma once

#include <mpi.h>

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

// SMPI names types that it does not have.
#undef MPI_CXX_FLOAT_COMPLEX
#undef MPI_CXX_DOUBLE_COMPLEX
#undef MPI_CXX_LONG_DOUBLE_COMPLEX
#define MPI_CXX_FLOAT_COMPLEX MPI_C_FLOAT_COMPLEX
#define MPI_CXX_DOUBLE_COMPLEX MPI_C_DOUBLE_COMPLEX
#define MPI_CXX_LONG_DOUBLE_COMPLEX MPI_C_LONG_DOUBLE_COMPLEX

// A rail's requests that were tested in vain since the last one ended; and, once waited for, the
// one that has ended, which the next test that it is part of finds. Until then a rail must not see
// MPI_REQUEST_NULL there.
inline MPI_Request *railpass_vain_begin = nullptr, *railpass_vain_end = nullptr,
                   *railpass_ended = nullptr;
inline MPI_Status railpass_status_of_ended;

inline int railpass_test_some(int count, MPI_Request* requests, int* found, int* indices,
                              MPI_Status* statuses) {
  MPI_Request* const end = requests + count;
  *found = 0;
  if (railpass_ended) {
    if (railpass_ended < requests || railpass_ended >= end) return MPI_SUCCESS;
    *found = 1;
    *indices = int(railpass_ended - requests);
    *statuses = railpass_status_of_ended;
    *railpass_ended = MPI_REQUEST_NULL;
    railpass_vain_begin = railpass_vain_end = railpass_ended = nullptr;
    return MPI_SUCCESS;
  }
  if (railpass_vain_begin <= requests && end <= railpass_vain_end) return MPI_SUCCESS;
  const int code = PMPI_Testsome(count, requests, found, indices, statuses);
  if (code != MPI_SUCCESS || *found != 0) {
    railpass_vain_begin = railpass_vain_end = nullptr;
  } else if (end < railpass_vain_begin || railpass_vain_end < requests) {
    railpass_vain_begin = requests;
    railpass_vain_end = end;
  } else {  // a rail tests some at a time
    if (requests < railpass_vain_begin) railpass_vain_begin = requests;
    if (railpass_vain_end < end) railpass_vain_end = end;
  }
  return code;
}

inline int railpass_give_way() {
  if (railpass_ended || railpass_vain_begin == railpass_vain_end) return 0;
  int index = MPI_UNDEFINED;
  PMPI_Waitany(int(railpass_vain_end - railpass_vain_begin), railpass_vain_begin, &index,
               &railpass_status_of_ended);
  if (index == MPI_UNDEFINED) return 0;
  railpass_ended = railpass_vain_begin + index;
  static char not_null;
  *railpass_ended = reinterpret_cast<MPI_Request>(&not_null);
  return 0;
}

inline int railpass_test(MPI_Request* request, int* done, MPI_Status* status) {
  *done = 1;
  return PMPI_Wait(request, status);
}

// Whether another rank has failed: none does there, and a look would take simulated time.
inline int railpass_nothing_found(int, int, MPI_Comm, int* found, MPI_Status*) {
  *found = 0;
  return MPI_SUCCESS;
}

// Simulated ranks have cores of their own.
inline int railpass_core_kept(int, rusage*) { return 0; }

// What programs poll in loops of their own.
inline int railpass_test_slowly(MPI_Request* request, int* done, MPI_Status* status) {
  const int code = MPI_Test(request, done, status);
  if (!*done) usleep(1);
  return code;
}

inline int railpass_test_all_slowly(int count, MPI_Request* requests, int* done,
                                    MPI_Status* statuses) {
  const int code = MPI_Testall(count, requests, done, statuses);
  if (!*done) usleep(1);
  return code;
}

// SMPI lacks MPI's.
inline int railpass_elements(const MPI_Status* status, MPI_Datatype type, MPI_Count* elements) {
  int count = 0;
  const int code = PMPI_Get_count(const_cast<MPI_Status*>(status), type, &count);
  *elements = count;
  return code;
}

#define PMPI_Testsome railpass_test_some
#define PMPI_Get_elements_x railpass_elements
#define PMPI_Test railpass_test
#define PMPI_Iprobe railpass_nothing_found
#define MPI_Test railpass_test_slowly
#define MPI_Testall railpass_test_all_slowly
#define sched_yield railpass_give_way
#define getrusage railpass_core_kept
