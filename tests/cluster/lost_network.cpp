// SPDX-License-Identifier: BSL-1.0
//
// Run on emulated hosts, one rank on each, with RAILPASS_RAILS naming eth1: a rank that does not
// look at its messages for longer than the limit of silence is no error; then eth1 of all hosts
// drops all it gets, or is switched off (argument: drop or down), and every rank that waits learns
// of it. Listeners are bound to devices.
#include "railpass/rails.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <set>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <vector>

namespace {
std::set<std::string> devices;  // that somebody listens at
}

// In place of the C library's, for librailpass as well.
extern "C" int listen(int fd, int backlog) {
  static auto* const next = reinterpret_cast<int (*)(int, int)>(dlsym(RTLD_NEXT, "listen"));
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  char device[64] = "";
  socklen_t bytes = sizeof device;
  // Not MPI's.
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
      address.ss_family == AF_INET &&
      getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, &bytes) == 0 && bytes > 0)
    devices.insert(device);
  return next(fd, backlog);
}

int main(int argc, char** argv) {
  namespace mpi = railpass::mpi;
  MPI_Init(&argc, &argv);
  int rank = 0, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto expect = [&](bool holds, const std::string& what) {
    if (holds) return;
    std::fprintf(stderr, "rank %d: %s\n", rank, what.c_str());
    wrong = 1;
  };
  try {
    mpi::open_rails(MPI_COMM_WORLD);
    expect(devices == std::set<std::string>{"eth1", "lo"},
           std::to_string(devices.size()) + " devices are listened at");
    // More than the kernels keep.
    std::vector<char> much(16 << 20, char(rank)), other(16 << 20);
    char one = 0;
    const mpi::message_part all{much.data(), much.size()}, in{other.data(), other.size()};
    const mpi::message_part little{&one, 1};
    mpi::message out = mpi::isend({&all, 1}, 1 - rank, 0, MPI_COMM_WORLD);
    mpi::message arrives = mpi::irecv({&in, 1}, 1 - rank, 0, MPI_COMM_WORLD);
    if (rank == 1) {
      while (!arrives.test() && other[0] != 0) {
      }
      std::this_thread::sleep_for(std::chrono::seconds(4));  // twice the limit
    }
    arrives.wait();
    out.wait();
    expect(other.back() == char(1 - rank), "another message than was sent");

    MPI_Barrier(MPI_COMM_WORLD);
    const std::string how = argc > 1 ? argv[1] : "drop";
    const char* const command =
        how == "down" ? "ip link set eth1 down"
                      : "tc qdisc add dev eth1 clsact && tc filter add dev eth1 ingress bpf da "
                        "bytecode '1,6 0 0 2,'";
    if (how == "drop" || rank == 0)
      expect(std::system(command) == 0, "eth1 cannot be made to lose everything");
    std::string problem;
    try {
      mpi::irecv({&little, 1}, 1 - rank, 1, MPI_COMM_WORLD).wait();
    } catch (const railpass::error& e) {
      problem = e.what();
    }
    expect(problem.find("acknowledged nothing") != std::string::npos ||
               problem.find("has closed the connection") != std::string::npos ||
               problem.find("unreachable") != std::string::npos,
           "noticed: '" + problem + "'");
  } catch (const railpass::error& e) {
    expect(false, e.what());
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  try {
    mpi::close_rails(MPI_COMM_WORLD);
  } catch (const railpass::error&) {  // they have failed
  }
  MPI_Finalize();
  return wrong;
}
