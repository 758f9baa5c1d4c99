// SPDX-License-Identifier: BSL-1.0
//
// What railpass knows about a machine: plain numbers, no I/O. `railpass sample` measures,
// railpass/fit fits, lib/files reads and writes, the simulator and the closed forms use them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace railpass {

/// Piecewise LogGP of one link class (Alexandrov et al., LogGP, SPAA'95,
/// doi:10.1145/215399.215427). A message of n bytes between two idle ranks takes
///     send_overhead_s + latency_s + n * (gap_s_per_byte + latency_s_per_byte) + receive_overhead_s
/// with the numbers of the piece n falls in; the sender may start its next message after
/// max(o, gap_s + n * gap_s_per_byte): its CPU is free after the overhead o, its NIC after the gap.
struct link_piece {
  double from_bytes = 0;          ///< first size this piece is for
  double latency_s = 0;           ///< L
  double send_overhead_s = 0;     ///< o at the sender
  double receive_overhead_s = 0;  ///< o at the receiver
  double gap_s = 0;               ///< g: time between two small messages
  double gap_s_per_byte = 0;      ///< G: time per byte of many messages in a row
  /// What a byte of a message alone takes beyond G. Not in LogGP: larger than 0 where a message is
  /// stored and forwarded, smaller where a network lets bursts pass faster than it lets a stream.
  double latency_s_per_byte = 0;
  /// What a byte adds to either overhead, as eager messages are copied: part of what it takes
  /// anyway.
  double send_overhead_s_per_byte = 0;
  double receive_overhead_s_per_byte = 0;
};

/// A time against the size of a message, piece by piece alpha_s + n * s_per_byte.
struct time_curve {
  struct piece {
    double from_bytes = 0;
    double alpha_s = 0;
    double s_per_byte = 0;

    double at_s(double bytes) const { return alpha_s + bytes * s_per_byte; }
  };
  std::vector<piece> pieces{};  ///< ascending from_bytes, the first at 0; empty: not known

  double at_s(double bytes) const {
    auto after = std::upper_bound(pieces.begin(), pieces.end(), bytes,
                                  [](double b, const piece& p) { return b < p.from_bytes; });
    return (after == pieces.begin() ? pieces.front() : *(after - 1)).at_s(bytes);
  }
};

struct link_model {
  std::vector<link_piece>
      pieces;  ///< ascending from_bytes, the first at 0; never empty once fitted
  double eager_limit_bytes = 65536;  ///< larger messages wait for the receiver (rendezvous)
  /// Two ranks send each other a message at once: until both have both. LogGP would have it take as
  /// long as one message; over TCP it takes up to 1.7 times that, as hand-shakes wait behind data.
  time_curve exchange{};
  /// Each rank of a ring sends to the next one and receives from the one before at once.
  time_curve shift{};
  /// The same with many messages under way: time per message sent and received. LogGP would have it
  /// be the gap; where ranks have less than a core each, or a core cannot keep up with the link in
  /// both directions, it is more.
  time_curve flow{};
  /// As flow, but every rank sends to many and receives from many: streams that meet at a link get
  /// in each other's way.
  time_curve crowd{};
  double residual_spread = 0.3;  ///< standard deviation of ln(measured / model)

  const link_piece& piece(double bytes) const {
    auto after = std::upper_bound(pieces.begin(), pieces.end(), bytes,
                                  [](double b, const link_piece& p) { return b < p.from_bytes; });
    return after == pieces.begin() ? pieces.front() : *(after - 1);
  }
  /// One-way time of a message between two idle ranks.
  double one_way_s(double bytes) const {
    const link_piece& p = piece(bytes);
    return p.send_overhead_s + p.latency_s + bytes * (p.gap_s_per_byte + p.latency_s_per_byte) +
           p.receive_overhead_s;
  }
  double exchange_s(double bytes) const {
    return exchange.pieces.empty() ? one_way_s(bytes) : exchange.at_s(bytes);
  }
  double shift_s(double bytes) const {
    return shift.pieces.empty() ? one_way_s(bytes) : shift.at_s(bytes);
  }
  /// 0: not known.
  double flow_s(double bytes) const { return flow.pieces.empty() ? 0 : flow.at_s(bytes); }
  /// The ring's, if not known.
  double crowd_s(double bytes) const {
    return crowd.pieces.empty() ? flow_s(bytes) : crowd.at_s(bytes);
  }
  /// How long either rank's processor is busy with one message.
  double sending_s(double bytes) const {
    const link_piece& p = piece(bytes);
    return p.send_overhead_s + bytes * p.send_overhead_s_per_byte;
  }
  double receiving_s(double bytes) const {
    const link_piece& p = piece(bytes);
    return p.receive_overhead_s + bytes * p.receive_overhead_s_per_byte;
  }
  /// How long the sender's side of the link is busy with one message.
  double busy_s(double bytes) const {
    const link_piece& p = piece(bytes);
    return std::max(sending_s(bytes), p.gap_s + bytes * p.gap_s_per_byte);
  }
};

