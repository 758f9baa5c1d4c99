// SPDX-License-Identifier: BSL-1.0
//
// 2 ranks: rank 0 sends COUNT messages of BYTES and ends MPI while most of them are still to be
// received; rank 1 receives the last one first. With LOG, the file that RAILPASS_LOG names, each
// keeps the other waiting until the file says so.
//
//   late_receiver COUNT BYTES close|finalize [LOG]
#include "railpass/rails.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

using railpass::mpi::message_part;

namespace {

void wait_for_log(const char* path, const std::string& text) {
  for (;;) {
    std::ifstream file(path);
    const std::string log{std::istreambuf_iterator<char>(file), {}};
    if (log.find(text) != std::string::npos) return;
    usleep(10000);
  }
}

std::vector<char> content(int number, std::size_t bytes) {
  std::vector<char> b(bytes);
  for (std::size_t i = 0; i < bytes; ++i) b[i] = char(std::size_t(number) * 7 + i);
  return b;
}

void send(int tag, std::size_t bytes) {
  std::vector<char> b = content(tag, bytes);
  const message_part whole{b.data(), b.size()};
  railpass::mpi::isend({&whole, 1}, 1, tag, MPI_COMM_WORLD).wait();
}

void receive(int tag, std::size_t bytes) {
  std::vector<char> b(bytes);
  const message_part whole{b.data(), b.size()};
  railpass::mpi::irecv({&whole, 1}, 0, tag, MPI_COMM_WORLD).wait();
  if (b != content(tag, bytes)) throw railpass::error("another message came");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 1;
  if (argc > 4) std::remove(argv[4]);  // an earlier run's
  MPI_Init(&argc, &argv);
  const int count = std::atoi(argv[1]);
  const auto bytes = std::size_t(std::atoi(argv[2]));
  const bool closes = std::string(argv[3]) == "close";
  const char* const log = argc > 4 ? argv[4] : nullptr;
  int rank = 0, result = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    if (log && rank == 1) wait_for_log(log, "rank 0 of 2 waits for the others to open rails of");
    railpass::mpi::open_rails(MPI_COMM_WORLD, {.rails = "127.0.0.2", .strategy = {}});
    if (rank == 0) {
      if (log) wait_for_log(log, "rank 1 of 2 waits for more than");
      for (int k = 0; k < count; ++k) send(k, bytes);
    } else {
      receive(count - 1, bytes);
      if (log && !closes) wait_for_log(log, "rank 0 is inside MPI_Finalize for more than");
      for (int k = 0; k < count - 1; ++k) receive(k, bytes);
      if (log && closes) wait_for_log(log, "rank 0 of 2 waits for the others to close rails of");
    }
    if (closes) railpass::mpi::close_rails(MPI_COMM_WORLD);
  } catch (const std::exception& e) {
    std::printf("rank %d: %s\n", rank, e.what());
    result = 1;
  }
  MPI_Finalize();
  return result;
}
