// SPDX-License-Identifier: BSL-1.0
//
// What it brings that schedules know nodes, by simulation on generic constants: for each collective
// and size the fastest arm with ranks as they are, the fastest with ranks in the order of nodes,
// the fastest of those that know nodes and send messages, and the fastest of those that go through
// the memory of nodes. Of one node the fastest arm that sends messages and the fastest in shared
// memory; or, with ranks per cache, the fastest in shared memory that does not know caches and the
// fastest that does, where ranks stand on caches by turns and a line takes 23 ns within a cache and
// 107 ns from one to another, as on an EPYC.
//
//   nodes_table NODES RANKS_PER_NODE
//   nodes_table 1 RANKS RANKS_PER_CACHE
//
// Of each algorithm the arm is played that is predicted to be the fastest.
#include "railpass/predict/predict.hpp"

#include <algorithm>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

using namespace railpass;

namespace {

struct fastest {
  double seconds = 0;  // 0: none was played
  std::string name;
  std::set<std::string_view> played;

  bool wants(const arm_prediction& x) {
    return x.seconds && played.insert(x.what.base->name).second;
  }
  void add(const arm& a, double s) {
    if (seconds > 0 && s >= seconds) return;
    seconds = s;
    name = name_of(a);
  }
};

// Virtual ranks counted from 0 on, whatever their nodes.
double as_they_are_s(simulator& play, const machine_model& machine, const arm& a,
                     const node_layout& nodes, const message_size& size) {
  std::vector<schedule> all;
  const auto p = std::int32_t(nodes.node_of_rank.size());
  for (std::int32_t v = 0; v < p; ++v)
    all.push_back(a.base->build({.rank = v, .num_ranks = p}, a.values));
  return play.run({.machine = machine, .nodes = nodes, .schedules = all, .size = size}).time_s;
}

std::string cell(const fastest& f) {
  return f.seconds > 0 ? format_seconds(f.seconds) + " | `" + f.name + "`" : "- | -";
}

std::string ratio(const fastest& before, const fastest& after) {
  if (before.seconds == 0 || after.seconds == 0) return "-";
  std::ostringstream text;
  text << std::fixed << std::setprecision(2) << before.seconds / after.seconds;
  return text.str();
}

prediction_query question(collective op, int num_ranks, int ranks_per_node, std::int64_t bytes) {
  return {.op = op,
          .num_ranks = num_ranks,
          .ranks_per_node = ranks_per_node,
          .bytes = bytes,
          .unit_bytes = unit_bytes_of(op, bytes)};
}

// per_cache: 0 if caches are not known.
void print_one_node(const profile& known, int p, int per_cache) {
  node_layout nodes = node_layout::blocks(p, p, per_cache);
  const int caches = per_cache > 0 ? (p + per_cache - 1) / per_cache : 1;
  for (std::size_t r = 0; r < nodes.cache_of_rank.size(); ++r)
    nodes.cache_of_rank[r] = int(r) % caches;
  simulator play;
  std::cout << (per_cache > 0
                    ? "| collective | message | in shared memory | | by caches | | gain |\n"
                    : "| collective | message | by messages | | in shared memory | | gain |\n")
            << "|---|--:|--:|---|--:|---|--:|\n";
  for (const collective op : all_collectives)
    for (const std::int64_t bytes : {8 << 0, 1 << 10, 16 << 10, 256 << 10, 4 << 20}) {
      const bool barrier = describe(op).what == promise::all_arrive;
      if (barrier && bytes > 8) continue;
      const std::int64_t whole =
          traits_of(op).blocks ? std::max<std::int64_t>(8, bytes / p) * p : bytes;
      if (whole > bytes && bytes > 8) continue;
      prediction_query q = question(op, p, p, whole);
      q.ranks_per_cache = per_cache;
      const message_size size{whole / q.unit_bytes, q.unit_bytes};
      fastest plain, better;
      for (const arm_prediction& x : predict_arms(known, q)) {
        const preconditions& needs = x.what.base->needs;
        if (per_cache > 0 && !needs.shared_memory) continue;
        fastest& mine =
            (per_cache > 0 ? needs.several_caches : needs.shared_memory) ? better : plain;
        if (mine.wants(x))
          mine.add(x.what, simulate_arm(play, known.machine, x.what, nodes, size).time_s);
      }
      if (better.seconds > 0)
        std::cout << "| " << name_of(op) << " | " << (barrier ? "" : format_bytes(whole)) << " | "
                  << cell(plain) << " | " << cell(better) << " | " << ratio(plain, better) << " |"
                  << std::endl;
    }
}

}  // namespace

