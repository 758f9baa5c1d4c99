// SPDX-License-Identifier: BSL-1.0
//
// The TCP rail's reading: packets come out whole and in order, whatever pieces the bytes come in.
#include "lib/rails/tcp/rail.hpp"
#include "support/catch.hpp"

#include <fcntl.h>
#include <random>
#include <sys/socket.h>
#include <unistd.h>

using namespace railpass;
using transport::packet;
using transport::packet_type;
using transport::piece;

namespace {

using bytes = std::vector<std::byte>;

// Gives every packet memory in pieces, some of them of no bytes, and keeps what has come.
class recorder final : public transport::packet_sink {
 public:
  explicit recorder(std::mt19937_64& random) : random_(random) {}

  void arrived(int, int peer, const packet& header, std::vector<piece>& where) override {
    CHECK(peer == 1);
    payload_.assign(std::size_t(header.length), std::byte{0});
    for (std::size_t at = 0; at < payload_.size();) {
      const std::size_t n = std::min<std::size_t>(random_() % 2000, payload_.size() - at);
      where.push_back({payload_.data() + at, n});
      at += n;
    }
    ++open_;
  }
  void complete(int, int, const packet& header, const transport::arrival& timing) override {
    CHECK(--open_ == 0);
    CHECK(timing.late_s >= 0);
    came.emplace_back(header, payload_);
  }
  void sent(std::uint64_t) override {}
  void failed(int, int, const std::string& why) override { problem = why; }

  std::vector<std::pair<packet, bytes>> came;
  std::string problem;

 private:
  std::mt19937_64& random_;
  bytes payload_;
  int open_ = 0;
};

struct ends {
  tcp::rail rail;
  tcp::descriptor other;

  static ends make() {
    int pair[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
    tcp::connected_rail connected;
    connected.sockets.emplace_back();
    connected.sockets.emplace_back(pair[0]);
    return {tcp::rail(0, std::move(connected)), tcp::descriptor(pair[1])};
  }
};

}  // namespace

TEST_CASE("packets come whole and in order, however their bytes are cut") {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank > 0) return;  // one does
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 40; ++round) {
    ends e = ends::make();
    recorder sink(random);
    std::vector<std::pair<packet, bytes>> sent;
    bytes stream;
    for (int k = 0; k < 40; ++k) {
      packet p{.type = packet_type::credit, .credit = std::uint32_t(k)};
      if (k % 3 == 1)
        p = {.type = packet_type::chunk, .other_id = 7, .length = 1 + random() % (256 << 10)};
      else if (k % 3 == 2)
        p = {.type = packet_type::eager, .sequence = std::uint32_t(k), .length = random() % 20000};
      bytes payload(std::size_t(p.length));
      for (std::byte& b : payload) b = std::byte(random());
      const transport::packed_header header = transport::pack(p);
      stream.insert(stream.end(), header.begin(), header.end());
      stream.insert(stream.end(), payload.begin(), payload.end());
      sent.emplace_back(p, std::move(payload));
    }
    // From byte by byte up to all that the socket takes.
    const std::size_t most = std::size_t{1} << (round % 20);
    std::size_t limit = most < 64 ? 20000 : stream.size();  // bytes one by one take long
    limit = std::min(limit, stream.size());
    for (std::size_t at = 0; at < limit;) {
      const std::size_t n = std::min<std::size_t>(1 + random() % most, limit - at);
      const ssize_t written = write(e.other.get(), stream.data() + at, n);
      if (written > 0) at += std::size_t(written);
      if (written <= 0 || random() % 2 == 0) e.rail.poll(sink);
    }
    while (e.rail.poll(sink)) {
    }
    CHECK(sink.problem.empty());
    std::size_t end = 0, whole = 0;
    while (whole < sent.size() &&
           (end += transport::header_bytes + sent[whole].second.size()) <= limit)
      ++whole;
    REQUIRE(sink.came.size() == whole);
    for (std::size_t k = 0; k < whole; ++k) REQUIRE(sink.came[k] == sent[k]);
    if (round % 2 == 0) {
      e.other = tcp::descriptor();
      while (e.rail.poll(sink)) {
      }
      CHECK(sink.problem == "the other end has gone");
    } else if (limit == stream.size()) {
      const bytes noise(100, std::byte{0x55});
      REQUIRE(write(e.other.get(), noise.data(), noise.size()) == ssize_t(noise.size()));
      while (e.rail.poll(sink)) {
      }
      CHECK(sink.problem == "bytes came that are no header of a packet");
      CHECK(sink.came.size() == whole);
    }
  }
}
