// SPDX-License-Identifier: BSL-1.0
#include "delays.hpp"

#include "random.hpp"
#include "record.hpp"

#include <mpi.h>

#include <atomic>
#include <dlfcn.h>
#include <unistd.h>

namespace life {

std::atomic<bool> delays_agreements{false};

namespace {

void come_late_now_and_then() {
  static std::atomic<std::uint64_t> times{0};
  stream own(mix(static_cast<std::uint64_t>(own_record().rank)) + ++times);
  if (own.one_in(6)) usleep(static_cast<useconds_t>(own.below(5000)));
}

}  // namespace
}  // namespace life

// What a preloaded library reduces with this operation, by the MPI library's second name, is how
// ranks agree.
extern "C" int PMPI_Allreduce(const void* sent, void* result, int count, MPI_Datatype type,
                              MPI_Op op, MPI_Comm comm) {
  static const auto reduce =
      reinterpret_cast<decltype(&PMPI_Allreduce)>(dlsym(RTLD_NEXT, "PMPI_Allreduce"));
  if (op == MPI_BAND && life::delays_agreements) life::come_late_now_and_then();
  return reduce(sent, result, count, type, op, comm);
}