/// The link of the Hockney model with one port: a message of n bytes takes, and keeps the sender
/// busy for, alpha_s + n * beta_s_per_byte (Hockney, doi:10.1016/S0167-8191(06)80021-9).
inline link_model hockney_link(double alpha_s, double beta_s_per_byte) {
  return {.pieces = {{.latency_s = alpha_s, .gap_s = alpha_s, .gap_s_per_byte = beta_s_per_byte}},
          .eager_limit_bytes = std::numeric_limits<double>::infinity()};
}

/// Work a rank does on its own memory: start-up time and time per byte.
struct local_model {
  double alpha_s = 1e-7;
  double s_per_byte = 1e-10;
  double time_s(double bytes) const { return alpha_s + bytes * s_per_byte; }
};

/// Two ranks of a node that share memory: anywhere, or under one cache.
enum class reach : std::uint8_t { node, cache };

/// Memory that the ranks of a node share: what a rank publishes there it copies, and so does who
/// fetches it, once it has seen that it is there. A single copy is made by the kernel instead. All
/// ranks do so at once.
struct shared_memory_model {
  double seen_s = 1e-7;  ///< from when something is shown until another rank sees it
  /// The same of two ranks that share a cache, where ranks of a node use several; 0: not known.
  double near_seen_s = 0;
  local_model copy{.alpha_s = 2e-8, .s_per_byte = 1e-10};  ///< to or from a cell
  local_model single_copy{.alpha_s = 1e-6, .s_per_byte = 1.2e-10};
  bool measured = false;
};

struct machine_model {
  link_model same_node{};
  link_model across_nodes{};
  local_model copy{};
  local_model reduce{};
  shared_memory_model shared{};
  int rails_per_node = 1;

  double publish_s(double bytes) const { return shared.copy.time_s(bytes); }
  /// What a rank sees takes so long until it may look, and as long again when it does: of what it
  /// looks at one after the other only the first one is waited for.
  double line_s(reach r = reach::node) const { return seen_s(r) / 2; }
  /// Of what another rank has published.
  double fetch_s(double bytes, reach r = reach::node) const {
    return line_s(r) + shared.copy.time_s(bytes);
  }
  double combine_s(double bytes, reach r = reach::node) const {
    return fetch_s(bytes, r) + bytes * reduce.s_per_byte;
  }
  /// From or to memory that another rank has opened. `meet`: ranks copy from one process after
  /// the other, as others do from theirs, and wait for each other in the kernel.
  double single_copy_s(double bytes, bool meet = false) const {
    return line_s() + (meet ? 2 : 1) * shared.single_copy.time_s(bytes);
  }
  /// Ranks without a core of their own wait for the others as long as messages show that they do,
  /// where nobody has measured it.
  double seen_s(reach r = reach::node) const {
    if (r == reach::cache && shared.near_seen_s > 0) return shared.near_seen_s;
    const double in_node_s =
        shared.measured ? shared.seen_s : std::max(shared.seen_s, same_node.one_way_s(1) / 8);
    return r == reach::cache ? in_node_s / 3 : in_node_s;
  }
};

/// What a closed form is asked.
struct cost_query {
  const machine_model& machine;
  int num_ranks = 1;
  int ranks_per_node = 1;
  int ranks_per_cache = 0;  ///< of one node, the most; 0: they share one
  double bytes = 0;         ///< message size per rank
  double unit_bytes = 1;    ///< smallest piece that can be sent alone

  /// The link the slowest messages of a collective over all ranks go by.
  const link_model& slowest_link() const {
    return num_ranks > ranks_per_node ? machine.across_nodes : machine.same_node;
  }
};

}  // namespace railpass
