// SPDX-License-Identifier: BSL-1.0
//
// Measures messages between two ranks at a time. One rank of the pair leads and looks at the clock.
// Each command that the leader sends determines what both ranks do next, so the two never disagree.
// Other ranks sleep meanwhile. Commands go through all cells (quantity and size) again and again
// until the budget is used. So a disturbance of a second affects all cells a little instead of one
// cell.
#include "lib/measure/links.hpp"

#include "lib/measure/carrier.hpp"
#include "railpass/base/clock.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/base/units.hpp"
#include "railpass/schedule/schedule.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>

namespace railpass::internal::measure {
namespace {

enum class task : std::int32_t {
  stop,
  one_way,           // time until a send has started, with the receive already posted
  rendezvous,        // time of a receive, with the message already there
  send_overhead,     // of beginning to send, the receive being posted
  receive_overhead,  // of receiving, the message being there
  stream,            // time per message of a burst
  eager_probe,       // does a send end before its receive is posted?
  exchange,          // each way at once
  shift,             // to the next rank of a ring, and from the previous rank at the same time
  flow,              // time per message of a burst in this ring
  crowd,             // like flow, from each rank to many ranks
};

struct command {
  task what = task::stop;
  std::int32_t values = 0;  // measured values wanted
  std::int64_t bytes = 0;
  std::int32_t inner = 1;  // rounds behind one value
};

constexpr int tag = 1;  // one tag: the order identifies messages

constexpr int most_messages = 64;  // in a burst

// More messages than a network passes faster than a stream, or at least several.
int burst_of(std::int64_t bytes) {
  return bytes <= 4 << 10 ? most_messages : bytes <= 64 << 10 ? 16 : bytes <= 512 << 10 ? 4 : 2;
}

// One end of a measured pair.
class endpoint {
 public:
  endpoint(carrier& c, int other)
      : carrier_(c),
        under_way_(c),
        other_(other),
        out_(std::size_t(sampled_bytes.back()), 1),
        in_(out_) {}

  // --- the leader

  /// The values of one command, in seconds.
  std::vector<double> lead(const command& c) {
    tell(c);
    std::vector<double> values;
    for (int v = -1; v < c.values; ++v) {  // the first value warms up
      const double value_s = lead_one(c);
      if (v >= 0 && value_s > 0) values.push_back(value_s);
    }
    return values;
  }

  /// The largest size that is sent eagerly, refined by halving between neighbouring sizes.
  std::int64_t find_eager_limit() {
    if (!is_eager(sampled_bytes.front())) return 0;
    std::int64_t low = sampled_bytes.front(), high = 0;
    for (const std::int64_t bytes : sampled_bytes) {
      if (is_eager(bytes)) {
        low = bytes;
        continue;
      }
      high = bytes;
      break;
    }
    if (high == 0) return low;
    while (high - low > std::max<std::int64_t>(1, low / 64)) {
      const std::int64_t middle = (low + high) / 2;
      (is_eager(middle) ? low : high) = middle;
    }
    return low;
  }

  bool over_rails() const { return carrier_.over_rails(); }

  // --- the follower: executes commands until task::stop

  void follow() {
    for (;;) {
      command c;
      carrier_.receive(reinterpret_cast<char*>(&c), sizeof c, other_, tag);
      if (c.what == task::stop) return;
      for (int v = -1; v < c.values; ++v) follow_one(c);
    }
  }
  void stop() { tell({}); }

 private:
  void tell(const command& c) {
    carrier_.send(reinterpret_cast<const char*>(&c), sizeof c, other_, tag);
  }

  // A send that waits for its receiver never ends early. On a busy machine, an eager send may seem
  // to wait.
  bool is_eager(std::int64_t bytes) {
    const command c{.what = task::eager_probe, .values = 0, .bytes = bytes};
    for (int attempt = 0; attempt < 4; ++attempt) {
      tell(c);
      if (lead_one(c) > 0) return true;
    }
    return false;
  }

  void send(std::int64_t bytes) { carrier_.send(out_.data(), bytes, other_, tag); }
  void send_synchronous(std::int64_t bytes) {
    carrier_.send_synchronous(out_.data(), bytes, other_, tag);
  }
  void receive(std::int64_t bytes) { carrier_.receive(in_.data(), bytes, other_, tag); }
  void start_send(std::int64_t bytes, int with = tag) {
    under_way_.send(out_.data(), bytes, other_, with);
  }
  void start_receive(std::int64_t bytes) { under_way_.receive(in_.data(), bytes, other_, tag); }

