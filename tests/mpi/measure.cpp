// SPDX-License-Identifier: BSL-1.0
//
// What measures (lib/measure), called as verbs and simulated machines call it.
#include "lib/measure/bench.hpp"
#include "lib/measure/handovers.hpp"
#include "lib/measure/job.hpp"
#include "lib/measure/workload.hpp"
#include "support/catch.hpp"
#include "support/fake_cores.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

TEST_CASE("a job knows its ranks and their nodes, and ranks tell each other texts") {
  const measure::job j = measure::job_of_world();
  REQUIRE(j.node_of_rank.size() == std::size_t(j.num_ranks));
  CHECK(j.node_of_rank[0] == 0);
  CHECK(*std::ranges::max_element(j.node_of_rank) == j.num_nodes() - 1);
  CHECK(measure::agreed(j.rank, j.num_ranks - 1) == j.num_ranks - 1);
  const auto texts = measure::gather_texts(j, std::string(std::size_t(j.rank), 'x'));
  CHECK(texts.size() == std::size_t(j.rank == 0 ? j.num_ranks : 0));
  for (std::size_t r = 0; r < texts.size(); ++r) CHECK(texts[r] == std::string(r, 'x'));
}

TEST_CASE("handovers are measured among all ranks of a node, and within its caches") {
  const int p = measure::job_of_world().num_ranks;
  for (const bool several : {false, true}) {
    std::string caches(std::size_t(p), '0');
    for (int r = p / 2; several && r < p; ++r) caches[std::size_t(r)] = '1';
    ::setenv("TEST_CACHES", caches.c_str(), 1);
    const measure::job j = measure::job_of_world();
    const bool matter = several && p > 2;
    CHECK(j.caches().matter() == matter);
    measurements all;
    measure::sample_handovers(j, all, 0, [](double, const std::string&) {});
    CHECK(all.handovers.empty() == (j.rank > 0 || p < 2));
    CHECK(all.near_handovers.size() == (matter ? all.handovers.size() : 0));
    for (const auto* samples : {&all.handovers, &all.near_handovers})
      for (const local_sample& s : *samples) CHECK(s.seconds > 0);
  }
  ::unsetenv("TEST_CACHES");
}

TEST_CASE("the MPI library's own result of every workload is right") {
  const measure::job j = measure::job_of_world();
  for (const collective op : all_collectives)
    for (const std::int64_t size : {0, 1, 7, 4096})
      for (const int root : {0, j.num_ranks - 1}) {
        const std::int64_t bytes = measure::whole_message_bytes(op, size, j.num_ranks);
        for (const double empty : {0.0, 0.6, 1.0}) {
          CAPTURE(name_of(op), bytes, root, empty);
          const measure::workload data(j, op, bytes, root, empty);
          run_native(data.made_on(MPI_COMM_WORLD));
          CHECK(data.is_right());
        }
      }
  CHECK_THROWS_AS(
      measure::whole_message_bytes(collective::all_to_allv, std::int64_t{1} << 30, j.num_ranks),
      error);
}

TEST_CASE("contestants are native, tuned and the arms as they are predicted") {
  const measure::job j = measure::job_of_world();
  const auto all = measure::contestants_of({}, collective::broadcast, 1 << 20, j, nullptr);
  REQUIRE(all.size() >= 2);
  CHECK(all[0].what == measure::contestant::kind::native);
  CHECK(all[1].what == measure::contestant::kind::tuned);
  CHECK(std::is_sorted(all.begin() + 2, all.end(),
                       [](const auto& a, const auto& b) { return a.predicted_s < b.predicted_s; }));
  const auto one = measure::contestants_of({"native"}, collective::broadcast, 8, j, nullptr);
  CHECK(one.size() == 1);
}

TEST_CASE("cells are measured one after the other, each contestant in each") {
  const measure::job j = measure::job_of_world();
  if (j.num_ranks < 2) return;
  std::vector<measure::cell_request> cells;
  for (const bool round_time : {false, true})
    cells.push_back(
        {.op = collective::all_reduce,
         .bytes = 64,
         .contestants = measure::contestants_of({"native", "tuned", "recursive_doubling"},
                                                collective::all_reduce, 64, j, nullptr),
         .round_time = round_time});
  bench_results all = measure::begin_bench(j);
  CHECK(all.num_ranks == j.num_ranks);
  std::size_t finished = 0, rows = 0;
  measure::measure_cells(
      j, cells, 0.2, all, [](double, const std::string&) {},
      [&](const measure::cell_request& cell, const measure::cell_result& result) {
        CHECK(cell.round_time == cells[finished].round_time);
        CHECK(result.rows.size() + result.left_out.size() == cell.contestants.size());
        CHECK(result.wrong.empty());
        CHECK(result.repetitions > 0);
        finished += 1;
        rows += result.rows.size();
      });
  CHECK(finished == cells.size());
  CHECK(all.results.size() == rows);
}

