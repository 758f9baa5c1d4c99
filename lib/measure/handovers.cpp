// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/handovers.hpp"

#include "lib/exec/cell_executor.hpp"
#include "lib/exec/single_copy.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/base/units.hpp"
#include "railpass/schedule/builder.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace railpass::internal::measure {
namespace {

enum class way { through_a_cell, within_a_cache, by_single_copy };

// Each rank of `ring` hands data to the rank before. Every rank of the node runs a handover.
schedule handover(way how, int rank, int num_ranks, std::span<const int> ring) {
  builder b({.rank = rank, .num_ranks = num_ranks}, 0, 1);
  const auto size = int(ring.size());
  const int position = int(std::ranges::find(ring, rank) - ring.begin());
  const int taker = ring[std::size_t(wrap(position - 1, size))],
            giver = ring[std::size_t(wrap(position + 1, size))];
  if (how == way::by_single_copy) {
    b.offer(buffer::input, {}, taker, 0);
    b.get(giver, 0, buffer::output, {});
  } else {
    // A rank that is alone under its cache counts and acknowledges cells, too.
    b.publish(buffer::input, {}, 0);
    if (size > 1) b.fetch(giver, 0, buffer::output, {});
  }
  return b.finish();
}

// The ranks of this rank's node, and cells in memory that MPI shares between these ranks.
class node_ranks {
 public:
  explicit node_ranks(const job& j) {
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, j.rank, MPI_INFO_NULL, &comm_);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
    if (size_ < 2) return;
    find_rings(j);
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    void* own = nullptr;
    int made = MPI_Win_allocate_shared(cell_region::bytes + cell_region::line_bytes, 1,
                                       MPI_INFO_NULL, comm_, &own, &window_) == MPI_SUCCESS;
    MPI_Allreduce(MPI_IN_PLACE, &made, 1, MPI_INT, MPI_MIN, comm_);
    if (made == 0) return;
    std::byte* const mine = memory_of(rank_);
    std::memset(mine, 0, std::size_t(cell_region::bytes));
    cell_region(mine).set_process(::getpid());
    single_copies_ = can_copy_to_each_other(comm_);
    MPI_Barrier(comm_);
    for (int r = 0; r < size_; ++r) regions_.add(r, cell_region(memory_of(r)));
    runs_.emplace(regions_, rank_, std::thread::hardware_concurrency() >= unsigned(size_));
  }
  ~node_ranks() {
    if (window_ != MPI_WIN_NULL) MPI_Win_free(&window_);
    MPI_Comm_free(&comm_);
  }
  node_ranks(const node_ranks&) = delete;
  node_ranks& operator=(const node_ranks&) = delete;

  bool can(way how) const {
    if (how == way::by_single_copy) return runs_ && single_copies_;
    return runs_ && (how == way::through_a_cell || several_caches_);
  }

  // Seconds of one handover. Collective over the node.
  double handover_s(way how, std::int64_t bytes, int repetitions) {
    const schedule s =
        handover(how, rank_, size_, how == way::within_a_cache ? under_cache_ : on_node_);
    in_.resize(std::size_t(bytes));
    out_.resize(std::size_t(bytes));
    const binding b{.input = in_.data(), .output = out_.data(), .size = {.units = bytes}};
    run(s, b);
    MPI_Barrier(comm_);
    const double begin_s = steady_clock_s();
    for (int i = 0; i < repetitions; ++i) run(s, b);
    return (steady_clock_s() - begin_s) / repetitions;
  }

