// SPDX-License-Identifier: BSL-1.0
//
// The facade of the collectives with a block per rank, of reduce and of scan: values, arrays,
// vectors, types that are serialised, operations of the user.
#include "railpass/all_gather.hpp"
#include "railpass/all_to_all.hpp"
#include "railpass/gather.hpp"
#include "railpass/reduce.hpp"
#include "railpass/scan.hpp"
#include "railpass/scatter.hpp"
#include "support/catch.hpp"

#include <boost/mpi.hpp>
#include <boost/serialization/string.hpp>

#include <functional>
#include <string>
#include <vector>

namespace {

boost::mpi::communicator tuned() {
  boost::mpi::communicator all, comm(all, boost::mpi::comm_duplicate);
  railpass::mpi::start_tuning(comm);
  return comm;
}
std::string name(int i) { return std::string(std::size_t(i % 5 + 1), char('a' + i)); }

}  // namespace

TEST_CASE("gather, scatter, all_gather and all_to_all of values and arrays") {
  const boost::mpi::communicator comm = tuned();
  const int p = comm.size(), r = comm.rank(), root = p - 1;
  std::vector<int> all;
  railpass::gather(comm, r + 1, all, root, railpass::use("binomial"));
  if (r == root)
    for (int k = 0; k < p; ++k) CHECK(all[std::size_t(k)] == k + 1);
  if (p > 1) CHECK(railpass::mpi::last_arm(comm) == "binomial");

  const int pair[2] = {r, -r};
  std::vector<int> pairs;
  if (r == root)
    railpass::gather(comm, pair, 2, pairs, root);
  else
    railpass::gather(comm, pair, 2, root);
  if (r == root)
    for (int k = 0; k < p; ++k) CHECK(pairs[std::size_t(2 * k + 1)] == -k);

  int one = -1;
  std::vector<int> squares;
  for (int k = 0; k < p; ++k) squares.push_back(k * k);
  railpass::scatter(comm, squares, one, root);
  CHECK(one == r * r);
  int two[2] = {-1, -1};
  if (r == root)
    railpass::scatter(comm, pairs.data(), two, 2, root);
  else
    railpass::scatter(comm, two, 2, root);
  CHECK(two[1] == -r);

  railpass::all_gather(comm, r * 3, all, railpass::use("ring"));
  for (int k = 0; k < p; ++k) CHECK(all[std::size_t(k)] == 3 * k);
  std::vector<int> out, in;
  for (int k = 0; k < p; ++k) out.push_back(100 * r + k);
  railpass::all_to_all(comm, out, in);
  for (int k = 0; k < p; ++k) CHECK(in[std::size_t(k)] == 100 * k + r);
}

TEST_CASE("reduce and scan with the library's and the user's operations") {
  const boost::mpi::communicator comm = tuned();
  const int p = comm.size(), r = comm.rank(), root = p / 2;
  int sum = -1;
  if (r == root)
    railpass::reduce(comm, r + 1, sum, std::plus<int>(), root);
  else
    railpass::reduce(comm, r + 1, std::plus<int>(), root);
  if (r == root) CHECK(sum == p * (p + 1) / 2);
  // Keeps the right operand: associative, and wrong in any order but that of the ranks.
  const auto right = [](int, int b) { return b; };
  std::vector<int> mine(100, r), last(100, -1);
  railpass::reduce(comm, mine.data(), 100, last.data(), right, root);
  if (r == root) CHECK(last == std::vector<int>(100, p - 1));
  CHECK(railpass::scan(comm, r + 1, std::plus<int>()) == (r + 1) * (r + 2) / 2);
  railpass::scan(comm, mine.data(), 100, last.data(), right, railpass::use("pipeline"));
  CHECK(last == std::vector<int>(100, r));
}

TEST_CASE("values without an MPI datatype") {
  const boost::mpi::communicator comm = tuned();
  const int p = comm.size(), r = comm.rank();
  std::vector<std::string> all, out, in;
  railpass::gather(comm, name(r), all, 0);
  if (r == 0)
    for (int k = 0; k < p; ++k) CHECK(all[std::size_t(k)] == name(k));
  std::string mine;
  railpass::scatter(comm, all, mine, 0);
  CHECK(mine == name(r));
  railpass::all_gather(comm, name(r), all);
  for (int k = 0; k < p; ++k) {
    CHECK(all[std::size_t(k)] == name(k));
    out.push_back(name(r) + name(k));
  }
  railpass::all_to_all(comm, out, in);
  for (int k = 0; k < p; ++k) CHECK(in[std::size_t(k)] == name(k) + name(r));
  CHECK(railpass::scan(comm, name(r), std::plus<std::string>()).substr(0, name(0).size()) ==
        name(0));
}
