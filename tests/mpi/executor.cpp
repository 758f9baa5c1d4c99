// SPDX-License-Identifier: BSL-1.0
//
// Every algorithm over real MPI, against the MPI library's own collectives.
#include "collectives/registry.hpp"
#include "lib/exec/mpi_executor.hpp"
#include "lib/exec/schedule_cache.hpp"
#include "support/catch.hpp"

#include <climits>

#include <cstring>
#include <random>

namespace {

using namespace railpass;
using namespace railpass::internal;

// A communicator of its own, as a session has.
struct own_communicator {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, size = 1;
  own_communicator() {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
  }
  own_communicator(const own_communicator&) = delete;
  own_communicator& operator=(const own_communicator&) = delete;
  ~own_communicator() { MPI_Comm_free(&comm); }
};

struct typed_reduction {
  MPI_Datatype type;
  MPI_Op op;
  MPI_Comm comm;
};

int reduce_local(void* user, const std::byte* left, std::byte* right, std::int64_t units) {
  const auto& r = *static_cast<typed_reduction*>(user);
  return MPI_Reduce_local(const_cast<std::byte*>(left), right, int(units), r.type, r.op);
}
int pack(void* user, const std::byte* memory, std::int64_t units, std::byte* packed) {
  const auto& r = *static_cast<typed_reduction*>(user);
  int place = 0;
  return MPI_Pack(const_cast<std::byte*>(memory), int(units), r.type, packed, INT_MAX, &place,
                  r.comm);
}
int unpack(void* user, const std::byte* packed, std::int64_t units, std::byte* memory) {
  const auto& r = *static_cast<typed_reduction*>(user);
  int place = 0;
  return MPI_Unpack(const_cast<std::byte*>(packed), INT_MAX, &place, memory, int(units), r.type,
                    r.comm);
}

// Arms with a few values per parameter, so that the test takes seconds.
std::vector<arm> some_arms(collective op) {
  std::vector<arm> arms;
  for (const arm& a : arms_of(op)) {
    if (a.base->is_native()) continue;
    bool wanted = true;
    for (int i = 0; i < a.base->num_parameters(); ++i)
      if (a.base->parameter_list[std::size_t(i)].name == "segment_bytes") {
        const std::int64_t segment = a.values[std::size_t(i)];
        wanted = segment == 0 || segment == 1 << 10 || segment == 16 << 10;
      }
    if (wanted) arms.push_back(a);
  }
  return arms;
}

// Multiplication of 2x2 matrices modulo 2^32: associative, not commutative.
using matrix = std::array<std::uint32_t, 4>;
void multiply(void* left, void* right, int* count, MPI_Datatype*) {
  const auto* l = static_cast<const matrix*>(left);
  auto* r = static_cast<matrix*>(right);
  for (int i = 0; i < *count; ++i) {
    const matrix a = l[i], b = r[i];
    r[i] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
            a[2] * b[1] + a[3] * b[3]};
  }
}

}  // namespace

TEST_CASE("broadcast by every algorithm") {
  own_communicator c;
  if (c.size < 2) return;
  mpi_rail rail(c.comm);
  executor<mpi_rail> exec(rail);
  schedule_cache cache;
  for (const std::int64_t bytes : {0, 1, 1000, 40000, 300001})
    for (const arm& a : some_arms(collective::broadcast)) {
      if (!eligible(*a.base, {c.size, bytes, true})) continue;
      const int root = int(bytes % c.size);
      INFO(name_of(a) << " bytes " << bytes << " root " << root);
      std::vector<unsigned char> data(std::size_t(bytes) + 1, 0xee);
      if (c.rank == root)
        for (std::size_t i = 0; i < std::size_t(bytes); ++i) data[i] = (unsigned char)(i * 7 + 3);
      binding b;
      b.output = reinterpret_cast<std::byte*>(data.data());
      b.input = b.output;
      b.size = {bytes, 1};
      b.root = root;
      const auto& s = cache.find_or_build(*a.base, a.values, {wrap(c.rank - root, c.size), c.size});
      REQUIRE(exec.run(*s, b) == MPI_SUCCESS);
      std::int64_t wrong = 0;
      for (std::size_t i = 0; i < std::size_t(bytes); ++i)
        wrong += data[i] != (unsigned char)(i * 7 + 3);
      REQUIRE(wrong == 0);
      REQUIRE(data.back() == 0xee);
    }
  REQUIRE(rail.pending() == 0);
}

