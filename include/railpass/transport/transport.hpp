// SPDX-License-Identifier: BSL-1.0
//
// Messages between ranks over several rails, in three layers, as in NewMadeleine. The transport
// collects messages while the rails are busy; a strategy decides what an idle rail carries next;
// the rails carry packets. The transport does no I/O itself: tests drive it with a simulated rail.
//
// The parts have a file each: messages in flight (message.hpp), matching of receives
// (matching.hpp), flow control (credit.hpp), large messages (rendezvous.hpp), messages that wait
// for a rail (outbox.hpp), packets given to a rail (under_way.hpp), speed of rails (rate_meter.hpp,
// known_rail.hpp) and detection of dead peers (silence.hpp).
#pragma once

#include "railpass/base/clock.hpp"
#include "railpass/base/error.hpp"
#include "railpass/transport/credit.hpp"
#include "railpass/transport/known_rail.hpp"
#include "railpass/transport/link_profile.hpp"
#include "railpass/transport/matching.hpp"
#include "railpass/transport/message.hpp"
#include "railpass/transport/outbox.hpp"
#include "railpass/transport/packet_rail.hpp"
#include "railpass/transport/rate_meter.hpp"
#include "railpass/transport/rendezvous.hpp"
#include "railpass/transport/silence.hpp"
#include "railpass/transport/strategy.hpp"
#include "railpass/transport/under_way.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace railpass::transport {

/// Options, the same on all ranks unless noted.
struct transport_options {
  /// Messages up to this size (at most 64 KiB) are sent eagerly if the receiver has room. Values
  /// from know() take precedence.
  std::int64_t eager_bytes = 16 << 10;
  /// Buffer space for the messages of each other rank that have no receive yet. Each message counts
  /// 256 bytes more; the last message may exceed the limit. A message that a receive waits for may
  /// overtake the messages that the sender then holds back.
  std::int64_t credit_bytes = 1 << 20;
  /// Smallest part of a message worth a packet of its own on a second rail; know() takes
  /// precedence.
  std::int64_t least_bytes = 8 << 10;
  /// A rail to a peer from which a message is expected has failed if the peer's host acknowledges
  /// nothing for this time, in seconds; 0: never. May differ between ranks.
  double silence_s = 5;
  /// The number of the first message, modulo 2^32.
  std::uint32_t first_id = 1;
};

/// The messages between one rank and all other ranks. Messages from one rank to another are matched
/// in the order in which they were sent, whichever rails carry them; each arrives exactly once.
/// Messages of all channels share the queues of a rail, and small messages leave together. Messages
/// advance only inside send, receive and progress. Not thread safe.
///
/// Three failures end the transport: a rail fails, a peer breaks the protocol, or this rank stops
/// in the middle of an operation (out of memory, for example). Then every call throws error, as
/// does every other rank's next call. All rails are abandoned, and the memory of messages is no
/// longer accessed.
class transport final : private packet_sink {
 public:
  /// @param times times[r] is the initial estimate for rail r
  /// @param known whether the estimates were measured
  transport(int rank, int num_ranks, std::vector<std::unique_ptr<packet_rail>> rails,
            std::vector<transfer_time> times, bool known, std::unique_ptr<strategy> how,
            const transport_options& options = {})
      : rank_(rank),
        rails_(std::move(rails)),
        strategy_(std::move(how)),
        options_(options),
        large_(options.first_id),
        silence_(options.silence_s, std::size_t(num_ranks) * rails_.size()) {
    if (rails_.empty() || rails_.size() > most_rails || times.size() != rails_.size())
      throw error("a transport takes 1 to 16 rails with a transfer time each; got " +
                  std::to_string(rails_.size()));
    if (options.eager_bytes < 0 || options.eager_bytes > std::int64_t(most_eager_bytes) ||
        options.credit_bytes < options.eager_bytes || options.credit_bytes > 1 << 30 ||
        options.least_bytes < 1)
      throw error(
          "transport_options: expected eager_bytes <= 64 KiB, and eager_bytes <= "
          "credit_bytes <= 1 GiB");
    given_bytes_.assign(rails_.size(), 0);
    // Even the smallest credit must hold several messages.
    const peer_state nothing_yet{credit_account(options.credit_bytes + most_small_bytes() +
                                                    16 * credit_account::message_bytes,
                                                most_small_bytes()),
                                 options.least_bytes};
    peers_.assign(std::size_t(num_ranks), nothing_yet);
    for (peer_state& p : peers_) {
      p.rails.reserve(times.size());
      for (const transfer_time& time : times)
        p.rails.push_back({known_rail(time, known, options.eager_bytes)});
    }
  }
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;

  int rank() const { return rank_; }
  const std::vector<std::unique_ptr<packet_rail>>& rails() const { return rails_; }

