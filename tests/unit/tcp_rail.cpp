// SPDX-License-Identifier: BSL-1.0
//
// The TCP rail's reading: packets come out whole and in order, whatever pieces the bytes come in,
// and other bytes do no harm. A rail that waits for room is busy, and one that is given up ends.
#include "lib/rails/tcp/rail.hpp"
#include "railpass/transport/strategies.hpp"
#include "railpass/transport/transport.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

#include <cerrno>
#include <fcntl.h>
#include <random>
#include <sys/socket.h>
#include <unistd.h>

using namespace railpass;
using namespace railpass::internal;
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
  file_descriptor other;

  file_descriptor copy;  // of the rail's socket, as a forked child has it

  static ends make() {
    int pair[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
    tcp::connected_rail connected;
    connected.sockets.emplace_back();
    connected.sockets.emplace_back(pair[0]);
    file_descriptor copy(dup(pair[0]));
    return {tcp::rail(0, std::move(connected)), file_descriptor(pair[1]), std::move(copy)};
  }
};

}  // namespace

TEST_CASE("packets come whole and in order, however their bytes are cut") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 40; ++round) {
    ends e = ends::make();
    recorder sink(random);
    std::vector<std::pair<packet, bytes>> sent;
    bytes stream;
    for (int k = 0; k < 40; ++k) {
      packet p = packet::credit_alone();
      if (k % 3 == 0)
        p.credit = std::uint32_t(k);
      else if (k % 3 == 1)
        p = packet::chunk(7, 0, 1 + random() % (256 << 10), false);
      else
        p = packet::eager(0, 0, std::uint32_t(k), random() % 20000, false);
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
      e.other = file_descriptor();
      while (e.rail.poll(sink)) {
      }
      CHECK(sink.problem == "the other rank has closed the connection");
    } else if (limit == stream.size()) {
      const bytes noise(100, std::byte{0x55});
      REQUIRE(write(e.other.get(), noise.data(), noise.size()) == ssize_t(noise.size()));
      while (e.rail.poll(sink)) {
      }
      CHECK(sink.problem == "received bytes that are no header of a packet");
      CHECK(sink.came.size() == whole);
    }
  }
}

TEST_CASE("a rail that is abandoned ends its connections, although a forked child has them, too") {
  ends e = ends::make();
  std::byte any{};
  CHECK((read(e.other.get(), &any, 1) == -1 && errno == EAGAIN));
  e.rail.abandon();
  CHECK(read(e.other.get(), &any, 1) == 0);
}

TEST_CASE("a packet for which the socket has no room yet is under way") {
  std::mt19937_64 random;
  ends e = ends::make();
  recorder sink(random);
  const bytes much(1 << 16);
  while (write(e.copy.get(), much.data(), much.size()) > 0) {
  }
  std::vector<transport::outgoing> packets(1);
  packets[0].header = packet::credit_alone();
  e.rail.send(1, packets, sink);
  CHECK(e.rail.under_way_bytes(1) > 0);
}

