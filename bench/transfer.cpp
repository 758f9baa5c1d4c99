// SPDX-License-Identifier: BSL-1.0
//
// How quick messages from rank 0 to rank 1 are over the rails of RAILPASS_RAILS, with a window of
// messages under way; by the receiver's clock. Prints one line of JSON per size.
//
//   rails_transfer BYTES,... REPETITIONS WINDOW
#include "railpass/base/units.hpp"
#include "railpass/rails.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

using namespace railpass;

namespace {

// So many messages one behind the other; the seconds they took, at rank 1.
double transfer_s(std::vector<char>& memory, int count, int window, int rank) {
  char ready = 0;
  const mpi::message_part whole{memory.data(), memory.size()}, one{&ready, 1};
  if (rank == 0)
    mpi::irecv({&one, 1}, 1, 1, MPI_COMM_WORLD).wait();
  else
    mpi::isend({&one, 1}, 0, 1, MPI_COMM_WORLD).wait();
  const double began_s = MPI_Wtime();
  std::deque<mpi::message> under_way;
  for (int k = 0; k < count; ++k) {
    if (int(under_way.size()) == window) {
      under_way.front().wait();
      under_way.pop_front();
    }
    under_way.push_back(rank == 0 ? mpi::isend({&whole, 1}, 1, 0, MPI_COMM_WORLD)
                                  : mpi::irecv({&whole, 1}, 0, 0, MPI_COMM_WORLD));
  }
  for (mpi::message& m : under_way) m.wait();
  return MPI_Wtime() - began_s;
}

double latency_s(int rank) {
  constexpr int count = 200;
  char byte = 0;
  const mpi::message_part one{&byte, 1};
  const double began_s = MPI_Wtime();
  for (int k = 0; k < count; ++k)
    for (const int sender : {0, 1}) {
      if (rank == sender)
        mpi::isend({&one, 1}, 1 - rank, 2, MPI_COMM_WORLD).wait();
      else
        mpi::irecv({&one, 1}, 1 - rank, 2, MPI_COMM_WORLD).wait();
    }
  return (MPI_Wtime() - began_s) / (2 * count);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, num_ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  const int repetitions = argc == 4 ? std::atoi(argv[2]) : 0,
            window = argc == 4 ? std::atoi(argv[3]) : 0;
  if (num_ranks != 2 || repetitions < 1 || window < 1) {
    std::fprintf(stderr, "mpirun -n 2 rails_transfer BYTES,... REPETITIONS WINDOW\n");
    MPI_Finalize();
    return 2;
  }
  try {
    mpi::open_rails(MPI_COMM_WORLD);
    const std::string sizes = argv[1];
    for (std::size_t at = 0; at < sizes.size();) {
      const std::size_t comma = std::min(sizes.find(',', at), sizes.size());
      const auto bytes = parse_bytes(sizes.substr(at, comma - at));
      at = comma + 1;
      if (!bytes) throw error("bytes: expected sizes such as 64KiB,1MiB");
      std::vector<char> memory(std::size_t(*bytes), 1);
      const int count = std::clamp(int((8 << 20) / *bytes), 8, 256);
      transfer_s(memory, count, window, rank);  // learns the rates
      std::vector<double> mbit_s;
      for (int k = 0; k < repetitions; ++k)
        mbit_s.push_back(double(*bytes) * count * 8e-6 / transfer_s(memory, count, window, rank));
      std::sort(mbit_s.begin(), mbit_s.end());
      const double one_way_s = latency_s(rank);
      if (rank == 1)
        std::printf(
            "{\"bytes\": %lld, \"mbit_s\": %.1f, \"least\": %.1f, \"most\": %.1f, "
            "\"latency_s\": %.3g}\n",
            (long long)*bytes, mbit_s[mbit_s.size() / 2], mbit_s.front(), mbit_s.back(), one_way_s);
    }
    if (rank == 0)
      for (const mpi::rail_status& r : mpi::rails_to(1, MPI_COMM_WORLD))
        std::fprintf(stderr, "%s: %.1f Mbit/s, changed %d times, sent %lld bytes\n", r.name.c_str(),
                     r.bytes_per_s * 8e-6, r.changes, (long long)r.sent_bytes);
    mpi::close_rails(MPI_COMM_WORLD);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rails_transfer: rank %d: %s\n", rank, e.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
}
