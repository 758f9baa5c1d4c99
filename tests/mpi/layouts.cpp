// SPDX-License-Identifier: BSL-1.0
//
// Data that MPI describes in unusual ways: absolute addresses under MPI_BOTTOM, datatypes without
// data, blocks without elements on some ranks.
#include "collectives/registry.hpp"
#include "railpass/mpi.hpp"
#include "support/call_railpass.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/records.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

namespace {

// Elements of 2 ints with holes, at the addresses where `memory` is.
class absolute_pairs {
 public:
  explicit absolute_pairs(int elements) : memory(std::size_t(elements), {{0, hole, 0, hole}}) {
    MPI_Aint first = 0;
    MPI_Get_address(memory.data(), &first);
    const int lengths[2] = {1, 1};
    const MPI_Aint places[2] = {first, first + 8};
    MPI_Datatype two = MPI_DATATYPE_NULL;
    MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &two);
    MPI_Type_create_resized(two, first, 16, &type_);
    MPI_Type_commit(&type_);
    MPI_Type_free(&two);
  }
  ~absolute_pairs() { MPI_Type_free(&type_); }
  absolute_pairs(const absolute_pairs&) = delete;
  absolute_pairs& operator=(const absolute_pairs&) = delete;

  MPI_Datatype type() const { return type_; }
  void set(int element, int value) {
    memory[std::size_t(element)][0] = value;
    memory[std::size_t(element)][2] = -value;
  }
  bool is(int element, int value) const {
    const auto& m = memory[std::size_t(element)];
    return m[0] == value && m[2] == -value && m[1] == hole && m[3] == hole;
  }

 private:
  static constexpr int hole = 77777;
  std::vector<std::array<int, 4>> memory;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

// Only the two values of a pair, wherever the datatype puts them.
void add_pairs(void* left, void* right, int* length, MPI_Datatype* type) {
  MPI_Aint lower = 0, extent = 0;
  MPI_Type_get_true_extent(*type, &lower, &extent);
  const auto value = [&](void* memory, int i) -> int* {
    return reinterpret_cast<int*>(reinterpret_cast<std::uintptr_t>(memory) + std::uintptr_t(lower) +
                                  std::uintptr_t(i) * 16);
  };
  for (int i = 0; i < *length; ++i)
    for (const int word : {0, 2}) value(right, i)[word] += value(left, i)[word];
}

// Ints of which each lies before the one that precedes it.
[[maybe_unused]] void add_backwards(void* left, void* right, int* length, MPI_Datatype*) {
  for (int i = 0; i < *length; ++i) static_cast<int*>(right)[-i] += static_cast<int*>(left)[-i];
}

int value_of(int rank, int block) { return 1000 * (rank + 1) + block; }

// A datatype without data, with an extent or without.
class nothing {
 public:
  explicit nothing(MPI_Aint extent) {
    MPI_Datatype none = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(0, MPI_INT, &none);
    MPI_Type_create_resized(none, 0, extent, &type_);
    MPI_Type_commit(&type_);
    MPI_Type_free(&none);
  }
  ~nothing() { MPI_Type_free(&type_); }
  nothing(const nothing&) = delete;
  nothing& operator=(const nothing&) = delete;
  operator MPI_Datatype() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

// An int and a hole.
class int_with_gap {
 public:
  int_with_gap() {
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &type_);
    MPI_Type_commit(&type_);
  }
  ~int_with_gap() { MPI_Type_free(&type_); }
  int_with_gap(const int_with_gap&) = delete;
  int_with_gap& operator=(const int_with_gap&) = delete;
  operator MPI_Datatype() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

// A rank's part of a call in which every second rank has three ints for each that has some, too.
// The others have nothing, and call it one element of `none`.
struct sparse_call {
  static constexpr int ints = 3, block = 2 * ints;
  call c{};
  std::vector<int> in, out, expected, sent, received, places;
  std::vector<MPI_Datatype> sent_types, received_types;