TEST_CASE("all_reduce by every algorithm, commutative or not, in place or not, with gaps or not") {
  own_communicator c;
  if (c.size < 2) return;
  mpi_rail rail(c.comm);
  executor<mpi_rail> exec(rail);
  schedule_cache cache;
  MPI_Datatype matrices;
  MPI_Type_contiguous(4, MPI_UINT32_T, &matrices);
  MPI_Type_commit(&matrices);
  MPI_Op product;
  MPI_Op_create(multiply, 0, &product);
  struct located {
    double value;
    int place;
  };
  // MPI_DOUBLE_INT: 12 bytes of data in 16, the last 4 are a gap.
  struct kind {
    typed_reduction r;
    std::int64_t unit_bytes, extent_bytes;
    bool commutative, gaps;
  };
  const kind kinds[] = {{{MPI_UINT64_T, MPI_SUM, c.comm}, 8, 8, true, false},
                        {{matrices, product, c.comm}, 16, 16, false, false},
                        {{MPI_DOUBLE_INT, MPI_MINLOC, c.comm}, 12, sizeof(located), true, true}};
  for (kind k : kinds)
    for (const std::int64_t units : {0, 1, 5, 1000, 20000})
      for (const bool in_place : {false, true}) {
        const auto size = std::size_t(units * k.extent_bytes);
        std::vector<unsigned char> mine(size + 1, 0xee), expected(size + 1, 0xee);
        std::mt19937 random(unsigned(c.rank + 1));
        if (k.gaps) {
          for (std::size_t i = 0; i < std::size_t(units); ++i) {
            const double value = double(random() % 100);
            const int place = c.rank;
            std::memcpy(&mine[i * 16], &value, sizeof value);
            std::memcpy(&mine[i * 16 + 8], &place, sizeof place);
          }
        } else {
          for (std::size_t i = 0; i < size; ++i) mine[i] = (unsigned char)(random());
        }
        MPI_Allreduce(mine.data(), expected.data(), int(units), k.r.type, k.r.op, c.comm);
        for (const arm& a : some_arms(collective::all_reduce)) {
          if (!eligible(*a.base, {c.size, units, k.commutative})) continue;
          INFO(name_of(a) << " units " << units << " of " << k.unit_bytes << " in_place "
                          << in_place);
          std::vector<unsigned char> result =
              in_place ? mine : std::vector<unsigned char>(size + 1, 0xee);
          binding b;
          b.output = reinterpret_cast<std::byte*>(result.data());
          b.input = in_place ? b.output : reinterpret_cast<const std::byte*>(mine.data());
          b.size = {units, k.unit_bytes};
          b.hooks.user_data = &k.r;
          b.hooks.reduce = reduce_local;
          if (k.gaps) {
            b.hooks.pack = pack;
            b.hooks.unpack = unpack;
            b.layout = {k.extent_bytes, 0, k.unit_bytes};
          }
          const auto& s = cache.find_or_build(*a.base, a.values, {c.rank, c.size, k.commutative});
          REQUIRE(exec.run(*s, b) == MPI_SUCCESS);
          std::int64_t wrong = 0;
          for (std::size_t i = 0; i <= size; ++i) {
            const bool gap = k.gaps && i < size && i % 16 >= 12;
            wrong += result[i] != (gap ? 0xee : expected[i]);
          }
          REQUIRE(wrong == 0);
        }
      }
  REQUIRE(rail.pending() == 0);
  MPI_Op_free(&product);
  MPI_Type_free(&matrices);
}