  /// Sets the measured times of the rails to a peer for later decisions; reports restart.
  /// @throws error if the number of rails is wrong
  void know(int peer, const link_profile& measured) {
    if (measured.rails.size() != rails_.size() || measured.least_bytes < 1)
      throw error("a link_profile of " + std::to_string(measured.rails.size()) +
                  " rails: expected one of " + std::to_string(rails_.size()));
    peer_state& p = peers_[std::size_t(peer)];
    p.least_bytes = measured.least_bytes;
    for (std::size_t r = 0; r < rails_.size(); ++r)
      p.rails[r].known.know(measured.rails[r], most_small_bytes());
  }

  /// Replaces the strategy and returns the former strategy.
  std::unique_ptr<strategy> use(std::unique_ptr<strategy> how) {
    strategy_.swap(how);
    return how;
  }

  /// Starts to send a message of several pieces. 0 <= peer < num_ranks, tag >= 0.
  /// @param from memory of the caller, unchanged until the message is done
  /// @param owner kept until the message is done
  operation_ptr send(int peer, int tag, std::vector<piece> from, std::shared_ptr<void> owner = {},
                     channel on = 0) {
    check_alive();
    auto op = std::make_shared<message>(peer, tag, on, std::move(from), std::move(owner));
    if (op->bytes() > std::int64_t(most_message_bytes))
      throw error("a message of more than 2^60 bytes");
    whole_or_failed([&] {
      if (peer == rank_) {
        send_to_myself(op);
      } else {
        ++mailboxes_[on].unsent;
        peers_[std::size_t(peer)].waiting.add(op);
        note_work(peer);
        flush();
      }
    });
    return op;
  }

  /// Starts to receive into several pieces. `source` and `tag` may be any_source and any_tag.
  operation_ptr receive(int source, int tag, std::vector<piece> to, channel on = 0) {
    return post(std::make_shared<message>(source, tag, on, std::move(to)));
  }

  /// Starts to receive a message of unknown size. `allocate(bytes)` is called once, when the size
  /// is known, and returns the memory.
  operation_ptr receive(int source, int tag, std::function<piece(std::int64_t)> allocate,
                        channel on = 0) {
    return post(std::make_shared<message>(source, tag, on, std::move(allocate)));
  }

  /// Advances all messages without blocking; returns whether anything moved.
  /// @param now_s from any clock, in seconds
  bool progress(double now_s = steady_clock_s()) {
    check_alive();
    bool moved = false;
    whole_or_failed([&] {
      if (silence_.is_time(now_s)) look_for_silence(now_s);
      for (auto& r : rails_) moved |= r->poll(*this);
      moved |= flush();
    });
    check_alive();
    return moved;
  }

  /// Messages of a channel to other ranks that were started and have not left yet.
  std::int64_t unsent(channel of) const {
    const auto box = mailboxes_.find(of);
    return box == mailboxes_.end() ? 0 : box->second.unsent;
  }
  /// Messages of a channel that arrived from other ranks, received or not. Small messages count
  /// when complete, large messages when announced.
  std::int64_t arrived(channel of) const {
    const auto box = mailboxes_.find(of);
    return box == mailboxes_.end() ? 0 : box->second.arrived;
  }
  /// Drops all present and future messages of a channel that no rank receives any more. Senders
  /// drop large messages, which thereby count as left.
  void drop(channel unwanted) {
    if (!alive_) return;
    whole_or_failed([&] {
      mailbox& box = mailboxes_[unwanted];
      box.dropping = true;
      drop_unexpected(box);
      for (std::size_t p = 0; p < peers_.size(); ++p) ask(int(p));
      flush();
    });
  }
  /// Ends a channel on which everything has arrived and left. Receives without a message never end.
  void forget(channel ended) { mailboxes_.erase(ended); }
  /// Ends a channel on which this rank has received every message. All ranks of the channel call
  /// leave(). Remaining and later messages are dropped.
  void leave(channel ended) {
    const auto box = mailboxes_.find(ended);
    if (box == mailboxes_.end()) return;
    if (box->second.is_idle())
      mailboxes_.erase(box);
    else
      drop(ended);
  }

