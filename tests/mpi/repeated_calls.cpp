// SPDX-License-Identifier: BSL-1.0
//
// Calls with the same arguments again and again, whose meaning is found out once: with buffers that
// move, and where a handle has become another one's.
#include "collectives/registry.hpp"
#include "railpass/mpi.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/host_facts.hpp"

#include <algorithm>
#include <string>
#include <vector>

using namespace railpass;

namespace {

// The blocks of one call: `count` ints at each rank's place, told apart by rank, call and place.
int value(int rank, int call, int k) { return 1000 * rank + 10 * call + k; }

// As often as learning, merges and settled calls need, with buffers that lie elsewhere each time.
constexpr int calls = 60, room = 64, count = 3;

struct buffers {
  std::vector<int> memory = std::vector<int>(16 * room, -1);
  int call = 0;
  // Both move together, now and then apart.
  int* in() { return memory.data() + call % 7; }
  int* out() { return memory.data() + (call % 9 == 8 ? 5 : 4) * room + call % 7; }
  void fill(int* from, int rank, int n) {
    for (int k = 0; k < n; ++k) from[k] = value(rank, call, k);
  }
};

// Runs `one(buffers, comm, options)` on a communicator that settles on this arm, by a setting and
// by an option, and on one that learns.
template <class One>
void again_and_again(collective op, const One& one) {
  for (const arm& a : arms_of(op)) {
    const std::string name = name_of(a);
    // One arm of each algorithm will do.
    if (name != name_of(default_arm(*a.base))) continue;
    if (std::getenv("TEST_SHARED_ONLY") && !a.base->needs.shared_memory) continue;
    CAPTURE(name);
    const communicator by_setting = communicator::duplicate_of_world();
    mpi::configure(by_setting, "use", std::string(describe(op).name) + ":" + name);
    const communicator by_option = communicator::duplicate_of_world();
    for (const communicator* comm : {&by_setting, &by_option}) {
      REQUIRE(mpi::start_tuning(*comm) == MPI_SUCCESS);
      buffers b;
      const call_options asks = comm == &by_option ? collect(use(name)) : call_options{};
      for (b.call = 0; b.call < 10; ++b.call) {
        CAPTURE(b.call);
        CHECK(one(b, *comm, asks));
      }
    }
  }
  for (const char* policy : {"default", "round_robin"}) {
    CAPTURE(policy);
    const communicator learns = communicator::duplicate_of_world();
    mpi::configure(learns, "policy", policy);
    REQUIRE(mpi::start_tuning(learns) == MPI_SUCCESS);
    buffers b;
    for (b.call = 0; b.call < calls; ++b.call) {
      CAPTURE(b.call);
      CHECK(one(b, learns, call_options{}));
    }
  }
}

}  // namespace

TEST_CASE("a broadcast again and again, with buffers and roots that change") {
  again_and_again(collective::broadcast,
                  [](buffers& b, const communicator& comm, const call_options& options) {
                    const int root = b.call / 5 % comm.size();
                    b.fill(b.out(), comm.rank() == root ? root : -1, count);
                    mpi::broadcast(b.out(), count, MPI_INT, root, comm, options);
                    bool same = true;
                    for (int k = 0; k < count; ++k)
                      same = same && b.out()[k] == value(root, b.call, k);
                    return same;
                  });
}

TEST_CASE("an all_reduce again and again, now and then in place") {
  again_and_again(collective::all_reduce,
                  [](buffers& b, const communicator& comm, const call_options& options) {
                    const bool in_place = b.call % 5 == 4;
                    b.fill(in_place ? b.out() : b.in(), comm.rank(), count);
                    mpi::all_reduce(in_place ? MPI_IN_PLACE : b.in(), b.out(), count, MPI_INT,
                                    MPI_SUM, comm, options);
                    const int p = comm.size();
                    bool same = true;
                    for (int k = 0; k < count; ++k)
                      same = same && b.out()[k] == 1000 * (p * (p - 1) / 2) + p * (10 * b.call + k);
                    return same;
                  });
}

TEST_CASE("a reduce again and again, with roots that change and elements with gaps") {
  struct value_and_place {
    double value;
    int place;
  };
  again_and_again(collective::reduce,
                  [](buffers& b, const communicator& comm, const call_options& options) {
                    const int root = b.call / 3 % comm.size(), p = comm.size();
                    b.fill(b.in(), comm.rank(), count);
                    mpi::reduce(b.in(), comm.rank() == root ? b.out() : nullptr, count, MPI_INT,
                                MPI_MAX, root, comm, options);
                    value_and_place mine{double(comm.rank() ^ b.call), comm.rank()}, best{-1, -1};
                    mpi::reduce(&mine, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, root, comm, options);
                    if (comm.rank() != root) return true;
                    bool same = best.value == double(best.place ^ b.call);
                    for (int r = 0; r < p; ++r) same = same && best.value >= double(r ^ b.call);
                    for (int k = 0; k < count; ++k)
                      same = same && b.out()[k] == value(p - 1, b.call, k);
                    return same;
                  });
}

