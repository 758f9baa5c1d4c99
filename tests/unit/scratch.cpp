// SPDX-License-Identifier: BSL-1.0
//
// The scratch memory of calls: a thread keeps the pieces of one call for its next call, and calls
// that are under way at once have different ones.
#include "lib/exec/scratch.hpp"

#include "lib/exec/memory.hpp"
#include "railpass/schedule/builder.hpp"
#include "support/catch.hpp"
#include "support/replaced_new.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

namespace {

std::atomic<int> allocations{0};  // of scratch memory, by its alignment

}  // namespace

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (alignment == std::size_t(railpass::internal::scratch_memory::cache_line)) ++allocations;
  return aligned_memory(bytes, alignment);
}

using namespace railpass;
using namespace railpass::internal;

namespace {

template <class Work>
int allocated_in(const Work& work) {
  const int before = allocations;
  work();
  return allocations - before;
}

// A call's memory with scratch memory of the message's size.
struct bound_call {
  std::vector<std::int64_t> in, out;
  schedule plan;
  bound_memory memory;

  explicit bound_call(std::size_t units, std::int64_t value = 0) : in(units, value), out(units) {
    builder b({.rank = 0, .num_ranks = 1});
    const auto kept = b.copy(buffer::input, buffer::scratch0, {});
    b.copy(buffer::scratch0, buffer::output, {}, {whole(kept)});
    plan = b.finish();
    bind();
  }
  void bind() {
    memory.bind({.input = reinterpret_cast<const std::byte*>(in.data()),
                 .output = reinterpret_cast<std::byte*>(out.data()),
                 .size = {.units = std::int64_t(in.size()), .unit_bytes = sizeof in[0]}});
  }
  int keep() { return memory.copy(buffer::input, 0, buffer::scratch0, 0, units()); }
  int take() { return memory.copy(buffer::scratch0, 0, buffer::output, 0, units()); }
  std::int64_t units() const { return std::int64_t(in.size()); }
};

}  // namespace

TEST_CASE("calls that follow one another share their scratch memory, whoever makes them") {
  CHECK(allocated_in([] {
          for (int i = 0; i < 3; ++i) {
            bound_call one(10'000);
            one.memory.lay_out(one.plan);
            one.memory.give_back();
            one.memory.lay_out_again(one.plan);
            one.memory.give_back();
          }
        }) == 1);
  scratch_memory::free_spare();
  CHECK(allocated_in([] {
          bound_call one(10'000);
          one.memory.lay_out(one.plan);
          one.memory.give_back();
        }) == 1);
}

TEST_CASE("a call of several pieces finds them again, in whichever order it needs them") {
  scratch_memory::free_spare();
  std::vector<std::int64_t> bytes{1000, 300'000, 20'000};
  std::ranges::sort(bytes);
  do {
    const auto call = [&] {
      scratch_memory pieces[3];
      for (std::size_t i = 0; i < bytes.size(); ++i) pieces[i].borrow(bytes[i]);
      for (scratch_memory& one : pieces) one.give_back();
    };
    call();
    CHECK(allocated_in(call) == 0);
  } while (std::ranges::next_permutation(bytes).found);
}

TEST_CASE("calls that are under way at once have different scratch memory") {
  std::deque<bound_call> all;
  std::vector<bound_call*> in_turn;
  for (std::size_t i = 0; i < 4; ++i)
    in_turn.push_back(&all.emplace_back(1000 * (i + 1), std::int64_t(i)));
  for (int turn = 0; turn < 3; ++turn) {
    for (bound_call* const one : in_turn) {
      one->bind();
      if (turn == 0)
        one->memory.lay_out(one->plan);
      else
        one->memory.lay_out_again(one->plan);
      REQUIRE(one->keep() == 0);
    }
    for (bound_call* const one : in_turn) {
      REQUIRE(one->take() == 0);
      CHECK(one->out == one->in);
    }
    for (bound_call* const one : in_turn) one->memory.give_back();
    std::ranges::reverse(in_turn);  // so that none has the memory again that it had
  }
}

TEST_CASE("a call that failed keeps its scratch memory, to which others may still write") {
  bound_call failed(100, 1), next(100, 2);
  failed.memory.lay_out(failed.plan);
  REQUIRE(failed.keep() == 0);
  next.memory.lay_out(next.plan);
  REQUIRE(next.keep() == 0);
  next.memory.give_back();
  REQUIRE(failed.take() == 0);
  CHECK(failed.out == failed.in);
}

TEST_CASE("a thread's scratch memory is freed with it, and no other thread's") {
  // Destroyed after what frees a thread's memory, so that this is the thread's last call.
  struct last_call {
    ~last_call() {
      scratch_memory last;
      last.borrow(300);
      last.give_back();
    }
    void touch() const {}
  };
  scratch_memory ours;
  ours.borrow(5000);
  std::byte* const address = ours.get();
  std::memset(address, 1, 5000);
  ours.give_back();
  for (int i = 0; i < 4; ++i)
    std::thread([&] {
      static thread_local const last_call later;
      later.touch();
      scratch_memory mine;
      mine.borrow(5000);
      CHECK(mine.get() != address);
      std::memset(mine.get(), 2, 5000);
      mine.give_back();
    }).join();
  ours.borrow(5000);
  CHECK(ours.get() == address);
  CHECK(address[4999] == std::byte{1});
  ours.give_back();
}
