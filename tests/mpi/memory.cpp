// SPDX-License-Identifier: BSL-1.0
//
// Calls that run out of memory: MPI_ERR_NO_MEM through the error handler if an arm needs memory;
// the MPI library's own collective if only the tuning does. No exception leaves a call.
#include "lib/group/resource_book.hpp"
#include "railpass/mpi.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/records.hpp"
#include "support/replaced_new.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace {

std::atomic<std::size_t> largest_allocation{std::size_t(-1)};  // larger allocations fail

}  // namespace

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes > largest_allocation) throw std::bad_alloc();
  return aligned_memory(bytes, alignment);
}

using namespace railpass;
using namespace railpass::internal;

namespace {

// During its life, only small allocations succeed.
struct shortage {
  explicit shortage(std::size_t largest) { largest_allocation = largest; }
  ~shortage() { largest_allocation = std::size_t(-1); }
  shortage(const shortage&) = delete;
  shortage& operator=(const shortage&) = delete;
};

int handled = 0;  // calls of the error handler
int handled_class = MPI_SUCCESS;

void count_error(MPI_Comm*, int* code, ...) {
  ++handled;
  MPI_Error_class(*code, &handled_class);
}

struct counting_handler {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  explicit counting_handler(MPI_Comm comm) {
    handled = 0;
    handled_class = MPI_SUCCESS;
    MPI_Comm_create_errhandler(count_error, &handler);
    MPI_Comm_set_errhandler(comm, handler);
  }
  ~counting_handler() { MPI_Errhandler_free(&handler); }
  counting_handler(const counting_handler&) = delete;
  counting_handler& operator=(const counting_handler&) = delete;
};

std::string text_of(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return text.data();
}
std::string name_of(MPI_Comm comm) {
  std::array<char, MPI_MAX_OBJECT_NAME> text{};
  int length = 0;
  MPI_Comm_get_name(comm, text.data(), &length);
  return text.data();
}

bool is_no_memory(int code) {
  int kind = MPI_SUCCESS;
  MPI_Error_class(code, &kind);
  return kind == MPI_ERR_NO_MEM;
}

}  // namespace

// After a failure calls may fail, but never be wrong, and become native on all ranks in the same
// call: otherwise ranks would wait for each other here.
template <class Call>
void check_that_calls_become_native(MPI_Comm comm, const Call& call) {
  int native = 0;
  for (int again = 0; again < 1000 && native < 3; ++again) {
    const bool good = call();
    if (good) CHECK(mpi::last_arm(comm) == "native");
    native = good ? native + 1 : 0;
  }
  CHECK(native == 3);
}

