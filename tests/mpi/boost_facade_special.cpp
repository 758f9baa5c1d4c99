// SPDX-License-Identifier: BSL-1.0
//
// What is special in the facade: archives, skeletons and content, options, barriers, errors.
#include "railpass/collectives.hpp"
#include "support/catch.hpp"
#include "support/facade_values.hpp"

#include <boost/mpi/collectives.hpp>
#include <boost/mpi/skeleton_and_content.hpp>
#include <boost/serialization/list.hpp>
#include <boost/serialization/map.hpp>
#include <boost/serialization/split_member.hpp>

#include <functional>
#include <list>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace mpi = boost::mpi;

namespace {

template <class Call>
void check_error(const Call& call, const std::string& expected) {
  std::string said;
  try {
    call();
  } catch (const railpass::error& problem) {
    said = problem.what();
  }
  CHECK(said == expected);
}

// Cannot be serialised by the rank that it names.
struct refusing {
  int by = -1, rank = -1;
  template <class Archive>
  void save(Archive&, unsigned) const {
    if (by == rank) throw std::runtime_error("refused");
  }
  template <class Archive>
  void load(Archive&, unsigned) {}
  BOOST_SERIALIZATION_SPLIT_MEMBER()
};

}  // namespace

TEST_CASE("if a rank cannot serialise its values, all ranks hear of it") {
  const mpi::communicator comm = railpass::tuned_world();
  const int p = comm.size();
  if (p == 1) return;
  const auto check_refused = [&](int by, const auto& call) {
    std::string said;
    try {
      call(refusing{by, comm.rank()});
    } catch (const std::exception& problem) {
      said = problem.what();
    }
    CHECK(said == (comm.rank() == by ? "refused" : "a rank could not serialise its values"));
  };
  std::vector<refusing> out(std::size_t(p), refusing{});
  for (int round = 0; round < 20; ++round) {
    check_refused(p - 1, [&](refusing value) { railpass::broadcast(comm, value, p - 1); });
    check_refused(p - 1, [&](refusing value) { railpass::gather(comm, value, out, 0); });
    check_refused(0, [&](refusing value) { railpass::all_gather(comm, value, out); });
    check_refused(0, [&](refusing value) {
      railpass::scatter(comm, std::vector<refusing>(std::size_t(p), value), value, 0);
    });
    check_refused(p - 1, [&](refusing value) {
      railpass::all_to_all(comm, std::vector<refusing>(std::size_t(p), value), out);
    });
  }
}

TEST_CASE("archives, skeletons and content are broadcast") {
  const mpi::communicator comm = railpass::tuned_world();
  for (int root = 0; root < comm.size(); ++root) {
    const bool at_root = comm.rank() == root;
    if (at_root) {
      mpi::packed_oarchive archive(comm);
      archive << std::string("packed") << 42;
      railpass::broadcast(comm, archive, root);
    } else {
      mpi::packed_iarchive archive(comm);
      railpass::broadcast(comm, archive, root);
      std::string word;
      int number = 0;
      archive >> word >> number;
      CHECK(word == "packed");
      CHECK(number == 42);
    }

    std::list<int> numbers(at_root ? 50 : 0, 1);
    railpass::broadcast(comm, mpi::skeleton(numbers), root);
    CHECK(numbers.size() == 50);
    for (int value = 0; value < 3; ++value) {
      if (at_root) numbers.assign(50, value);
      const char* const arms[] = {"native", "binomial", "chain"};
      railpass::broadcast(comm, mpi::get_content(numbers), root, railpass::use(arms[value]));
      CHECK(numbers == std::list<int>(50, value));
    }
    const mpi::content content = mpi::get_content(numbers);
    numbers.assign(50, at_root ? 9 : 0);
    railpass::broadcast(comm, content, root);
    CHECK(numbers == std::list<int>(50, 9));
    mpi::skeleton_proxy<std::list<int>> proxy(numbers);
    railpass::broadcast(comm, proxy, root);
    if (at_root) {
      mpi::packed_skeleton_oarchive archive(comm);
      archive << numbers;
      railpass::broadcast(comm, archive, root);
    } else {
      mpi::packed_skeleton_iarchive archive(comm);
      railpass::broadcast(comm, archive, root);
      std::list<int> like;
      archive >> like;
      CHECK(like.size() == 50);
    }
  }
}

TEST_CASE("after a using declaration, calls without railpass:: are ours, too") {
  const mpi::communicator comm = railpass::tuned_world();
  using railpass::broadcast;
  using railpass::gather;
  std::map<std::string, railpass::particle> cloud;
  if (comm.rank() == 0) cloud["b"] = {"beta", std::vector<double>(5000, 7)};
  broadcast(comm, cloud, 0, railpass::use("chain"), railpass::segment_bytes(1024));
  CHECK(cloud.at("b").history == std::vector<double>(5000, 7));
  if (comm.size() > 1) CHECK(railpass::mpi::last_arm(comm) == "chain+segment_bytes=1KiB");
  std::vector<int> all;
  gather(comm, comm.rank(), all, 0, railpass::use("binomial"));
  if (comm.size() > 1) CHECK(railpass::mpi::last_arm(comm) == "binomial");
}

