// SPDX-License-Identifier: BSL-1.0
//
// The account of a process that leads communicators: while it is empty, communicators and contexts
// that begin stay native, and none of them takes much memory.
#include "railpass/select/lockstep/account.hpp"

#include "lib/runtime/process.hpp"
#include "railpass/mpi.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/stopped_clock.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <malloc.h>
#include <string>
#include <vector>

using namespace railpass;
using namespace railpass::internal;
using railpass::test::stopped_clock;

namespace {

constexpr double much_s = 1e9;

void call_all_reduce(MPI_Comm comm, int count) {
  std::vector<int> data(std::size_t(count), 1);
  CHECK(mpi::all_reduce(MPI_IN_PLACE, data.data(), count, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
  int size = 0;
  MPI_Comm_size(comm, &size);
  CHECK(data == std::vector<int>(data.size(), size));
}

/// Contexts of the communicator of that name, on its leader.
std::vector<select::context_statistics> contexts_of(const std::string& name) {
  std::vector<select::context_statistics> all = process::get()->statistics().contexts;
  std::erase_if(all, [&](const select::context_statistics& c) { return c.communicator != name; });
  return all;
}

bool waits(const select::context_statistics& c) {
  return c.reason.find("have paid for more tuning") != std::string::npos;
}

/// The account is empty on all ranks while it lives.
class empty_account {
 public:
  empty_account() { process::get()->account().spend(much_s); }
  ~empty_account() { process::get()->account().spend(-much_s); }
  empty_account(const empty_account&) = delete;
  empty_account& operator=(const empty_account&) = delete;
};

}  // namespace

TEST_CASE("a context that begins while the account is empty is decided once it is not") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  MPI_Comm_set_name(world, "waiting");
  stopped_clock clock;
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  const auto go_on = [&] {
    for (int i = 0; i < 32; ++i) clock.pass_in(1e-3, [&] { call_all_reduce(world, 100); });
  };
  {
    const empty_account none_left;
    go_on();
    CHECK(mpi::last_arm(world) == "native");
    if (world.rank() == 0) {
      const auto contexts = contexts_of("waiting");
      REQUIRE(contexts.size() == 1);
      CHECK(waits(contexts[0]));
      CHECK(contexts[0].arms.size() == 1);
    }
  }
  for (int i = 0; i < 8; ++i) go_on();
  if (world.rank() == 0) {
    const auto contexts = contexts_of("waiting");
    REQUIRE(contexts.size() == 1);
    CHECK(!waits(contexts[0]));
    CHECK(contexts[0].arms.size() > 1);
    CHECK(contexts[0].calls == 9 * 32);
  }
}

TEST_CASE("whoever names another policy does not wait for the account") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  MPI_Comm_set_name(world, "asked for");
  mpi::configure(world, "policy", "round_robin");
  const empty_account none_left;
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  for (int i = 0; i < 32; ++i) call_all_reduce(world, 100);
  if (world.rank() == 0) {
    const auto contexts = contexts_of("asked for");
    REQUIRE(contexts.size() == 1);
    CHECK(!waits(contexts[0]));
  }
}

TEST_CASE("a communicator is not set up while the account is empty") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  MPI_Comm_set_name(world, "not set up");
  stopped_clock clock;
  const auto calls = [&](int number) {
    for (int i = 0; i < number; ++i) clock.pass_in(1e-3, [&] { call_all_reduce(world, 10'000); });
  };
  {
    const empty_account none_left;
    calls(20);
    CHECK(contexts_of("not set up").empty());
  }
  calls(100);
  if (world.rank() == 0) CHECK(!contexts_of("not set up").empty());
}

namespace {

/// What MPI and railpass allocate for each of so many communicators, by its calls.
template <class Call>
double bytes_per_communicator(int number, const Call& call) {
  const communicator first = communicator::duplicate_of_world();
  std::deque<communicator> others;
  for (int i = 0; i < number; ++i) {
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    others.emplace_back(copy);
  }
  const auto bytes_in_use = [] {
    const struct mallinfo2 all = mallinfo2();
    return double(all.uordblks) + double(all.hblkhd);
  };
  call(first);
  const double before = bytes_in_use();
  for (const communicator& one : others) call(one);
  return (bytes_in_use() - before) / number;
}

void call_ten_sizes(const communicator& one) {
  for (int count = 1; count <= 512; count *= 2) call_all_reduce(one, count);
}

}  // namespace

TEST_CASE("many communicators with an empty account take little memory") {
  const empty_account none_left;
  const double bytes = bytes_per_communicator(16, [](const communicator& one) {
    REQUIRE(mpi::start_tuning(one) == MPI_SUCCESS);
    call_ten_sizes(one);
  });
  CHECK(bytes < 100e3);
}

TEST_CASE("communicators with the policy native take little memory") {
  const double bytes = bytes_per_communicator(16, [](const communicator& one) {
    mpi::configure(one, "policy", "native");
    REQUIRE(mpi::start_tuning(one) == MPI_SUCCESS);
    call_ten_sizes(one);
  });
  CHECK(bytes < 100e3);
}

TEST_CASE("communicators share the scratch memory of long calls") {
  constexpr int count = 1 << 18;
  const double bytes = bytes_per_communicator(8, [](const communicator& one) {
    REQUIRE(mpi::start_tuning(one) == MPI_SUCCESS);
    std::vector<int> data(count, 1);
    const auto arm = collect(use("recursive_doubling"));
    CHECK(mpi::all_reduce(MPI_IN_PLACE, data.data(), count, MPI_INT, MPI_SUM, one, arm) ==
          MPI_SUCCESS);
    CHECK(data == std::vector<int>(count, one.size()));
  });
  CHECK(bytes < count * sizeof(int) / 4);
}

TEST_CASE("communicators share the memory of packed copies") {
  const int bytes_per_block = (1 << 20) / communicator::duplicate_of_world().size();
  const double bytes = bytes_per_communicator(8, [&](const communicator& one) {
    REQUIRE(mpi::start_tuning(one) == MPI_SUCCESS);
    std::vector<char> data(std::size_t(bytes_per_block) * std::size_t(one.size()),
                           char(one.rank()));
    const auto arm = collect(use("scattered"));
    CHECK(mpi::all_to_all(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data.data(), bytes_per_block,
                          MPI_CHAR, one, arm) == MPI_SUCCESS);
    CHECK(data.back() == char(one.size() - 1));
  });
  CHECK(bytes < (1 << 20) / 4);
}
