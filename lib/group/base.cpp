// SPDX-License-Identifier: BSL-1.0
#include "lib/group/base.hpp"

#include "lib/group/caches.hpp"
#include "lib/group/merge_messages.hpp"
#include "lib/group/private_communicator.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <new>
#include <numeric>
#include <random>
#include <tuple>
#include <utility>

namespace railpass::internal {

namespace {

// The group's ranks of the communicator's ranks; empty if the group lacks a rank.
std::vector<int> translate(MPI_Comm comm, MPI_Group to) {
  int num_ranks = 0;
  PMPI_Comm_size(comm, &num_ranks);
  std::vector<int> mine(static_cast<std::size_t>(num_ranks)), others(mine.size());
  std::iota(mine.begin(), mine.end(), 0);
  MPI_Group group = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &group);
  PMPI_Group_translate_ranks(group, num_ranks, mine.data(), to, others.data());
  PMPI_Group_free(&group);
  if (std::ranges::find(others, MPI_UNDEFINED) != others.end()) others.clear();
  return others;
}

// Cheaper than translate(): MPI libraries may search the group for each rank when they translate,
// but compare communicators rank by rank.
bool has_same_ranks(const base& of, MPI_Comm user, int num_ranks) {
  if (num_ranks != of.hosts->num_ranks()) return false;
  int how = MPI_UNEQUAL;
  return PMPI_Comm_compare(user, of.comm, &how) == MPI_SUCCESS && how == MPI_CONGRUENT;
}

base_mapping mapping_in(base& of, MPI_Comm user) {
  base_mapping mapping;
  PMPI_Comm_rank(user, &mapping.rank);
  PMPI_Comm_size(user, &mapping.num_ranks);
  if (has_same_ranks(of, user, mapping.num_ranks)) {
    mapping.of = &of;
    return mapping;
  }
  std::vector<int> others = translate(user, of.group);
  if (others.empty()) return {};
  mapping.of = &of;
  mapping.ranks = rank_map(std::move(others));
  return mapping;
}

}  // namespace

base_lane::~base_lane() {
  if (mapping_.of && !lost_) bases::of_process().give_back(*mapping_.of, number_);
}

int base_lane::isend(const std::int32_t* words, int count, int to, int tag,
                     MPI_Request* request) const {
  return PMPI_Isend(words, count, MPI_INT32_T, mapping_.ranks[to], first_tag() + tag,
                    mapping_.of->comm, request);
}

int base_lane::irecv(std::int32_t* words, int count, int from, int tag,
                     MPI_Request* request) const {
  return PMPI_Irecv(words, count, MPI_INT32_T, mapping_.ranks[from], first_tag() + tag,
                    mapping_.of->comm, request);
}

void base_lane::tell_all(trouble what) const {
  // MPI libraries take a single word at once. The words are static, because they must stay until
  // taken.
  static const std::array words{std::int32_t(trouble::none), std::int32_t(trouble::failed),
                                std::int32_t(trouble::unlike), std::int32_t(trouble::gone)};
  for (int r = 0; r < num_ranks(); ++r) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (r != rank() && isend(&words[std::size_t(what)], 1, r, failure_tag, &request) == MPI_SUCCESS)
      PMPI_Request_free(&request);
  }
}

void base_lane::announce(const told_call& in, int to) {
  std::ranges::copy(in.packed(), announced_.begin());
  std::ranges::copy(name_, announced_.begin() + call_words);
  MPI_Request request = MPI_REQUEST_NULL;
  if (isend(announced_.data(), int(announced_.size()), to, failure_tag, &request) == MPI_SUCCESS)
    PMPI_Request_free(&request);
}

base_lane::news base_lane::look() const {
  news heard;
  while (!heard.announced) {
    int found = 0;
    MPI_Status status;
    if (PMPI_Iprobe(MPI_ANY_SOURCE, first_tag() + failure_tag, mapping_.of->comm, &found,
                    &status) != MPI_SUCCESS ||
        !found)
      break;
    announcement words{};
    if (PMPI_Recv(words.data(), int(words.size()), MPI_INT32_T, status.MPI_SOURCE, status.MPI_TAG,
                  mapping_.of->comm, &status) != MPI_SUCCESS)
      break;
    int count = 0;
    PMPI_Get_count(&status, MPI_INT32_T, &count);
    // Other sources may have failed on a communicator that used this number before.
    for (int r = 0; r < num_ranks(); ++r) {
      if (mapping_.ranks[r] != status.MPI_SOURCE) continue;
      if (count == 1) {
        heard.worst = std::max(heard.worst, trouble(words[0]));
        heard.unlike = heard.unlike || trouble(words[0]) == trouble::unlike;
      } else if (std::equal(name_.begin(), name_.end(), words.begin() + call_words)) {
        told_call::words of_call;
        std::copy_n(words.begin(), call_words, of_call.begin());
        heard.announcer = r;
        heard.announced = told_call::of(of_call);
      }
    }
  }
  return heard;
}

