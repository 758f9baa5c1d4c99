// SPDX-License-Identifier: BSL-1.0
//
// The messages that leave a rank: they wait per peer (outbox.hpp), the strategy decides what an
// idle rail carries next (strategy.hpp), and rails own what they carry (under_way.hpp).
#pragma once

#include "railpass/transport/credit.hpp"
#include "railpass/transport/failure.hpp"
#include "railpass/transport/known_rail.hpp"
#include "railpass/transport/message.hpp"
#include "railpass/transport/options.hpp"
#include "railpass/transport/outbox.hpp"
#include "railpass/transport/packet_rail.hpp"
#include "railpass/transport/rendezvous.hpp"
#include "railpass/transport/strategy.hpp"
#include "railpass/transport/under_way.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace railpass::transport {

/// Packets leave only inside flush(), ping() and part().
class sender {
 public:
  /// The rails, the sink of their events, and the failure must live as long.
  /// @param times, known see transport
  sender(int rank, int num_ranks, const std::vector<std::unique_ptr<packet_rail>>& rails,
         const std::vector<transfer_time>& times, bool known, std::unique_ptr<strategy> how,
         const transport_options& options, packet_sink& sink, failure_state& failure);

  // See transport.
  void know(int peer, const link_profile& measured);
  std::unique_ptr<strategy> use(std::unique_ptr<strategy> how);
  rail_report report(int peer, int rail) const;

  /// Adds a started message to another rank.
  void add(const message_ptr& op);
  /// Queues a control packet, which leaves with the next transmission to the peer.
  void control(int peer, const packet& p);
  /// The credit between this rank and the peer, in both directions.
  credit_account& credit(int peer) { return peers_[std::size_t(peer)].credit; }

  /// Gives waiting packets to rails; returns whether any rail took one.
  bool flush();
  /// Gives a rail an empty packet, which the peer's host must acknowledge.
  void ping(int peer, std::size_t rail);
  /// The rail no longer needs the memory of a packet.
  void sent(std::uint64_t token);

  // ---- packets from the peer; packets that break the protocol end the transport ----

  void granted(int peer, const packet& grant);
  void declined(int peer, const packet& decline);
  void wanted(int peer, const packet& want);
  void rate_told(int peer, const packet& rate);

  /// Notes the rate of packets from the peer, and tells the peer.
  void tell_rate(int peer, int rail, const rate_meter::measured& rate);

  // ---- the end ----

  /// Messages of a channel that were started and have not left yet.
  std::int64_t unsent(channel of) const;
  /// Stops counting the messages of a channel.
  void forget(channel ended) { unsent_.erase(ended); }
  /// Whether all started messages have left.
  bool all_sent() const { return with_work_.empty() && announced_.empty() && under_way_.empty(); }
  /// Lets flush() part once all started messages have left.
  void part_when_all_sent() { leaving_ = true; }
  /// Tells all peers that this rank sends nothing more. Messages that have not left are dropped.
  void part();
  bool has_parted() const { return parted_; }

  /// Calls `visit` with every message that this rank holds.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const peer_state& p : peers_) p.waiting.for_each(visit);
    announced_.for_each(visit);
    under_way_.for_each(visit);
  }
  /// Calls `mark` with every peer that must ask for a message or take packets.
  template <class Mark>
  void mark_awaited(const Mark& mark) const {
    const auto peer_of = [&](const message& op) { mark(op.peer()); };
    announced_.for_each(peer_of);
    under_way_.for_each(peer_of);
    for (const int peer : with_work_) mark(peer);
  }

 private:
  struct peer_state {
    credit_account credit;
    std::int64_t least_bytes;
    std::vector<known_rail> rails;
    outbox waiting{};
    bool has_work = false;
  };
  struct idle_rail {
    std::int64_t room_bytes = 0;  // bytes that the rail may still take
    std::vector<outgoing> packets;
  };

  bool flush(int peer);
  void offer_wanted(peer_state& p);
  outgoing first_packet(peer_state& p, const rail_thresholds& sizes, bool was_busy);
  template <class Add>
  bool add_chunk(peer_state& p, std::size_t r, const rails_view& view, bool was_busy,
                 const Add& add);
  void give(int peer, std::size_t rail, std::vector<outgoing>& packets);
  void note_given(int peer, std::size_t rail, const packet& h);
  void note_work(int peer);
  void leave(message& op);

  int rank_;
  const std::vector<std::unique_ptr<packet_rail>>& rails_;
  std::unique_ptr<strategy> strategy_;
  std::int64_t most_small_bytes_;
  packet_sink& sink_;
  failure_state& failure_;
  std::vector<peer_state> peers_;
  std::vector<int> with_work_;
  std::vector<idle_rail> plans_;             // of flush
  std::vector<std::int64_t> sizes_;          // of flush
  std::vector<std::int64_t> backlog_bytes_;  // of flush: under way on each rail, to all peers
  std::vector<std::int64_t> given_bytes_;    // to each rail, since the start
  std::vector<std::byte> nothing_;           // payload of probes
  numbered_messages announced_;
  packets_under_way under_way_;
  std::unordered_map<channel, std::int64_t> unsent_;
  bool leaving_ = false, parted_ = false;
};

}  // namespace railpass::transport
