// SPDX-License-Identifier: BSL-1.0
//
// railpass.h: what it passes on, and what it says where something is wrong. examples/c and
// examples/fortran are whole programs.
#include "railpass/railpass.h"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/scratch_directory.hpp"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

using namespace railpass;

namespace {

std::string problem_of(int code) {
  CHECK(code == MPI_ERR_OTHER);
  return railpass_error_text();
}

}  // namespace

TEST_CASE("collectives of C are the tuned ones") {
  const communicator world = communicator::duplicate_of_world();
  const int rank = world.rank(), size = world.size();
  REQUIRE(railpass_configure(world, "policy", "round_robin") == MPI_SUCCESS);
  REQUIRE(railpass_start_tuning_f(MPI_Comm_c2f(world)) == MPI_SUCCESS);
  const std::vector<int> ones(std::size_t(size), 1);
  std::vector<int> places(ones.size()), mine(ones.size(), rank + 1), all(ones.size());
  for (int r = 0; r < size; ++r) places[std::size_t(r)] = r;
  for (int call = 0; call < 40; ++call) {
    int value = rank == 0 ? 42 + call : -1, sum = -1;
    const int own = rank + 1;
    CHECK(railpass_broadcast(&value, 1, MPI_INT, 0, world) == MPI_SUCCESS);
    CHECK(value == 42 + call);
    CHECK(railpass_all_reduce(&own, &sum, 1, MPI_INT, MPI_SUM, world) == MPI_SUCCESS);
    CHECK(sum == size * (size + 1) / 2);
    CHECK(railpass_scan(&own, &sum, 1, MPI_INT, MPI_SUM, world) == MPI_SUCCESS);
    CHECK(sum == own * (own + 1) / 2);
    CHECK(railpass_all_gather(&own, 1, MPI_INT, all.data(), 1, MPI_INT, world) == MPI_SUCCESS);
    CHECK((all.front() == 1 && all.back() == size));
    CHECK(railpass_all_gatherv(&own, 1, MPI_INT, all.data(), ones.data(), places.data(), MPI_INT,
                               world) == MPI_SUCCESS);
    CHECK((all.front() == 1 && all.back() == size));
    CHECK(railpass_all_to_all(mine.data(), 1, MPI_INT, all.data(), 1, MPI_INT, world) ==
          MPI_SUCCESS);
    CHECK((all.front() == 1 && all.back() == size));
    CHECK(railpass_reduce_scatter_block(mine.data(), &sum, 1, MPI_INT, MPI_SUM, world) ==
          MPI_SUCCESS);
    CHECK(sum == size * (size + 1) / 2);
    CHECK(railpass_barrier(world) == MPI_SUCCESS);
  }
  const scratch_directory folder;
  CHECK(railpass_dump_statistics(folder.file("dump.json").c_str()) == MPI_SUCCESS);
  CHECK(std::filesystem::exists(folder.file("dump.json")));
  CHECK_THAT(problem_of(railpass_dump_statistics(folder.file("no/folder").c_str())),
             ContainsSubstring("no/folder"));
  CHECK_THAT(problem_of(railpass_start_tuning(MPI_COMM_NULL)),
             ContainsSubstring("expected a communicator"));
  CHECK_THAT(problem_of(railpass_configure(world, "no such", "1")), ContainsSubstring("no such"));
  CHECK_THAT(problem_of(railpass_configure(world, nullptr, "1")), ContainsSubstring("a setting"));
}

TEST_CASE("settings that differ where they must not are explained") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  REQUIRE(railpass_configure(world, "strict", "on") == MPI_SUCCESS);
  REQUIRE(railpass_configure(world, "seed", std::to_string(world.rank()).c_str()) == MPI_SUCCESS);
  CHECK_THAT(problem_of(railpass_start_tuning(world)), ContainsSubstring("different settings"));
}

