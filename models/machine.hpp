// SPDX-License-Identifier: BSL-1.0
//
// The model of a machine: plain numbers without I/O. `railpass sample` measures, railpass/fit fits,
// lib/files reads and writes; the simulator and the closed forms use the model.
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
  /// Time per byte of a single message beyond G. Not in LogGP: positive if messages are stored and
  /// forwarded, negative if a network passes bursts faster than streams.
  double latency_s_per_byte = 0;
  /// Time per byte in either overhead, because eager messages are copied. This time is included in
  /// the total time of a message.
  double send_overhead_s_per_byte = 0;
  double receive_overhead_s_per_byte = 0;
};

/// Time as a function of message size: alpha_s + n * s_per_byte in each piece.
struct time_curve {
  struct piece {
    double from_bytes = 0;
    double alpha_s = 0;
    double s_per_byte = 0;

    double at_s(double bytes) const { return alpha_s + bytes * s_per_byte; }
  };
  std::vector<piece> pieces{};  ///< ascending from_bytes, the first at 0; empty: unknown

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
  /// Two ranks send each other a message at the same time: time until both have both. LogGP
  /// predicts the time of one message. Over TCP it is up to 1.7 times that, because handshakes wait
  /// behind data.
  time_curve exchange{};
  /// Each rank of a ring sends to the next rank and receives from the rank before at the same time.
  time_curve shift{};
  /// As shift, with many messages in flight: time per message sent and received. LogGP predicts the
  /// gap. The time is longer if ranks have less than a core each, or if a core cannot keep up with
  /// the link in both directions.
  time_curve flow{};
  /// As flow, but every rank sends to many ranks and receives from many: streams that meet at a
  /// link slow each other down.
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
  /// 0: unknown.
  double flow_s(double bytes) const { return flow.pieces.empty() ? 0 : flow.at_s(bytes); }
  /// The ring's time if unknown.
  double crowd_s(double bytes) const {
    return crowd.pieces.empty() ? flow_s(bytes) : crowd.at_s(bytes);
  }
  /// Time for which a rank's CPU is busy with one message.
  double sending_s(double bytes) const {
    const link_piece& p = piece(bytes);
    return p.send_overhead_s + bytes * p.send_overhead_s_per_byte;
  }
  double receiving_s(double bytes) const {
    const link_piece& p = piece(bytes);
    return p.receive_overhead_s + bytes * p.receive_overhead_s_per_byte;
  }
  /// Time for which the sender's side of the link is busy with one message.
  double busy_s(double bytes) const {
    const link_piece& p = piece(bytes);
    return std::max(sending_s(bytes), p.gap_s + bytes * p.gap_s_per_byte);
  }
};

/// The link of the one-port Hockney model: a message of n bytes takes, and keeps the sender busy
/// for, alpha_s + n * beta_s_per_byte (Hockney, doi:10.1016/S0167-8191(06)80021-9).
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

/// The distance of two ranks that share memory: on one node, or under one cache.
enum class reach : std::uint8_t { node, cache };

/// Memory that the ranks of a node share. The publisher copies data into shared memory; a reader
/// copies them out after it has seen the notice. The kernel makes single copies instead. Times are
/// for all ranks at once.
struct shared_memory_model {
  double seen_s = 1e-7;  ///< delay until another rank sees what a rank shows
  /// The same for two ranks that share a cache, if a node has several caches; 0: unknown.
  double near_seen_s = 0;
  local_model copy{.alpha_s = 2e-8, .s_per_byte = 1e-10};  ///< to or from a shared-memory slot
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
  /// Seeing something takes this long before the rank may look, and as long again for the look
  /// itself. Of several looks in sequence only the first one waits.
  double line_s(reach r = reach::node) const { return seen_s(r) / 2; }
  /// For data that another rank has published.
  double fetch_s(double bytes, reach r = reach::node) const {
    return line_s(r) + shared.copy.time_s(bytes);
  }
  double combine_s(double bytes, reach r = reach::node) const {
    return fetch_s(bytes, r) + bytes * reduce.s_per_byte;
  }
  /// For memory that another rank has opened.
  /// @param meet ranks that copy from one process wait for each other in the kernel
  double single_copy_s(double bytes, bool meet = false) const {
    return line_s() + (meet ? 2 : 1) * shared.single_copy.time_s(bytes);
  }
  /// Ranks without a core of their own wait for other ranks as long as in messages, if the delay in
  /// shared memory is unmeasured.
  double seen_s(reach r = reach::node) const {
    if (r == reach::cache && shared.near_seen_s > 0) return shared.near_seen_s;
    const double in_node_s =
        shared.measured ? shared.seen_s : std::max(shared.seen_s, same_node.one_way_s(1) / 8);
    return r == reach::cache ? in_node_s / 3 : in_node_s;
  }
};

/// The input of a closed form.
struct cost_query {
  const machine_model& machine;
  int num_ranks = 1;
  int ranks_per_node = 1;
  int ranks_per_cache = 0;  ///< of one node, the most; 0: all share one cache
  double bytes = 0;         ///< message size per rank
  double unit_bytes = 1;    ///< smallest piece that can be sent separately

  /// The link of the slowest messages of a collective over all ranks.
  const link_model& slowest_link() const {
    return num_ranks > ranks_per_node ? machine.across_nodes : machine.same_node;
  }
};

}  // namespace railpass
