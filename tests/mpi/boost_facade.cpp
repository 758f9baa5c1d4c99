// SPDX-License-Identifier: BSL-1.0
//
// The facade has Boost.MPI's signatures and gives its results.
#include "railpass/all_reduce.hpp"
#include "railpass/broadcast.hpp"
#include "support/catch.hpp"

#include <boost/serialization/map.hpp>
#include <boost/serialization/string.hpp>
#include <boost/serialization/vector.hpp>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace mpi = boost::mpi;

namespace {

// A type without an MPI datatype.
struct particle {
  std::string name;
  std::vector<double> history;
  bool operator==(const particle&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& name& history;
  }
};

// A type with one.
struct pair_of_ints {
  int first = 0, second = 0;
  bool operator==(const pair_of_ints&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& first& second;
  }
};

struct join {
  std::string operator()(const std::string& a, const std::string& b) const { return a + b; }
};

}  // namespace

BOOST_IS_MPI_DATATYPE(pair_of_ints)

TEST_CASE("broadcast: values, arrays, types with and without an MPI datatype, options") {
  const mpi::communicator world;
  using railpass::broadcast;  // both ways of calling find ours
  for (int root = 0; root < world.size(); ++root) {
    const bool mine = world.rank() == root;
    int number = mine ? 42 : 0;
    broadcast(world, number, root);
    CHECK(number == 42);

    std::vector<double> values(100, mine ? 1.5 : 0.0);
    railpass::broadcast(world, values.data(), int(values.size()), root, railpass::use("binomial"));
    CHECK(values == std::vector<double>(100, 1.5));

    pair_of_ints pair{mine ? 3 : 0, mine ? 4 : 0};
    broadcast(world, pair, root, railpass::use("chain"), railpass::segment_bytes(1024));
    CHECK(pair == pair_of_ints{3, 4});

    std::map<std::string, particle> cloud;
    if (mine) cloud = {{"a", {"alpha", {1, 2, 3}}}, {"b", {"beta", std::vector<double>(5000, 7)}}};
    broadcast(world, cloud, root);
    CHECK(cloud.at("b").history == std::vector<double>(5000, 7));

    std::vector<particle> particles(3);
    if (mine) particles[2] = {"gamma", {9}};
    broadcast(world, particles.data(), 3, root, railpass::policy("pass"));
    CHECK(particles[2] == particle{"gamma", {9}});
  }
}

TEST_CASE("all_reduce: values, arrays, in place, custom function objects") {
  const mpi::communicator world;
  const int p = world.size(), rank = world.rank();
  const int expected = p * (p - 1) / 2;
  for (int call = 0; call < 12; ++call) {  // before and after tuning begins
    CHECK(railpass::all_reduce(world, rank, std::plus<int>()) == expected);
    int sum = 0;
    railpass::all_reduce(world, rank, sum, std::plus<int>());
    CHECK(sum == expected);

    std::vector<long> mine(50, rank), total(50);
    railpass::all_reduce(world, mine.data(), 50, total.data(), std::plus<long>());
    CHECK(total == std::vector<long>(50, expected));
    railpass::all_reduce(world, mpi::inplace(mine.data()), 50, std::plus<long>());
    CHECK(mine == total);
    int one = 1;
    railpass::all_reduce(world, mpi::inplace(one), std::plus<int>(), railpass::use("ring"));
    CHECK(one == p);
    CHECK(railpass::all_reduce(world, rank, mpi::maximum<int>()) == p - 1);
  }
}

TEST_CASE("all_reduce: function objects with state, and types that do not commute") {
  const mpi::communicator world;
  const int modulus = 97;
  const int product = railpass::all_reduce(world, world.rank() + 2,
                                           [modulus](int a, int b) { return a * b % modulus; });
  int expected = 1;
  for (int r = 0; r < world.size(); ++r) expected = expected * (r + 2) % modulus;
  CHECK(product == expected);

  std::string word;
  for (int r = 0; r < world.size(); ++r) word += std::string(1, char('a' + r));
  const std::string mine(1, char('a' + world.rank()));
  CHECK(railpass::all_reduce(world, mine, join()) == word);
  std::string in_place = mine;
  railpass::all_reduce(world, mpi::inplace(in_place), join());
  CHECK(in_place == word);
}

TEST_CASE("errors of MPI are Boost.MPI's exceptions") {
  MPI_Comm raw = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &raw);
  MPI_Comm_set_errhandler(raw, MPI_ERRORS_RETURN);
  const mpi::communicator comm(raw, mpi::comm_take_ownership);
  int value = 0;
  CHECK_THROWS_AS(railpass::broadcast(comm, value, comm.size()), mpi::exception);
}