TEST_CASE("messages longer than an MPI count") {
  // With a lower limit, messages of a few kilobytes run the code of messages above 2 GiB.
  own_communicator c;
  if (c.size < 2) return;
  for (const std::int64_t limit : {1, 7, 1000, 9999, 10000}) {
    mpi_rail rail(c.comm, nullptr, 0, false, limit);
    executor<mpi_rail> exec(rail);
    std::vector<int> data(2500);
    if (c.rank == 0)
      for (int i = 0; i < 2500; ++i) data[std::size_t(i)] = i + int(limit);
    binding b;
    b.output = reinterpret_cast<std::byte*>(data.data());
    b.size = {10000, 1};
    const algorithm& binomial = *find_algorithm(collective::broadcast, "binomial");
    const schedule s = binomial.build({c.rank, c.size}, {});
    REQUIRE(exec.run(s, b) == MPI_SUCCESS);
    int wrong = 0;
    for (int i = 0; i < 2500; ++i) wrong += data[std::size_t(i)] != i + int(limit);
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("a datatype of any number of bytes") {
  for (const std::int64_t bytes : {std::int64_t{INT_MAX} + 1, std::int64_t{5} << 30,
                                   std::int64_t{3} * INT_MAX, (std::int64_t{1} << 45) + 12345}) {
    MPI_Datatype type;
    REQUIRE(make_byte_type(bytes, INT_MAX, &type) == MPI_SUCCESS);
    MPI_Count size = 0, lower = 0, extent = 0;
    MPI_Type_size_x(type, &size);
    MPI_Type_get_extent_x(type, &lower, &extent);
    MPI_Type_free(&type);
    REQUIRE(size == bytes);
    REQUIRE(lower == 0);
    REQUIRE(extent == bytes);
  }
}

TEST_CASE("a rail asked for a few at a time leaves no message out") {
  own_communicator c;
  if (c.size < 2) return;
  constexpr int count = 300;
  mpi_rail rail(c.comm);
  const int right = (c.rank + 1) % c.size, left = (c.rank + c.size - 1) % c.size;
  std::vector<int> in(count, -1), out(count);
  std::vector<bool> ended(2 * count);
  int to_come = 2 * count;
  for (int i = 0; i < count; ++i)
    REQUIRE(rail.post_receive(left, 5, reinterpret_cast<std::byte*>(&in[std::size_t(i)]), 4,
                              rail_token(i)) == post_result::pending);
  // The first messages come last.
  for (int i = 0; i < count; ++i) {
    out[std::size_t(i)] = c.rank * 1000 + i;
    REQUIRE(rail.post_send(right, 5, reinterpret_cast<std::byte*>(&out[std::size_t(i)]), 4,
                           rail_token(count + i)) == post_result::pending);
  }
  REQUIRE(rail.pending() == to_come);
  std::array<rail_token, 7> tokens;
  while (to_come > 0) {
    const int n = rail.poll(tokens);
    if (n < 0) FAIL("MPI error " << rail.error_code());
    for (int i = 0; i < n; ++i) {
      REQUIRE(!ended[tokens[std::size_t(i)]]);
      ended[tokens[std::size_t(i)]] = true;
    }
    to_come -= n;
  }
  REQUIRE(rail.pending() == 0);
  for (int i = 0; i < count; ++i) REQUIRE(in[std::size_t(i)] == left * 1000 + i);
}

TEST_CASE("errors of MPI come back as its codes") {
  own_communicator c;
  mpi_rail rail(c.comm);
  executor<mpi_rail> exec(rail);
  std::array<std::byte, 8> data{};
  builder steps({.rank = 0, .num_ranks = c.size + 2});
  steps.send(buffer::output, {}, c.size + 1);
  binding b;
  b.output = data.data();
  b.size = {8, 1};
  const int code = exec.run(steps.finish(), b);
  int kind = MPI_SUCCESS;
  MPI_Error_class(code, &kind);
  REQUIRE(kind == MPI_ERR_RANK);
  REQUIRE(rail.pending() == 0);
}

TEST_CASE("a message of another length than its receive is an error of MPI's class for that") {
  own_communicator c;
  if (c.size < 2) return;
  mpi_rail rail(c.comm);
  // MPICH raises errors found by MPI_Testsome on MPI_COMM_WORLD.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  std::array<std::byte, 64> data{};
  for (const int sent : {64, 4}) {
    if (c.rank == 1) {
      std::array<rail_token, 4> tokens;
      REQUIRE(rail.post_receive(0, 3, data.data(), 8, 1) == post_result::pending);
      int n = 0;
      while (n == 0) n = rail.poll(tokens);
      REQUIRE(n == -1);
      int kind = MPI_SUCCESS;
      MPI_Error_class(rail.error_code(), &kind);
      REQUIRE(kind == MPI_ERR_TRUNCATE);
      REQUIRE(rail.unlike() == "rank 0 sent " + std::string(sent > 8 ? "more" : "4") +
                                   " where this rank expects 8 bytes");
      rail.abandon();
      REQUIRE(rail.pending() == 0);
    } else if (c.rank == 0) {
      MPI_Send(data.data(), sent, MPI_BYTE, 1, 3, c.comm);
    }
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

TEST_CASE("one executor runs schedules that the program builds and those of the library in turn") {
  own_communicator c;
  if (c.size < 2) return;
  mpi_rail rail(c.comm);
  executor<mpi_rail> exec(rail);
  schedule_cache of_library;
  const std::array algorithms{find_algorithm(collective::broadcast, "binomial"),
                              find_algorithm(collective::broadcast, "linear")};
  int wrong = 0;
  for (int i = 0; i < 40; ++i) {
    const int root = i / 4 % c.size;
    const algorithm& a = *algorithms[std::size_t(i) % 2];
    const shape s{.rank = wrap(c.rank - root, c.size), .num_ranks = c.size};
    std::vector<int> data(1000, c.rank == root ? i : -1);
    binding b;
    b.output = reinterpret_cast<std::byte*>(data.data());
    b.size = {std::int64_t(data.size() * sizeof(int)), 1};
    b.root = root;
    const parameters values = a.default_values();
    REQUIRE(exec.run(i % 4 < 2 ? a.build(s, values) : *of_library.find_or_build(a, values, s), b) ==
            MPI_SUCCESS);
    wrong += data != std::vector<int>(data.size(), i);
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("two calls in progress at once, finished in another order than started") {
  own_communicator c;
  if (c.size < 2) return;
  mpi_rail rail(c.comm);
  executor<mpi_rail> exec(rail);
  const arm pipeline = parse_arm(collective::broadcast, "pipeline+segment_bytes=1KiB");
  const int last = c.size - 1;
  const schedule from_first = pipeline.base->build({c.rank, c.size}, pipeline.values);
  const schedule from_last =
      pipeline.base->build({wrap(c.rank - last, c.size), c.size}, pipeline.values);
  std::vector<int> a(30000, c.rank), b(50000, c.rank);
  binding of_a, of_b;
  of_a.output = reinterpret_cast<std::byte*>(a.data());
  of_a.size = {120000, 1};
  of_b.output = reinterpret_cast<std::byte*>(b.data());
  of_b.size = {200000, 1};
  of_b.root = last;
  const auto first = exec.start(from_first, of_a);
  const auto second = exec.start(from_last, of_b);
  REQUIRE(exec.wait(second) == MPI_SUCCESS);
  REQUIRE(exec.wait(first) == MPI_SUCCESS);
  REQUIRE(a == std::vector<int>(30000, 0));
  REQUIRE(b == std::vector<int>(50000, last));
}