  /// Tells all peers that this rank sends nothing more, once all started messages have left. No
  /// rank receives any more.
  void say_farewell() {
    check_alive();
    whole_or_failed([&] {
      if (!std::exchange(leaving_, true))
        for (auto& [of, box] : mailboxes_) drop_unexpected(box);
      flush();
    });
  }
  /// Tells all peers at once, so that no peer waits for this rank; drops messages that have not
  /// left.
  void part_at_once() {
    check_alive();
    whole_or_failed([&] {
      if (!said_farewell_) part();
    });
  }
  /// A rank for which this transport still holds a message whose send has ended, so that only this
  /// transport can deliver it. Ranks that have said farewell do not count, because they receive
  /// nothing more.
  std::optional<int> owed() const {
    std::optional<int> peer;
    const auto look = [&](const message& op) {
      if (op.done() && !has_parted(op.peer())) peer = op.peer();
    };
    for (const peer_state& p : peers_) p.waiting.for_each(look);
    large_.for_each_announced(look);
    under_way_.for_each(look);
    return peer;
  }
  /// Whether all ranks have said farewell, this rank included.
  bool all_have_said_farewell() const {
    if (!said_farewell_) return false;
    for (const auto& r : rails_)
      if (r->under_way_bytes() > 0) return false;
    for (std::size_t p = 0; p < peers_.size(); ++p)
      for (const rail_state& r : peers_[p].rails)
        if (int(p) != rank_ && !r.farewell) return false;
    return true;
  }
  /// Whether all started messages have left.
  bool all_sent() const { return with_work_.empty() && large_.all_taken() && under_way_.empty(); }

  bool alive() const { return alive_; }
  /// The reason of a failure; empty if unknown.
  const std::string& failure() const { return failure_; }
  /// Ends the transport because this rank cannot continue.
  void fail(std::string_view why) noexcept {
    note_failure(why);
    if (!std::exchange(given_up_, true))
      for (auto& r : rails_) r->abandon();
  }

  rail_report report(int peer, int rail) const {
    return peers_[std::size_t(peer)].rails[std::size_t(rail)].known.report();
  }

  /// The report of a rail, summed over all peers.
  rail_report report(int rail) const {
    std::vector<rail_report> peers;
    for (std::size_t peer = 0; peer < peers_.size(); ++peer)
      peers.push_back(report(int(peer), rail));
    return together(peers);
  }

 private:
  // The packet that is arriving on a rail from a peer.
  struct incoming {
    message_ptr receive;
    envelope_ptr buffered;
    std::vector<std::byte> dropped;
  };

  struct rail_state {
    known_rail known;    // for packets to the peer
    rate_meter meter{};  // for packets from the peer
    incoming current{};
    bool farewell = false;  // from the peer
  };

  struct peer_state {
    credit_account credit;
    std::int64_t least_bytes;
    turns order{};        // of messages from the peer
    bool offers = false;  // an offer from the peer waits for its turn
    outbox waiting{};
    bool has_work = false;
    std::vector<rail_state> rails{};
  };

  // The size limit for eager messages, independent of measured rail speeds: both ends of a credit
  // use the limit, but only one end knows the measurements.
  std::int64_t most_small_bytes() const {
    return std::min(options_.credit_bytes, std::int64_t(most_eager_bytes));
  }

  bool has_parted(int peer) const {
    return std::ranges::any_of(peers_[std::size_t(peer)].rails, &rail_state::farewell);
  }

  void note_failure(std::string_view why) noexcept {
    if (!std::exchange(alive_, false)) return;
    try {
      failure_ = why;
    } catch (const std::bad_alloc&) {  // the reason stays unknown
    }
  }
  void check_alive() {
    if (alive_) return;
    fail("");
    throw error(failure_.empty() ? "the rails have failed" : failure_);
  }
  void give_up(const char* why) noexcept {
    try {
      note_failure("rank " + std::to_string(rank_) + " cannot go on: " + why);
    } catch (const std::bad_alloc&) {
    }
    fail(why);
  }
  // An exception in the middle of `work` leaves an inconsistent state, so the transport ends.
  template <class Work>
  void whole_or_failed(const Work& work) {
    try {
      work();
    } catch (const error& e) {
      fail(e.what());
      throw;
    } catch (const std::exception& e) {
      give_up(e.what());
      check_alive();
    } catch (...) {
      give_up("an exception that is no std::exception");
      throw;
    }
  }
  [[noreturn]] void violated(int peer, const std::string& what) {
    fail("rank " + std::to_string(peer) + " broke the protocol of the rails: " + what);
    throw error(failure_);
  }

  // ---- matching ----

  operation_ptr post(message_ptr op) {
    check_alive();
    whole_or_failed([&] {
      mailbox& box = mailboxes_[op->on()];
      if (const envelope_ptr found = box.take_unexpected(*op)) {
        deliver(*found, op);
        flush();
        return;
      }
      box.post(op);
      const int source = op->peer();
      for (std::size_t p = 0; p < peers_.size(); ++p)
        if ((source == any_source || source == int(p)) && peers_[p].credit.is_starved())
          control(int(p), packet::want(op->on(), op->tag()));
      flush();
    });
    return op;
  }