TEST_CASE("blocks again and again, now and then in place") {
  again_and_again(collective::all_gather,
                  [](buffers& b, const communicator& comm, const call_options& options) {
                    const bool in_place = b.call % 5 == 4;
                    b.fill(in_place ? b.out() + count * comm.rank() : b.in(), comm.rank(), count);
                    mpi::all_gather(in_place ? MPI_IN_PLACE : b.in(), count, MPI_INT, b.out(),
                                    count, MPI_INT, comm, options);
                    bool same = true;
                    for (int r = 0; r < comm.size(); ++r)
                      for (int k = 0; k < count; ++k)
                        same = same && b.out()[r * count + k] == value(r, b.call, k);
                    return same;
                  });
  again_and_again(
      collective::gather, [](buffers& b, const communicator& comm, const call_options& options) {
        // What only the root receives means nothing elsewhere, and need not even be valid.
        const int root = b.call / 5 % comm.size();
        const bool is_root = comm.rank() == root;
        b.fill(b.in(), comm.rank(), count);
        mpi::gather(b.in(), count, MPI_INT, is_root ? b.out() : nullptr, is_root ? count : -7,
                    is_root ? MPI_INT : MPI_DATATYPE_NULL, root, comm, options);
        bool same = true;
        for (int r = 0; is_root && r < comm.size(); ++r)
          for (int k = 0; k < count; ++k)
            same = same && b.out()[r * count + k] == value(r, b.call, k);
        return same;
      });
  again_and_again(collective::scatter,
                  [](buffers& b, const communicator& comm, const call_options& options) {
                    const int root = b.call / 5 % comm.size();
                    const bool in_place = comm.rank() == root && b.call % 5 == 4;
                    for (int r = 0; comm.rank() == root && r < comm.size(); ++r)
                      for (int k = 0; k < count; ++k) b.in()[r * count + k] = value(r, b.call, k);
                    mpi::scatter(b.in(), count, MPI_INT, in_place ? MPI_IN_PLACE : b.out(), count,
                                 MPI_INT, root, comm, options);
                    bool same = true;
                    for (int k = 0; !in_place && k < count; ++k)
                      same = same && b.out()[k] == value(comm.rank(), b.call, k);
                    return same;
                  });
}

TEST_CASE("a datatype whose handle was another's is looked at again") {
  const communicator comm = communicator::duplicate_of_world();
  mpi::configure(comm, "use", "broadcast:linear");
  REQUIRE(mpi::start_tuning(comm) == MPI_SUCCESS);
  for (int i = 0; i < 40; ++i) {
    const int distance = 1 + i / 3 % 3;  // of the two ints of an element
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_vector(2, 1, distance, MPI_INT, &type);
    MPI_Type_commit(&type);
    std::vector<int> buffer(4, comm.rank() == 0 ? i : -1);
    CHECK(mpi::broadcast(buffer.data(), 1, type, 0, comm) == MPI_SUCCESS);
    for (int k = 0; k < 4; ++k)
      CHECK(buffer[std::size_t(k)] == (comm.rank() == 0 || k == 0 || k == distance ? i : -1));
    MPI_Type_free(&type);
  }
}

namespace {
void keep_left(void* left, void* right, int* length, MPI_Datatype*) {
  std::copy_n(static_cast<const int*>(left), *length, static_cast<int*>(right));
}
void add(void* left, void* right, int* length, MPI_Datatype*) {
  for (int i = 0; i < *length; ++i) static_cast<int*>(right)[i] += static_cast<const int*>(left)[i];
}
}  // namespace

TEST_CASE("an operation whose handle was another's is looked at again") {
  const communicator comm = communicator::duplicate_of_world();
  mpi::configure(comm, "use", "all_reduce:ring");  // which needs operands that may be exchanged
  REQUIRE(mpi::start_tuning(comm) == MPI_SUCCESS);
  const int p = comm.size();
  for (int i = 0; i < 40; ++i) {
    const bool ordered = i / 3 % 2 == 1;
    MPI_Op op = MPI_OP_NULL;
    MPI_Op_create(ordered ? keep_left : add, !ordered, &op);
    const int mine = comm.rank() + 1;
    int result = -1;
    CHECK(mpi::all_reduce(&mine, &result, 1, MPI_INT, op, comm) == MPI_SUCCESS);
    CHECK(result == (ordered ? 1 : p * (p + 1) / 2));
    MPI_Op_free(&op);
  }
}

TEST_CASE("what options ask for holds for their calls alone") {
  const communicator comm = communicator::duplicate_of_world();
  mpi::configure(comm, "policy", "native");
  REQUIRE(mpi::start_tuning(comm) == MPI_SUCCESS);
  if (comm.size() < 2) return;
  const node_facts hosts = test::facts_of_hosts(comm), caches = test::facts_of_caches(comm);
  std::string text = "linear";
  for (int i = 0; i < 20; ++i) {
    int word = comm.rank() == 0 ? i : -1;
    // The same memory says something else.
    text = i % 2 == 0 ? "linear" : "binary";
    mpi::broadcast(&word, 1, MPI_INT, 0, comm, collect(use(text)));
    CHECK(mpi::last_arm(comm) == text);
    mpi::broadcast(&word, 1, MPI_INT, 0, comm);
    CHECK(mpi::last_arm(comm) == "native");
    CHECK(word == i);
  }
  // More than are kept.
  for (int round = 0; round < 3; ++round)
    for (const arm& a : arms_of(collective::broadcast)) {
      int word = comm.rank() == 0 ? round : -1;
      mpi::broadcast(&word, 1, MPI_INT, 0, comm, collect(use(name_of(a))));
      CHECK(word == round);
      if (eligible(*a.base, {.num_ranks = comm.size(),
                             .units = 4,
                             .shared_memory = true,
                             .nodes = hosts,
                             .caches = caches}))
        CHECK(mpi::last_arm(comm) == name_of(a));
    }
}
