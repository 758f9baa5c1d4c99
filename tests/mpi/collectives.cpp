// SPDX-License-Identifier: BSL-1.0
//
// Every arm against the MPI library's own result, and learning that never changes a result.
#include "collectives/registry.hpp"
#include "railpass/mpi.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/single_copies.hpp"

#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

using namespace railpass;

namespace {

// Affine maps x -> a x + b modulo 65521, composed: associative, not commutative.
struct affine {
  std::uint32_t a, b;
};
void compose(void* left, void* right, int* length, MPI_Datatype*) {
  const auto* l = static_cast<const affine*>(left);
  auto* r = static_cast<affine*>(right);
  for (int i = 0; i < *length; ++i)
    r[i] = {l[i].a * r[i].a % 65521u, (l[i].a * r[i].b + l[i].b) % 65521u};
}

std::vector<affine> random_maps(int count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<affine> maps(std::size_t(count), affine{});
  for (affine& m : maps) m = {std::uint32_t(random() % 65521u), std::uint32_t(random() % 65521u)};
  return maps;
}

}  // namespace

TEST_CASE("every arm of broadcast delivers the root's bytes to all, and is the arm that ran") {
  const communicator world = communicator::duplicate_of_world();
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  const bool copies = test::single_copies(world);
  for (const arm& a : arms_of(collective::broadcast)) {
    const std::string name = name_of(a);
    CAPTURE(name);
    const bool runs = eligible(
        *a.base,
        {.num_ranks = world.size(), .units = 1, .shared_memory = true, .single_copy = copies});
    for (const int count : {1, 5, 1000, 70001})
      for (int root = 0; root < world.size(); root += std::max(1, world.size() - 1)) {
        std::vector<char> buffer(std::size_t(count), char(-1));
        std::vector<char> expected(buffer.size());
        for (std::size_t i = 0; i < expected.size(); ++i)
          expected[i] = char(i * 7 + i / 251 + root);
        if (world.rank() == root) buffer = expected;
        CHECK(mpi::broadcast(buffer.data(), count, MPI_CHAR, root, world, collect(use(name))) ==
              MPI_SUCCESS);
        CHECK(buffer == expected);
        if (world.size() > 1 && runs) CHECK(mpi::last_arm(world) == name);
      }
  }
}

TEST_CASE("every arm of all_reduce gives the exact sum to all, and is the arm that ran") {
  const communicator world = communicator::duplicate_of_world();
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  for (const arm& a : arms_of(collective::all_reduce)) {
    const std::string name = name_of(a);
    CAPTURE(name);
    const bool runs =
        eligible(*a.base, {.num_ranks = world.size(), .units = 1, .shared_memory = true});
    for (const int count : {1, 3, 257, 20001}) {
      std::vector<std::int64_t> mine(std::size_t(count), 0), sum(mine.size(), -1), expected(mine);
      for (std::size_t i = 0; i < mine.size(); ++i) {
        mine[i] = std::int64_t(i) * (world.rank() + 1);
        expected[i] = std::int64_t(i) * world.size() * (world.size() + 1) / 2;
      }
      const std::vector<std::int64_t> before = mine;
      CHECK(mpi::all_reduce(mine.data(), sum.data(), count, MPI_INT64_T, MPI_SUM, world,
                            collect(use(name))) == MPI_SUCCESS);
      CHECK(sum == expected);
      CHECK(mine == before);
      if (world.size() > 1 && runs) CHECK(mpi::last_arm(world) == name);
      CHECK(mpi::all_reduce(MPI_IN_PLACE, mine.data(), count, MPI_INT64_T, MPI_SUM, world,
                            collect(use(name))) == MPI_SUCCESS);
      CHECK(mine == expected);
    }
  }
}

TEST_CASE("an operation that does not commute is applied in rank order by every arm") {
  const communicator world = communicator::duplicate_of_world();
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  const bool copies = test::single_copies(world);
  MPI_Op op = MPI_OP_NULL;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op_create(compose, 0, &op);
  MPI_Type_contiguous(2, MPI_UINT32_T, &type);
  MPI_Type_commit(&type);
  for (const arm& a : arms_of(collective::all_reduce)) {
    const std::string name = name_of(a);
    CAPTURE(name);
    for (const int count : {1, 300}) {
      std::vector<affine> expected = random_maps(count, 0);
      for (int r = 1; r < world.size(); ++r) {
        std::vector<affine> right = random_maps(count, std::uint32_t(r));
        int length = count;
        compose(expected.data(), right.data(), &length, nullptr);
        expected = right;
      }
      const std::vector<affine> mine = random_maps(count, std::uint32_t(world.rank()));
      std::vector<affine> result(mine.size());
      CHECK(mpi::all_reduce(mine.data(), result.data(), count, type, op, world,
                            collect(use(name))) == MPI_SUCCESS);
      bool same = true;
      for (std::size_t i = 0; i < result.size(); ++i)
        same = same && result[i].a == expected[i].a && result[i].b == expected[i].b;
      CHECK(same);
      const bool may_run = eligible(*a.base, {.num_ranks = world.size(),
                                              .units = count,
                                              .commutative = false,
                                              .shared_memory = true,
                                              .single_copy = copies});
      if (world.size() > 1) CHECK(mpi::last_arm(world) == (may_run ? name : "native"));
    }
  }
  MPI_Type_free(&type);
  MPI_Op_free(&op);
}

