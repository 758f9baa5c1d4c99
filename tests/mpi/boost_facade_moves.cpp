// SPDX-License-Identifier: BSL-1.0
//
// Every signature of the facade's collectives that move values, for values with and without an MPI
// datatype, by all arms in turn; and Boost.MPI's own results, where it has the call and does not
// look at what a null pointer points to.
#include "railpass/collectives.hpp"
#include "support/catch.hpp"
#include "support/facade_values.hpp"

#include <boost/mpi/collectives.hpp>
#include <boost/mpi/collectives/all_gatherv.hpp>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

using boost::mpi::inplace;
using railpass::each;
using railpass::make;
using railpass::make_some;
using railpass::rounds;

namespace {

// Rank k's n values, of all ranks one after the other.
template <class T>
std::vector<T> of_all(int p, int n) {
  std::vector<T> all;
  for (int k = 0; k < p; ++k)
    for (int i = 0; i < n; ++i) all.push_back(make<T>(10 * k + i));
  return all;
}

// Unequal numbers of values, none of some ranks, and places for them in another order with gaps.
struct unequal {
  explicit unequal(int p) : sizes(std::size_t(p)), places(std::size_t(p)) {
    for (int k = 0; k < p; ++k) sizes[std::size_t(k)] = (k + 1) % 3;
    for (int k = 0; k < p; ++k) places[std::size_t(k)] = 3 * (p - 1 - k);
  }
  int size(int k) const { return sizes[std::size_t(k)]; }
  template <class T>
  std::vector<T> mine(int k) const {
    return make_some<T>(10 * k, size(k));
  }
  template <class T>
  std::vector<T> in_rank_order() const {
    std::vector<T> all;
    for (int k = 0; k < int(sizes.size()); ++k)
      for (const T& value : mine<T>(k)) all.push_back(value);
    return all;
  }
  template <class T>
  std::vector<T> in_places() const {
    std::vector<T> all(3 * sizes.size());
    for (int k = 0; k < int(sizes.size()); ++k) {
      const std::vector<T> values = mine<T>(k);
      std::copy(values.begin(), values.end(), all.begin() + places[std::size_t(k)]);
    }
    return all;
  }
  std::vector<int> sizes, places;
};

}  // namespace

TEMPLATE_TEST_CASE("broadcast", "", int, railpass::affine, std::string, railpass::particle,
                   std::vector<std::string>) {
  using T = TestType;
  const boost::mpi::communicator comm = railpass::tuned_world();
  for (int round = 0; round < rounds; ++round)
    for (int root = 0; root < comm.size(); ++root) {
      const bool at_root = comm.rank() == root;
      T one = at_root ? make<T>(5) : T{};
      railpass::broadcast(comm, one, root, each);
      CHECK(one == make<T>(5));
      std::vector<T> some = at_root ? make_some<T>(1, 3) : std::vector<T>(3);
      railpass::broadcast(comm, some.data(), 3, root, each);
      CHECK(some == make_some<T>(1, 3));
      std::vector<T> all = at_root ? make_some<T>(7, 4) : std::vector<T>{};
      railpass::broadcast(comm, all, root, each);
      CHECK(all == make_some<T>(7, 4));
      railpass::broadcast(comm, some.data(), 0, root);
    }
}

TEMPLATE_TEST_CASE("gather", "", int, railpass::affine, std::string, railpass::particle,
                   std::vector<std::string>) {
  using T = TestType;
  const boost::mpi::communicator comm = railpass::tuned_world();
  const int p = comm.size(), rank = comm.rank();
  const auto size = std::size_t(p);
  for (int round = 0; round < rounds; ++round)
    for (const int root : {0, p - 1}) {
      const bool at_root = rank == root;
      const std::vector<T> ones = at_root ? of_all<T>(p, 1) : std::vector<T>{};
      const std::vector<T> threes = at_root ? of_all<T>(p, 3) : std::vector<T>{};
      const T one = make<T>(10 * rank);
      const std::vector<T> three = make_some<T>(10 * rank, 3);

      std::vector<T> out, theirs;
      railpass::gather(comm, one, out, root, each);
      boost::mpi::gather(comm, one, theirs, root);
      CHECK(out == ones);
      CHECK(theirs == ones);
      out.assign(at_root ? size : 0, T{});
      railpass::gather(comm, one, out.data(), root, each);
      CHECK(out == ones);
      out.clear();
      railpass::gather(comm, three.data(), 3, out, root, each);
      CHECK(out == threes);
      out.assign(at_root ? 3 * size : 0, T{});
      railpass::gather(comm, three.data(), 3, out.data(), root, each);
      CHECK(out == threes);
      if (at_root) {
        railpass::gather(comm, one, out.data(), root, each);
        railpass::gather(comm, three.data(), 3, out, root, each);
        std::copy(three.begin(), three.end(), out.begin() + 3 * rank);
        railpass::gather(comm, inplace(out.data()), 3, root, each);
        CHECK(out == threes);
      } else {
        railpass::gather(comm, one, root, each);
        railpass::gather(comm, three.data(), 3, root, each);
        railpass::gather(comm, three.data(), 3, root, each);
      }
      railpass::gather(comm, three.data(), 0, out.data(), root, each);
    }
}