  void send_to_myself(const message_ptr& op) {
    auto e = std::make_shared<envelope>();
    const auto bytes = std::uint64_t(op->bytes());
    e->source = rank_;
    if (op->bytes() <= options_.eager_bytes) {
      e->header = packet::eager(op->on(), op->tag(), 0, bytes, false);
      for (const piece& p : op->pieces()) e->data.insert(e->data.end(), p.data, p.data + p.bytes);
      op->finish();
    } else {
      e->header = packet::request(op->on(), op->tag(), 0, 0, bytes);
      e->from_me = op;
    }
    match(e);
  }

  void match(const envelope_ptr& e) {
    e->in_turn = true;
    if (e->header.is_offer()) return answer(*e);
    mailbox& box = mailboxes_[e->header.on()];
    if (e->complete && e->source != rank_) ++box.arrived;
    if (const message_ptr op = box.take_posted(e->source, e->header)) {
      deliver(*e, op);
    } else if (leaving_ || box.dropping) {
      drop(*e);
    } else {
      box.keep(e);
    }
  }

  // The receiver answers an offer at once, without storing it.
  void answer(const envelope& e) {
    const packet& h = e.header;
    mailbox& box = mailboxes_[h.on()];
    peers_[std::size_t(e.source)].offers = false;
    message_ptr op = box.take_posted(e.source, h);
    if (!op && (leaving_ || box.dropping)) op = std::make_shared<message>();
    if (!op) {
      control(e.source, packet::decline(h.sender_id()));
    } else {
      ++box.arrived;
      op->start(e.source, h.tag, std::int64_t(h.message_bytes()));
      grant(e.source, h.sender_id(), op);
    }
    // The offer's want is used up, and may have been another receive's.
    ask(e.source,
        [&](channel on, int tag) { return on == h.on() && (tag == any_tag || tag == h.tag); });
  }

  // Notes that a message to another rank has left.
  void leave(message& op) {
    op.finish();
    const auto box = mailboxes_.find(op.on());
    if (box != mailboxes_.end()) --box->second.unsent;
  }

  void deliver(envelope& e, const message_ptr& op) {
    if (e.from_me) {
      op->start(e.source, e.header.tag, e.from_me->bytes());
      copy(e.from_me->pieces(), op->bytes(), op->pieces());
      e.from_me->finish();
      op->finish();
      return;
    }
    op->start(e.source, e.header.tag, std::int64_t(e.header.message_bytes()));
    if (e.header.type == packet_type::request) {
      owe(e.source, e.header);
      grant(e.source, e.header.sender_id(), op);
    } else {
      e.claimed = op;
      if (e.complete) finish_buffered(e);
    }
  }

  void finish_buffered(envelope& e) {
    copy(e.data.data(), e.claimed->bytes(), e.claimed->pieces());
    e.claimed->finish();
    if (e.source != rank_) owe(e.source, e.header);
  }

  void drop_unexpected(mailbox& box) {
    for (const envelope_ptr& e : box.take_all_unexpected()) drop(*e);
  }
  void drop(envelope& e) {
    if (e.from_me) e.from_me->finish();
    if (e.source == rank_) return;
    owe(e.source, e.header);
    if (e.header.type == packet_type::request)
      grant(e.source, e.header.sender_id(), std::make_shared<message>());
  }

  void grant(int peer, std::uint32_t sender_id, const message_ptr& op) {
    const std::uint32_t receiver_id = large_.expect(op);
    if (op->bytes() == 0) op->finish();
    control(peer, packet::grant(sender_id, receiver_id, std::uint64_t(op->bytes())));
  }

  // ---- credit ----

  // Returns the credit for a message of the peer that is no longer buffered.
  void owe(int peer, const packet& h) {
    if (peers_[std::size_t(peer)].credit.owe(credit_account::cost_of(h)))
      control(peer, packet::credit_alone());
  }
  // Tells a peer without credit which messages receives wait for, for the channels and tags that
  // `which` selects. The packet also carries all credit that the peer can have back.
  template <class Which>
  void ask(int peer, const Which& which) {
    if (!peers_[std::size_t(peer)].credit.is_starved()) return;
    std::set<std::pair<channel, int>> wants;
    for (const auto& [on, box] : mailboxes_) {
      if (box.dropping) wants.emplace(on, any_tag);  // to close, a rank needs all messages
      for (const message_ptr& op : box.posted())
        if (op->peer() == any_source || op->peer() == peer) wants.emplace(on, op->tag());
    }
    for (const auto& [on, tag] : wants)
      if (which(on, tag)) control(peer, packet::want(on, tag));
  }
  void ask(int peer) {
    ask(peer, [](channel, int) { return true; });
  }

  // ---- incoming packets ----

