// SPDX-License-Identifier: BSL-1.0
//
// Wrong programs: ranks whose calls differ in length, root, collective or order. MPI leaves the
// result undefined; with railpass no call hangs, or touches memory that does not belong to the
// call.
#include "lib/call/announced_call.hpp"
#include "railpass/mpi.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/records.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace railpass;
using namespace railpass::internal;
using railpass::test::records;

namespace {

constexpr int guard = 0x5a5a5a5a;

// A wrong program's memory: changes of bytes outside the call are detected afterwards.
struct buffers {
  std::vector<int> in, out;
  explicit buffers(int n) : in(std::size_t(n), 1), out(std::size_t(n), guard) {}
  bool is_untouched_from(int first) const {
    return std::all_of(out.begin() + first, out.end(), [](int x) { return x == guard; });
  }
};

struct program {
  MPI_Comm comm;
  int rank = 0, size = 1;
  call_options by{};

  explicit program(MPI_Comm c) : comm(c) {
    MPI_Comm_rank(c, &rank);
    MPI_Comm_size(c, &size);
  }
  // Counts of ints; each function returns how many of them contain its result.
  int broadcast(int n, int root) const {
    buffers b(2 * n + 64);
    const int code = mpi::broadcast(b.out.data(), n, MPI_INT, root, comm, by);
    CHECK(b.is_untouched_from(n));
    return code;
  }
  int gather(int n, int root) const {
    buffers b((2 * n + 64) * size);
    const int code = mpi::gather(b.in.data(), n, MPI_INT, b.out.data(), n, MPI_INT, root, comm, by);
    CHECK(b.is_untouched_from(rank == root ? n * size : 0));
    return code;
  }
  int all_gather(int n) const {
    buffers b((2 * n + 64) * size);
    const int code = mpi::all_gather(b.in.data(), n, MPI_INT, b.out.data(), n, MPI_INT, comm, by);
    CHECK(b.is_untouched_from(n * size));
    return code;
  }
  int all_to_all(int n) const {
    buffers b((2 * n + 64) * size);
    const int code = mpi::all_to_all(b.in.data(), n, MPI_INT, b.out.data(), n, MPI_INT, comm, by);
    CHECK(b.is_untouched_from(n * size));
    return code;
  }
  int all_gatherv(int mine, int others) const {
    buffers b((2 * (mine + others) + 64) * size);
    std::vector<int> counts(std::size_t(size), others), places(counts.size());
    counts[0] = mine;
    for (std::size_t i = 1; i < counts.size(); ++i) places[i] = places[i - 1] + counts[i - 1];
    return mpi::all_gatherv(b.in.data(), counts[std::size_t(rank)], MPI_INT, b.out.data(),
                            counts.data(), places.data(), MPI_INT, comm, by);
  }
  int gatherv(int sent, int expected) const {
    buffers b((2 * (sent + expected) + 64) * size);
    std::vector<int> counts(std::size_t(size), expected), places(counts.size());
    for (std::size_t i = 1; i < counts.size(); ++i) places[i] = places[i - 1] + expected;
    const int code = mpi::gatherv(b.in.data(), rank == 0 ? expected : sent, MPI_INT, b.out.data(),
                                  counts.data(), places.data(), MPI_INT, 0, comm, by);
    CHECK(b.is_untouched_from(rank == 0 ? expected * size : 0));
    return code;
  }
  int all_reduce(int n, MPI_Op op = MPI_SUM) const {
    buffers b(2 * n + 64);
    const int code = mpi::all_reduce(b.in.data(), b.out.data(), n, MPI_INT, op, comm, by);
    CHECK(b.is_untouched_from(n));
    return code;
  }
};

int class_of(int code) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  return error_class;
}

