// SPDX-License-Identifier: BSL-1.0
//
// Every signature of the facade's reductions, for values with and without an MPI datatype, with an
// operation that does not commute, by all arms in turn; and Boost.MPI's own results, where it has
// the call.
#include "railpass/collectives.hpp"
#include "support/catch.hpp"
#include "support/facade_values.hpp"

#include <boost/mpi/collectives.hpp>

#include <functional>
#include <numeric>
#include <string>
#include <vector>

using boost::mpi::inplace;
using railpass::combine;
using railpass::each;
using railpass::make;
using railpass::make_some;
using railpass::rounds;

namespace {

// The n values of ranks `begin` up to `end` combined: value i of rank k is make(10 * k + i).
template <class T>
std::vector<T> combined(int begin, int end, int n) {
  std::vector<T> all = make_some<T>(10 * begin, n);
  for (int k = begin + 1; k < end; ++k)
    for (int i = 0; i < n; ++i)
      all[std::size_t(i)] = combine()(all[std::size_t(i)], make<T>(10 * k + i));
  return all;
}

}  // namespace

TEMPLATE_TEST_CASE("all_reduce and reduce", "", int, railpass::affine, std::string,
                   railpass::particle) {
  using T = TestType;
  const boost::mpi::communicator comm = railpass::tuned_world();
  const int p = comm.size(), rank = comm.rank();
  const std::vector<T> mine = make_some<T>(10 * rank, 3), all = combined<T>(0, p, 3);
  const T one = mine[0], result = all[0];
  for (int round = 0; round < rounds; ++round) {
    T out{};
    CHECK(railpass::all_reduce(comm, one, combine(), each) == result);
    CHECK(boost::mpi::all_reduce(comm, one, combine()) == result);
    railpass::all_reduce(comm, one, out, combine(), each);
    CHECK(out == result);
    std::vector<T> some(3), theirs;
    railpass::all_reduce(comm, mine.data(), 3, some.data(), combine(), each);
    CHECK(some == all);
    some = mine;
    railpass::all_reduce(comm, inplace(some.data()), 3, combine(), each);
    CHECK(some == all);
    out = one;
    railpass::all_reduce(comm, inplace(out), combine(), each);
    CHECK(out == result);
    railpass::all_reduce(comm, mine.data(), 0, some.data(), combine(), each);
    CHECK(some == all);

    for (const int root : {0, p - 1}) {
      const bool at_root = rank == root;
      boost::mpi::reduce(comm, mine, theirs, combine(), root);
      if (at_root) CHECK(theirs == all);
      out = T{};
      railpass::reduce(comm, one, out, combine(), root, each);
      CHECK(out == (at_root ? result : T{}));
      some.assign(3, T{});
      railpass::reduce(comm, mine.data(), 3, some.data(), combine(), root, each);
      CHECK(some == (at_root ? all : std::vector<T>(3)));
      some.clear();
      railpass::reduce(comm, mine, some, combine(), root, each);
      CHECK(some == (at_root ? all : std::vector<T>{}));
      out = one;
      railpass::reduce(comm, inplace(out), combine(), root, each);
      CHECK(out == (at_root ? result : one));
      some = mine;
      railpass::reduce(comm, inplace(some.data()), 3, combine(), root, each);
      CHECK(some == (at_root ? all : mine));
      if (at_root) {
        railpass::reduce(comm, one, out, combine(), root, each);
        railpass::reduce(comm, mine, some, combine(), root, each);
        CHECK(some == all);
        railpass::reduce(comm, mine.data(), 3, some.data(), combine(), root, each);
        CHECK(some == all);
      } else {
        railpass::reduce(comm, one, combine(), root, each);
        railpass::reduce(comm, mine, combine(), root, each);
        railpass::reduce(comm, mine.data(), 3, combine(), root, each);
      }
    }
  }
}

TEMPLATE_TEST_CASE("scan and exscan", "", int, railpass::affine, std::string, railpass::particle) {
  using T = TestType;
  const boost::mpi::communicator comm = railpass::tuned_world();
  const int rank = comm.rank();
  const std::vector<T> mine = make_some<T>(10 * rank, 3), with = combined<T>(0, rank + 1, 3);
  const std::vector<T> untouched = make_some<T>(90, 3);
  const std::vector<T> before = rank == 0 ? untouched : combined<T>(0, rank, 3);
  for (int round = 0; round < rounds; ++round) {
    T out{};
    CHECK(railpass::scan(comm, mine[0], combine(), each) == with[0]);
    CHECK(boost::mpi::scan(comm, mine[0], combine()) == with[0]);
    railpass::scan(comm, mine[0], out, combine(), each);
    CHECK(out == with[0]);
    std::vector<T> some(3);
    railpass::scan(comm, mine.data(), 3, some.data(), combine(), each);
    CHECK(some == with);
    some = mine;
    railpass::scan(comm, inplace(some.data()), 3, combine(), each);
    CHECK(some == with);
    out = mine[0];
    railpass::scan(comm, inplace(out), combine(), each);
    CHECK(out == with[0]);

    CHECK(railpass::exscan(comm, mine[0], combine(), each) == (rank == 0 ? T{} : before[0]));
    out = untouched[0];
    railpass::exscan(comm, mine[0], out, combine(), each);
    CHECK(out == before[0]);
    some = untouched;
    railpass::exscan(comm, mine.data(), 3, some.data(), combine(), each);
    CHECK(some == before);
    some = mine;
    railpass::exscan(comm, inplace(some.data()), 3, combine(), each);
    CHECK(some == (rank == 0 ? mine : before));
    out = mine[0];
    railpass::exscan(comm, inplace(out), combine(), each);
    CHECK(out == (rank == 0 ? mine : before)[0]);
  }
}