  void arrived(int rail, int peer, const packet& h, std::vector<piece>& where) override {
    peer_state& p = peers_[std::size_t(peer)];
    incoming& current = p.rails[std::size_t(rail)].current;
    if (!p.credit.regain(h.credit)) violated(peer, "more credit given back than was lent");
    if (h.begins_message() && !h.is_offer() && !p.credit.keep(h))
      violated(peer, "more messages than its credit allows");
    switch (h.type) {
      case packet_type::eager:
        receive_eager(peer, h, current, where);
        break;
      case packet_type::chunk:
        receive_chunk(peer, h, current, where);
        break;
      case packet_type::probe:
        current.dropped.resize(std::size_t(h.length));
        where.push_back({current.dropped.data(), current.dropped.size()});
        break;
      default:
        break;
    }
  }

  void receive_eager(int peer, const packet& h, incoming& current, std::vector<piece>& where) {
    peer_state& p = peers_[std::size_t(peer)];
    if (p.order.is_next(h.sequence)) {
      if (const message_ptr op = mailboxes_[h.on()].take_posted(peer, h)) {
        p.order.pass();
        op->start(peer, h.tag, std::int64_t(h.length));
        cut(op->pieces(), 0, op->bytes(), where);
        if (op->truncated()) {
          current.dropped.resize(std::size_t(h.length) - std::size_t(op->bytes()));
          where.push_back({current.dropped.data(), current.dropped.size()});
        }
        current.receive = op;
        take_early(p);
        return;
      }
    }
    auto e = std::make_shared<envelope>();
    e->source = peer;
    e->header = h;
    e->data.resize(std::size_t(h.length));
    e->complete = false;
    if (h.length > 0) where.push_back({e->data.data(), e->data.size()});
    current.buffered = e;
    in_turn(e);
  }

  // Delivers messages in the order in which they were sent.
  void in_turn(const envelope_ptr& e) {
    peer_state& p = peers_[std::size_t(e->source)];
    const std::uint32_t sequence = e->header.sequence;
    if (!p.order.is_new(sequence))
      violated(e->source, "message " + std::to_string(sequence) + " arrived twice");
    if (!p.order.is_next(sequence)) {
      p.order.keep(e);
      return;
    }
    p.order.pass();
    match(e);
    take_early(p);
  }
  void take_early(peer_state& p) {
    while (const envelope_ptr e = p.order.take_next()) match(e);
  }

  void receive_chunk(int peer, const packet& h, incoming& current, std::vector<piece>& where) {
    const message_ptr op = large_.expected(peer, h.receiver_id());
    if (!op) violated(peer, "a part of a message that was not asked for");
    const auto begins = std::int64_t(h.offset_bytes()), ends = begins + std::int64_t(h.length);
    if (!op->take_part(begins, ends))
      violated(peer, "a part beyond the end of a message, or a part sent twice");
    current.receive = op;
    cut(op->pieces(), begins, ends - begins, where);
  }

  void complete(int rail, int peer, const packet& h, const arrival& timing) override {
    peer_state& p = peers_[std::size_t(peer)];
    rail_state& r = p.rails[std::size_t(rail)];
    if (r.farewell) violated(peer, "a packet after the last packet");
    if (const auto rate = r.meter.came(h, timing)) tell_rate(peer, rail, *rate);
    const message_ptr op = std::exchange(r.current.receive, nullptr);
    switch (h.type) {
      case packet_type::eager:
        if (op) {
          op->finish();
          owe(peer, h);
          r.current = {};
          ++mailboxes_[h.on()].arrived;
        } else if (const envelope_ptr e = std::exchange(r.current.buffered, nullptr)) {
          e->complete = true;
          if (e->in_turn) ++mailboxes_[h.on()].arrived;
          if (e->claimed) finish_buffered(*e);
        }
        break;
      case packet_type::offer:
      case packet_type::overtaken:
        if (std::exchange(p.offers, true)) violated(peer, "two offers at once");
        [[fallthrough]];
      case packet_type::request: {
        auto e = std::make_shared<envelope>();
        e->source = peer;
        e->header = h;
        in_turn(e);
        break;
      }
      case packet_type::grant: {
        const message_ptr granted =
            large_.take_announced(peer, h.sender_id(), std::int64_t(h.wanted_bytes()));
        if (!granted) violated(peer, "asked for a message that was not announced");
        p.waiting.note_taken(*granted);
        begin_large(peer, granted, h);
        note_work(peer);
        break;
      }
      case packet_type::decline:
        if (!p.waiting.take_back(large_.take_declined(peer, h.sender_id())))
          violated(peer, "declined a message that was not offered");
        note_work(peer);
        break;
      case packet_type::want:
        p.waiting.note_want(h.on(), h.of_any_tag() ? any_tag : h.tag);
        if (!p.credit.allows()) large_.end_early(peer, most_small_bytes());
        note_work(peer);
        break;
      case packet_type::chunk:
        if (op->part_arrived(std::int64_t(h.length))) {
          large_.end(h.receiver_id());
          op->finish();
        }
        break;
      case packet_type::rate:
        if (h.rail() >= rails_.size()) violated(peer, "a rate of a rail that does not exist");
        p.rails[h.rail()].known.learn(double(h.bytes_per_s()), h.of_probe());
        break;
      case packet_type::probe:
        r.current = {};
        break;
      case packet_type::farewell:
        r.farewell = true;
        break;
      case packet_type::credit:
        break;
    }
    if (h.begins_message() && !h.is_offer()) ask(peer);
  }