TEST_CASE("all ranks obtain bitwise the same floating-point sum") {
  const communicator world = communicator::duplicate_of_world();
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  std::mt19937_64 random(std::uint64_t(world.rank()) + 1);
  std::uniform_real_distribution<double> any(-1, 1);
  std::vector<double> mine(5000), sum(mine.size());
  for (double& x : mine) x = any(random);
  for (const arm& a : arms_of(collective::all_reduce)) {
    const std::string name = name_of(a);
    CAPTURE(name);
    mpi::all_reduce(mine.data(), sum.data(), int(sum.size()), MPI_DOUBLE, MPI_SUM, world,
                    collect(use(name)));
    std::vector<double> of_rank_0 = sum;
    MPI_Bcast(of_rank_0.data(), int(of_rank_0.size()), MPI_DOUBLE, 0, world);
    CHECK(std::memcmp(of_rank_0.data(), sum.data(), sum.size() * sizeof(double)) == 0);
  }
}

TEST_CASE("ranks may describe the same bytes by different datatypes") {
  const communicator world = communicator::duplicate_of_world();
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  // 300 pairs of ints: as 600 ints on even ranks, as 300 vectors with a hole on odd ones.
  constexpr int pairs = 300;
  MPI_Datatype holed = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 2, MPI_INT, &holed);
  MPI_Datatype resized = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(holed, 0, 4 * sizeof(int), &resized);
  MPI_Type_commit(&resized);
  for (const arm& a : arms_of(collective::broadcast)) {
    const std::string name = name_of(a);
    CAPTURE(name);
    for (int root = 0; root < std::min(2, world.size()); ++root) {
      std::vector<int> memory(4 * pairs, -1);
      const bool with_holes = world.rank() % 2 != 0;
      const auto element = [&](int i) -> int& {
        return memory[std::size_t(with_holes ? 4 * (i / 2) + 2 * (i % 2) : i)];
      };
      if (world.rank() == root)
        for (int i = 0; i < 2 * pairs; ++i) element(i) = i * 3 + root;
      mpi::broadcast(memory.data(), with_holes ? pairs : 2 * pairs, with_holes ? resized : MPI_INT,
                     root, world, collect(use(name)));
      bool right = true, holes_kept = true;
      for (int i = 0; i < 2 * pairs; ++i) right = right && element(i) == i * 3 + root;
      if (with_holes)
        for (int i = 0; i < pairs; ++i)
          holes_kept = holes_kept && memory[std::size_t(4 * i + 1)] == -1 &&
                       memory[std::size_t(4 * i + 3)] == -1;
      CHECK(right);
      CHECK(holes_kept);
    }
  }
  MPI_Type_free(&holed);
  MPI_Type_free(&resized);
}

TEST_CASE("reductions of datatypes with padding are right and leave the padding alone") {
  const communicator world = communicator::duplicate_of_world();
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  struct located {
    double value;
    int rank;
    int padding;
  };
  for (const arm& a : arms_of(collective::all_reduce)) {
    const std::string name = name_of(a);
    CAPTURE(name);
    for (const bool in_place : {false, true}) {
      std::vector<located> mine(777), result(mine.size(), located{0, 0, 42});
      for (std::size_t i = 0; i < mine.size(); ++i)
        mine[i] = {double((i * 31 + std::size_t(world.rank()) * 17) % 101), world.rank(), 42};
      std::vector<located>& out = in_place ? mine : result;
      mpi::all_reduce(in_place ? MPI_IN_PLACE : mine.data(), out.data(), int(mine.size()),
                      MPI_DOUBLE_INT, MPI_MINLOC, world, collect(use(name)));
      bool right = true;
      for (std::size_t i = 0; i < out.size(); ++i) {
        located least{1e9, 0, 42};
        for (int r = 0; r < world.size(); ++r) {
          const double value = double((i * 31 + std::size_t(r) * 17) % 101);
          if (value < least.value) least = {value, r, 42};
        }
        right = right && out[i].value == least.value && out[i].rank == least.rank &&
                out[i].padding == 42;
      }
      CHECK(right);
    }
  }
}

TEST_CASE("whatever is chosen while learning, every result is right") {
  for (const char* policy : {"knowledge_gradient", "thompson", "pass", "round_robin", "native"}) {
    CAPTURE(policy);
    const communicator world = communicator::duplicate_of_world();
    mpi::configure(world, "policy", policy);
    std::mt19937 random(7);
    for (int call = 0; call < 300; ++call) {
      const int count = 1 << (random() % 12);
      const int root = int(random() % std::uint32_t(world.size()));
      if (random() % 2 == 0) {
        std::vector<int> data(std::size_t(count), world.rank() == root ? call : -1);
        mpi::broadcast(data.data(), count, MPI_INT, root, world);
        CHECK(data == std::vector<int>(std::size_t(count), call));
      } else {
        std::vector<int> data(std::size_t(count), world.rank() + call);
        mpi::all_reduce(MPI_IN_PLACE, data.data(), count, MPI_INT, MPI_SUM, world);
        const int expected = world.size() * call + world.size() * (world.size() - 1) / 2;
        CHECK(data == std::vector<int>(std::size_t(count), expected));
      }
    }
  }
}
