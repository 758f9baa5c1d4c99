// SPDX-License-Identifier: BSL-1.0
//
// Code for Boost.MPI with one changed line: calls that name a namespace, that name none, and that
// say arguments of templates are tuned, and do what Boost.MPI's do; on communicators from
// everywhere.
#include "railpass/boost_mpi.hpp"
#include "railpass/mpi.hpp"
#include "support/catch.hpp"
#include "support/facade_values.hpp"

#include <boost/serialization/list.hpp>
#include <boost/serialization/string.hpp>

#include <functional>
#include <list>
#include <string>
#include <vector>

namespace {

/// The calls on a communicator of their own, all of which must be railpass'.
template <class Calls>
void check_tuned(const Calls& calls) {
  const boost::mpi::communicator world = railpass::tuned_world();
  const boost::mpi::communicator comm(world, boost::mpi::comm_duplicate);
  const bool alone = comm.size() == 1;  // which is never tuned
  REQUIRE((alone || railpass::mpi::last_arm(comm).empty()));
  calls(comm);
  CHECK_FALSE(railpass::mpi::last_arm(comm).empty());
}

}  // namespace

namespace with_alias {
namespace mpi = railpass::boost_mpi;

TEST_CASE("calls by an alias of the namespace are tuned") {
  check_tuned([](const mpi::communicator& comm) {
    std::vector<int> ranks;
    mpi::gather(comm, comm.rank(), ranks, 0);
    CHECK(int(ranks.size()) == (comm.rank() == 0 ? comm.size() : 0));
  });
  check_tuned([](const mpi::communicator& comm) {
    std::list<std::string> words(comm.rank() == 0 ? 2 : 0, "word");
    mpi::broadcast(comm, words, 0);
    CHECK(words == std::list<std::string>{"word", "word"});
  });
  check_tuned([](const mpi::communicator& comm) {
    CHECK(mpi::all_reduce<int>(comm, comm.rank() + 1L, mpi::maximum<int>()) == comm.size());
  });
  check_tuned([](const mpi::communicator& comm) {
    int smallest = comm.rank();
    mpi::all_reduce(comm, mpi::inplace(smallest), mpi::minimum<int>());
    CHECK(smallest == 0);
  });
}

}  // namespace with_alias

namespace with_directive {
using namespace railpass::boost_mpi;

TEST_CASE("calls that name no namespace are tuned") {
  check_tuned([](const communicator& comm) {
    const std::string own(std::size_t(comm.rank()), 'x');
    std::vector<std::string> all;
    all_gather<std::string>(comm, own, all);
    REQUIRE(int(all.size()) == comm.size());
    for (int r = 0; r < comm.size(); ++r)
      CHECK(all[std::size_t(r)] == std::string(std::size_t(r), 'x'));
  });
  check_tuned([](const communicator& comm) {
    std::vector<long> values;
    for (int r = 0; r < comm.size(); ++r) values.push_back(10 * r);
    long mine = -1;
    scatter(comm, values, mine, comm.size() - 1);
    CHECK(mine == 10 * comm.rank());
  });
  check_tuned([](const communicator& comm) {
    long sum = 0;
    scan(comm, long(comm.rank()), sum, std::plus<long>());
    CHECK(sum == comm.rank() * (comm.rank() + 1L) / 2);
  });
  check_tuned([](const communicator& comm) {
    const std::vector<int> ones(3, 1);
    std::vector<int> sums;
    if (comm.rank() == 0)
      reduce(comm, ones, sums, std::plus<int>(), 0);
    else
      reduce(comm, ones, std::plus<int>(), 0);
    CHECK(sums == std::vector<int>(comm.rank() == 0 ? 3 : 0, comm.size()));
  });
  check_tuned([](const communicator& comm) {
    std::vector<int> values, places;
    const std::vector<int> sizes(std::size_t(comm.size()), 1);
    for (int r = 0; r < comm.size(); ++r) values.push_back(10 * r), places.push_back(r);
    int mine = -1;
    if (comm.rank() == 0)
      scatterv(comm, values, sizes, places, &mine, 1, 0);
    else if (comm.rank() % 2 == 0)
      scatterv(comm, values, &mine, 1, 0);
    else
      scatterv(comm, values.data(), &mine, 1, 0);
    CHECK(mine == 10 * comm.rank());
  });
  check_tuned([](const communicator& comm) {
    int product = 0;
    const int two = 2;
    if (comm.rank() == 0)
      reduce(comm, two, product, std::multiplies<int>(), 0);
    else
      reduce(comm, two, std::multiplies<int>(), 0);
    CHECK(product == (comm.rank() == 0 ? 1 << comm.size() : 0));
  });
  check_tuned([](const communicator& comm) {
    const std::vector<int> own(std::size_t(comm.size()), comm.rank());
    std::vector<int> all;
    all_to_all(comm, own, all);
    for (int r = 0; r < comm.size(); ++r) CHECK(all[std::size_t(r)] == r);
  });
  check_tuned([](const communicator& comm) {
    std::list<int> numbers(comm.rank() == 0 ? 7 : 0, 5);
    broadcast(comm, skeleton(numbers), 0);
    CHECK(numbers.size() == 7);
  });
}

}  // namespace with_directive

namespace with_alias_alone {
namespace mpi = railpass::boost_mpi;

// Some ranks' calls name the namespace, and others' do not: all must be railpass'.
template <class Communicator>
void check_gather(const Communicator& comm) {
  railpass::mpi::start_tuning(comm);
  std::vector<int> ranks;
  if (comm.rank() == 0)
    mpi::gather(comm, comm.rank(), ranks, 0);
  else
    gather(comm, comm.rank(), 0);
  CHECK(int(ranks.size()) == (comm.rank() == 0 ? comm.size() : 0));
  CHECK_FALSE(railpass::mpi::last_arm(comm).empty());

  std::list<std::string> words(comm.rank() == 0 ? 2 : 0, "word");
  broadcast(comm, words, 0);
  CHECK(words.size() == 2);
  CHECK(all_reduce(comm, 1, std::plus<int>()) == comm.size());
  CHECK_FALSE(railpass::mpi::last_arm(comm).empty());
}

TEST_CASE("calls that name no namespace are tuned on every kind of communicator") {
  const mpi::communicator world;
  check_gather(mpi::communicator(world, mpi::comm_duplicate));
  check_gather(world.split(world.rank() % 2));
  const auto half = world.split(world.rank() % 2, -world.rank());
  check_gather(half);
  const boost::mpi::communicator of_boost(world, mpi::comm_duplicate);
  check_gather(mpi::communicator(of_boost));

  const mpi::cartesian_topology all_in_line(std::vector<mpi::cartesian_dimension>{world.size()});
  const mpi::cartesian_communicator line(world, all_in_line);
  check_gather(line);
  const mpi::communicator same_line = line;
  const auto found = same_line.as_cartesian_communicator();
  REQUIRE(found.has_value());
  check_gather(*found);
  CHECK_FALSE(same_line.as_graph_communicator().has_value());
  CHECK_FALSE(same_line.as_intercommunicator().has_value());

  if (world.size() > 1) {
    const bool odd = world.rank() % 2 == 1;
    const mpi::intercommunicator both(half, half.size() - 1, world, odd ? 0 : 1);
    CHECK(both.remote_size() == world.size() - half.size());
    check_gather(both.merge(odd));
  }
}

}  // namespace with_alias_alone
