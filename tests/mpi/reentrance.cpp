// SPDX-License-Identifier: BSL-1.0
//
// Calls of railpass from inside what MPI calls back: attribute callbacks, error handlers, log
// handlers, operations. Each makes calls on other communicators than the one it is called for.
#include "railpass/mpi.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"

#include <string>
#include <vector>

using namespace railpass;

namespace {

// What the callbacks use, and what they found.
MPI_Comm other = MPI_COMM_NULL;
int called = 0, wrong = 0;

struct callbacks {
  explicit callbacks(MPI_Comm comm) {
    other = comm;
    called = wrong = 0;
  }
  ~callbacks() { other = MPI_COMM_NULL; }
  callbacks(const callbacks&) = delete;
  callbacks& operator=(const callbacks&) = delete;
};

bool works(MPI_Comm comm) {
  int rank = 0, size = 0, sum = -1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  return mpi::all_reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS &&
         sum == size * (size - 1) / 2 && mpi::barrier(comm) == MPI_SUCCESS;
}
void call_other() {
  ++called;
  if (!works(other)) ++wrong;
}

int on_copy(MPI_Comm, int, void*, void* value, void* copied, int* flag) {
  call_other();
  *static_cast<void**>(copied) = value;
  *flag = 1;
  return MPI_SUCCESS;
}
int on_delete(MPI_Comm, int, void*, void*) {
  call_other();
  return MPI_SUCCESS;
}
void on_error(MPI_Comm*, int*, ...) { call_other(); }

void sum_and_call(void* left, void* right, int* length, MPI_Datatype*) {
  call_other();
  for (int i = 0; i < *length; ++i) static_cast<int*>(right)[i] += static_cast<const int*>(left)[i];
}

}  // namespace

TEST_CASE("attribute callbacks call railpass while communicators are duplicated and freed") {
  const communicator world = communicator::duplicate_of_world();
  const callbacks of_world(world);
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(on_copy, on_delete, &key, nullptr);
  int value = 0, expected = 0;
  for (const bool before : {true, false}) {  // railpass' own attribute
    const communicator first = communicator::duplicate_of_world();
    if (before) MPI_Comm_set_attr(first, key, &value);
    mpi::configure(first, "policy", "round_robin");
    mpi::start_tuning(first);
    for (int call = 0; call < 13; ++call) CHECK(works(first));
    if (!before) MPI_Comm_set_attr(first, key, &value);
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(first, &copy);
    CHECK(called == ++expected);
    {
      const communicator second(copy);
      for (int call = 0; call < 13; ++call) CHECK(works(second));
    }
    CHECK(called == ++expected);
    CHECK(works(first));
    MPI_Comm_delete_attr(first, key);
    CHECK(called == ++expected);
    MPI_Comm_set_attr(first, key, &value);
    ++expected;  // first is freed
  }
  CHECK(called == expected);
  CHECK(wrong == 0);
  MPI_Comm_free_keyval(&key);
}

TEST_CASE("an error handler calls railpass, on another communicator and on its own") {
#ifdef MPICH
  // MPICH 4.0 calls error handlers with its lock held: with MPI_THREAD_MULTIPLE any call of MPI
  // from there ends the program.
  return;
#endif
  const communicator world = communicator::duplicate_of_world();
  const communicator failing = communicator::duplicate_of_world();
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  REQUIRE(mpi::start_tuning(failing) == MPI_SUCCESS);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(on_error, &handler);
  MPI_Comm_set_errhandler(failing, handler);
  MPI_Errhandler_free(&handler);
  int expected = 0;
  for (const MPI_Comm used : {MPI_Comm(world), MPI_Comm(failing)}) {
    const callbacks of_used(used);
    expected = 0;
    int value = 0;
    for (int again = 0; again < 5; ++again) {
      CHECK(mpi::broadcast(&value, 1, MPI_INT, failing.size(), failing) != MPI_SUCCESS);
      CHECK(called == ++expected);
      CHECK(works(failing));
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("an operation calls railpass") {
  const communicator world = communicator::duplicate_of_world();
  MPI_Comm self = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_SELF, &self);
  const communicator own(self);
  const callbacks of_own(own);
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(sum_and_call, 1, &op);
  for (const char* arm : {"native", "recursive_doubling", "ring", "reduce_broadcast"}) {
    std::vector<int> mine(1000, world.rank() + 1), sum(mine.size());
    CHECK(mpi::all_reduce(mine.data(), sum.data(), int(mine.size()), MPI_INT, op, world,
                          collect(use(arm))) == MPI_SUCCESS);
    CHECK(sum == std::vector<int>(sum.size(), world.size() * (world.size() + 1) / 2));
  }
  // With this arm and a power of two ranks, every rank applies the operation as often as the
  // others: so all of them meet in the inner collective, which is tuned, too.
  if (world.size() > 1 && (world.size() & (world.size() - 1)) == 0) {
    const communicator inner = communicator::duplicate_of_world();
    REQUIRE(mpi::start_tuning(inner) == MPI_SUCCESS);
    other = inner;
    for (int again = 0; again < 20; ++again) {
      int mine = world.rank(), sum = -1;
      CHECK(mpi::all_reduce(&mine, &sum, 1, MPI_INT, op, world,
                            collect(use("recursive_doubling"))) == MPI_SUCCESS);
      CHECK(sum == world.size() * (world.size() - 1) / 2);
    }
  }
  if (world.size() > 1) CHECK(called > 0);
  CHECK(wrong == 0);
  MPI_Op_free(&op);
}

TEST_CASE("a log handler calls railpass, and that has something to record") {
  const communicator world = communicator::duplicate_of_world();
  const communicator inner = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  const callbacks of_inner(inner);
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  REQUIRE(mpi::start_tuning(inner) == MPI_SUCCESS);
  static int depth = 0, records = 0;
  depth = records = 0;
  set_log_handler([](const char*, void*) {
    ++records;
    if (depth++ == 0) {
      int value = 0;
      mpi::broadcast(&value, 1, MPI_INT, 0, other, collect(use("carrier_pigeon")));
      call_other();
    }
    --depth;
  });
  int value = 0;
  CHECK(mpi::broadcast(&value, 1, MPI_INT, 0, world, collect(use("semaphore"))) == MPI_SUCCESS);
  set_log_handler(nullptr);
  CHECK(records == 2);
  CHECK(called == 1);
  CHECK(wrong == 0);
}
