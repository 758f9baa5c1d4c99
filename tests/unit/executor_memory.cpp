// SPDX-License-Identifier: BSL-1.0
//
// After its first call with an arm, a root and a size the executor allocates nothing, nor does it
// for a smaller message; what it holds does not grow with the number of segments; and where memory
// runs out, that is before the first message.
#include "collectives/registry.hpp"
#include "lib/exec/executor.hpp"
#include "lib/exec/schedule_cache.hpp"
#include "support/catch.hpp"
#include "support/replaced_new.hpp"

namespace {
std::size_t allocations = 0, allocated_bytes = 0;
std::size_t last_allocation = std::size_t(-1);  // later ones fail
}  // namespace

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (allocations >= last_allocation) throw std::bad_alloc();
  ++allocations;
  allocated_bytes += bytes;
  return aligned_memory(bytes, alignment);
}

namespace {

using namespace railpass;
using namespace railpass::internal;

// Every message ends at the next poll; nobody is at the other end.
class echo_rail {
 public:
  void reserve(std::size_t) {}
  post_result post_send(std::int32_t, std::int32_t, const std::byte*, std::int64_t,
                        rail_token token) {
    return keep(token);
  }
  post_result post_receive(std::int32_t, std::int32_t, std::byte*, std::int64_t, rail_token token) {
    return keep(token);
  }
  int poll(std::span<rail_token> completed) {
    std::size_t n = 0;
    while (n < completed.size() && pending_ > 0) completed[n++] = tokens_[std::size_t(--pending_)];
    return static_cast<int>(n);
  }
  int pending() const { return pending_; }
  void give_way() {}
  static constexpr int large_messages_at_once = 1;
  int error_code() const { return 0; }
  void abandon() { pending_ = 0; }
  std::size_t posted() const { return posted_; }

 private:
  post_result keep(rail_token token) {
    tokens_.at(std::size_t(pending_++)) = token;
    ++posted_;
    return post_result::pending;
  }
  std::array<rail_token, 128> tokens_{};
  std::size_t posted_ = 0;
  int pending_ = 0;
};

int no_reduce(void*, const std::byte*, std::byte*, std::int64_t) { return 0; }

struct call_memory {
  std::vector<std::byte> input, output;
  explicit call_memory(std::size_t bytes) : input(bytes), output(bytes) {}
  binding bind(std::int64_t bytes) {
    binding b;
    b.input = input.data();
    b.output = output.data();
    b.size = {bytes, 1};
    b.hooks.reduce = no_reduce;
    return b;
  }
};

}  // namespace

TEST_CASE("a call like an earlier one allocates nothing") {
  call_memory memory(100000);
  for (const algorithm* a : all_algorithms) {
    if (a->is_native() || a->needs.shared_memory) continue;  // which has an executor of its own
    for (const std::int64_t segment : {0, 1024}) {
      arm chosen = default_arm(*a);
      for (int i = 0; i < a->num_parameters(); ++i)
        if (a->parameter_list[std::size_t(i)].name == "segment_bytes")
          chosen.values[std::size_t(i)] = segment;
      for (int rank = 0; rank < 8; ++rank) {
        INFO(name_of(chosen) << " rank " << rank);
        const shape s{.rank = rank, .num_ranks = 8};
        echo_rail rail;
        executor<echo_rail> exec(rail);
        schedule_cache cache;
        const auto call = [&](std::int64_t bytes) {
          return exec.run(*cache.find_or_build(*a, chosen.values, s), memory.bind(bytes));
        };
        REQUIRE(call(100000) == 0);
        const std::size_t before = allocations;
        const int codes = call(100000) + call(5000) + call(100000);
        const std::size_t after = allocations;
        REQUIRE(codes == 0);
        REQUIRE(after == before);
      }
    }
  }
}

TEST_CASE("whichever allocation fails, nothing was posted, and the executor can go on") {
  call_memory memory(100000);
  for (const algorithm* a : all_algorithms) {
    if (a->is_native() || a->needs.shared_memory) continue;  // which has an executor of its own
    INFO(a->name);
    const schedule s = numbered(a->build({.rank = 5, .num_ranks = 8}, default_arm(*a).values));
    echo_rail rail;
    executor<echo_rail> exec(rail);
    std::size_t allowed = 0;
    for (bool enough = false; !enough; ++allowed) {
      std::size_t posted = 0;
      last_allocation = allocations + allowed;
      try {
        exec.run(s, memory.bind(100000));
        enough = true;
      } catch (const std::bad_alloc&) {
        posted = rail.posted();
      }
      last_allocation = std::size_t(-1);
      REQUIRE(posted == 0);
    }
    REQUIRE(allowed > 1);
    const std::size_t posted = rail.posted();
    REQUIRE(exec.run(s, memory.bind(100000)) == 0);
    REQUIRE(rail.posted() == 2 * posted);
  }
}

TEST_CASE("memory does not grow with the number of segments") {
  const algorithm* binomial = find_algorithm(collective::broadcast, "binomial");
  REQUIRE(binomial != nullptr);
  call_memory memory(1 << 20);
  const auto used_with = [&](std::int64_t segment) {
    echo_rail rail;
    const std::size_t before = allocated_bytes;
    executor<echo_rail> exec(rail);
    const schedule s = binomial->build({.rank = 2, .num_ranks = 8}, {segment});
    REQUIRE(exec.run(s, memory.bind(1 << 20)) == 0);
    return allocated_bytes - before;
  };
  used_with(0);  // what Catch itself needs the first time
  const std::size_t one_segment = used_with(0), many = used_with(16);
  REQUIRE(many <= one_segment);
}
