// SPDX-License-Identifier: BSL-1.0
//
// The rail over MPI's messages, once it was given up: MPI cannot be stopped, but it has no memory
// of others to write to or to read from.
#include "lib/rails/mpi/packet_rail.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

using namespace railpass;
using namespace railpass::internal;
using transport::packet;
using transport::packet_type;
using transport::piece;

namespace {

// Messages between processes are then copied bit by bit, in both's calls.
const int set = setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);

constexpr std::size_t payload_bytes = 8 << 20;
const packet chunk = packet::chunk(1, 0, payload_bytes, false);

class memory_of_user final : public transport::packet_sink {
 public:
  void arrived(int, int, const packet& header, std::vector<piece>& where) override {
    begun = true;
    // In pieces, some of them of no bytes.
    const std::size_t n = std::size_t(header.length);
    where = {{data.data(), n / 3}, {nullptr, 0}, {data.data() + n / 3, n - n / 3}};
  }
  void complete(int, int, const packet&, const transport::arrival&) override { ended = true; }
  void sent(std::uint64_t) override {}
  void failed(int, int, const std::string& why) override { problem = why; }

  std::vector<std::byte> data = std::vector<std::byte>(payload_bytes, std::byte{1});
  bool begun = false, ended = false;
  std::string problem;
};

std::vector<transport::outgoing> packets_from(memory_of_user& user) {
  std::vector<transport::outgoing> packets(1);
  packets[0].header = chunk;
  packets[0].payload = {{user.data.data(), 1000}, {user.data.data() + 1000, payload_bytes - 1000}};
  packets[0].token = 1;
  return packets;
}

// Messages that were given up stay on it.
const communicator& never_freed() {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  return *new communicator(made);
}

// Until all ranks are here.
void go_on(mpi_packet_rail& rail, memory_of_user& user, const communicator& comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(comm, &request);
  for (int done = 0; !done; MPI_Test(&request, &done, MPI_STATUS_IGNORE)) rail.poll(user);
}

}  // namespace

TEST_CASE("payload of many parts arrives whole") {
  const communicator& comm = never_freed();
  const communicator other = communicator::duplicate_of_world();
  if (comm.size() < 2) return;
  mpi_packet_rail rail(0, {.comm = comm}, comm.rank(), comm.size());
  memory_of_user user;
  if (comm.rank() == 0) {
    for (std::size_t i = 0; i < payload_bytes; ++i) user.data[i] = std::byte(i * 7 + (i >> 8));
    auto packets = packets_from(user);
    rail.send(1, packets, user);
  }
  if (comm.rank() == 1) {
    while (!user.ended && user.problem.empty()) rail.poll(user);
    int wrong = 0;
    for (std::size_t i = 0; i < payload_bytes; ++i)
      wrong += user.data[i] != std::byte(i * 7 + (i >> 8));
    CHECK(wrong == 0);
  }
  while (rail.under_way_bytes() > 0) rail.poll(user);
  go_on(rail, user, other);
  rail.abandon();
}

TEST_CASE("who has given up is written to no more") {
  const communicator& comm = never_freed();
  const communicator other = communicator::duplicate_of_world();
  if (comm.size() < 2) return;
  mpi_packet_rail rail(0, {.comm = comm}, comm.rank(), comm.size());
  memory_of_user user;
  if (comm.rank() == 0) {
    auto packets = packets_from(user);
    rail.send(1, packets, user);
  }
  if (comm.rank() == 1) {
    while (!user.begun) rail.poll(user);
    rail.abandon();
    user.data.assign(payload_bytes, std::byte{2});
  }
  for (int k = 0; k < 100; ++k) go_on(rail, user, other);
  if (comm.rank() == 1) CHECK(std::ranges::count(user.data, std::byte{2}) == payload_bytes);
  rail.abandon();
}

TEST_CASE("from who has given up comes what was sent, or nothing") {
  const communicator& comm = never_freed();
  const communicator other = communicator::duplicate_of_world();
  if (comm.size() < 2) return;
  mpi_packet_rail rail(0, {.comm = comm}, comm.rank(), comm.size());
  memory_of_user user;
  if (comm.rank() == 0) {
    auto packets = packets_from(user);
    rail.send(1, packets, user);
    rail.abandon();
    user.data.assign(payload_bytes, std::byte{3});
  }
  if (comm.rank() == 1) {
    user.data.assign(payload_bytes, std::byte{2});
    while (!user.ended && user.problem.empty()) rail.poll(user);
    if (user.ended) CHECK(std::ranges::count(user.data, std::byte{1}) == payload_bytes);
  }
  go_on(rail, user, other);
  rail.abandon();
}