bases& bases::of_process() {
  // Never destroyed, because communicators may be freed after all destructors have run. Made
  // without an allocation, because other ranks may be waiting.
  alignas(bases) static std::byte memory[sizeof(bases)];
  static bases& all = *::new (memory) bases;
  return all;
}

base_mapping bases::find(MPI_Comm user) {
  const std::lock_guard lock(mutex_);
  base_mapping first;
  for (const entry& e : all_) {
    if (first.of && !e.made->shared) continue;
    base_mapping mapping = mapping_in(*e.made, user);
    if (!mapping.of) continue;
    if (mapping.of->shared) return mapping;
    first = std::move(mapping);
  }
  return first;
}

bool bases::may_make_one() {
  const std::lock_guard lock(mutex_);
  return all_.size() < most;
}

bool bases::is_one_world(MPI_Comm user) {
  MPI_Group world = MPI_GROUP_NULL;
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  const bool all = !translate(user, world).empty();
  PMPI_Group_free(&world);
  return all;
}

bases::materials bases::prepare(int num_ranks, std::int64_t shared_bytes) {
  const auto random = std::make_unique<std::random_device>();  // 5 KB
  const auto number = std::int64_t(std::uint64_t{(*random)()} << 32 | (*random)() | 1);
  return {std::make_unique<base>(),
          {mark_of_host(), own_affinity().packed(), number, std::int64_t(mark_of_clock())},
          std::vector<std::int64_t>(4 * std::size_t(num_ranks)),
          shared_bytes};
}

int bases::make(MPI_Comm user, materials from, base_mapping& mapping) {
  private_communicator comm;
  if (const int failure = make_private_communicator(user, comm)) return failure;
  base& made = *from.made;
  made.comm = comm.handle;
  PMPI_Comm_group(comm.handle, &made.group);
  constexpr int words = int(std::tuple_size_v<decltype(from.mine)>);
  if (const int failure = PMPI_Allgather(from.mine.data(), words, MPI_INT64_T, from.all.data(),
                                         words, MPI_INT64_T, comm.handle))
    return failure;
  made.id = std::uint64_t(from.all[2]);  // rank 0's number
  // If memory is short on one rank, no rank uses the memory.
  std::array<std::int64_t, 2> agreed{1, 0};
  std::optional<node_memory::making> shared;
  try {
    std::vector<std::int64_t> hosts, cores, clocks;
    for (std::size_t i = 0; i < from.all.size(); i += words) {
      hosts.push_back(from.all[i]);
      clocks.push_back(from.all[i + 3]);
    }
    made.hosts = placement_on_hosts(hosts);
    hosts.clear();
    for (std::size_t i = 0; i < from.all.size(); i += words)
      if (from.all[i] == from.mine[0]) {
        hosts.push_back(from.all[i]);
        cores.push_back(from.all[i + 1]);
      }
    made.cache_of_local_rank = find_caches(hosts, cores);
    mapping = mapping_in(made, user);
    made.clock = std::make_unique<shared_clock>(clocks, mapping.rank);
    shared.emplace(comm.handle, made.hosts, made.id, from.shared_bytes);
    agreed[1] = shared->offered_bytes();
    const std::lock_guard lock(mutex_);
    all_.reserve(all_.size() + 1);
  } catch (const std::bad_alloc&) {
    agreed = {};
  }
  const int failure = PMPI_Allreduce(MPI_IN_PLACE, agreed.data(), int(agreed.size()), MPI_INT64_T,
                                     MPI_MIN, comm.handle);
  if (failure != MPI_SUCCESS || agreed[0] == 0) {
    mapping = {};
    return failure != MPI_SUCCESS ? failure : MPI_ERR_NO_MEM;
  }
  if (!made.clock->can_agree())
    made.clock.reset();
  else if (const int failed = made.clock->compare(comm.handle))
    return failed;
  entry added;
  made.shared = shared->finish(agreed[1], added.why_not_shared);
  for (int n = 0; made.shared && n < made.shared->num_slots(); ++n)
    added.resources.add_slot(made.shared->own_region(n));
  added.made = std::move(from.made);
  const std::lock_guard lock(mutex_);
  const auto behind =
      std::ranges::upper_bound(all_, made.id, {}, [](const entry& e) { return e.made->id; });
  all_.insert(behind, std::move(added));
  return MPI_SUCCESS;
}