  void begin_large(int peer, const message_ptr& op, const packet& h) {
    op->grant(h.receiver_id(), std::int64_t(h.wanted_bytes()), rails_.size());
    if (op->bytes() == 0) {
      leave(*op);
      return;
    }
    peers_[std::size_t(peer)].waiting.add_granted(op);
    note_work(peer);
  }

  void tell_rate(int peer, int rail, const rate_meter::measured& rate) {
    peers_[std::size_t(peer)].rails[std::size_t(rail)].known.suppose(rate.bytes_per_s);
    control(peer, packet::rate(std::uint32_t(rail),
                               std::max<std::uint64_t>(1, std::uint64_t(rate.bytes_per_s)),
                               rate.of_probe));
  }

  void sent(std::uint64_t token) override {
    if (const message_ptr op = under_way_.remove(token)) leave(*op);
  }

  void failed(int rail, int peer, const std::string& why) override {
    if (peers_[std::size_t(peer)].rails[std::size_t(rail)].farewell) return;
    note_failure("rail " + rails_[std::size_t(rail)]->name() + " to rank " + std::to_string(peer) +
                 ": " + why);
  }

  // ---- silence ----

  // The peers from which messages are expected. A peer that computes for minutes is not silent,
  // because its host acknowledges packets.
  std::vector<bool> awaited() const {
    std::vector<bool> result(peers_.size(), leaving_);
    const auto mark = [&](int peer) {
      if (peer == any_source)
        result.assign(result.size(), true);
      else
        result[std::size_t(peer)] = true;
    };
    for (const auto& [of, box] : mailboxes_) {
      if (box.dropping) mark(any_source);  // to close, a rank needs all messages
      for (const message_ptr& op : box.posted()) mark(op->peer());
    }
    large_.mark_awaited(mark);
    under_way_.for_each([&](const message& op) { mark(op.peer()); });
    for (const int peer : with_work_) mark(peer);
    result[std::size_t(rank_)] = false;
    return result;
  }

  // A rank that waits without packets in flight sends an empty packet, which the peer's host must
  // acknowledge.
  void look_for_silence(double now_s) {
    const bool again = silence_.look(now_s);
    const std::vector<bool> waits = awaited();
    for (std::size_t p = 0; p < peers_.size(); ++p)
      for (std::size_t r = 0; r < rails_.size(); ++r) {
        const std::size_t watched = p * rails_.size() + r;
        if (!waits[p]) silence_.excuse(watched);
        if (!waits[p] || peers_[p].rails[r].farewell) continue;
        const std::optional<double> unanswered_s = rails_[r]->unanswered_s(int(p));
        if (!unanswered_s) continue;
        if (silence_.is_lost(watched, *unanswered_s))
          failed(int(r), int(p), "its host has acknowledged nothing for several seconds");
        else if (again && !said_farewell_ && rails_[r]->under_way_bytes(int(p)) == 0)
          ping(int(p), r);
      }
  }
  void ping(int peer, std::size_t rail) {
    std::vector<outgoing> packets(1);
    packets[0].header = packet::credit_alone();
    note_given(peer, rail, packets[0].header);
    give(peer, rail, packets);
  }

  // ---- outgoing packets ----

  // The only way to a rail; the packets then belong to the rail (under_way.hpp).
  void give(int peer, std::size_t rail, std::vector<outgoing>& packets) {
    rails_[rail]->send(peer, packets, *this);
  }
  void note_given(int peer, std::size_t rail, const packet& h) {
    peers_[std::size_t(peer)].rails[rail].known.note_given(h, given_bytes_[rail]);
    given_bytes_[rail] += bytes_on_rail(h);
  }

  // Queues a control packet, which leaves with the next transmission.
  void control(int peer, const packet& p) {
    peers_[std::size_t(peer)].waiting.add_control(p);
    note_work(peer);
  }

  void note_work(int peer) {
    peer_state& p = peers_[std::size_t(peer)];
    if (p.has_work) return;
    p.has_work = true;
    with_work_.push_back(peer);
  }