TEMPLATE_TEST_CASE("gatherv", "", int, railpass::affine, std::string, railpass::particle,
                   std::vector<std::string>) {
  using T = TestType;
  const boost::mpi::communicator comm = railpass::tuned_world();
  const int p = comm.size(), rank = comm.rank();
  const unequal v(p);
  const std::vector<T> mine = v.mine<T>(rank), ordered = v.in_rank_order<T>(),
                       placed = v.in_places<T>();
  const int n = v.size(rank);
  std::vector<T> not_null = mine;
  not_null.resize(3);
  const auto test = [&](int root) {
    std::vector<T> out(ordered.size()), theirs(ordered.size());
    const auto check = [&](const std::vector<T>& expected) {
      if (rank == root) CHECK(out == expected);
      out.assign(placed.size(), T{});
    };
    railpass::gatherv(comm, mine, out.data(), v.sizes, root, each);
    boost::mpi::gatherv(comm, not_null.data(), n, theirs.data(), v.sizes, root);
    if (rank == root) CHECK(theirs == ordered);
    check(ordered);
    railpass::gatherv(comm, mine.data(), n, out.data(), v.sizes, v.places, root, each);
    check(placed);
    railpass::gatherv(comm, mine, out.data(), v.sizes, v.places, root, each);
    check(placed);
    out.resize(ordered.size());
    railpass::gatherv(comm, mine.data(), n, out.data(), v.sizes, root, each);
    check(ordered);
    if (rank == root) {
      railpass::gatherv(comm, mine, out.data(), v.sizes, v.places, root, each);
      check(placed);
      std::copy(mine.begin(), mine.end(), out.begin() + v.places[std::size_t(rank)]);
      railpass::gatherv(comm, inplace(out.data()), v.sizes, v.places, root, each);
      check(placed);
      out.resize(ordered.size());
      std::copy(mine.begin(), mine.end(),
                out.begin() + std::accumulate(v.sizes.begin(), v.sizes.begin() + rank, 0));
      railpass::gatherv(comm, inplace(out.data()), v.sizes, root, each);
      check(ordered);
    } else {
      railpass::gatherv(comm, mine, root, each);
      railpass::gatherv(comm, mine.data(), n, root, each);
      const std::vector<int> nothing;
      railpass::gatherv(comm, mine, static_cast<T*>(nullptr), nothing, root, each);
    }
  };
  for (int round = 0; round < rounds; ++round) {
    test(0);
    test(p - 1);
  }
}

TEMPLATE_TEST_CASE("scatter", "", int, railpass::affine, std::string, railpass::particle,
                   std::vector<std::string>) {
  using T = TestType;
  const boost::mpi::communicator comm = railpass::tuned_world();
  const int p = comm.size(), rank = comm.rank();
  const T one = make<T>(10 * rank);
  const std::vector<T> three = make_some<T>(10 * rank, 3);
  for (int round = 0; round < rounds; ++round)
    for (const int root : {0, p - 1}) {
      const bool at_root = rank == root;
      const std::vector<T> ones = at_root ? of_all<T>(p, 1) : std::vector<T>{};
      std::vector<T> threes = at_root ? of_all<T>(p, 3) : std::vector<T>{};
      T out{}, theirs{};
      std::vector<T> some(3);
      const auto check = [&] {
        CHECK(out == one);
        out = T{};
      };
      const auto check_some = [&] {
        CHECK(some == three);
        some.assign(3, T{});
      };
      railpass::scatter(comm, ones, out, root, each);
      if (at_root)
        boost::mpi::scatter(comm, ones, theirs, root);
      else
        boost::mpi::scatter(comm, theirs, root);
      CHECK(theirs == one);
      check();
      railpass::scatter(comm, ones.data(), out, root, each);
      check();
      railpass::scatter(comm, threes, some.data(), 3, root, each);
      check_some();
      railpass::scatter(comm, threes.data(), some.data(), 3, root, each);
      check_some();
      if (at_root) {
        railpass::scatter(comm, ones, out, root, each);
        check();
        railpass::scatter(comm, inplace(threes.data()), 3, root, each);
        CHECK(threes == of_all<T>(p, 3));
      } else {
        railpass::scatter(comm, out, root, each);
        check();
        railpass::scatter(comm, some.data(), 3, root, each);
        check_some();
      }
    }
}