int main(int argc, char** argv) {
  const int num_nodes = argc > 2 ? std::atoi(argv[1]) : 0, each = argc > 2 ? std::atoi(argv[2]) : 0;
  const int per_cache = argc > 3 ? std::atoi(argv[3]) : 0;
  if (num_nodes < 1 || each < 2 || argc > 4 || (argc > 3 && (num_nodes > 1 || per_cache < 1))) {
    std::cerr << "usage: nodes_table NODES RANKS_PER_NODE, at least 1 and 2\n"
                 "       nodes_table 1 RANKS RANKS_PER_CACHE, at least 1\n";
    return 2;
  }
  profile known;
  known.machine = select::generic_machine();
  if (num_nodes == 1) {
    if (per_cache > 0)
      known.machine.shared = {.seen_s = 107e-9, .near_seen_s = 23e-9, .measured = true};
    print_one_node(known, each, per_cache);
    return 0;
  }
  const int p = num_nodes * each;
  node_layout blocks = node_layout::blocks(p, each), by_turns = blocks;
  for (int r = 0; r < p; ++r) by_turns.node_of_rank[std::size_t(r)] = r % num_nodes;
  simulator play;
  std::cout << "| collective | message | ranks by turns, as they are | | in the order of nodes | | "
               "that know nodes | | in their memory | | gain of the order | of knowing nodes | of "
               "their memory |\n"
               "|---|--:|--:|---|--:|---|--:|---|--:|---|--:|--:|--:|\n";
  for (const collective op :
       {collective::broadcast, collective::reduce, collective::all_reduce, collective::all_gather,
        collective::gather, collective::scatter, collective::all_to_all, collective::barrier})
    for (const std::int64_t bytes : {8 << 0, 1 << 10, 16 << 10, 256 << 10, 4 << 20}) {
      const bool barrier = describe(op).what == promise::all_arrive;
      const bool has_blocks = traits_of(op).blocks;
      if (barrier && bytes > 8) continue;
      // With more ranks its messages, as many as pairs of ranks, take too long to play.
      if (p > 256 && op == collective::all_to_all) continue;
      // Of blocks all ranks' together; short ones are a byte each.
      const std::int64_t whole = has_blocks ? std::max<std::int64_t>(1, bytes / p) * p : bytes;
      if (has_blocks && bytes <= p && bytes > 8) continue;
      const prediction_query q = question(op, p, each, whole);
      const message_size size{whole / q.unit_bytes, q.unit_bytes};
      fastest shuffled, ordered, composed, in_memory;
      for (const arm_prediction& x : predict_arms(known, q)) {
        const preconditions& needs = x.what.base->needs;
        fastest& mine = needs.max_nodes == 0 ? ordered : needs.shared_memory ? in_memory : composed;
        if (mine.wants(x))
          mine.add(x.what, simulate_arm(play, known.machine, x.what, by_turns, size).time_s);
      }
      // As if nodes had a rank each: so the other ranks' messages look to a schedule.
      prediction_query far = q;
      far.ranks_per_node = 1;
      for (const arm_prediction& x : predict_arms(known, far)) {
        if (shuffled.wants(x))
          shuffled.add(x.what, as_they_are_s(play, known.machine, x.what, by_turns, size));
      }
      std::cout << "| " << name_of(op) << " | " << (barrier ? "" : format_bytes(whole)) << " | "
                << cell(shuffled) << " | " << cell(ordered) << " | " << cell(composed) << " | "
                << cell(in_memory) << " | " << ratio(shuffled, ordered) << " | "
                << ratio(ordered, composed) << " | " << ratio(composed, in_memory) << " |"
                << std::endl;
    }
}