namespace {

// A packet that may come, from those that matter to a rank that sends and receives a little: most
// fields small, so that they often mean something.
packet some_packet(std::mt19937_64& random) {
  const auto few = [&](std::uint64_t n) { return std::uint32_t(random() % n); };
  packet p{.type = packet_type(1 + few(12)), .credit = few(4) == 0 ? few(3000) : 0};
  switch (p.type) {
    case packet_type::eager:
      p.tag = std::int32_t(few(3)), p.sequence = few(6), p.other_id = few(2), p.id = few(2);
      p.length = few(3000);
      break;
    case packet_type::request:
      p.tag = std::int32_t(few(3)), p.sequence = few(6), p.other_id = few(2), p.id = few(8);
      p.value = 1 + few(200000);
      break;
    case packet_type::offer:
    case packet_type::overtaken:
      p.tag = std::int32_t(few(3)), p.sequence = few(6), p.other_id = few(2), p.id = few(8);
      p.value = few(200000);
      break;
    case packet_type::want:
      p.other_id = few(2), p.value = few(2);
      if (p.value == 0) p.tag = std::int32_t(few(4));
      break;
    case packet_type::decline:
      p.id = few(6);
      break;
    case packet_type::grant:
      p.id = few(6), p.other_id = few(6), p.value = few(120000);
      break;
    case packet_type::chunk:
      p.other_id = few(6), p.id = few(2), p.length = 1 + few(5000);
      p.value = few(3) == 0 ? 0 : few(120000);
      break;
    case packet_type::rate:
      p.id = few(2), p.other_id = few(2), p.value = 1 + random() % 1000000000;
      break;
    case packet_type::probe:
      p.id = few(2), p.length = few(65536);
      break;
    case packet_type::credit:
    case packet_type::farewell:
      break;
  }
  return p;
}

// Rank 0 of two, with some messages under way, is sent `stream` by rank 1. Whether it goes on.
bool survives(const bytes& stream, std::mt19937_64& random) {
  ends e = ends::make();
  std::vector<std::unique_ptr<transport::packet_rail>> rails;
  rails.push_back(std::make_unique<tcp::rail>(std::move(e.rail)));
  transport::transport t(0, 2, std::move(rails), {transport::transfer_time(1e-5, 1e8)}, true,
                         transport::make_strategy("auto"),
                         {.eager_bytes = 2000, .credit_bytes = 4000});
  bytes small(1000), large(100000), first(1000), second(100000), third;
  std::vector<transport::operation_ptr> all;
  try {
    all = {t.receive(1, 0, {{first.data(), first.size()}}),
           t.receive(1, 1, {{second.data(), second.size()}}),
           t.receive(transport::any_source, 2,
                     [&](std::int64_t n) {
                       if (n > 1000000) throw std::bad_alloc();  // no program has room for any size
                       third.resize(std::size_t(n));
                       return piece{third.data(), third.size()};
                     }),
           t.send(1, 0, {{small.data(), small.size()}}),
           t.send(1, 0, {{large.data(), large.size()}})};
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t n = std::min<std::size_t>(1 + random() % 4000, stream.size() - at);
      const ssize_t written = send(e.other.get(), stream.data() + at, n, MSG_NOSIGNAL);
      if (written < 0 && errno == EPIPE) return true;  // hung up on after its last packet
      if (written > 0) at += std::size_t(written);
      t.progress();
      bytes answers(100000);
      static_cast<void>(!read(e.other.get(), answers.data(), answers.size()));
    }
    while (t.progress()) {
    }
    return true;
  } catch (const error&) {
    CHECK_THROWS_AS(t.progress(), error);
    return false;
  }
}

}  // namespace

TEST_CASE("whatever bytes a peer sends, they are messages or an error, and no harm") {
  const auto new_seed = railpass::test::new_seed();
  int went_on = 0, refused = 0;
  for (unsigned k = 0; k < 3000; ++k) {
    const unsigned seed = k < 2000 ? k : new_seed + k;  // those that are kept, and some new ones
    INFO("repeat with TEST_SEED=" << new_seed << ", seed " << seed);
    std::mt19937_64 random(seed);
    bytes stream;
    for (std::uint64_t packets = 1 + random() % 8; packets > 0; --packets) {
      const packet p = some_packet(random);
      const transport::packed_header header = transport::pack(p);
      stream.insert(stream.end(), header.begin(), header.end());
      stream.resize(stream.size() + std::size_t(p.length), std::byte{7});
    }
    // Some bytes of some streams are others, or missing.
    if (random() % 3 == 0)
      for (std::uint64_t n = 1 + random() % 4; n > 0; --n)
        stream[random() % std::min<std::size_t>(stream.size(), 200)] = std::byte(random());
    if (random() % 4 == 0) stream.resize(random() % stream.size());
    ++(survives(stream, random) ? went_on : refused);
  }
  CHECK(went_on > 100);
  CHECK(refused > 100);
}