TEMPLATE_TEST_CASE("reduce_scatter and reduce_scatter_block", "", int, railpass::affine,
                   std::string, railpass::particle) {
  using T = TestType;
  const boost::mpi::communicator comm = railpass::tuned_world();
  const int p = comm.size(), rank = comm.rank();
  std::vector<int> sizes;
  for (int k = 0; k < p; ++k) sizes.push_back((k + 1) % 3);
  const int total = std::accumulate(sizes.begin(), sizes.end(), 0);
  const int first = std::accumulate(sizes.begin(), sizes.begin() + rank, 0);
  const int n = sizes[std::size_t(rank)];
  const auto part = [](const std::vector<T>& all, int begin, int count) {
    return std::vector<T>(all.begin() + begin, all.begin() + begin + count);
  };
  const std::vector<T> mine = make_some<T>(10 * rank, total),
                       blocks = make_some<T>(10 * rank, 2 * p);
  const std::vector<T> result = part(combined<T>(0, p, total), first, n);
  const std::vector<T> all_blocks = combined<T>(0, p, 2 * p);
  const std::vector<T> block = part(all_blocks, 2 * rank, 2);
  for (int round = 0; round < rounds; ++round) {
    std::vector<T> out;
    railpass::reduce_scatter(comm, mine, sizes, out, combine(), each);
    CHECK(out == result);
    out.assign(result.size(), T{});
    railpass::reduce_scatter(comm, mine.data(), sizes, out.data(), combine(), each);
    CHECK(out == result);
    out = mine;
    railpass::reduce_scatter(comm, inplace(out.data()), sizes, combine(), each);
    CHECK(part(out, 0, n) == result);

    out.clear();
    railpass::reduce_scatter_block(comm, blocks, out, combine(), each);
    CHECK(out == block);
    out.assign(2, T{});
    railpass::reduce_scatter_block(comm, blocks.data(), 2, out.data(), combine(), each);
    CHECK(out == block);
    out = blocks;
    railpass::reduce_scatter_block(comm, inplace(out.data()), 2, combine(), each);
    CHECK(part(out, 0, 2) == block);
    T one{};
    railpass::reduce_scatter_block(comm, make_some<T>(10 * rank, p), one, combine(), each);
    CHECK(one == all_blocks[std::size_t(rank)]);
  }
}

TEST_CASE("operations of MPI, of Boost.MPI, of the standard library, and with state") {
  const boost::mpi::communicator comm = railpass::tuned_world();
  const int p = comm.size(), rank = comm.rank();
  constexpr int modulus = 97;
  const auto times = [](int a, int b) { return a * b % modulus; };
  int product = 1, before = 1;
  for (int k = 0; k < p; ++k) {
    if (k == rank) before = product;
    product = product * (k + 2) % modulus;
  }
  for (int round = 0; round < rounds; ++round) {
    CHECK(railpass::all_reduce(comm, rank, std::plus<int>(), each) == p * (p - 1) / 2);
    CHECK(railpass::all_reduce(comm, rank, boost::mpi::maximum<int>(), each) == p - 1);
    CHECK(railpass::all_reduce(comm, rank + 2, times, each) == product);
    CHECK(railpass::scan(comm, 1.5, std::plus<double>(), each) == 1.5 * (rank + 1));
    int out = 1;
    railpass::exscan(comm, rank + 2, out, times, each);
    CHECK(out == before);
    const std::vector<int> ones(std::size_t(p), 1);
    railpass::reduce_scatter_block(comm, ones, out, std::plus<int>(), each);
    CHECK(out == p);
    // No values: nothing is looked at and nothing is wrong.
    railpass::all_reduce(comm, static_cast<int*>(nullptr), 0, static_cast<int*>(nullptr),
                         std::plus<int>());
    railpass::scan(comm, static_cast<int*>(nullptr), 0, static_cast<int*>(nullptr), times);
  }
}