TEMPLATE_TEST_CASE("scatterv", "", int, railpass::affine, std::string, railpass::particle,
                   std::vector<std::string>) {
  using T = TestType;
  const boost::mpi::communicator comm = railpass::tuned_world();
  const int p = comm.size(), rank = comm.rank();
  const unequal v(p);
  const int n = v.size(rank);
  const std::vector<T> mine = v.mine<T>(rank);
  for (int round = 0; round < rounds; ++round)
    for (const int root : {0, p - 1}) {
      const bool at_root = rank == root;
      std::vector<T> ordered = at_root ? v.in_rank_order<T>() : std::vector<T>{};
      std::vector<T> placed = at_root ? v.in_places<T>() : std::vector<T>{};
      std::vector<T> out(mine.size());
      const auto check = [&] {
        CHECK(out == mine);
        out.assign(mine.size(), T{});
      };
      railpass::scatterv(comm, ordered, v.sizes, out.data(), root, each);
      check();
      railpass::scatterv(comm, ordered.data(), v.sizes, out.data(), root, each);
      check();
      railpass::scatterv(comm, placed, v.sizes, v.places, out.data(), n, root, each);
      check();
      railpass::scatterv(comm, placed.data(), v.sizes, v.places, out.data(), n, root, each);
      check();
      for (int form = 0; form < 3; ++form) {
        if (at_root)
          railpass::scatterv(comm, ordered, v.sizes, out.data(), root, each);
        else if (form == 0)
          railpass::scatterv(comm, out.data(), n, root, each);
        else if (form == 1)
          railpass::scatterv(comm, ordered, out.data(), n, root, each);
        else
          railpass::scatterv(comm, ordered.data(), out.data(), n, root, each);
        check();
      }
      if (at_root) {
        railpass::scatterv(comm, inplace(ordered.data()), v.sizes, root, each);
        CHECK(ordered == v.in_rank_order<T>());
        railpass::scatterv(comm, inplace(placed.data()), v.sizes, v.places, root, each);
        CHECK(placed == v.in_places<T>());
      } else {
        railpass::scatterv(comm, out.data(), n, root, each);
        check();
        railpass::scatterv(comm, out.data(), n, root, each);
        check();
      }
    }
}

TEMPLATE_TEST_CASE("all_gather and all_gatherv", "", int, railpass::affine, std::string,
                   railpass::particle, std::vector<std::string>) {
  using T = TestType;
  const boost::mpi::communicator comm = railpass::tuned_world();
  const int p = comm.size(), rank = comm.rank();
  const auto size = std::size_t(p);
  const T one = make<T>(10 * rank);
  const std::vector<T> three = make_some<T>(10 * rank, 3), ones = of_all<T>(p, 1),
                       threes = of_all<T>(p, 3);
  const unequal v(p);
  const std::vector<T> mine = v.mine<T>(rank), ordered = v.in_rank_order<T>();
  std::vector<T> placed = v.in_places<T>(), not_null = mine;
  not_null.resize(3);
  const std::vector<int> each_one(size, 1);
  std::vector<int> backwards;
  for (int k = p - 1; k >= 0; --k) backwards.push_back(k);
  for (int round = 0; round < rounds; ++round) {
    std::vector<T> out, theirs;
    railpass::all_gather(comm, one, out, each);
    boost::mpi::all_gather(comm, one, theirs);
    CHECK(out == ones);
    CHECK(theirs == ones);
    out.assign(size, T{});
    railpass::all_gather(comm, one, out.data(), each);
    CHECK(out == ones);
    railpass::all_gather(comm, three.data(), 3, out, each);
    CHECK(out == threes);
    out.assign(3 * size, T{});
    railpass::all_gather(comm, three.data(), 3, out.data(), each);
    CHECK(out == threes);
    out.assign(3 * size, T{});
    std::copy(three.begin(), three.end(), out.begin() + 3 * rank);
    railpass::all_gather(comm, inplace(out.data()), 3, each);
    CHECK(out == threes);

    out.assign(size, T{});
    railpass::all_gatherv(comm, one, out.data(), each_one, each);
    CHECK(out == ones);
    railpass::all_gatherv(comm, one, out.data(), each_one, backwards, each);
    CHECK(out == std::vector<T>(ones.rbegin(), ones.rend()));
    out.clear();
    theirs.assign(ordered.size(), T{});
    railpass::all_gatherv(comm, mine, out, v.sizes, each);
    boost::mpi::all_gatherv(comm, not_null.data(), theirs.data(), v.sizes);
    CHECK(out == ordered);
    CHECK(theirs == ordered);
    out.assign(ordered.size(), T{});
    railpass::all_gatherv(comm, mine.data(), out.data(), v.sizes, each);
    CHECK(out == ordered);
    out.assign(placed.size(), T{});
    railpass::all_gatherv(comm, mine.data(), out.data(), v.sizes, v.places, each);
    CHECK(out == placed);
    out.clear();
    railpass::all_gatherv(comm, mine, out, v.sizes, v.places, each);
    placed.resize(out.size());  // a vector ends with the last value
    CHECK(out == placed);
    placed = v.in_places<T>();
    out.assign(placed.size(), T{});
    std::copy(mine.begin(), mine.end(), out.begin() + v.places[std::size_t(rank)]);
    railpass::all_gatherv(comm, inplace(out.data()), v.sizes, v.places, each);
    CHECK(out == placed);
    out.assign(ordered.size(), T{});
    std::copy(mine.begin(), mine.end(),
              out.begin() + std::accumulate(v.sizes.begin(), v.sizes.begin() + rank, 0));
    railpass::all_gatherv(comm, inplace(out.data()), v.sizes, each);
    CHECK(out == ordered);
  }
}