  double lead_one(const command& c) {
    const double begin_s = steady_clock_s();
    switch (c.what) {
      case task::one_way:
        for (int i = 0; i < c.inner; ++i) send(c.bytes), receive(c.bytes);
        return (steady_clock_s() - begin_s) / (2 * c.inner);
      case task::rendezvous:
        for (int i = 0; i < c.inner; ++i) send_synchronous(c.bytes), receive(c.bytes);
        return (steady_clock_s() - begin_s) / (2 * c.inner);
      case task::send_overhead: {
        receive(0);
        const double posted_s = steady_clock_s();
        start_send(c.bytes);
        const double spent_s = steady_clock_s() - posted_s;
        under_way_.wait();
        return spent_s;
      }
      case task::receive_overhead: {
        send(0);
        receive(0);  // sent after the message that is timed
        const double waiting_s = steady_clock_s();
        carrier_.receive(in_.data(), c.bytes, other_, tag + 1);
        return steady_clock_s() - waiting_s;
      }
      case task::stream: {
        // Cost of further messages after the first: latency and acknowledgement cancel out.
        const double one_s = lead_burst(c.bytes, 1);
        const int burst = burst_of(c.bytes);
        return (lead_burst(c.bytes, burst) - one_s) / (burst - 1);
      }
      case task::eager_probe: {
        start_send(c.bytes);
        bool done = false;
        while (!done && steady_clock_s() - begin_s < 2e-3) done = under_way_.test();
        carrier_.send(nullptr, 0, other_, tag + 1);
        under_way_.wait();
        return done ? 1 : 0;
      }
      case task::exchange:  // measured by time_rounds
      case task::shift:
      case task::flow:
      case task::crowd:
      case task::stop:
        break;
    }
    return 0;
  }

  void follow_one(const command& c) {
    switch (c.what) {
      case task::one_way:
        for (int i = 0; i < c.inner; ++i) receive(c.bytes), send(c.bytes);
        return;
      case task::rendezvous:
        for (int i = 0; i < c.inner; ++i) receive(c.bytes), send_synchronous(c.bytes);
        return;
      case task::send_overhead: {
        start_receive(c.bytes);
        send(0);
        under_way_.wait();
        return;
      }
      case task::receive_overhead: {
        receive(0);
        start_send(c.bytes, tag + 1);
        send(0);
        under_way_.wait();
        return;
      }
      case task::stream:
        follow_burst(c.bytes, 1);
        follow_burst(c.bytes, burst_of(c.bytes));
        return;
      case task::eager_probe:
        carrier_.receive(nullptr, 0, other_, tag + 1);
        receive(c.bytes);
        return;
      case task::exchange:  // measured by time_rounds
      case task::shift:
      case task::flow:
      case task::crowd:
      case task::stop:
        return;
    }
  }

  double lead_burst(std::int64_t bytes, int burst) {
    receive(0);  // the receives are posted
    const double begin_s = steady_clock_s();
    for (int i = 0; i < burst; ++i) start_send(bytes);
    under_way_.wait();
    receive(0);
    return steady_clock_s() - begin_s;
  }
  // All receives of a burst may use one buffer, because the content is never read.
  void follow_burst(std::int64_t bytes, int burst) {
    for (int i = 0; i < burst; ++i) start_receive(bytes);
    send(0);
    under_way_.wait();
    send(0);
  }

