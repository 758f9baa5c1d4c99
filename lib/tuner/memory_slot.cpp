// SPDX-License-Identifier: BSL-1.0
#include "lib/tuner/memory_slot.hpp"

#include "lib/tuner/joint_lockstep.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <new>
#include <utility>

namespace railpass::internal {

namespace {

std::vector<int> ranks_in_base(const base_lane& lane) {
  std::vector<int> ranks;
  for (int r = 0; r < lane.num_ranks(); ++r) ranks.push_back(lane.ranks()[r]);
  std::ranges::sort(ranks);
  return ranks;
}

// Throws std::bad_alloc.
bool has_all_ranks_of(const base_lane& lane, const base_lane& other) {
  return std::ranges::includes(ranks_in_base(lane), ranks_in_base(other));
}

// Under AND, the two words of a slot stay complements if all ranks that judge the slot agree.
class idle_slots {
 public:
  idle_slots(const base_lane& lane, bool ready) : lane_(lane) {
    words_.fill(ready ? ~std::uint64_t{0} : 0);
    if (!ready) return;
    bases& all = bases::of_process();
    const resource_book::slot_set free = all.free_slots(lane.of());
    slot_tenants& tenants = all.tenants(lane.of());
    for (int n = 0; n < resource_book::most_slots; ++n)
      if (!free.has(n)) ask(n, tenants.of_slot[std::size_t(n)]);
  }
  // Collective. The first slot that is idle on all ranks, or -1.
  int agree(joint_lockstep& ranks) {
    if (ranks.agree(words_) != MPI_SUCCESS) return -1;
    for (std::size_t n = 0; n < words_.size() / 2; ++n)
      if (words_[2 * n] == ~words_[2 * n + 1]) return int(n);
    return -1;
  }

 private:
  void ask(int n, slot_tenants::entry& tenant) {
    std::uint64_t* const words = &words_[2 * std::size_t(n)];
    words[0] = words[1] = 0;
    if (!tenant.who) return;
    const std::uint64_t calls = tenant.who->calls();
    const bool rests = std::exchange(tenant.calls_when_asked, calls) == calls && calls > 0;
    try {
      if (!rests || !tenant.who->may_give_up_slot() || !has_all_ranks_of(lane_, *tenant.lane))
        return;
    } catch (const std::bad_alloc&) {
      return;
    }
    words[0] = calls;
    words[1] = ~calls;
  }
  const base_lane& lane_;
  std::array<std::uint64_t, 2 * resource_book::most_slots> words_{};
  static_assert(2 * resource_book::most_slots <= joint_lockstep::most_agreed);
};

enum class takes { all, not_all, unknown };
takes agree_whether(joint_lockstep& ranks, bool took) {
  std::uint64_t all = took ? 1 : 0;
  if (ranks.agree({&all, 1}) != MPI_SUCCESS) return takes::unknown;
  return all != 0 ? takes::all : takes::not_all;
}

// All ranks of the tenant have come as far as its last call, so no rank reads its memory.
int evict_one(joint_lockstep& ranks, bool ready) {
  const base_lane& lane = ranks.lane();
  const int number = idle_slots(lane, ready).agree(ranks);
  if (number < 0) return -1;
  bases& all = bases::of_process();
  if (slot_tenant* const who = all.tenants(lane.of()).of_slot[std::size_t(number)].who)
    who->give_up_slot();
  const bool took = all.take_slot(lane.of(), number, true);
  // The memory of every rank starts anew before any rank reads it.
  return agree_whether(ranks, took) == takes::all ? number : -1;
}

}  // namespace

memory_slot::memory_slot(const base_lane& lane, int number, slot_tenant& tenant, cell_regions room)
    : lane_(lane),
      number_(number),
      use_(*lane.of().shared, number, lane.ranks(), lane.num_ranks(), std::move(room)) {
  bases::of_process().settle_in(lane.of(), number, {&tenant, &lane});
}

memory_slot::~memory_slot() {
  bases::of_process().give_back_slot(lane_.of(), number_, use_.leave());
}

// If this rank does not know whether all ranks have taken the slot, some ranks may use it. Then the
// slot is never used again.
int take_memory_slot(joint_lockstep& ranks, const slot_request& request) {
  const base& of = ranks.lane().of();
  const bool one_thread = request.one_thread;
  if (request.free_on_all == 0)
    return one_thread && request.may_evict ? evict_one(ranks, request.ready) : -1;
  const int number = std::countr_zero(request.free_on_all);
  bases& all = bases::of_process();
  const bool took = all.take_slot(of, number);
  if (one_thread) return took ? number : -1;
  // Threads of several ranks may come in different orders, and take each other's slots.
  const takes on_ranks = agree_whether(ranks, took);
  if (on_ranks == takes::not_all && took) all.give_back_slot(of, number, 0);
  return on_ranks == takes::all ? number : -1;
}

std::uint64_t free_slots_on_all(joint_lockstep& ranks, bool ready) {
  std::uint64_t free = ready ? bases::of_process().free_slots(ranks.lane().of()).words()[0] : 0;
  return ranks.agree({&free, 1}) == MPI_SUCCESS ? free : 0;
}

}  // namespace railpass::internal