TEST_CASE("serialised values go by the arm that is asked for") {
  const mpi::communicator comm = railpass::tuned_world();
  const std::string mine = railpass::make<std::string>(comm.rank());
  std::vector<std::string> all;
  railpass::all_gather(comm, mine, all, railpass::use("ring"));
  CHECK(all == railpass::make_some<std::string>(0, comm.size()));
  if (comm.size() > 1) CHECK(railpass::mpi::last_arm(comm) == "ring");
  std::vector<std::string> gathered;
  railpass::gather(comm, mine, gathered, 0, railpass::use("windowed"));
  if (comm.size() > 1) CHECK(railpass::mpi::last_arm(comm).substr(0, 8) == "windowed");
  railpass::all_to_all(comm, all, gathered, railpass::use("pairwise"));
  if (comm.size() > 1) CHECK(railpass::mpi::last_arm(comm).substr(0, 8) == "pairwise");
  CHECK(gathered == std::vector<std::string>(all.size(), mine));
}

TEST_CASE("barriers, with options") {
  const mpi::communicator comm = railpass::tuned_world();
  for (const std::string arm : {"native", "linear", "dissemination", "recursive_doubling"}) {
    railpass::barrier(comm, railpass::use(arm));
    if (comm.size() > 1) CHECK(railpass::mpi::last_arm(comm) == arm);
  }
  railpass::barrier(comm);
}

TEST_CASE("errors of MPI are Boost.MPI's exceptions") {
  const mpi::communicator comm = railpass::tuned_world();
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const int nobody = comm.size();
  int value = 0;
  std::vector<int> values(std::size_t(comm.size()));
  CHECK_THROWS_AS(railpass::broadcast(comm, value, nobody), mpi::exception);
  CHECK_THROWS_AS(railpass::reduce(comm, 1, value, std::plus<int>(), nobody), mpi::exception);
  CHECK_THROWS_AS(railpass::gather(comm, 1, values, nobody), mpi::exception);
  CHECK_THROWS_AS(railpass::scatter(comm, values, value, nobody), mpi::exception);
  CHECK_THROWS_AS(railpass::all_gather(comm, &value, -1, values.data()), mpi::exception);
}

TEST_CASE("wrong arguments are railpass's errors, and name the argument") {
  const mpi::communicator comm = railpass::tuned_world();
  const int p = comm.size(), rank = comm.rank();
  const std::string ranks = std::to_string(p), fewer = std::to_string(p - 1);
  const std::vector<int> few(std::size_t(p) - 1, 1), enough(std::size_t(p), 1);
  std::vector<int> out;
  int value = 0;
  check_error([&] { railpass::gather(comm, 1, rank); },
              "railpass::gather: this form is for the other ranks; the root has more arguments");
  check_error([&] { railpass::reduce(comm, 1, std::plus<int>(), rank); },
              "railpass::reduce: this form is for the other ranks; the root has more arguments");
  check_error([&] { railpass::scatterv(comm, &value, 1, rank); },
              "railpass::scatterv: this form is for the other ranks; the root has more arguments");
  check_error([&] { railpass::scatter(comm, mpi::inplace(&value), 1, rank + 1); },
              "railpass::scatter: only the root can be in place; the other ranks take the form "
              "without");
  check_error(
      [&] { railpass::all_gatherv(comm, enough, out, few); },
      "railpass::all_gatherv: 'sizes' has " + fewer + " elements; expected at least " + ranks);
  check_error([&] { railpass::all_to_allv(comm, enough, enough, few, out, enough, enough); },
              "railpass::all_to_allv: 'displacements' has " + fewer +
                  " elements; expected at least " + ranks);
  check_error([&] { railpass::all_to_all(comm, few, out); },
              "railpass::all_to_all: 'in' has " + fewer + " elements; expected at least " + ranks);
  check_error([&] { railpass::scatter(comm, few, value, rank); },
              "railpass::scatter: 'in' has " + fewer + " elements; expected at least " + ranks);
  if (p > 1)
    check_error([&] { railpass::reduce_scatter_block(comm, few, out, std::plus<int>()); },
                "railpass::reduce_scatter_block: 'in' has " + fewer +
                    " elements; expected the same number for each of " + ranks + " ranks");
  const std::vector<int> many(std::size_t(p), 2000000000);
  if (p > 2)
    check_error([&] { railpass::all_gatherv(comm, &value, &value, many); },
                "railpass::all_gatherv: 4000000000 elements; MPI counts to 2147483647");
}

TEST_CASE("archives that are too long together are an error for all who know the lengths") {
  using railpass::detail::archives;
  const std::string said =
      "serialised values have 2400000000 bytes; at most 2147483647 can be sent in one call";
  CHECK(railpass::detail::archive_count(2147483647) == 2147483647);
  check_error([] { railpass::detail::archive_count(2400000000); }, said);
  check_error([] { archives({1200000000, 1200000000}); }, said);
  check_error([] { railpass::detail::archive_count(-2400000000); }, said);
  const archives longest({2147483647, 0});
  CHECK(longest.announced({}, 2) == std::vector<std::int64_t>{2147483647, 0});
  CHECK(longest.offsets()[1] == 2147483647);
}