namespace {

// Before MPI_Init.
const bool own_algorithms_prepared = (measure::own_algorithms::prepare(), true);

// x -> a x + b modulo a prime: composing such maps is associative, but not commutative.
struct map {
  std::int32_t a = 1, b = 0;
  friend bool operator==(const map&, const map&) = default;
  friend map operator*(const map& f, const map& g) {
    constexpr std::int32_t prime = 10007;
    return {f.a * g.a % prime, (f.a * g.b + f.b) % prime};
  }
};

void compose(void* left, void* right, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i)
    static_cast<map*>(right)[i] = static_cast<map*>(left)[i] * static_cast<map*>(right)[i];
}

map map_of(int rank, int place) { return {2 + rank + place % 5, 1 + 3 * rank + place}; }

}  // namespace

TEST_CASE("the order of operands is kept by algorithms that rules name for all operations") {
  const measure::job j = measure::job_of_world();
  const auto* const library = libraries::find(measure::machine_marks(1).mpi_library);
  if (j.num_ranks < 2 || library != &libraries::openmpi_library) return;
  const measure::own_algorithms own(j);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(2, MPI_INT32_T, &type);
  MPI_Type_commit(&type);
  MPI_Op composition = MPI_OP_NULL;
  MPI_Op_create(compose, 0, &composition);
  constexpr int most = 121;
  const auto size = std::size_t(most * j.num_ranks);
  std::vector<map> in(size), out(size), expected(size);
  for (std::size_t i = 0; i < size; ++i) {
    in[i] = map_of(j.rank, int(i));
    for (int r = 0; r < j.num_ranks; ++r) expected[i] = expected[i] * map_of(r, int(i));
  }
  int algorithms = 0;
  for (const collective op : {collective::all_reduce, collective::reduce,
                              collective::reduce_scatter, collective::reduce_scatter_block})
    for (const own_algorithm& a : own.of(op)) {
      if (!library->why_not(op, a, {}, false).empty()) continue;
      ++algorithms;
      for (const std::int64_t segment_bytes : {0, 64}) {
        MPI_Comm comm = own.communicator(op, a, segment_bytes);
        for (const int count : {1, 4, 13, 40, most}) {
          CAPTURE(name_of(op), a.name, segment_bytes, count);
          const std::vector<int> counts(std::size_t(j.num_ranks), count);
          const int root = count % j.num_ranks;
          int place = 0, received = count;
          if (op == collective::all_reduce) {
            PMPI_Allreduce(in.data(), out.data(), count, type, composition, comm);
          } else if (op == collective::reduce) {
            PMPI_Reduce(in.data(), out.data(), count, type, composition, root, comm);
            received = j.rank == root ? count : 0;
          } else {
            place = j.rank * count;
            if (op == collective::reduce_scatter)
              PMPI_Reduce_scatter(in.data(), out.data(), counts.data(), type, composition, comm);
            else
              PMPI_Reduce_scatter_block(in.data(), out.data(), count, type, composition, comm);
          }
          CHECK(std::equal(out.begin(), out.begin() + received, expected.begin() + place));
        }
        MPI_Comm_free(&comm);
      }
    }
  CHECK(algorithms >= 4);
  MPI_Op_free(&composition);
  MPI_Type_free(&type);
}

TEST_CASE("the MPI library's own algorithms are contestants") {
  const measure::job j = measure::job_of_world();
  const auto* const library = libraries::find(measure::machine_marks(1).mpi_library);
  if (j.num_ranks < 2 || !library || library->setting_of) return;
  const measure::own_algorithms own(j);
  const std::vector<own_algorithm>& known = own.of(collective::broadcast);
  REQUIRE(std::ranges::find(known, "binomial", &own_algorithm::name) != known.end());
  const std::vector<measure::cell_request> cells{
      {.op = collective::broadcast,
       .bytes = 4096,
       .contestants = measure::contestants_of(
           {"native", "native:binomial", "native:all", "native:binomial:1024"},
           collective::broadcast, 4096, j, nullptr, &own),
       .own = &own}};
  CHECK(cells[0].contestants.size() ==
        1 + known.size() + (own.has_segments(collective::broadcast) ? 1 : 0));
  bench_results all = measure::begin_bench(j);
  measure::measure_cells(
      j, cells, 0.2, all, [](double, const std::string&) {},
      [&](const measure::cell_request&, const measure::cell_result& result) {
        CHECK(result.wrong.empty());
      });
  CHECK(all.own_algorithms.size() == known.size());
  CHECK(std::ranges::count(all.results, "native:binomial", &bench_result::arm) == 1);
  REQUIRE(own_algorithms_prepared);
}