  sparse_call(collective op, const communicator& comm, MPI_Datatype none, MPI_Datatype gap)
      : in(std::size_t(block * comm.size())), out(in.size(), -1), expected(out) {
    const int p = comm.size(), rank = comm.rank(), root = p - 1;
    const promise what = describe(op).what;
    const bool pairs = what == promise::blocks_to_blocks, by_type = op == collective::all_to_allw;
    const auto has = [](int r) { return r % 2 == 1; };
    for (int i = 0; i < block * p; ++i) in[std::size_t(i)] = value_of(rank, i);
    for (int i = 0; i < p; ++i) {
      const bool moves = has(i) && (!pairs || has(rank));
      received.push_back(moves ? ints : 0);
      sent.push_back(moves ? ints : by_type || !has(rank) ? 1 : 0);
      places.push_back(block * i * (by_type ? int(sizeof(int)) : 1));
      sent_types.push_back(moves ? gap : none);
      received_types.push_back(MPI_INT);
      if (by_type && !moves && i % 4 == 0) {
        received.back() = 1;
        received_types.back() = none;
      }
    }
    const call_side own{.count = has(rank) ? ints : 1, .type = has(rank) ? gap : none};
    const call_side all{.type = MPI_INT, .counts = received.data(), .displacements = places.data()};
    c = {.op = op, .send = own, .receive = all, .root = root, .comm = comm};
    if (what == promise::root_to_blocks) std::swap(c.send, c.receive);
    if (pairs) {
      c.send = c.receive;
      if (by_type || !has(rank)) c.send.counts = sent.data();
      if (!has(rank)) c.send.type = none;
    }
    if (by_type) c.send.types = sent_types.data(), c.receive.types = received_types.data();
    c.send.memory = in.data();
    c.receive.memory = out.data();
    if (!traits_of(op).rooted) c.root = 0;

    const auto expect = [&](int place, int from, int first, int step) {
      for (int k = 0; k < ints; ++k)
        expected[std::size_t(place + k * (what == promise::root_to_blocks ? 2 : 1))] =
            value_of(from, first + k * step);
    };
    if (what == promise::root_to_blocks && has(rank)) expect(0, root, block * rank, 1);
    for (int i = 0; i < p; ++i) {
      if (!has(i)) continue;
      if (what == promise::blocks_to_all || (what == promise::blocks_to_root && rank == root))
        expect(block * i, i, 0, 2);
      if (pairs && has(rank)) expect(block * i, i, block * rank, by_type ? 2 : 1);
    }
  }
};

}  // namespace

TEST_CASE("every algorithm moves data at absolute addresses") {
  const communicator world = communicator::duplicate_of_world();
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  const int p = world.size(), rank = world.rank();
  MPI_Op sum = MPI_OP_NULL;
  MPI_Op_create(add_pairs, 1, &sum);
  for (const algorithm* a : all_algorithms) {
    const promise what = describe(a->op).what;
    const bool reduces = a->op == collective::all_reduce || a->op == collective::reduce;
    const bool moves = describe(a->op).lengths == block_lengths::equal &&
                       !traits_of(a->op).reduces && what != promise::all_arrive;
    // Those that know nodes, or are for more ranks, are native here.
    if ((!reduces && !moves) || a->is_native() || a->needs.max_nodes > 0 || p < a->needs.min_ranks)
      continue;
    const std::string name = name_of(default_arm(*a));
    CAPTURE(name_of(a->op), name);
    for (int root = 0; root < p; root += std::max(1, p - 1)) {
      absolute_pairs in(p), out(p);
      for (int k = 0; k < p; ++k) in.set(k, value_of(rank, k));
      call c{.op = a->op,
             .send = {.memory = MPI_BOTTOM, .count = 1, .type = in.type()},
             .receive = {.memory = MPI_BOTTOM, .count = 1, .type = out.type()},
             .root = traits_of(a->op).rooted ? root : 0,
             .comm = world};
      if (what == promise::root_to_all && rank == root) out.set(0, value_of(root, 0));
      // In a reduction both sides have the datatype, so one side only can have absolute addresses.
      absolute_pairs both(1);
      both.set(0, value_of(rank, 0));
      if (reduces) {
        c.operation = sum;
        c.receive.type = both.type();
        const bool in_place = a->op == collective::all_reduce || rank == root;
        c.send = {.memory = in_place ? MPI_IN_PLACE : MPI_BOTTOM};
        c.receive.memory = in_place ? MPI_BOTTOM : nullptr;
      }
      CHECK(call_railpass(c, collect(use(name))) == MPI_SUCCESS);
      int total = 0;
      for (int r = 0; r < p; ++r) total += value_of(r, 0);
      bool right = true;
      if (reduces) right = (rank != root && what == promise::reduce_to_root) || both.is(0, total);
      if (what == promise::root_to_all) right = out.is(0, value_of(root, 0));
      if (what == promise::root_to_blocks) right = out.is(0, value_of(root, rank));
      for (int k = 0; k < p; ++k) {
        if (what == promise::blocks_to_all || (what == promise::blocks_to_root && rank == root))
          right = right && out.is(k, value_of(k, 0));
        if (what == promise::blocks_to_blocks) right = right && out.is(k, value_of(k, rank));
      }
      CHECK(right);
    }
  }
  MPI_Op_free(&sum);
}

#ifndef MPICH  // 4.0 itself crashes
// Open MPI refuses them if it needs a copy.
TEST_CASE("elements that lie backwards are reduced as the MPI library does") {
  const communicator world = communicator::duplicate_of_world();
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  MPI_Op sum = MPI_OP_NULL;
  MPI_Op_create(add_backwards, 1, &sum);
  MPI_Datatype backwards = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(MPI_INT, 0, -MPI_Aint(sizeof(int)), &backwards);
  MPI_Type_commit(&backwards);
  std::array<int, 3> in{1, 2, 3}, out{};
  const auto class_of = [](int code) {
    int of_code = 0;
    MPI_Error_class(code, &of_code);
    return of_code;
  };
  const int p = world.size();
  const int natively =
      class_of(PMPI_Allreduce(&in.back(), &out.back(), int(in.size()), backwards, sum, world));
  for (const char* arm : {"linear", "recursive_doubling", "ring"}) {
    CAPTURE(arm);
    out = {};
    CHECK(class_of(mpi::all_reduce(&in.back(), &out.back(), int(in.size()), backwards, sum, world,
                                   collect(use(arm)))) == natively);
    if (natively == MPI_SUCCESS) CHECK(out == std::array<int, 3>{p, 2 * p, 3 * p});
  }
  MPI_Type_free(&backwards);
  MPI_Op_free(&sum);
}
#endif

TEST_CASE("datatypes without data, and no elements of those that have some") {
  const communicator world = communicator::duplicate_of_world();
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  const int p = world.size(), rank = world.rank();
  MPI_Datatype empty = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(0, MPI_INT, &empty);
  MPI_Type_commit(&empty);
  std::vector<int> data(std::size_t(p) + 3, 5), other(data.size(), 6);
  const std::vector<int> untouched = other;
  for (const bool none : {true, false}) {
    const int count = none ? 0 : 3;
    const MPI_Datatype type = none ? MPI_INT : empty;
    CHECK(mpi::broadcast(data.data(), count, type, p - 1, world) == MPI_SUCCESS);
    CHECK(mpi::all_gather(data.data(), count, type, other.data(), count, type, world) ==
          MPI_SUCCESS);
    CHECK(mpi::gather(data.data(), count, type, other.data(), count, type, 0, world) ==
          MPI_SUCCESS);
    CHECK(mpi::scatter(data.data(), count, type, other.data(), count, type, 0, world) ==
          MPI_SUCCESS);
    CHECK(mpi::all_to_all(data.data(), count, type, other.data(), count, type, world) ==
          MPI_SUCCESS);
  }
  CHECK(other == untouched);

  // Only the last rank has something, in every form whose lengths may differ.
  std::vector<int> counts(std::size_t(p), 0), places(std::size_t(p), 0);
  counts.back() = 2;
  places.back() = p;
  const int mine = counts[std::size_t(rank)];
  for (const char* arm : {"linear", "ring", "native"}) {
#ifdef MPICH
    if (p == 1) break;  // MPICH 4.0's own MPI_Allgatherv forgets the displacement then
#endif
    CAPTURE(arm);
    std::fill(other.begin(), other.end(), 6);
    std::vector<int> expected = other;
    expected[std::size_t(p)] = expected[std::size_t(p) + 1] = 5;
    CHECK(mpi::all_gatherv(data.data(), mine, MPI_INT, other.data(), counts.data(), places.data(),
                           MPI_INT, world, collect(use(arm))) == MPI_SUCCESS);
    CHECK(other == expected);
  }
  for (const char* arm : {"linear", "windowed", "native"}) {
    CAPTURE(arm);
    std::fill(other.begin(), other.end(), 6);
    CHECK(mpi::gatherv(data.data(), mine, MPI_INT, other.data(), counts.data(), places.data(),
                       MPI_INT, 0, world, collect(use(arm))) == MPI_SUCCESS);
    CHECK(other[std::size_t(p)] == (rank == 0 ? 5 : 6));
    CHECK(other[0] == 6);
    std::fill(other.begin(), other.end(), 6);
    CHECK(mpi::scatterv(data.data(), counts.data(), places.data(), MPI_INT, other.data(), mine,
                        MPI_INT, 0, world, collect(use(arm))) == MPI_SUCCESS);
    CHECK(other[0] == (rank == p - 1 ? 5 : 6));
  }
  // Everybody sends to the last rank only.
  for (const char* arm : {"scattered", "pairwise", "native"}) {
    CAPTURE(arm);
    std::vector<int> sends(std::size_t(p), 0), receives(std::size_t(p), rank == p - 1 ? 1 : 0),
        from(std::size_t(p), 0), to(std::size_t(p), 0);
    sends.back() = 1;
    for (int k = 0; k < p; ++k) to[std::size_t(k)] = k;
    std::fill(other.begin(), other.end(), 6);
    CHECK(mpi::all_to_allv(data.data(), sends.data(), from.data(), MPI_INT, other.data(),
                           receives.data(), to.data(), MPI_INT, world,
                           collect(use(arm))) == MPI_SUCCESS);
    for (int k = 0; k < p; ++k) CHECK(other[std::size_t(k)] == (rank == p - 1 ? 5 : 6));
  }
  MPI_Type_free(&empty);
}

TEST_CASE("every algorithm moves data past ranks that have one element of nothing") {
  const std::string verify = GENERATE("off", "on");
  const test::records said;
  const communicator world = communicator::duplicate_of_world();
  mpi::configure(world, "verify", verify);
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  const int_with_gap gap;
  for (const algorithm* a : all_algorithms) {
    if (describe(a->op).lengths == block_lengths::equal || traits_of(a->op).reduces ||
        a->is_native() || a->needs.max_nodes > 0 || world.size() < a->needs.min_ranks)
      continue;
    // Open MPI's own calls, which VERIFY makes, too, wait for messages without bytes that nobody
    // sends unless both sides say the same.
    if (verify == "on" && a->op != collective::gatherv && a->op != collective::all_to_allw)
      continue;
    const std::string name = name_of(default_arm(*a));
    for (const MPI_Aint extent : {0, 8}) {
      CAPTURE(name_of(a->op), name, extent);
      const nothing none(extent);
      sparse_call s(a->op, world, none, gap);
      CHECK(call_railpass(s.c, collect(use(name))) == MPI_SUCCESS);
      CHECK(s.out == s.expected);
    }
  }
  CHECK(said.texts.empty());
}

TEST_CASE("results without bytes are compared with the MPI library's") {
  const test::records said;
  const communicator world = communicator::duplicate_of_world();
  mpi::configure(world, "verify", "on");
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  const auto p = std::size_t(world.size());
  const std::vector<int> ones(p, 1), zeros(p, 0);
  std::vector<int> in(p, 5), out(p, 6);
  const std::vector<int> untouched = out;
  for (const MPI_Aint extent : {0, 8}) {
    const nothing none(extent);
    const std::vector<MPI_Datatype> types(p, none);
    CHECK(mpi::gatherv(in.data(), 1, none, out.data(), ones.data(), zeros.data(), none, 0, world,
                       collect(use("linear"))) == MPI_SUCCESS);
    CHECK(mpi::scatterv(in.data(), ones.data(), zeros.data(), none, out.data(), 1, none, 0, world,
                        collect(use("linear"))) == MPI_SUCCESS);
    CHECK(mpi::all_to_allv(in.data(), ones.data(), zeros.data(), none, out.data(), ones.data(),
                           zeros.data(), none, world, collect(use("scattered"))) == MPI_SUCCESS);
    CHECK(mpi::all_to_allw(in.data(), ones.data(), zeros.data(), types.data(), out.data(),
                           ones.data(), zeros.data(), types.data(), world,
                           collect(use("scattered"))) == MPI_SUCCESS);
  }
  CHECK(out == untouched);
  CHECK(said.texts.empty());
}

TEST_CASE("a datatype without MPI_Type_commit is an error that the communicator returns") {
  const communicator world = communicator::duplicate_of_world();
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  MPI_Datatype uncommitted = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 2, MPI_INT, &uncommitted);
  const std::vector<int> in(4, 5);
  std::vector<int> out(2 * std::size_t(world.size()));
  const int code = mpi::all_gather(in.data(), 1, uncommitted, out.data(), 2, MPI_INT, world,
                                   collect(use("ring")));
  int kind = MPI_SUCCESS;
  MPI_Error_class(code, &kind);
  CHECK(kind == MPI_ERR_TYPE);
  MPI_Type_free(&uncommitted);
}