bool bases::make_for_world(bool wanted, std::int64_t shared_bytes, words_of_world& words) {
  int num_ranks = 1;
  PMPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  MPI_Comm parent = MPI_COMM_NULL;  // the ranks of a parent program are unknown
  PMPI_Comm_get_parent(&parent);
  if (num_ranks < 2 || parent != MPI_COMM_NULL) return false;
  materials from;
  try {
    from = prepare(num_ranks, shared_bytes);
  } catch (const std::exception&) {  // the reduction below informs all ranks
  }
  std::array<std::uint64_t, 1 + std::tuple_size_v<words_of_world>> all{wanted && from.made ? 1u
                                                                                           : 0u};
  std::ranges::copy(words, all.begin() + 1);
  base_mapping mapping;
  if (PMPI_Allreduce(MPI_IN_PLACE, all.data(), int(all.size()), MPI_UINT64_T, MPI_MIN,
                     MPI_COMM_WORLD) != MPI_SUCCESS ||
      all[0] == 0)
    return false;
  std::copy(all.begin() + 1, all.end(), words.begin());
  // Without a base, the first agreement tries again.
  make(MPI_COMM_WORLD, std::move(from), mapping);
  return true;
}

bases::entry& bases::entry_of(const base& b) {
  return *std::ranges::find(all_, &b, [](const entry& e) { return e.made.get(); });
}

std::string bases::why_not_shared(const base& b) {
  const std::lock_guard lock(mutex_);
  return std::exchange(entry_of(b).why_not_shared, {});
}

resource_book::lane_set bases::free_lanes(const base& b) {
  const std::lock_guard lock(mutex_);
  return entry_of(b).resources.free_lanes();
}

bool bases::take(const base& b, int lane) {
  const std::lock_guard lock(mutex_);
  return entry_of(b).resources.take_lane(lane);
}

void bases::give_back(const base& b, int lane) {
  const std::lock_guard lock(mutex_);
  entry_of(b).resources.give_back_lane(lane);
}

resource_book::slot_set bases::free_slots(const base& b) {
  const std::lock_guard lock(mutex_);
  return entry_of(b).resources.free_slots();
}

bool bases::take_slot(const base& b, int slot, bool all_have_left) {
  const std::lock_guard lock(mutex_);
  return entry_of(b).resources.take_slot(slot, all_have_left);
}

void bases::give_back_slot(const base& b, int slot, std::uint64_t readers) {
  const std::lock_guard lock(mutex_);
  entry& of = entry_of(b);
  of.resources.give_back_slot(slot, readers);
  of.tenants.of_slot[std::size_t(slot)] = {};
}

void bases::settle_in(const base& b, int slot, const slot_tenants::entry& tenant) {
  const std::lock_guard lock(mutex_);
  entry_of(b).tenants.of_slot[std::size_t(slot)] = tenant;
}

slot_tenants& bases::tenants(const base& b) {
  const std::lock_guard lock(mutex_);
  return entry_of(b).tenants;
}

void bases::keep(std::unique_ptr<merge_messages> left) {
  const std::lock_guard lock(mutex_);
  left_.push_back(std::move(left));
}

void bases::settle() {
  for (;;) {
    std::unique_ptr<merge_messages> settled;  // gives its lane back after the lock is released
    const std::lock_guard lock(mutex_);
    const auto found =
        std::ranges::find_if(left_, [](const auto& messages) { return messages->has_settled(); });
    if (found == left_.end()) return;
    settled = std::move(*found);
    left_.erase(found);
  }
}

void bases::end() {
  std::vector<std::unique_ptr<merge_messages>> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(left_);
  }
  left.clear();  // outside the lock, as above
}

}  // namespace railpass::internal