  // Gives waiting packets to rails; returns whether any rail took one.
  bool flush() {
    bool moved = false;
    // Peers take turns in being served first.
    if (with_work_.size() > 1)
      std::rotate(with_work_.begin(), with_work_.begin() + 1, with_work_.end());
    // Reading the backlog may take a system call per peer, so each rail is read once for all peers.
    backlog_bytes_.resize(rails_.size());
    if (!with_work_.empty())
      for (std::size_t r = 0; r < rails_.size(); ++r)
        backlog_bytes_[r] = rails_[r]->under_way_bytes();
    for (std::size_t i = 0; i < with_work_.size(); ++i) moved |= flush(with_work_[i]);
    std::erase_if(with_work_, [&](int peer) { return !peers_[std::size_t(peer)].has_work; });
    if (leaving_ && !said_farewell_ && all_sent()) part();
    return moved;
  }

  struct idle_rail {
    std::int64_t room_bytes = 0;  // bytes that the rail may still take
    std::vector<outgoing> packets;
  };

  bool flush(int peer) {
    peer_state& p = peers_[std::size_t(peer)];
    if (said_farewell_) {  // no peer needs the message any more
      p.has_work = false;
      return false;
    }
    offer_wanted(p);
    const std::size_t n = rails_.size();
    rail_outlook outlook[most_rails];
    double unanswered_s[most_rails] = {};
    bool was_idle[most_rails];
    std::int64_t under_way_bytes[most_rails];
    plans_.resize(n);
    for (std::size_t r = 0; r < n; ++r) {
      const std::int64_t mine = rails_[r]->under_way_bytes(peer);
      known_rail& known = p.rails[r].known;
      outlook[r] = {.time = &known.time(),
                    .busy_s = double(backlog_bytes_[r]) / known.bytes_per_s(),
                    .spare = known.spare()};
      known.note_backlog(outlook[r].busy_s);
      was_idle[r] = backlog_bytes_[r] <= unanswered_bytes;
      if (was_idle[r]) unanswered_s[r] = std::exchange(outlook[r].busy_s, 0);
      under_way_bytes[r] = mine;
      plans_[r].room_bytes = known.window_bytes() - mine;
      plans_[r].packets.clear();
    }
    rails_view view{.rails = {outlook, n}, .least_bytes = p.least_bytes};
    // Unacknowledged bytes may have arrived: a few of them do not show that the rail is busy.
    const auto is_busy = [&](std::size_t r) {
      return under_way_bytes[r] > p.rails[r].known.quantum_bytes() / 4;
    };
    const auto add = [&](std::size_t r, outgoing&& packet) {
      const std::int64_t bytes = bytes_on_rail(packet.header);
      const double takes_s = double(bytes) / p.rails[r].known.bytes_per_s();
      outlook[r].busy_s += takes_s;
      plans_[r].room_bytes -= bytes;
      backlog_bytes_[r] += bytes;
      under_way_bytes[r] += bytes;
      note_given(peer, r, packet.header);
      if (packet.header.type != packet_type::probe && can_be_timed(packet.header))
        for (std::size_t other = 0; other < n; ++other)
          if (other != r) p.rails[other].known.note_passed_over(takes_s);
      plans_[r].packets.push_back(std::move(packet));
    };

    if (p.waiting.has_control()) {
      const std::size_t r = soonest(view.rails, header_bytes);
      p.waiting.take_control([&](const packet& c) { add(r, {.header = c, .payload = {}}); });
    }
    bool moved = false;
    // Hands over the packets of one transmission.
    const auto hand_over = [&](std::size_t r) {
      if (plans_[r].packets.empty()) return;
      moved = true;
      // The first packet to leave carries the credit.
      plans_[r].packets.front().header.credit = p.credit.pay();
      give(peer, r, plans_[r].packets);
      plans_[r].packets.clear();
    };
    for (std::size_t r = 0; r < n; ++r) {
      const rail_thresholds& sizes = p.rails[r].known.thresholds();
      view.aggregate_bytes = sizes.aggregate_bytes;
      while (p.waiting.num_small() > 0 && !p.waiting.awaits_answer() && plans_[r].room_bytes > 0 &&
             p.credit.allows()) {
        sizes_.clear();
        for (std::size_t i = 0; i < std::min<std::size_t>(p.waiting.num_small(), 64); ++i)
          sizes_.push_back(travelling_bytes(p.waiting.small(i), sizes));
        std::size_t take = std::min(strategy_->small(r, view, sizes_), sizes_.size());
        if (take == 0) break;
        for (; take > 0 && p.credit.allows(); --take) add(r, first_packet(p, sizes, is_busy(r)));
        if (p.waiting.num_small() > 0) hand_over(r);
      }
    }
    for (std::size_t r = 0; r < n; ++r) outlook[r].busy_s += unanswered_s[r];
    for (std::size_t r = 0; r < n; ++r)
      while (plans_[r].room_bytes > 0 && add_chunk(p, r, view, is_busy(r), add)) {
      }

    for (std::size_t r = 0; r < n; ++r) {
      if (was_idle[r] && p.rails[r].known.is_to_be_probed()) {
        p.rails[r].known.note_probed();
        nothing_.resize(std::size_t(known_rail::probe_bytes));
        for (const std::int64_t length : {known_rail::first_probe_bytes, known_rail::probe_bytes})
          add(r, {.header = packet::probe(std::uint64_t(length), length == known_rail::probe_bytes),
                  .payload = {{nothing_.data(), std::size_t(length)}}});
      }
      hand_over(r);
    }
    p.has_work = !p.waiting.empty();
    return moved;
  }

