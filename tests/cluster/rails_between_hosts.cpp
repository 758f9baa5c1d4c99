// SPDX-License-Identifier: BSL-1.0
//
// Run on emulated hosts with two networks, eth0 and eth1: collectives use both, give the right
// results, and when eth0 of the first host becomes 20 times slower in mid-run its share goes to
// eth1, while all ranks go on choosing the same arms.
#include "railpass/mpi.hpp"
#include "railpass/rails.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr int num_ints = 1 << 18;
constexpr int calls_per_phase = 12, most_slow_phases = 8;

struct phase_result {
  std::string arms;
  std::vector<railpass::mpi::rail_status> rails;  // from rank 0 to rank 1
  std::int64_t late_bytes[2] = {0, 0};            // sent there by the last half of the calls
  bool wrong = false;
};

phase_result run_phase(MPI_Comm comm, int rank, int num_ranks) {
  phase_result result;
  std::vector<int> data(num_ints), out(num_ints), in(num_ints);
  for (int call = 0; call < calls_per_phase; ++call) {
    if (rank == 0 && call == calls_per_phase / 2) result.rails = railpass::mpi::rails_to(1, comm);
    for (int i = 0; i < num_ints; ++i) {
      data[std::size_t(i)] = rank == 0 ? call + 3 * i : -1;
      out[std::size_t(i)] = rank + 5 * i;
    }
    railpass::mpi::broadcast(data.data(), num_ints, MPI_INT, 0, comm,
                             railpass::collect(railpass::use("binomial")));
    const int block = num_ints / num_ranks;
    railpass::mpi::all_to_all(out.data(), block, MPI_INT, in.data(), block, MPI_INT, comm);
    result.arms += railpass::mpi::last_arm(comm) + " ";
    for (int i = 0; i < num_ints; ++i) result.wrong |= data[std::size_t(i)] != call + 3 * i;
    for (int from = 0; from < num_ranks; ++from)
      for (int i = 0; i < block; ++i)
        result.wrong |= in[std::size_t(from * block + i)] != from + 5 * (rank * block + i);
  }
  if (rank == 0) {
    const auto before = std::move(result.rails);
    result.rails = railpass::mpi::rails_to(1, comm);
    for (std::size_t r = 0; r < 2; ++r)
      result.late_bytes[r] = result.rails[r].sent_bytes - before[r].sent_bytes;
  }
  return result;
}

// Rank 0's sentence on all others.
bool says_what_rank_0_says(std::string mine) {
  std::string theirs = mine;
  int length = int(mine.size());
  MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
  theirs.resize(std::size_t(length));
  MPI_Bcast(theirs.data(), length, MPI_CHAR, 0, MPI_COMM_WORLD);
  return mine == theirs;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, num_ranks = 0, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  const auto expect = [&](bool holds, const std::string& what) {
    if (holds) return;
    std::fprintf(stderr, "rank %d: %s\n", rank, what.c_str());
    wrong = 1;
  };
  try {
    railpass::mpi::start_tuning(MPI_COMM_WORLD);
    const phase_result fast = run_phase(MPI_COMM_WORLD, rank, num_ranks);
    if (rank == 0)
      expect(std::system("tc qdisc change dev eth0 root tbf rate 20mbit burst 32kb limit 1mb") == 0,
             "eth0 cannot be slowed down");
    MPI_Barrier(MPI_COMM_WORLD);
    // On a busy machine rank 0 may hear little of how quick eth0 is, so it may take several phases.
    phase_result slow;
    std::string arms = fast.arms;
    for (int phase = 0, noticed = 0; phase < most_slow_phases && !noticed; ++phase) {
      slow = run_phase(MPI_COMM_WORLD, rank, num_ranks);
      expect(!fast.wrong && !slow.wrong, "a wrong result");
      arms += slow.arms;
      noticed = rank == 0 && slow.late_bytes[1] > slow.late_bytes[0] &&
                slow.rails[0].bytes_per_s < fast.rails[0].bytes_per_s / 2;
      MPI_Bcast(&noticed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    expect(says_what_rank_0_says(arms), "another arm than on rank 0");
    if (rank == 0) {
      const std::string shares = std::to_string(fast.late_bytes[0]) + " and " +
                                 std::to_string(fast.late_bytes[1]) + " bytes before, " +
                                 std::to_string(slow.late_bytes[0]) + " and " +
                                 std::to_string(slow.late_bytes[1]) + " after eth0 had become slow";
      expect(fast.late_bytes[0] > fast.late_bytes[1] && fast.late_bytes[1] > 0, shares);
      expect(slow.late_bytes[1] > slow.late_bytes[0], shares);
      expect(slow.rails[0].bytes_per_s < fast.rails[0].bytes_per_s / 2,
             "rates of eth0: " + std::to_string(fast.rails[0].bytes_per_s) + ", then " +
                 std::to_string(slow.rails[0].bytes_per_s));
    }
  } catch (const railpass::error& e) {
    expect(false, e.what());
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return wrong;
}
