// SPDX-License-Identifier: BSL-1.0
//
// More elements or bytes than an int counts, in little memory: long stretches of addresses are the
// same few pages again and again, or are never touched.
#include "collectives/registry.hpp"
#include "lib/buffers/call_buffers.hpp"
#include "lib/buffers/elements.hpp"
#include "lib/call/eligibility.hpp"
#include "lib/runtime/process.hpp"
#include "railpass/mpi.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/single_copies.hpp"

#include <climits>

#include <cstring>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

namespace {

constexpr std::int64_t page = 4096;

// `bytes` bytes of addresses between two inaccessible pages; byte i is byte i mod period.
class repeated_memory {
 public:
  repeated_memory(std::int64_t bytes, std::int64_t period)
      : period_(period), mapped_((bytes + page - 1) / page * page) {
    const int file = memfd_create("repeated", 0);
    base_ = static_cast<char*>(mmap(nullptr, std::size_t(mapped_ + 2 * guard), PROT_NONE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (file < 0 || base_ == MAP_FAILED || ftruncate(file, period) != 0)
      throw std::runtime_error("no memory to repeat");
    for (std::int64_t at = 0; at < mapped_; at += period)
      if (mmap(base_ + guard + at, std::size_t(std::min(period, mapped_ - at)),
               PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
        throw std::runtime_error("too many pieces of memory");
    close(file);
  }
  ~repeated_memory() { munmap(base_, std::size_t(mapped_ + 2 * guard)); }
  repeated_memory(const repeated_memory&) = delete;
  repeated_memory& operator=(const repeated_memory&) = delete;

  char* data() const { return base_ + guard; }
  // Byte i of the message that begins `first` bytes before this memory.
  void fill(std::int64_t first) {
    for (std::int64_t i = 0; i < period_; ++i) data()[i] = pattern((i + first) % period_);
  }
  std::int64_t wrong_bytes() const {
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < period_; ++i) wrong += data()[i] != pattern(i);
    return wrong;
  }

 private:
  static constexpr std::int64_t guard = 1 << 20;
  static char pattern(std::int64_t i) { return char(1 + (i * 7 + i / 251) % 127); }
  std::int64_t period_;
  std::int64_t mapped_;
  char* base_ = nullptr;
};

// Not a divisor of any power of two, so that an offset that lost bits hits another byte.
constexpr std::int64_t period = 1027 * page;

call all_gatherv_of(const std::vector<int>& counts, const std::vector<int>& places,
                    MPI_Datatype type, void* memory) {
  return {
      .op = collective::all_gatherv,
      .send = {.memory = memory, .count = counts[0], .type = type},
      .receive = {
          .memory = memory, .type = type, .counts = counts.data(), .displacements = places.data()}};
}

}  // namespace

TEST_CASE("lengths of messages beyond 2^31, and those that are refused") {
  MPI_Datatype large = MPI_DATATYPE_NULL;  // 1 GiB
  MPI_Type_contiguous(1 << 30, MPI_BYTE, &large);
  MPI_Type_commit(&large);
  int size = 0;
  MPI_Type_size(large, &size);
  REQUIRE(size == 1 << 30);
  call c{.op = collective::broadcast, .receive = {.count = INT_MAX, .type = MPI_INT}};
  CHECK(message_bytes_of(c, 0, 8) == 4 * std::int64_t{INT_MAX});
  c.receive.type = large;
  c.receive.count = 1 << 29;
  CHECK(message_bytes_of(c, 0, 8) == std::int64_t{1} << 59);
  c.receive.count = INT_MAX;
  CHECK(message_bytes_of(c, 0, 8) < 0);

  call all{.op = collective::all_to_all,
           .send = {.count = INT_MAX, .type = MPI_INT},
           .receive = {.count = INT_MAX, .type = MPI_INT}};
  CHECK(message_bytes_of(all, 3, 1000) == 4000 * std::int64_t{INT_MAX});
  all.send.type = all.receive.type = large;
  CHECK(message_bytes_of(all, 3, 1000) < 0);

  const std::vector<int> counts(64, INT_MAX), places(64, 0);
  call v = all_gatherv_of(counts, places, MPI_DOUBLE, nullptr);
  CHECK(message_bytes_of(v, 0, 64) == 8 * 64 * std::int64_t{INT_MAX});
  v.receive.type = large;
  CHECK(message_bytes_of(v, 0, 64) < 0);
  MPI_Type_free(&large);
}

TEST_CASE("elements are handed to MPI in portions that ints can count") {
  for (const std::int64_t elements :
       {std::int64_t{5}, std::int64_t{INT_MAX}, std::int64_t{5} << 30})
    for (const std::int64_t size : {1, 12, 1 << 20, INT_MAX}) {
      const std::int64_t extent = size + 4;
      std::int64_t done = 0;
      int wrong = 0;
      if (elements / (INT_MAX / size) > 1'000'000) continue;
      CHECK(in_portions(
                elements, size, extent, [&](std::int64_t from, std::int64_t to, int n, int bytes) {
                  wrong +=
                      from != done * extent || to != done * size || n <= 0 || bytes != n * size;
                  done += n;
                  return MPI_SUCCESS;
                }) == MPI_SUCCESS);
      CHECK(wrong == 0);
      CHECK(done == elements);
    }
}

TEST_CASE("buffers of huge calls are bound where MPI says they are") {
  REQUIRE(process::get() != nullptr);
  MPI_Datatype eight = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(8, MPI_BYTE, &eight);
  MPI_Type_commit(&eight);
  // Only the address is used.
  auto* const memory = reinterpret_cast<char*>(std::uintptr_t{1} << 40);
  const auto offset = [&](const std::byte* place) {
    return reinterpret_cast<const char*>(place) - memory;
  };
  constexpr int p = 4, rank = 2;
  const calling_rank at{rank, p, process::get()->datatype_key(), MPI_COMM_SELF};

  SECTION("all_gatherv, blocks with gaps, 2^33 bytes apart and more") {
    const std::vector<int> counts{1 << 30, 3, 2'000'000'000, 7};
    const std::vector<int> places{0, 1'500'000'000, -2'000'000'001, 2'100'000'000};
    call c = all_gatherv_of(counts, places, eight, memory);
    c.send.memory = MPI_IN_PLACE;
    c.message_bytes = message_bytes_of(c, rank, p);
    CHECK(c.message_bytes == 8 * ((std::int64_t{1} << 30) + 2'000'000'010));
    const algorithm& linear = *find_algorithm(collective::all_gatherv, "linear");
    const schedule s = linear.build({.rank = rank, .num_ranks = p}, default_arm(linear).values);
    call_buffers buffers;
    REQUIRE(buffers.prepare(c, at, s, 0) == MPI_SUCCESS);
    const binding& b = buffers.bound();
    CHECK(b.size.units == c.message_bytes);
    REQUIRE(b.size.blocks.size() == p);
    REQUIRE(b.output_blocks.size() == p);
    std::int64_t end = 0;
    for (std::size_t k = 0; k < p; ++k) {
      CHECK(b.size.blocks[k] == extent{end, end + 8 * std::int64_t{counts[k]}});
      end = b.size.blocks[k].end;
      CHECK(b.output_blocks[k].begin == 8 * std::int64_t{places[k]});
      CHECK(b.output_blocks[k].size() == 8 * std::int64_t{counts[k]});
    }
    CHECK(offset(b.output) == 0);
  }
  SECTION("all_gatherv, blocks of more elements than an int counts") {
    const std::vector<std::int64_t> counts{(std::int64_t{1} << 32) + 8, 3, std::int64_t{1} << 31,
                                           7};
    const std::vector<std::int64_t> places{0, std::int64_t{1} << 33, std::int64_t{1} << 34, -9};
    call c{.op = collective::all_gatherv,
           .send = {.memory = MPI_IN_PLACE},
           .receive = {.memory = memory,
                       .type = eight,
                       .counts = counts.data(),
                       .displacements = places.data()}};
    c.message_bytes = message_bytes_of(c, rank, p);
    const algorithm& linear = *find_algorithm(collective::all_gatherv, "linear");
    const schedule s = linear.build({.rank = rank, .num_ranks = p}, default_arm(linear).values);
    call_buffers buffers;
    REQUIRE(buffers.prepare(c, at, s, 0) == MPI_SUCCESS);
    const binding& b = buffers.bound();
    REQUIRE(b.size.blocks.size() == p);
    std::int64_t end = 0;
    for (std::size_t k = 0; k < p; ++k) {
      CHECK(b.size.blocks[k] == extent{end, end + 8 * counts[k]});
      end = b.size.blocks[k].end;
      CHECK(b.output_blocks[k] == extent{8 * places[k], 8 * (places[k] + counts[k])});
    }
    CHECK(end == c.message_bytes);
  }
  SECTION("reduce_scatter of more elements than an int counts") {
    const std::vector<int> counts{INT_MAX, 1, INT_MAX, INT_MAX};
    call c{.op = collective::reduce_scatter,
           .send = {.memory = memory},
           .receive = {.memory = memory + (std::int64_t{1} << 38),
                       .type = MPI_DOUBLE,
                       .counts = counts.data()},
           .operation = MPI_SUM};
    c.element_bytes = 8;
    c.message_bytes = message_bytes_of(c, rank, p);
    call_buffers buffers;
    REQUIRE(buffers.prepare(c, at, schedule{}, 0) == MPI_SUCCESS);
    const binding& b = buffers.bound();
    CHECK(b.size.units == 3 * std::int64_t{INT_MAX} + 1);
    CHECK(b.size.bytes() == c.message_bytes);
    CHECK(b.size.blocks[3] == extent{2 * std::int64_t{INT_MAX} + 1, 3 * std::int64_t{INT_MAX} + 1});
    CHECK(offset(b.input) == 0);
    // Where unit 0 would be if this rank's block lay in its place.
    CHECK(offset(b.output) == (std::int64_t{1} << 38) - 8 * (std::int64_t{INT_MAX} + 1));
  }
  SECTION("scatter from a root") {
    call c{.op = collective::scatter,
           .send = {.memory = memory, .count = INT_MAX, .type = eight},
           .receive = {.memory = memory + (std::int64_t{1} << 39), .count = INT_MAX, .type = eight},
           .root = rank};
    c.message_bytes = message_bytes_of(c, rank, p);
    const algorithm& linear = *find_algorithm(collective::scatter, "linear");
    const schedule s = linear.build({.rank = 0, .num_ranks = p}, default_arm(linear).values);
    call_buffers buffers;
    REQUIRE(buffers.prepare(c, at, s, rank) == MPI_SUCCESS);
    const binding& b = buffers.bound();
    CHECK(b.size.units == 32 * std::int64_t{INT_MAX});
    REQUIRE(b.input_blocks.size() == p);
    for (std::size_t k = 0; k < p; ++k)
      CHECK(b.input_blocks[k].begin == 8 * std::int64_t{INT_MAX} * std::int64_t((k + rank) % p));
  }
  MPI_Type_free(&eight);
}

TEST_CASE("large datatypes are packed if they repeat one that is") {
  const int key = process::get()->datatype_key();
  const auto is_packed = [&](MPI_Datatype type) {
    datatype_layout layout;
    MPI_Type_commit(&type);
    CHECK(layout_of(type, key, layout) == MPI_SUCCESS);
    MPI_Type_free(&type);
    return layout.packed;
  };
  MPI_Datatype doubles = MPI_DATATYPE_NULL, twice = MPI_DATATYPE_NULL, pairs = MPI_DATATYPE_NULL,
               swapped = MPI_DATATYPE_NULL, all = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(1 << 20, MPI_DOUBLE, &doubles);
  MPI_Type_contiguous(1 << 10, doubles, &twice);
  MPI_Type_dup(twice, &all);
  CHECK(is_packed(twice));
  CHECK(is_packed(all));
  CHECK(is_packed(doubles));
  MPI_Type_contiguous(1 << 20, MPI_DOUBLE_INT, &pairs);  // 12 bytes in 16
  CHECK(!is_packed(pairs));
  const int lengths[2] = {1, 1}, places[2] = {1, 0};
  MPI_Type_indexed(2, lengths, places, MPI_INT, &swapped);
  MPI_Type_contiguous(1 << 20, swapped, &all);
  MPI_Type_free(&swapped);
  CHECK(!is_packed(all));
#if MPI_VERSION >= 4
  const MPI_Count longer[2] = {5, 2}, behind[2] = {0, 5}, apart[2] = {0, 6}, whole[2] = {4, 5},
                  rows[2] = {2, 5}, from[2] = {0, 0};
  MPI_Type_contiguous_c(MPI_Count{5} << 30, MPI_DOUBLE, &all);
  CHECK(!is_predefined(all));
  CHECK(is_packed(all));
  MPI_Type_indexed_c(2, longer, behind, MPI_INT, &all);
  CHECK(is_packed(all));
  MPI_Type_indexed_c(2, longer, apart, MPI_INT, &all);
  CHECK(!is_packed(all));
  MPI_Datatype part = MPI_DATATYPE_NULL;
  MPI_Type_create_subarray_c(2, whole, rows, from, MPI_ORDER_C, MPI_INT, &part);
  MPI_Type_create_resized_c(part, 0, 40, &all);
  MPI_Type_free(&part);
  CHECK(is_packed(all));
#endif
}

TEST_CASE("an element of more than 2^31 bytes is packed and unpacked") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() != 1) return;  // local, and takes its time
  constexpr int length = 255 * int(page), repetitions = 3001;
  constexpr std::int64_t size = std::int64_t{length} * repetitions;
  MPI_Datatype part = MPI_DATATYPE_NULL, resized = MPI_DATATYPE_NULL, type = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(length, MPI_BYTE, &part);
  repeated_memory wire(size, length);
  {  // the same bytes again and again, one behind the other when packed
    MPI_Type_create_resized(part, 0, 0, &resized);
    MPI_Type_contiguous(repetitions, resized, &type);
    MPI_Type_commit(&type);
    repeated_memory memory(length, length);
    memory.fill(0);
    CHECK(pack_elements(reinterpret_cast<std::byte*>(memory.data()), 1, type, size, 0,
                        reinterpret_cast<std::byte*>(wire.data()), MPI_COMM_SELF) == MPI_SUCCESS);
    CHECK(wire.wrong_bytes() == 0);
    MPI_Type_free(&resized);
    MPI_Type_free(&type);
  }
  {  // with a hole behind each
    constexpr std::int64_t distance = length + page;
    MPI_Type_create_resized(part, 0, distance, &resized);
    MPI_Type_contiguous(repetitions, resized, &type);
    MPI_Type_commit(&type);
    repeated_memory memory(distance * repetitions, distance);
    CHECK(unpack_elements(reinterpret_cast<std::byte*>(wire.data()), 1, type, size,
                          distance * repetitions, reinterpret_cast<std::byte*>(memory.data()),
                          MPI_COMM_SELF) == MPI_SUCCESS);
    CHECK(std::memcmp(memory.data(), wire.data(), length) == 0);
    for (std::int64_t i = length; i < distance; ++i)
      if (memory.data()[i] != 0) FAIL("a hole was written to at byte " << i);
    MPI_Type_free(&resized);
    MPI_Type_free(&type);
  }
  MPI_Type_free(&part);
}

TEST_CASE("more than 2^31 bytes arrive") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() != 2) return;  // two ranks suffice; more only take longer
  mpi::configure(world, "scratch_limit", "0");
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  const int root = 1;

  constexpr int ints = (1 << 29) + 3001;
  for (const char* arm : {"binomial", "pipeline+segment_bytes=1MiB"}) {
    CAPTURE(arm);
    repeated_memory memory(4 * std::int64_t{ints}, period);
    if (world.rank() == root) memory.fill(0);
    CHECK(mpi::broadcast(memory.data(), ints, MPI_INT, root, world, collect(use(arm))) ==
          MPI_SUCCESS);
    CHECK(mpi::last_arm(world) == arm);
    CHECK(memory.wrong_bytes() == 0);
  }

  // Each block is below 2^31, their sum is not.
  const std::vector<int> counts{1'200'000'000, 1'000'000'123}, places{0, counts[0]};
  repeated_memory all(std::int64_t{counts[0]} + counts[1], period);
  repeated_memory mine(counts[std::size_t(world.rank())], period);
  mine.fill(places[std::size_t(world.rank())]);
  CHECK(mpi::all_gatherv(mine.data(), counts[std::size_t(world.rank())], MPI_BYTE, all.data(),
                         counts.data(), places.data(), MPI_BYTE, world,
                         collect(use("ring"))) == MPI_SUCCESS);
  CHECK(mpi::last_arm(world) == "ring");
  CHECK(all.wrong_bytes() == 0);
}

TEST_CASE("more bytes of one block than an int counts arrive") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() != 2) return;
  mpi::configure(world, "scratch_limit", "0");
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  const auto rank = std::size_t(world.rank());
  const std::vector<std::int64_t> counts{(std::int64_t{1} << 32) + 64, period + 1},
      places{0, counts[0]};
  std::vector<std::string> arms{"ring"};
  if (test::single_copies(world)) arms.push_back("single_copy");
  for (const std::string& arm : arms) {
    CAPTURE(arm);
    repeated_memory all(counts[0] + counts[1], period), mine(counts[rank], period);
    mine.fill(places[rank]);
    call c{.op = collective::all_gatherv,
           .send = {.memory = mine.data(), .count = counts[rank], .type = MPI_BYTE},
           .receive = {.memory = all.data(),
                       .type = MPI_BYTE,
                       .counts = counts.data(),
                       .displacements = places.data()},
           .comm = world,
           .is_large = true};
    CHECK(run_call(c, collect(use(arm))) == MPI_SUCCESS);
    CHECK(mpi::last_arm(world).starts_with(arm));
    CHECK(all.wrong_bytes() == 0);
  }
}