// After right calls, a wrong call, then calls in which a rank without an error waits for ranks with
// one. All must end natively; with `found`, some rank must report the error.
void run(const std::function<int(program&)>& right, const std::function<int(program&)>& wrong,
         std::string_view arm, bool found = true,
         const std::map<std::string, std::string>& values = {}) {
  // Never freed, because MPI libraries give leftover messages to the next communicator with the
  // same number.
  const communicator& comm = *new communicator(communicator::duplicate_of_world());
  if (comm.size() < 2) return;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD,
                          MPI_ERRORS_RETURN);  // where MPICH raises truncation errors
  static int programs = 0;                     // each line is logged once
  const std::string label = "unlike " + std::to_string(++programs);
  MPI_Comm_set_name(comm, label.c_str());
  mpi::configure(comm, "hang_report", "0.1");
  for (const auto& [name, value] : values) mpi::configure(comm, name, value);
  mpi::start_tuning(comm);
  program p(comm);
  p.by.arm = arm;
  const records said;
  for (int i = 0; i < 6; ++i) REQUIRE(right(p) == MPI_SUCCESS);
  if (mpi::last_arm(comm).starts_with("native")) return;  // for example without single copies
  MPI_Barrier(MPI_COMM_WORLD);                            // no rank is in a right call any more
  int code = wrong(p);
  p.by.arm = "ring";
  for (int i = 0; i < 3 && code == MPI_SUCCESS; ++i) code = p.all_reduce(64);
  const int error_class = class_of(code);
  // Rails end on all ranks, maybe before a rank hears the reason.
  if (!values.contains("rails"))
    CHECK((error_class == MPI_SUCCESS || error_class == MPI_ERR_TRUNCATE));
  int here = error_class == MPI_ERR_TRUNCATE, any = 0;
  MPI_Allreduce(&here, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (found) CHECK(any == 1);
  CHECK(said.any_has("communicator '" + label + "', ") == (error_class != MPI_SUCCESS));
}

// No message exceeds Open MPI's eager limit: Open MPI writes longer messages that do not fit behind
// the receive's memory, without railpass, too.
constexpr int lengths[] = {16, 900};

// An arm of each kind: messages, cells of shared memory, one copy by the kernel.
struct kinds {
  std::string_view messages;
  std::vector<std::string_view> all() const { return {messages, "shared_flat", "single_copy"}; }
};

}  // namespace

// The first test, because shared memory used by unlike calls is never reused.
TEST_CASE("a rank that leaves a call to the MPI library while others do not is found") {
  run([](program& p) { return p.broadcast(16, 0); },
      [](program& p) {
        if (p.rank == 0) p.by.arm = "native";
        return p.broadcast(16, 0);
      },
      "binomial");
}

TEST_CASE("lengths of a broadcast that differ are found, whoever has the longer one") {
  for (const std::string_view arm : kinds{"binomial"}.all())
    for (const int n : lengths)
      for (const bool root_longer : {true, false}) {
        CAPTURE(arm, n, root_longer);
        run([&](program& p) { return p.broadcast(n, 0); },
            [&](program& p) { return p.broadcast((p.rank == 0) == root_longer ? n : n / 2, 0); },
            arm);
      }
}

TEST_CASE("lengths of blocks that differ are found") {
  for (const int n : lengths) {
    for (const std::string_view arm : kinds{"linear"}.all())
      for (const bool root_longer : {true, false}) {
        CAPTURE(arm, n, root_longer);
        run([&](program& p) { return p.gather(n, 0); },
            [&](program& p) { return p.gather((p.rank == 0) == root_longer ? n : n / 2, 0); }, arm);
      }
    for (const std::string_view arm : kinds{"ring"}.all()) {
      CAPTURE(arm, n);
      run([&](program& p) { return p.all_gather(n); },
          [&](program& p) { return p.all_gather(p.rank == 0 ? n : n / 2); }, arm);
      run([&](program& p) { return p.all_gatherv(n, 2 * n); },
          [&](program& p) { return p.all_gatherv(p.rank == 0 ? n : n / 2, 2 * n); }, arm);
    }
    for (const std::string_view arm : kinds{"pairwise"}.all()) {
      CAPTURE(arm, n);
      run([&](program& p) { return p.all_to_all(n); },
          [&](program& p) { return p.all_to_all(p.rank == 0 ? n : n / 2); }, arm);
    }
    for (const std::string_view arm : {"linear", "single_copy"})
      for (const bool root_longer : {true, false}) {
        CAPTURE(arm, n, root_longer);
        run([&](program& p) { return p.gatherv(n, n); },
            [&](program& p) { return p.gatherv(root_longer ? n / 2 : n, root_longer ? n : n / 2); },
            arm);
      }
  }
}

