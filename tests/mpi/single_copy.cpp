// SPDX-License-Identifier: BSL-1.0
//
// Single copies: all ranks use them if each rank may copy from and to the other ranks' memory; no
// rank uses them if the kernel forbids them to one rank.
#include "collectives/registry.hpp"
#include "railpass/mpi.hpp"
#include "support/call_railpass.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/single_copies.hpp"

#include <cerrno>
#include <cstdlib>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <numeric>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

namespace {

// As a container's profile may do. The filter cannot be removed.
bool forbid_single_copies() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),  // the number of the call
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof program[0], program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

std::int64_t sent(int from, int to, int element) { return from * 1000003 + to * 1009 + element; }

}  // namespace

TEST_CASE("single copies are used by all ranks or by none") {
  const communicator world = communicator::duplicate_of_world();
  const int p = world.size(), rank = world.rank();
  if (p < 2) return;
  if (std::getenv("TEST_FORBIDDEN")) {
    if (rank == 1 && !forbid_single_copies()) {
      std::puts("SKIPPED: no seccomp filter here");
      std::fflush(stdout);
      MPI_Abort(MPI_COMM_WORLD, 77);
    }
    REQUIRE(!test::single_copies(world));
  }
  const bool copies = test::single_copies(world);
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  // Blocks of lengths that only two ranks know, from 0 to some pages.
  const auto length = [&](int from, int to) { return (from * 7 + to * 3) % 5 * 700; };
  std::vector<int> given, taken, given_at, taken_at;
  for (int k = 0; k < p; ++k) {
    given_at.push_back(k == 0 ? 0 : given_at.back() + given.back());
    given.push_back(length(rank, k));
    taken_at.push_back(k == 0 ? 0 : taken_at.back() + taken.back());
    taken.push_back(length(k, rank));
  }
  std::vector<std::int64_t> in(std::size_t(given_at.back() + given.back()));
  for (int k = 0; k < p; ++k)
    for (int i = 0; i < given[std::size_t(k)]; ++i)
      in[std::size_t(given_at[std::size_t(k)] + i)] = sent(rank, k, i);
  for (const char* name : {"single_copy", "single_copy+giver_writes=1"}) {
    CAPTURE(name);
    for (int repetition = 0; repetition < 20; ++repetition) {
      std::vector<std::int64_t> out(std::size_t(taken_at.back() + taken.back()), -1);
      const call c{.op = collective::all_to_allv,
                   .send = {.memory = in.data(),
                            .type = MPI_INT64_T,
                            .counts = given.data(),
                            .displacements = given_at.data()},
                   .receive = {.memory = out.data(),
                               .type = MPI_INT64_T,
                               .counts = taken.data(),
                               .displacements = taken_at.data()},
                   .comm = world};
      CHECK(call_railpass(c, collect(use(name))) == MPI_SUCCESS);
      CHECK(mpi::last_arm(world) == (copies ? name : "native"));
      bool right = true;
      for (int k = 0; k < p; ++k)
        for (int i = 0; i < taken[std::size_t(k)]; ++i)
          right = right && out[std::size_t(taken_at[std::size_t(k)] + i)] == sent(k, rank, i);
      CHECK(right);
    }
    // A root may change the data it has given away as soon as its call ends.
    for (int round = 0; round < 50; ++round) {
      const int root = round % p;
      std::vector<std::int64_t> all(rank == root ? std::size_t(p) * 3000 : 0), own(3000, -1);
      std::iota(all.begin(), all.end(), round);
      const call c{.op = collective::scatter,
                   .send = {.memory = all.data(), .count = 3000, .type = MPI_INT64_T},
                   .receive = {.memory = own.data(), .count = 3000, .type = MPI_INT64_T},
                   .root = root,
                   .comm = world};
      CHECK(call_railpass(c, collect(use(name))) == MPI_SUCCESS);
      std::fill(all.begin(), all.end(), -2);
      bool right = true;
      for (int i = 0; i < 3000; ++i)
        right = right && own[std::size_t(i)] == round + rank * 3000 + i;
      CHECK(right);
    }
  }
}