TEMPLATE_TEST_CASE("all_to_all and all_to_allv", "", int, railpass::affine, std::string,
                   railpass::particle, std::vector<std::string>) {
  using T = TestType;
  const boost::mpi::communicator comm = railpass::tuned_world();
  const int p = comm.size(), rank = comm.rank();
  const auto size = std::size_t(p);
  // What rank i sends rank j are the values from 50 * i + 5 * j on; i + j of them, modulo 3, if
  // they are not equally many.
  std::vector<T> ones, twos, varying, ones_here, twos_here, varying_here;
  std::vector<T> placed(3 * size), placed_here(3 * size);
  std::vector<int> sizes, places;
  for (int k = 0; k < p; ++k) {
    const int there = 50 * rank + 5 * k, here = 50 * k + 5 * rank, n = (rank + k) % 3;
    sizes.push_back(n);
    places.push_back(3 * (p - 1 - k));
    ones.push_back(make<T>(there));
    ones_here.push_back(make<T>(here));
    for (int i = 0; i < 2; ++i) {
      twos.push_back(make<T>(there + i));
      twos_here.push_back(make<T>(here + i));
    }
    for (int i = 0; i < n; ++i) {
      varying.push_back(make<T>(there + i));
      varying_here.push_back(make<T>(here + i));
      placed[std::size_t(places.back() + i)] = varying.back();
      placed_here[std::size_t(places.back() + i)] = varying_here.back();
    }
  }
  for (int round = 0; round < rounds; ++round) {
    std::vector<T> out, theirs;
    railpass::all_to_all(comm, ones, out, each);
    boost::mpi::all_to_all(comm, ones, theirs);
    CHECK(out == ones_here);
    CHECK(theirs == ones_here);
    out.assign(size, T{});
    railpass::all_to_all(comm, ones.data(), out.data(), each);
    CHECK(out == ones_here);
    railpass::all_to_all(comm, twos, 2, out, each);
    boost::mpi::all_to_all(comm, twos, 2, theirs);
    CHECK(out == twos_here);
    CHECK(theirs == twos_here);
    out.assign(2 * size, T{});
    railpass::all_to_all(comm, twos.data(), 2, out.data(), each);
    CHECK(out == twos_here);
    out = twos;
    railpass::all_to_all(comm, inplace(out.data()), 2, each);
    CHECK(out == twos_here);

    // n is the same in both directions here.
    railpass::all_to_allv(comm, varying, sizes, out, sizes, each);
    CHECK(out == varying_here);
    out.assign(varying.size(), T{});
    railpass::all_to_allv(comm, varying.data(), sizes, out.data(), sizes, each);
    CHECK(out == varying_here);
    out.assign(placed.size(), T{});
    railpass::all_to_allv(comm, placed.data(), sizes, places, out.data(), sizes, places, each);
    CHECK(out == placed_here);
    out.clear();
    railpass::all_to_allv(comm, placed, sizes, places, out, sizes, places, each);
    out.resize(placed.size());
    CHECK(out == placed_here);
    out = varying;
    railpass::all_to_allv(comm, inplace(out.data()), sizes, each);
    CHECK(out == varying_here);
    out = placed;
    railpass::all_to_allv(comm, inplace(out.data()), sizes, places, each);
    CHECK(out == placed_here);
    // Everything to the next rank.
    std::vector<int> to(size, 0), from(size, 0);
    to[std::size_t((rank + 1) % p)] = 3;
    from[std::size_t((rank + p - 1) % p)] = 3;
    railpass::all_to_allv(comm, make_some<T>(10 * rank, 3), to, out, from, each);
    CHECK(out == make_some<T>(10 * ((rank + p - 1) % p), 3));
  }
}