 private:
  void find_rings(const job& j) {
    const int mine = j.cache_of_rank.empty() ? 0 : j.cache_of_rank[std::size_t(j.rank)];
    std::vector<int> caches(std::size_t(size_), mine);
    MPI_Allgather(&mine, 1, MPI_INT, caches.data(), 1, MPI_INT, comm_);
    for (int r = 0; r < size_; ++r) {
      on_node_.push_back(r);
      if (caches[std::size_t(r)] == mine) under_cache_.push_back(r);
    }
    several_caches_ = node_order(caches).facts().matter();
  }
  // Mappings start at pages, so that the aligned offset is the same on all ranks.
  std::byte* memory_of(int r) const {
    MPI_Aint bytes = 0;
    int unit = 1;
    void* memory = nullptr;
    MPI_Win_shared_query(window_, r, &bytes, &unit, &memory);
    auto room = std::size_t(bytes);
    std::align(std::size_t(cell_region::line_bytes), std::size_t(cell_region::bytes), memory, room);
    return static_cast<std::byte*>(memory);
  }
  // A rank that waits in memory lets MPI progress: other ranks may wait for messages from this
  // rank.
  void run(const schedule& s, const binding& b) {
    const auto look = [](void* self) {
      int ignored = 0;
      return MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, static_cast<node_ranks*>(self)->comm_,
                        &ignored, MPI_STATUS_IGNORE);
    };
    runs_->run(s, b, {.look = look, .user_data = this});
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;
  int rank_ = 0, size_ = 1;
  std::vector<int> on_node_, under_cache_;  // ranks of comm_
  bool several_caches_ = false;             // and ranks that share a cache
  cell_regions regions_;
  bool single_copies_ = false;
  std::optional<cell_executor> runs_;
  std::vector<std::byte> in_, out_;
};

}  // namespace

bool can_copy_to_each_other(MPI_Comm ranks) {
  int rank = 0, size = 1;
  MPI_Comm_rank(ranks, &rank);
  MPI_Comm_size(ranks, &size);
  const std::uint64_t word = std::uint64_t(::getpid()) << 32 | std::uint64_t(rank);
  const single_copy_probe mine = single_copy_probe::of(word);
  std::vector<single_copy_probe> all(static_cast<std::size_t>(size));
  MPI_Allgather(&mine, int(sizeof mine), MPI_BYTE, all.data(), int(sizeof mine), MPI_BYTE, ranks);
  int can = std::ranges::all_of(all, &single_copy_probe::can_copy) ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &can, 1, MPI_INT, MPI_MIN, ranks);
  return can != 0;
}

void sample_handovers(const job& j, measurements& all, double budget_s,
                      const progress_report& progress) {
  struct sampled {
    way how;
    std::vector<std::int64_t> sizes;
    std::vector<local_sample>& into;
  };
  const std::vector<std::int64_t> cell_sizes{8, 64, 512, 1 << 10, 2 << 10, 4 << 10, cell_bytes};
  const std::array<sampled, 3> ways{{{way::through_a_cell, cell_sizes, all.handovers},
                                     {way::within_a_cache, cell_sizes, all.near_handovers},
                                     {way::by_single_copy,
                                      {4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20},
                                      all.single_copies}}};
  constexpr int most_passes = 30, fewest_passes = 3;
  node_ranks node(j);
  std::map<std::pair<way, std::int64_t>, std::vector<double>> values;
  const double begin_s = steady_clock_s();
  for (int pass = 0; pass < most_passes; ++pass) {
    const double spent_s = steady_clock_s() - begin_s;
    if (agreed(pass < fewest_passes || spent_s < budget_s ? 1 : 0) == 0) break;
    progress(std::max(spent_s / budget_s, double(pass) / most_passes), "memory of a node");
    for (const sampled& what : ways)
      for (const std::int64_t bytes : what.sizes)
        if (node.can(what.how))
          values[{what.how, bytes}].push_back(node.handover_s(
              what.how, bytes, int(std::clamp<std::int64_t>((256 << 10) / bytes, 2, 256))));
  }
  if (j.rank != 0) return;
  for (const sampled& what : ways)
    for (const std::int64_t bytes : what.sizes)
      if (const auto found = values.find({what.how, bytes}); found != values.end())
        what.into.push_back({bytes, median(without_outliers(found->second))});
}

}  // namespace railpass::internal::measure