TEST_CASE("an arm without its scratch memory is MPI_ERR_NO_MEM; soon calls are native and right") {
  for (const char* arm : {"ring", "allgather_reduce"}) {
    CAPTURE(arm);
    const communicator world = communicator::duplicate_of_world();
    if (world.size() < 2) return;
    const counting_handler handler(world);
    REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
    std::vector<double> mine(100'000, 1.0), sum(mine.size(), -1.0);
    const auto call = [&] {
      return mpi::all_reduce(mine.data(), sum.data(), int(mine.size()), MPI_DOUBLE, MPI_SUM, world,
                             collect(use(arm)));
    };
    int code = MPI_SUCCESS;
    {
      const shortage only(40'000);
      code = call();
    }
    CHECK(is_no_memory(code));
    CHECK(handled == 1);
    CHECK(handled_class == MPI_ERR_NO_MEM);
    CHECK(mine == std::vector<double>(mine.size(), 1.0));
    check_that_calls_become_native(world, [&] {
      if (call() != MPI_SUCCESS) return false;
      CHECK(sum == std::vector<double>(sum.size(), double(world.size())));
      return true;
    });
  }
}

TEST_CASE("what one rank has no memory for is an error on all that need it, and nobody hangs") {
  for (const char* arm : {"ring", "recursive_doubling", "allgather_reduce"}) {
    CAPTURE(arm);
    const communicator world = communicator::duplicate_of_world();
    if (world.size() < 2) return;
    MPI_Comm_set_name(world, arm);  // each message is recorded once
    const counting_handler handler(world);
    REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
    const bool last = world.rank() == world.size() - 1;
    std::vector<double> mine(100'000, 1.0), sum(mine.size(), -1.0);
    const auto call = [&] {
      return mpi::all_reduce(mine.data(), sum.data(), int(mine.size()), MPI_DOUBLE, MPI_SUM, world,
                             collect(use(arm)));
    };
    int code = MPI_SUCCESS;
    const test::records log;
    {
      const shortage only(last ? 40'000 : std::size_t(-1));
      code = call();
    }
    CHECK(is_no_memory(code) == last);
    CHECK(code != MPI_SUCCESS);  // in these all ranks wait for all
    // The line for the user names communicator, collective and reason; MPI has a text, too.
    const std::string reason = last ? "out of memory" : "another rank has failed in a call";
    CHECK(log.any_has("communicator '" + name_of(world) + "', all_reduce: "));
    CHECK(log.any_has(reason));
    if (!last) CHECK(text_of(code).starts_with("railpass: " + reason));
    check_that_calls_become_native(world, [&] {
      if (call() != MPI_SUCCESS) return false;
      CHECK(sum == std::vector<double>(sum.size(), double(world.size())));
      return true;
    });
  }
}

TEST_CASE("a packed copy that one rank has no memory for is that rank's MPI_ERR_NO_MEM") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  const counting_handler handler(world);
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  MPI_Datatype holed = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(MPI_INT, 0, 8, &holed);
  MPI_Type_commit(&holed);
  // Small enough to be sent without the last rank, which needs a packed copy. Ranks that wait when
  // the copy fails hear of the failure, and may fail, too.
  constexpr int count = 500;
  const bool last = world.rank() == world.size() - 1;
  std::vector<int> data(2 * count, world.rank() == 0 ? 5 : 0);
  int code = MPI_SUCCESS;
  {
    const shortage only(last ? 1500 : std::size_t(-1));
    code = mpi::broadcast(data.data(), count, last ? holed : MPI_INT, 0, world,
                          collect(use("linear")));
  }
  CHECK(is_no_memory(code) == last);
  CHECK(handled == (code == MPI_SUCCESS ? 0 : 1));
  if (last) CHECK(data == std::vector<int>(data.size(), 0));
  if (code == MPI_SUCCESS)
    CHECK(std::vector<int>(data.begin(), data.begin() + count) == std::vector<int>(count, 5));
  MPI_Type_free(&holed);
}

TEST_CASE("who has left the others makes none wait that asks for shared memory") {
  std::vector<std::unique_ptr<communicator>> live;
  const auto add = [&] {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    live.push_back(std::make_unique<communicator>(made));
    REQUIRE(mpi::start_tuning(*live.back()) == MPI_SUCCESS);
  };
  for (int i = 0; i < resource_book::most_slots; ++i) add();
  add();  // without a slot: it asks for one in calls 1000, 3000 and so on
  const communicator& last_one = *live.back();
  if (last_one.size() < 2) return;
  const counting_handler handler(last_one);
  int data = 0;
  const auto call = [&](const call_options& options) {
    return mpi::broadcast(&data, 1, MPI_INT, 0, last_one, options);
  };
  for (int number = 1; number < 999; ++number) CHECK(call(collect(use("linear"))) == MPI_SUCCESS);
  {
    // A rank that cannot determine the arm of a call does not know the decision of the other ranks.
    const call_options named = collect(use("binomial"));
    const shortage any(last_one.rank() == last_one.size() - 1 ? 0 : std::size_t(-1));
    CHECK((call(named) == MPI_SUCCESS || handled > 0));
  }
  CHECK(call(collect(use("linear"))) != MPI_SUCCESS);
  for (int again = 0; again < 3; ++again) CHECK(call(collect(use("native"))) != MPI_SUCCESS);
}

TEST_CASE("a leader without memory to learn leaves all ranks with right results") {
  const communicator world = communicator::duplicate_of_world();
  const counting_handler handler(world);
  mpi::configure(world, "policy", "knowledge_gradient");
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  const auto call = [&](int count) {
    std::vector<int> data(std::size_t(count), world.rank() + 1);
    int code = MPI_SUCCESS;
    {
      // All ranks have their memory for calls by now; a policy often needs more.
      const shortage only(world.rank() == 0 ? 64 : std::size_t(-1));
      code = mpi::all_reduce(MPI_IN_PLACE, data.data(), count, MPI_INT, MPI_SUM, world);
    }
    CHECK(code == MPI_SUCCESS);
    CHECK(data == std::vector<int>(data.size(), world.size() * (world.size() + 1) / 2));
  };
  // Contexts without memory for a policy stay native. The list of contexts has room by then.
  for (int count = 1; count < 32; count *= 2) {
    int one = 0;
    std::vector<int> warm(std::size_t(count), 0);
    CHECK(mpi::broadcast(warm.data(), count, MPI_INT, 0, world) == MPI_SUCCESS);
    CHECK(mpi::all_reduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_SUM, world) == MPI_SUCCESS);
  }
  for (int again = 0; again < 40; ++again) call(16);
  CHECK(mpi::last_arm(world) == "native");
  CHECK(handled == 0);
}