  carrier& carrier_;
  in_flight under_way_;
  int other_;
  std::vector<char> out_, in_;
};

using cell = std::pair<task, std::int64_t>;
using cell_values = std::map<cell, std::vector<double>>;

struct pair_result {
  cell_values values;
  std::int64_t eager_limit_bytes = 0;
};

// The leader's part of a pair.
pair_result lead_pair(endpoint& end, double budget_s, const std::string& what,
                      const progress_report& progress) {
  constexpr int most_passes = 40, values_per_pass = 5;
  constexpr double value_s = 20e-6;  // rounds are repeated until a value takes about this time
  const double begin_s = steady_clock_s();
  pair_result result;
  result.eager_limit_bytes = end.find_eager_limit();

  std::vector<cell> cells;
  for (const std::int64_t bytes : sampled_bytes)
    for (const task t : {task::one_way, task::stream, task::send_overhead, task::receive_overhead,
                         task::rendezvous})
      // A receive of a larger message would include its transfer. Over rails, a send of a smaller
      // message does not wait.
      if (t == task::receive_overhead
              ? bytes <= result.eager_limit_bytes
              : t != task::rendezvous || !end.over_rails() || bytes > result.eager_limit_bytes)
        cells.emplace_back(t, bytes);

  for (int pass = 0; pass < most_passes; ++pass)
    for (const cell& at : cells) {
      const double spent_s = steady_clock_s() - begin_s;
      if (spent_s > budget_s) return result;
      progress(std::max(spent_s / budget_s, double(pass) / most_passes),
               what + ", " + format_bytes(at.second));
      std::vector<double>& known = result.values[at];
      const bool round_trips = at.first == task::one_way || at.first == task::rendezvous;
      const int inner = !round_trips    ? 1
                        : known.empty() ? 1
                                        : std::clamp(int(value_s / (2 * known.back())), 1, 32);
      const auto more = end.lead({.what = at.first,
                                  .values = pass == 0 ? 2 : values_per_pass,
                                  .bytes = at.second,
                                  .inner = inner});
      known.insert(known.end(), more.begin(), more.end());
    }
  return result;
}

struct robust_value {
  double median_s = 0, spread_s = 0;
};

// Returns nothing for fewer than two values, because a single value may be an outlier.
std::optional<robust_value> robust(const cell_values& values, task what, std::int64_t bytes) {
  const auto found = values.find({what, bytes});
  if (found == values.end() || found->second.size() < 2) return std::nullopt;
  const std::vector<double> kept = without_outliers(found->second);
  return robust_value{median(kept), robust_spread(kept)};
}

// Times messages in both directions among these ranks of MPI_COMM_WORLD, the first of which leads:
// exchanges in pairs; messages to the next rank, in rounds or bursts; bursts to the next many
// ranks. A round lasts as long as on its slowest rank. Collective over MPI_COMM_WORLD; other ranks
// sleep. The leader gets the values.
void time_rounds(const job& j, carrier& c, const std::vector<int>& members, task what,
                 double budget_s, cell_values& values, const progress_report& progress) {
  constexpr int most_passes = 12;
  constexpr std::int64_t burst_bytes = 256 << 10;
  constexpr double value_s = 100e-6;
  const auto found = std::find(members.begin(), members.end(), j.rank);
  const int mine = int(found - members.begin()), size = int(members.size());
  MPI_Comm together = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, found == members.end() ? MPI_UNDEFINED : 0, mine, &together);
  if (together == MPI_COMM_NULL) return;
  const auto member = [&](int at) { return members[std::size_t(at % size)]; };
  // With an odd number of ranks, the last rank has no pair.
  const int pair = (mine ^ 1) < size ? member(mine ^ 1) : MPI_PROC_NULL;
  const int next = what == task::exchange ? pair : member(mine + 1);
  const int before = what == task::exchange ? pair : member(mine + size - 1);
  const bool bursts = what == task::flow || what == task::crowd;
  const int partners = what == task::crowd ? std::min(size - 1, most_messages / 4) : 1;
  std::vector<char> out(std::size_t(sampled_bytes.back()), 1), in(out);
  in_flight under_way(c);
  // All receives of a burst may use one buffer, because the content is never read.
  const auto burst = [&](std::int64_t bytes, int messages) {
    for (int i = 0; i < messages; ++i)
      under_way.receive(in.data(), bytes, member(mine + size - 1 - i % partners), tag);
    for (int i = 0; i < messages; ++i)
      under_way.send(out.data(), bytes, member(mine + 1 + i % partners), tag);
    under_way.wait();
  };
  const auto slowest_s = [&](const auto& work) {
    MPI_Barrier(together);
    const double begin_s = steady_clock_s();
    work();
    const double mine_s = steady_clock_s() - begin_s;
    double all_s = 0;
    MPI_Reduce(&mine_s, &all_s, 1, MPI_DOUBLE, MPI_MAX, 0, together);
    return all_s;
  };
  const double begin_s = steady_clock_s();
  for (int pass = 0; pass < most_passes; ++pass)
    for (const std::int64_t bytes : sampled_bytes) {
      // Larger messages are sent one at a time, in rounds of the ring.
      if (bursts && bytes >= large_message_bytes) break;
      std::vector<double>& known = values[{what, bytes}];
      command next_cell{.what = what, .bytes = bytes};
      if (mine == 0) {
        const double spent_s = steady_clock_s() - begin_s;
        progress(std::min(1.0, std::max(spent_s / budget_s, double(pass) / most_passes)),
                 format_bytes(bytes));
        // A second round waits for the slowest rank of the first round. Enough bytes flow that a
        // burst absorbed by the network hardly counts.
        const double rounds = std::max(known.empty() ? 0 : value_s / known.back(),
                                       double(burst_bytes) / double(bytes));
        next_cell.inner = int(std::clamp(rounds, 2.0, 32.0));
        if (spent_s > budget_s) next_cell.what = task::stop;
      }
      MPI_Bcast(&next_cell, sizeof next_cell, MPI_BYTE, 0, together);
      if (next_cell.what == task::stop) {
        MPI_Comm_free(&together);
        return;
      }
      for (int v = pass == 0 ? -1 : 0; v < 2; ++v) {  // the first value of all connects
        double value = 0;
        if (bursts) {
          // Cost of further messages after a few: latency and late ranks cancel out.
          const double few_s = slowest_s([&] { burst(bytes, partners); });
          value = (slowest_s([&] { burst(bytes, most_messages); }) - few_s) /
                  (most_messages - partners);
        } else {
          value = slowest_s([&] {
                    for (int i = 0; i < next_cell.inner; ++i)
                      c.exchange(out.data(), next, in.data(), before, bytes, tag);
                  }) /
                  next_cell.inner;
        }
        if (v >= 0 && mine == 0 && value > 0) known.push_back(value);
      }
    }
  MPI_Comm_free(&together);
}

void add_link(measurements& all, link_class link, const pair_result& pair) {
  const auto value_of = [&](task what, std::int64_t bytes) -> std::optional<double> {
    const auto value = robust(pair.values, what, bytes);
    if (!value) return std::nullopt;
    return value->median_s;
  };
  for (const std::int64_t bytes : sampled_bytes) {
    if (const auto one_way = robust(pair.values, task::one_way, bytes))
      all.links.push_back({.link = link,
                           .bytes = bytes,
                           .one_way_s = one_way->median_s,
                           .spread_s = one_way->spread_s,
                           .rendezvous_s = value_of(task::rendezvous, bytes),
                           .send_overhead_s = value_of(task::send_overhead, bytes),
                           .receive_overhead_s = value_of(task::receive_overhead, bytes),
                           .exchange_s = value_of(task::exchange, bytes),
                           .shift_s = value_of(task::shift, bytes),
                           .flow_s = value_of(task::flow, bytes),
                           .crowd_s = value_of(task::crowd, bytes)});
    if (const auto busy_s = value_of(task::stream, bytes))
      all.streams.push_back({.link = link, .bytes = bytes, .busy_s = *busy_s});
  }
  all.eager_limits_bytes[link] = pair.eager_limit_bytes;
}

struct rank_pair {
  int leader = -1, follower = -1;
  bool exists() const { return leader >= 0; }
};

// A pair with rank 0 if possible, else the first pair.
rank_pair pair_on_one_node(const job& j) {
  for (int a = 0; a < j.num_ranks; ++a)
    for (int b = a + 1; b < j.num_ranks; ++b)
      if (j.node_of_rank[std::size_t(a)] == j.node_of_rank[std::size_t(b)]) return {a, b};
  return {};
}
rank_pair pair_across_nodes(const job& j) {
  for (int b = 1; b < j.num_ranks; ++b)
    if (j.node_of_rank[std::size_t(b)] != j.node_of_rank[0]) return {0, b};
  return {};
}

// The ranks of the leader's node, or the first rank of each node; the leader comes first.
std::vector<int> ends_of(const job& j, link_class link, int leader) {
  std::vector<int> members{leader};
  std::vector<int> nodes{j.node_of_rank[std::size_t(leader)]};
  for (int r = 0; r < j.num_ranks; ++r) {
    const int node = j.node_of_rank[std::size_t(r)];
    const bool seen = std::find(nodes.begin(), nodes.end(), node) != nodes.end();
    if (link == link_class::same_node ? seen && r != leader : !seen) members.push_back(r);
    if (!seen && link == link_class::across_nodes) nodes.push_back(node);
  }
  return members;
}

// Sends the leader's measurements to rank 0 as a flat list.
pair_result bring_to_rank_0(const job& j, const pair_result& mine, int leader) {
  if (leader == 0) return mine;
  std::vector<double> flat;
  if (j.rank == leader) {
    flat.push_back(double(mine.eager_limit_bytes));
    for (const auto& [at, values] : mine.values)
      for (const double value : values)
        flat.insert(flat.end(), {double(int(at.first)), double(at.second), value});
    MPI_Send(flat.data(), int(flat.size()), MPI_DOUBLE, 0, tag, MPI_COMM_WORLD);
  }
  pair_result result;
  if (j.rank != 0) return result;
  MPI_Status status;
  MPI_Probe(leader, tag, MPI_COMM_WORLD, &status);
  int count = 0;
  MPI_Get_count(&status, MPI_DOUBLE, &count);
  flat.resize(std::size_t(count));
  MPI_Recv(flat.data(), count, MPI_DOUBLE, leader, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  result.eager_limit_bytes = std::int64_t(flat[0]);
  for (std::size_t i = 1; i + 2 < flat.size(); i += 3)
    result.values[{task(int(flat[i])), std::int64_t(flat[i + 1])}].push_back(flat[i + 2]);
  return result;
}

}  // namespace

measurements sample_links(const job& j, const std::string& rails, double budget_s,
                          const progress_report& progress) {
  carrier travels(rails);
  struct part {
    link_class link;
    rank_pair pair;
    std::string name;
  };
  std::vector<part> parts;
  for (const part& p : {part{link_class::same_node, pair_on_one_node(j), "same node"},
                        part{link_class::across_nodes, pair_across_nodes(j), "across nodes"}})
    if (p.pair.exists()) parts.push_back(p);

  measurements all;
  const double part_share = 1 / double(parts.size());
  // Shares of a link: one way; each of exchange, flow, ring and crowd.
  constexpr double pair_share = 0.5, rounds_share = 0.125;
  double done = 0;
  for (const part& p : parts) {
    pair_result mine;
    if (j.rank == p.pair.leader) {
      endpoint end(travels, p.pair.follower);
      mine = lead_pair(end, pair_share * part_share * budget_s, p.name,
                       [&](double fraction, const std::string& doing) {
                         progress(done + std::min(1.0, fraction) * pair_share * part_share, doing);
                       });
      end.stop();
    } else if (j.rank == p.pair.follower) {
      endpoint(travels, p.pair.leader).follow();
    }
    quiet_barrier(MPI_COMM_WORLD);
    const auto rounds = [&](const std::vector<int>& members, task what, double from,
                            const std::string& name) {
      time_rounds(j, travels, members, what, rounds_share * part_share * budget_s, mine.values,
                  [&](double fraction, const std::string& doing) {
                    progress(done + (from + fraction * rounds_share) * part_share,
                             p.name + ", " + name + ", " + doing);
                  });
      quiet_barrier(MPI_COMM_WORLD);
    };
    const std::vector<int> members = ends_of(j, p.link, p.pair.leader);
    rounds(members, task::exchange, pair_share, "exchange");
    rounds(members, task::flow, pair_share + rounds_share, "flow");
    if (members.size() > 2) {
      rounds(members, task::shift, pair_share + 2 * rounds_share, "ring");
      rounds(members, task::crowd, pair_share + 3 * rounds_share, "crowd");
    }
    const pair_result pair = bring_to_rank_0(j, mine, p.pair.leader);
    if (j.rank == 0) add_link(all, p.link, pair);
    done += part_share;
    const int num_sizes =
        agreed(int(std::count_if(all.links.begin(), all.links.end(),
                                 [&](const link_sample& s) { return s.link == p.link; })));
    if (num_sizes < 3)
      throw error("--budget: the time was enough for " + std::to_string(num_sizes) + " sizes " +
                  p.name + ", expected at least 3: give more");
  }
  return all;
}

}  // namespace railpass::internal::measure