TEST_CASE("lengths of a reduction that differ are found") {
  for (const std::string_view arm : kinds{"ring"}.all())
    for (const int n : lengths) {
      CAPTURE(arm, n);
      run([&](program& p) { return p.all_reduce(n); },
          [&](program& p) { return p.all_reduce(p.rank == 0 ? n : n / 2); }, arm);
    }
}

TEST_CASE("roots that differ do no harm, and are found where a rank waits for another's message") {
  for (const std::string_view arm : kinds{"binomial"}.all())
    for (const int n : lengths) {
      CAPTURE(arm, n);
      run([&](program& p) { return p.broadcast(n, 0); },
          [&](program& p) { return p.broadcast(n, p.rank == p.size - 1 ? 0 : 1); }, arm, false);
    }
}

TEST_CASE("ranks that make their calls in another order are told") {
  for (const std::string_view arm : {"shared_flat", "single_copy"})
    for (const int n : lengths) {
      CAPTURE(arm, n);
      run([&](program& p) { return p.all_reduce(n); },
          [&](program& p) {
            const bool late = p.rank == 0;
            const int first = late ? p.broadcast(n, 0) : p.all_reduce(n);
            if (first != MPI_SUCCESS) return first;
            return late ? p.all_reduce(n) : p.broadcast(n, 0);
          },
          arm);
    }
}

TEST_CASE("what was told of a call and never heard is nothing to the next communicator") {
  for (const std::string_view arm : {"shared_flat", "binomial"})
    for (const bool is_next : {false, true}) {
      CAPTURE(arm, is_next);
      const communicator comm = communicator::duplicate_of_world();
      mpi::configure(comm, "hang_report", "0.02");
      mpi::start_tuning(comm);
      program p(comm);
      p.by.arm = is_next ? "ring" : arm;
      // First the other ranks wait for rank 0, which waits for no rank; then rank 0 waits for them.
      if ((p.rank == 0) != is_next) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      CHECK((is_next ? p.all_reduce(64) : p.broadcast(64, 0)) == MPI_SUCCESS);
      MPI_Barrier(MPI_COMM_WORLD);
    }
}

// The rails end with that, for later communicators, too.
TEST_CASE("lengths that differ are found over rails") {
  run([](program& p) { return p.broadcast(900, 0); },
      [](program& p) { return p.broadcast(p.rank == 0 ? 900 : 450, 0); }, "binomial", true,
      {{"rails", "127.0.0.2"}});
}

TEST_CASE(
    "what a rank tells of its call is compared with the call of that number, if it is known") {
  const told_call theirs{.number = (std::int64_t{1} << 40) + 3,
                         .bytes = std::int64_t{5} << 33,
                         .root = 2,
                         .op = collective::gather};
  REQUIRE(told_call::of(theirs.packed()) == theirs);
  told_call::words wrong = theirs.packed();
  wrong.back() = 1000;
  CHECK(!told_call::of(wrong));
  told_calls own;
  CHECK(own.difference(1, theirs).empty());
  CHECK(own.difference(1, {}).empty());
  own.add(theirs);
  CHECK(own.difference(1, theirs).empty());
  told_call other = theirs;
  other.op = collective::barrier;
  other.bytes = 0;
  own.add(other);
  CHECK(
      own.difference(1, theirs) ==
      "rank 1 waits in call 1099511627779, which is gather of 42949672960 bytes with root 2 there "
      "and barrier here");
  ++other.number;
  own.add(other);
  CHECK(!own.difference(1, theirs).empty());
  for (int i = 0; i < 64; ++i, ++other.number) own.add(other);
  CHECK(own.difference(1, theirs).empty());
}
