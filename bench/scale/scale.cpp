// SPDX-License-Identifier: BSL-1.0
//
// What a communicator of many ranks costs one rank: scale [RANKS ...]
//
// There is neither MPI nor a network here. The placement of the ranks is made up, two ranks on each
// node; what is measured is the code that a rank of such a communicator runs, on this machine.
//   set-up    from the rank's knowledge of all ranks' nodes to their order
//   order     bytes of that order
//   again     the same for a second communicator of the same ranks, which shares what it can
//   learning  bytes of the state that learns, and of a cached schedule that knows nodes
//   look-up   a call finds its cached schedule that knows nodes: always the same root, or in turn
//             two roots
//   ring ...  building the schedule of this arm, once; all of them from ring to nodes are of
//             messages
//   decide    predicting all arms of a new context (an all_reduce of 64 KiB) and the first plan
// MPI's own memory, and memory that ranks share, are not counted.
#include "lib/exec/schedule_cache.hpp"
#include "lib/rails/mpi/rank_map.hpp"
#include "railpass/schedule/nodes.hpp"
#include "railpass/select/belief/prior.hpp"
#include "railpass/select/lockstep/lockstep.hpp"
#include "railpass/select/policies.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <malloc.h>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

namespace {

std::size_t allocated = 0;

}  // namespace

void* operator new(std::size_t bytes) {
  void* const memory = std::malloc(bytes);
  if (!memory) throw std::bad_alloc();
  allocated += ::malloc_usable_size(memory);
  return memory;
}
void operator delete(void* memory) noexcept {
  allocated -= ::malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

namespace {

enum class layout { blocks, turns, uneven };

std::int32_t node_of(layout where, std::int32_t rank, std::int32_t num_ranks) {
  switch (where) {
    case layout::blocks:
      return rank / 2;
    case layout::turns:
      return rank % (num_ranks / 2);
    default:  // nodes of one, two and three ranks
      return rank / 6 * 3 + (rank % 6 == 0 ? 0 : rank % 6 < 3 ? 1 : 2);
  }
}

std::string_view name_of(layout where) {
  return where == layout::blocks ? "blocks" : where == layout::turns ? "by turns" : "uneven";
}

// The least of several, as other work may be running.
template <class Act>
double seconds_of(int times, const Act& act) {
  double least = 1e9;
  for (int turn = 0; turn < 5; ++turn) {
    const auto begin = std::chrono::steady_clock::now();
    for (int k = 0; k < times; ++k) act(k);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    least = std::min(least, taken.count() / times);
  }
  return least;
}

std::shared_ptr<const placement> made(layout where, std::int32_t num_ranks) {
  const auto made = std::make_shared<placement>(num_ranks);
  made->set([&](std::int32_t r) { return node_of(where, r, num_ranks); });
  return made;
}

// What grows with ranks if anything does.
struct communicator {
  communicator(std::shared_ptr<const placement> where, std::int32_t of_rank, std::int32_t of)
      : rank(of_rank), num_ranks(of), decides({}, of_rank, of) {
    order.become(std::move(where));
  }
  const schedule* find(const arm& a, std::int32_t root) {
    order.begin_with(root);
    const shape s{
        .rank = order.ranks().virtual_rank(rank), .num_ranks = num_ranks, .nodes = order.begins()};
    return schedules.find_or_build(*a.base, a.values, s).get();
  }
  std::int32_t rank, num_ranks;
  rank_map ranks;
  select::lockstep decides;
  node_order order;
  schedule_cache schedules{4};
};

std::size_t decide(std::int32_t num_ranks) {
  const machine_model machine = select::generic_machine();
  const select::prior_query query{.machine = machine,
                                  .key = {.op = collective::all_reduce, .size_class = 16},
                                  .num_ranks = num_ranks,
                                  .ranks_per_node = 2};
  const std::vector<arm> arms = arms_of(collective::all_reduce);
  std::vector<select::arm_prior> priors;
  for (std::size_t i = 0; i < arms.size(); ++i)
    if (eligible(
            *arms[i].base,
            {.num_ranks = num_ranks, .units = 1 << 16, .nodes = node_facts::blocks(num_ranks, 2)}))
      priors.push_back(select::prior_of(arms[i], int(i), query));
  return select::make_policy("knowledge_gradient", {.priors = priors})
      ->plan({.calls = 0, .merge_cost_s = 1e-5})
      .explore.size();
}

struct built_arm {
  collective op;
  std::string_view name;
};
constexpr built_arm built[] = {{collective::all_gather, "ring"},
                               {collective::all_to_all, "pairwise"},
                               {collective::gather, "linear"},
                               {collective::broadcast, "nodes_postal_tree"}};

void print_row(layout where, std::int32_t p) {
  const arm on_nodes = parse_arm(collective::broadcast, "nodes_postal_tree");
  constexpr std::size_t own = sizeof(node_order) + sizeof(rank_map);
  const std::size_t before = allocated;
  const std::shared_ptr<const placement> all = made(where, p);
  const std::size_t order = allocated - before;
  communicator one(all, p / 2 + 1, p);
  const schedule* volatile found = one.find(on_nodes, 0);
  const std::size_t learning = allocated - before - order + sizeof(communicator) - own;
  const double set_up_s = seconds_of(1, [&](int) { made(where, p); });
  const double same_s = seconds_of(10000, [&](int) { found = one.find(on_nodes, 0); });
  const double other_s = seconds_of(10000, [&](int k) { found = one.find(on_nodes, k % 2); });
  std::printf("| %d | %s | %.1f | %zu | %zu | %zu | %.0f | %.0f |", p,
              std::string(name_of(where)).data(), 1e6 * set_up_s, order + own, own, learning,
              1e9 * same_s, 1e9 * other_s);
  for (const built_arm& b : built) {
    const arm a = parse_arm(b.op, b.name);
    const shape s{.rank = 0, .num_ranks = p, .nodes = one.order.begins()};
    std::printf(" %.1f |", 1e6 * seconds_of(1, [&](int) { a.base->build(s, a.values); }));
  }
  std::printf(" %.2f |\n", 1e3 * seconds_of(1, [&](int) { decide(p); }));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::int32_t> ranks;
  for (int i = 1; i < argc; ++i) ranks.push_back(std::max(8, std::atoi(argv[i])));
  if (ranks.empty()) ranks = {8, 128, 2048, 16384, 131072, 1048576};
  std::printf(
      "| ranks | placement | set-up (us) | order (bytes) | again | learning | look-up (ns) | two "
      "roots "
      "| ring (us) | pairwise | linear | nodes | decide (ms) |\n"
      "|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  for (const layout where : {layout::blocks, layout::turns, layout::uneven})
    for (const std::int32_t p : ranks) print_row(where, p);
}