TEST_CASE("a set and a region of C say what is wrong with their use, and learn otherwise") {
  const communicator world = communicator::duplicate_of_world();
  const std::array attributes{"tile", "order"};
  railpass_set set = nullptr;
  CHECK_THAT(problem_of(railpass_set_create("of c", world, 2, attributes.data(), 0, nullptr, 0,
                                            nullptr, &set)),
             ContainsSubstring("of c"));  // no name
  CHECK_THAT(problem_of(railpass_set_create("of_c", world, 2, attributes.data(), 0, nullptr, 1,
                                            nullptr, &set)),
             ContainsSubstring("num_features"));
  CHECK(set == nullptr);
  REQUIRE(railpass_set_create("of_c", world, 2, attributes.data(), 0, nullptr, 0, nullptr, &set) ==
          MPI_SUCCESS);
  const std::array first{"8", "rows"}, second{"16", "columns"};
  REQUIRE(railpass_set_add(set, "t8", first.data()) == MPI_SUCCESS);
  REQUIRE(railpass_set_add(set, "t16", second.data()) == MPI_SUCCESS);
  CHECK_THAT(problem_of(railpass_set_add(set, "t16", second.data())), ContainsSubstring("t16"));
  CHECK_THAT(problem_of(railpass_set_add(set, "t32", nullptr)), ContainsSubstring("attribute"));
  CHECK_THAT(problem_of(railpass_set_end(set)), ContainsSubstring("railpass_set_begin"));

  railpass_region region = nullptr;
  REQUIRE(railpass_region_create("around_c", world, &region) == MPI_SUCCESS);
  CHECK_THAT(problem_of(railpass_region_end(region)), ContainsSubstring("railpass_region_begin"));
  for (int call = 0; call < 50; ++call) {
    int version = -1;
    REQUIRE(railpass_region_begin(region) == MPI_SUCCESS);
    REQUIRE(railpass_set_begin(set, &version) == MPI_SUCCESS);
    CHECK((version == 0 || version == 1));
    int same = version;
    MPI_Bcast(&same, 1, MPI_INT, 0, world);
    CHECK(same == version);
    if (call == 0) {
      CHECK_THAT(problem_of(railpass_set_begin(set, &version)), ContainsSubstring("has not ended"));
      CHECK_THAT(problem_of(railpass_set_free(&set)), ContainsSubstring("has not ended"));
      CHECK_THAT(problem_of(railpass_region_begin(region)), ContainsSubstring("has not ended"));
    }
    REQUIRE(railpass_set_end(set) == MPI_SUCCESS);
    REQUIRE(railpass_region_end(region) == MPI_SUCCESS);
  }
  int winner = -2;
  CHECK(railpass_set_winner(set, &winner) == MPI_SUCCESS);
  CHECK((winner >= -1 && winner <= 1));
  CHECK(railpass_region_free(&region) == MPI_SUCCESS);
  CHECK(railpass_set_free(&set) == MPI_SUCCESS);
  CHECK((set == nullptr && region == nullptr));
  CHECK(railpass_set_free(&set) == MPI_SUCCESS);
}

TEST_CASE("features of a set of C are among what its contexts are told apart by") {
  const communicator world = communicator::duplicate_of_world();
  for (const std::int64_t length : {1000, 1100}) {
    railpass_set set = nullptr;
    REQUIRE(railpass_set_create("near_c", world, 0, nullptr, 0, nullptr, 1, &length, &set) ==
            MPI_SUCCESS);
    for (const char* const name : {"one", "other"})
      REQUIRE(railpass_set_add(set, name, nullptr) == MPI_SUCCESS);
    for (int call = 0; call < 30; ++call) {
      int version = -1;
      REQUIRE(railpass_set_begin(set, &version) == MPI_SUCCESS);
      REQUIRE(railpass_set_end(set) == MPI_SUCCESS);
    }
    CHECK(railpass_set_free(&set) == MPI_SUCCESS);
  }
  const scratch_directory folder;
  REQUIRE(railpass_dump_statistics(folder.file("dump.json").c_str()) == MPI_SUCCESS);
  if (world.rank() > 0) return;
  std::ifstream file(folder.file("dump.json"));
  const std::string dump{std::istreambuf_iterator<char>(file), {}};
  for (const char* const length : {"features=1000", "features=1100"})
    CHECK_THAT(dump, ContainsSubstring(length));
}

