// SPDX-License-Identifier: BSL-1.0
//
// Point-to-point messages in Boost.MPI's signatures, over two rails of this machine.
#include "railpass/point_to_point.hpp"
#include "support/catch.hpp"
#include "support/facade_values.hpp"

using namespace railpass;

namespace {

struct tuned_rails {
  boost::mpi::communicator comm{boost::mpi::communicator(), boost::mpi::comm_duplicate};
  tuned_rails() { mpi::open_rails(comm, {.rails = "127.0.0.2,127.0.0.3", .strategy = {}}); }
};

}  // namespace

TEMPLATE_TEST_CASE("values, arrays and nothing go round a ring", "", int, affine, std::string,
                   particle, std::vector<std::string>) {
  using T = TestType;
  const tuned_rails rails;
  const auto& world = rails.comm;
  const int me = world.rank(), p = world.size(), right = (me + 1) % p, left = (me + p - 1) % p;
  T one = make<T>(-1 + 1), none = make<T>(3);
  request r = railpass::irecv(world, left, 4, one);
  railpass::send(world, right, 4, make<T>(me));
  CHECK(r.wait().source() == left);
  CHECK(one == make<T>(left));

  const std::vector<T> sent = make_some<T>(me, 50);
  std::vector<T> got(50);
  request requests[] = {railpass::isend(world, right, 5, sent.data(), 50),
                        railpass::irecv(world, boost::mpi::any_source, 5, got.data(), 50)};
  wait_all(std::begin(requests), std::end(requests));
  CHECK(got == make_some<T>(left, 50));

  request empty = railpass::isend(world, right, 6);
  const boost::mpi::status s = railpass::recv(world, left, boost::mpi::any_tag);
  CHECK(s.tag() == 6);
  empty.wait();
  request later = railpass::irecv(world, left, 7, none);
  railpass::isend(world, right, 7, sent[1]);  // the request is dropped
  while (!later.test()) {
  }
  CHECK(none == make<T>(left + 1));
}

TEST_CASE("fewer values than there is room for are counted") {
  const tuned_rails rails;
  const auto& world = rails.comm;
  const int me = world.rank(), p = world.size();
  const std::vector<double> sent(1000, me + 0.5);
  std::vector<double> got(3000, -1);
  request r = railpass::isend(world, (me + 1) % p, 0, sent.data(), 1000);
  const boost::mpi::status s = railpass::recv(world, (me + p - 1) % p, 0, got.data(), 3000);
  CHECK(s.count<double>().get() == 1000);
  CHECK(got[999] == (me + p - 1) % p + 0.5);
  CHECK(got[1000] == -1);
  r.wait();
}

TEST_CASE("what comes from beyond a wall is nothing, of any type") {
  const tuned_rails rails;
  std::string text = "kept";
  const boost::mpi::status s = railpass::recv(rails.comm, MPI_PROC_NULL, 0, text);
  CHECK(text == "kept");
  CHECK(s.source() == MPI_PROC_NULL);
}

TEST_CASE("segments are packed from where they are, and unpacked to others") {
  const tuned_rails rails;
  const auto& world = rails.comm;
  const int me = world.rank(), p = world.size(), right = (me + 1) % p, left = (me + p - 1) % p;
  const int head = 7 * me;
  const std::vector<double> body(100000, me), tail(3, me + 0.25);
  request sending = (pack(world, right, 1) << head)
                        .add<double>(body.data(), 100000)
                        .add<double>(tail.data(), 3)
                        .begin();
  int first = -1;
  std::vector<double> rest(100003);
  unpack message(world, left, 1);
  (message >> first).add<double>(rest.data(), 100003);
  CHECK(message.run().source() == left);
  sending.wait();
  CHECK(first == 7 * left);
  CHECK(rest[99999] == left);
  CHECK(rest[100002] == left + 0.25);
}

TEST_CASE(
    "a message of more values than an int counts is not said to have another number of them") {
  boost::mpi::status s;
  s.m_status = MPI_Status{};
  railpass::detail::set_count(s, std::int64_t{3} << 30, 1);
  CHECK_FALSE(s.count<char>().has_value());
  CHECK(s.count<double>().value_or(0) == 3 << 27);
  boost::mpi::status few;
  few.m_status = MPI_Status{};
  railpass::detail::set_count(few, 80, 8);
  CHECK(few.count<double>().value_or(0) == 10);
}