  // Without credit for the first message, a message that a receive waits for overtakes it.
  void offer_wanted(peer_state& p) {
    if (p.credit.allows()) return p.waiting.forget_wants();
    if (const auto o = p.waiting.take_wanted(most_small_bytes()))
      p.waiting.add_control(packet::offer(o->op->on(), o->op->tag(), o->sequence,
                                          large_.announce(o->op), std::uint64_t(o->op->bytes()),
                                          o->overtakes));
  }

  static std::int64_t travelling_bytes(const message& op, const rail_thresholds& sizes) {
    return std::int64_t(header_bytes) + (op.bytes() <= sizes.eager_bytes ? op.bytes() : 0);
  }

  // A small message itself if the receiver has room, else its announcement.
  outgoing first_packet(peer_state& p, const rail_thresholds& sizes, bool was_busy) {
    const auto [op, sequence] = p.waiting.take_small();
    const auto bytes = std::uint64_t(op->bytes());
    outgoing o;
    if (op->bytes() <= sizes.eager_bytes && p.credit.allows_whole(op->bytes())) {
      o.header = packet::eager(op->on(), op->tag(), sequence, bytes, was_busy);
      op->cut_all(o.payload);
      o.copy = op->bytes() <= sizes.copy_bytes;
      o.token = under_way_.add(op);
    } else {
      o.header = packet::request(op->on(), op->tag(), sequence, large_.announce(op), bytes);
    }
    p.credit.spend(o.header);
    return o;
  }

  template <class Add>
  bool add_chunk(peer_state& p, std::size_t r, const rails_view& view, bool was_busy,
                 const Add& add) {
    auto part = p.waiting.take_part(r, [&](const large_view& l) {
      const std::int64_t bytes = std::min(strategy_->large(r, view, l), l.left_bytes);
      if (bytes <= 0) return bytes;
      const std::int64_t quantum = p.rails[r].known.quantum_bytes();
      return bytes - quantum >= p.least_bytes ? quantum : bytes;
    });
    if (!part) return false;
    outgoing o;
    o.header = packet::chunk(part->whole->receiver_id(), std::uint64_t(part->offset_bytes),
                             std::uint64_t(part->bytes), was_busy);
    o.payload = std::move(part->payload);
    o.token = under_way_.add(part->whole);
    add(r, std::move(o));
    return true;
  }

  void part() {
    said_farewell_ = true;
    for (std::size_t p = 0; p < peers_.size(); ++p)
      for (std::size_t r = 0; r < rails_.size(); ++r) {
        if (int(p) == rank_) continue;
        std::vector<outgoing> last;
        last.push_back({.header = packet::farewell(), .payload = {}});
        give(int(p), r, last);
      }
  }

  // At most one segment in flight may have arrived, because receivers delay acknowledgements by up
  // to 40 ms. Without this limit a ping-pong changed from rail to rail, and no answer carried an
  // acknowledgement.
  static constexpr std::int64_t unanswered_bytes = 1500;

  int rank_;
  std::vector<std::unique_ptr<packet_rail>> rails_;
  std::unique_ptr<strategy> strategy_;
  transport_options options_;
  std::vector<peer_state> peers_;
  std::vector<int> with_work_;
  std::vector<idle_rail> plans_;             // of flush
  std::vector<std::int64_t> sizes_;          // of flush
  std::vector<std::int64_t> backlog_bytes_;  // of flush: under way on each rail, to all peers
  std::vector<std::int64_t> given_bytes_;    // to each rail, since the start
  std::vector<std::byte> nothing_;           // payload of probes
  std::unordered_map<channel, mailbox> mailboxes_;
  rendezvous large_;
  packets_under_way under_way_;
  silence_watch silence_;
  bool leaving_ = false, said_farewell_ = false, alive_ = true, given_up_ = false;
  std::string failure_;
};

}  // namespace railpass::transport
