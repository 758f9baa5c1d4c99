// SPDX-License-Identifier: BSL-1.0
//
// The messages that arrive at a rank: packets become messages in the order in which they were sent,
// and are matched with receives (matching.hpp).
#pragma once

#include "railpass/transport/failure.hpp"
#include "railpass/transport/matching.hpp"
#include "railpass/transport/message.hpp"
#include "railpass/transport/options.hpp"
#include "railpass/transport/packet_rail.hpp"
#include "railpass/transport/rate_meter.hpp"
#include "railpass/transport/rendezvous.hpp"
#include "railpass/transport/sending.hpp"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace railpass::transport {

/// Answers to peers are queued at the sender; they leave when the sender is flushed.
class receiver {
 public:
  /// The sender and the failure must live as long.
  receiver(int rank, int num_ranks, std::size_t num_rails, const transport_options& options,
           sender& answers, failure_state& failure);

  /// Starts a receive.
  void post(const message_ptr& op);
  /// Delivers a message of this rank to itself.
  void send_to_myself(const message_ptr& op);

  // See packet_sink. Packets that break the protocol end the transport.
  void arrived(int rail, int peer, const packet& h, std::vector<piece>& where);
  void complete(int rail, int peer, const packet& h, const arrival& timing);

  // ---- the end ----

  /// Messages of a channel that arrived from other ranks, received or not.
  std::int64_t arrived(channel of) const;
  /// Whether no message and no receive of a channel waits.
  bool is_idle(channel of) const;
  /// Drops all present and future messages of a channel.
  void drop(channel unwanted);
  /// Drops all present and future messages of all channels.
  void drop_all();
  void forget(channel ended) { mailboxes_.erase(ended); }

  /// Whether the peer has said farewell: on a rail, or on any rail.
  bool has_parted(int peer, std::size_t rail) const {
    return peers_[std::size_t(peer)].rails[rail].farewell;
  }
  bool has_parted(int peer) const;

  /// Calls `mark` with every peer of which a message is expected; any_source: of all peers.
  template <class Mark>
  void mark_awaited(const Mark& mark) const {
    if (leaving_) mark(any_source);
    for (const auto& [of, box] : mailboxes_) {
      if (box.dropping) mark(any_source);  // to close, a rank needs all messages
      for (const message_ptr& op : box.posted()) mark(op->peer());
    }
    granted_.for_each([&](const message& op) { mark(op.peer()); });
    // The receive of a message that is arriving is no longer posted.
    for (std::size_t p = 0; p < peers_.size(); ++p)
      for (const rail_state& r : peers_[p].rails)
        if (r.current.receive || r.current.buffered) mark(int(p));
  }

 private:
  // The packet that is arriving on a rail from a peer.
  struct incoming {
    message_ptr receive;
    envelope_ptr buffered;
    std::vector<std::byte> dropped;
  };
  struct rail_state {
    rate_meter meter{};
    incoming current{};
    bool farewell = false;
  };
  struct peer_state {
    std::vector<rail_state> rails;
    turns order{};
    bool offers = false;  // an offer from the peer waits for its turn
  };

  void match(const envelope_ptr& e);
  void answer(const envelope& e);
  void deliver(envelope& e, const message_ptr& op);
  void finish_buffered(envelope& e);
  void drop_unexpected(mailbox& box);
  void drop(envelope& e);
  void grant(int peer, std::uint32_t sender_id, const message_ptr& op);
  void owe(int peer, const packet& h);
  template <class Which>
  void ask(int peer, const Which& which);
  void ask(int peer);
  void receive_eager(int peer, const packet& h, incoming& current, std::vector<piece>& where);
  void receive_chunk(int peer, const packet& h, incoming& current, std::vector<piece>& where);
  void in_turn(const envelope_ptr& e);
  void take_early(peer_state& p);

  int rank_;
  std::int64_t eager_bytes_;
  sender& sender_;
  failure_state& failure_;
  std::vector<peer_state> peers_;
  std::unordered_map<channel, mailbox> mailboxes_;
  numbered_messages granted_;  // that have not arrived completely
  bool leaving_ = false;
};

}  // namespace railpass::transport