TEST_CASE("neighbours' collectives of C bring what MPI's bring") {
  const communicator world = communicator::duplicate_of_world();
  const int size = world.size(), rank = world.rank(), periodic = 1;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Cart_create(world, 1, &size, &periodic, 0, &made);
  const communicator ring(made);
  const std::array to{10 * rank, 10 * rank + 1}, ones{1, 1}, places{0, 1};
  const std::array<MPI_Aint, 2> places_bytes{0, sizeof(int)};
  const std::array types{MPI_INT, MPI_INT};
  std::array<int, 2> from{}, expected{};
  bool right = true;
  const auto compare = [&](auto ours, auto theirs, const auto&... arguments) {
    from = expected = {-1, -1};
    theirs(to.data(), arguments..., ring);
    std::swap(from, expected);
    right = ours(to.data(), arguments..., ring) == MPI_SUCCESS && from == expected && right;
  };
  for (int call = 0; call < 40; ++call) {
    compare(railpass_neighbor_all_to_all, MPI_Neighbor_alltoall, 1, MPI_INT, from.data(), 1,
            MPI_INT);
    compare(railpass_neighbor_all_to_allv, MPI_Neighbor_alltoallv, ones.data(), places.data(),
            MPI_INT, from.data(), ones.data(), places.data(), MPI_INT);
    compare(railpass_neighbor_all_to_allw, MPI_Neighbor_alltoallw, ones.data(), places_bytes.data(),
            types.data(), from.data(), ones.data(), places_bytes.data(), types.data());
    compare(railpass_neighbor_all_gather, MPI_Neighbor_allgather, 1, MPI_INT, from.data(), 1,
            MPI_INT);
    compare(railpass_neighbor_all_gatherv, MPI_Neighbor_allgatherv, 1, MPI_INT, from.data(),
            ones.data(), places.data(), MPI_INT);
  }
  CHECK(right);
}

TEST_CASE("an exchange of C brings the neighbours' elements, of any type") {
  const communicator world = communicator::duplicate_of_world();
  const int size = world.size(), rank = world.rank(), periodic = 1;
  const std::int64_t interior = 4, width = 1;
  MPI_Datatype pair = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  std::vector<double> numbers(6, -1);
  std::vector<std::pair<int, int>> pairs(6, {-1, -1});
  for (int i = 0; i < 4; ++i) {
    numbers[std::size_t(i) + 1] = 10 * rank + i;
    pairs[std::size_t(i) + 1] = {rank, i};
  }
  void* const of_numbers = numbers.data();
  void* const of_pairs = pairs.data();
  railpass_halo halo = nullptr, other = nullptr;
  REQUIRE(railpass_halo_create(world, 1, &size, &periodic, 1, &of_numbers, &interior, &width,
                               MPI_DOUBLE, 0, &halo) == MPI_SUCCESS);
  REQUIRE(railpass_halo_create_f(MPI_Comm_c2f(world), 1, &size, &periodic, 1, &of_pairs, &interior,
                                 &width, MPI_Type_c2f(pair), 0, &other) == MPI_SUCCESS);
  const int before = (rank + size - 1) % size, after = (rank + 1) % size;
  for (int call = 0; call < 20; ++call) {
    numbers.front() = numbers.back() = -1;
    REQUIRE(railpass_halo_exchange(halo) == MPI_SUCCESS);
    CHECK((numbers.front() == 10 * before + 3 && numbers.back() == 10 * after));
    REQUIRE(railpass_halo_begin(other) == MPI_SUCCESS);
    REQUIRE(railpass_halo_end(other) == MPI_SUCCESS);
    CHECK((pairs.front() == std::pair(before, 3) && pairs.back() == std::pair(after, 0)));
  }
  std::array<char, 4> name{'x', 'x', 'x', 'x'};
  CHECK(railpass_halo_winner(halo, name.data(), int(name.size())) == MPI_SUCCESS);
  CHECK(std::memchr(name.data(), 0, name.size()) != nullptr);
  CHECK_THAT(problem_of(railpass_halo_end(other)), !ContainsSubstring("expected an exchange"));
  CHECK(railpass_halo_free(&halo) == MPI_SUCCESS);
  CHECK(railpass_halo_free(&other) == MPI_SUCCESS);
  CHECK_THAT(problem_of(railpass_halo_exchange(halo)), ContainsSubstring("expected an exchange"));
  MPI_Type_free(&pair);

  const std::array<std::int64_t, 2> global{4096, 16};
  const std::array no{0, 0};
  std::array grid{0, 0};
  REQUIRE(railpass_suggest_grid(world, 2, global.data(), no.data(), 1, 8, 0, grid.data()) ==
          MPI_SUCCESS);
  CHECK(grid[0] * grid[1] == size);
  CHECK_THAT(
      problem_of(railpass_suggest_grid(world, 0, global.data(), no.data(), 1, 8, 0, grid.data())),
      ContainsSubstring("dimensions"));
}
