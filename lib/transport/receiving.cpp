// SPDX-License-Identifier: BSL-1.0
#include "railpass/transport/receiving.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace railpass::transport {

receiver::receiver(int rank, int num_ranks, std::size_t num_rails, const transport_options& options,
                   sender& answers, failure_state& failure)
    : rank_(rank),
      eager_bytes_(options.eager_bytes),
      sender_(answers),
      failure_(failure),
      peers_(std::size_t(num_ranks)),
      granted_(options.first_id) {
  for (peer_state& p : peers_) p.rails.resize(num_rails);
}

// ---- matching ----

void receiver::post(const message_ptr& op) {
  mailbox& box = mailboxes_[op->on()];
  if (const envelope_ptr found = box.take_unexpected(*op)) return deliver(*found, op);
  box.post(op);
  const int source = op->peer();
  for (std::size_t p = 0; p < peers_.size(); ++p)
    if ((source == any_source || source == int(p)) && sender_.credit(int(p)).is_starved())
      sender_.control(int(p), packet::want(op->on(), op->tag()));
}

void receiver::send_to_myself(const message_ptr& op) {
  auto e = std::make_shared<envelope>();
  const auto bytes = std::uint64_t(op->bytes());
  e->source = rank_;
  if (op->bytes() <= eager_bytes_) {
    e->header = packet::eager(op->on(), op->tag(), 0, bytes, false);
    for (const piece& p : op->pieces()) e->data.insert(e->data.end(), p.data, p.data + p.bytes);
    op->finish();
  } else {
    e->header = packet::request(op->on(), op->tag(), 0, 0, bytes);
    e->from_me = op;
  }
  match(e);
}

void receiver::match(const envelope_ptr& e) {
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
void receiver::answer(const envelope& e) {
  const packet& h = e.header;
  mailbox& box = mailboxes_[h.on()];
  peers_[std::size_t(e.source)].offers = false;
  message_ptr op = box.take_posted(e.source, h);
  if (!op && (leaving_ || box.dropping)) op = std::make_shared<message>();
  if (!op) {
    sender_.control(e.source, packet::decline(h.sender_id()));
  } else {
    ++box.arrived;
    op->start(e.source, h.tag, std::int64_t(h.message_bytes()));
    grant(e.source, h.sender_id(), op);
  }
  // The offer's want is used up, and may have been another receive's.
  ask(e.source,
      [&](channel on, int tag) { return on == h.on() && (tag == any_tag || tag == h.tag); });
}

void receiver::deliver(envelope& e, const message_ptr& op) {
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

void receiver::finish_buffered(envelope& e) {
  copy(e.data.data(), e.claimed->bytes(), e.claimed->pieces());
  e.claimed->finish();
  if (e.source != rank_) owe(e.source, e.header);
}

void receiver::drop_unexpected(mailbox& box) {
  for (const envelope_ptr& e : box.take_all_unexpected()) drop(*e);
}

void receiver::drop(envelope& e) {
  if (e.from_me) e.from_me->finish();
  if (e.source == rank_) return;
  owe(e.source, e.header);
  if (e.header.type == packet_type::request)
    grant(e.source, e.header.sender_id(), std::make_shared<message>());
}

void receiver::grant(int peer, std::uint32_t sender_id, const message_ptr& op) {
  // A grant of 0 bytes has no parts.
  const std::uint32_t receiver_id = op->bytes() > 0 ? granted_.add(op) : granted_.next_id();
  if (op->bytes() == 0) op->finish();
  sender_.control(peer, packet::grant(sender_id, receiver_id, std::uint64_t(op->bytes())));
}

// ---- credit ----

// Returns the credit for a message of the peer that is no longer buffered.
void receiver::owe(int peer, const packet& h) {
  if (sender_.credit(peer).owe(credit_account::cost_of(h)))
    sender_.control(peer, packet::credit_alone());
}

// Tells a peer without credit which messages receives wait for, for the channels and tags that
// `which` selects. The packet also carries all credit that the peer can have back.
template <class Which>
void receiver::ask(int peer, const Which& which) {
  if (!sender_.credit(peer).is_starved()) return;
  std::set<std::pair<channel, int>> wants;
  for (const auto& [on, box] : mailboxes_) {
    if (box.dropping) wants.emplace(on, any_tag);  // to close, a rank needs all messages
    for (const message_ptr& op : box.posted())
      if (op->peer() == any_source || op->peer() == peer) wants.emplace(on, op->tag());
  }
  for (const auto& [on, tag] : wants)
    if (which(on, tag)) sender_.control(peer, packet::want(on, tag));
}

void receiver::ask(int peer) {
  ask(peer, [](channel, int) { return true; });
}

// ---- packets ----

void receiver::arrived(int rail, int peer, const packet& h, std::vector<piece>& where) {
  peer_state& p = peers_[std::size_t(peer)];
  incoming& current = p.rails[std::size_t(rail)].current;
  if (!sender_.credit(peer).regain(h.credit))
    failure_.violated(peer, "more credit given back than was lent");
  if (h.begins_message() && !h.is_offer() && !sender_.credit(peer).keep(h))
    failure_.violated(peer, "more messages than its credit allows");
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

void receiver::receive_eager(int peer, const packet& h, incoming& current,
                             std::vector<piece>& where) {
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
void receiver::in_turn(const envelope_ptr& e) {
  peer_state& p = peers_[std::size_t(e->source)];
  const std::uint32_t sequence = e->header.sequence;
  if (!p.order.is_new(sequence))
    failure_.violated(e->source, "message " + std::to_string(sequence) + " arrived twice");
  if (!p.order.is_next(sequence)) {
    p.order.keep(e);
    return;
  }
  p.order.pass();
  match(e);
  take_early(p);
}

void receiver::take_early(peer_state& p) {
  while (const envelope_ptr e = p.order.take_next()) match(e);
}

void receiver::receive_chunk(int peer, const packet& h, incoming& current,
                             std::vector<piece>& where) {
  const message_ptr op = granted_.find(peer, h.receiver_id());
  if (!op) failure_.violated(peer, "a part of a message that was not asked for");
  const auto begins = std::int64_t(h.offset_bytes()), ends = begins + std::int64_t(h.length);
  if (!op->take_part(begins, ends))
    failure_.violated(peer, "a part beyond the end of a message, or a part sent twice");
  current.receive = op;
  cut(op->pieces(), begins, ends - begins, where);
}

void receiver::complete(int rail, int peer, const packet& h, const arrival& timing) {
  peer_state& p = peers_[std::size_t(peer)];
  rail_state& r = p.rails[std::size_t(rail)];
  if (r.farewell) failure_.violated(peer, "a packet after the last packet");
  if (const auto rate = r.meter.came(h, timing)) sender_.tell_rate(peer, rail, *rate);
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
      if (std::exchange(p.offers, true)) failure_.violated(peer, "two offers at once");
      [[fallthrough]];
    case packet_type::request: {
      auto e = std::make_shared<envelope>();
      e->source = peer;
      e->header = h;
      in_turn(e);
      break;
    }
    case packet_type::grant:
      sender_.granted(peer, h);
      break;
    case packet_type::decline:
      sender_.declined(peer, h);
      break;
    case packet_type::want:
      sender_.wanted(peer, h);
      break;
    case packet_type::chunk:
      if (op->part_arrived(std::int64_t(h.length))) {
        granted_.remove(h.receiver_id());
        op->finish();
      }
      break;
    case packet_type::rate:
      sender_.rate_told(peer, h);
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

// ---- the end ----

std::int64_t receiver::arrived(channel of) const {
  const auto box = mailboxes_.find(of);
  return box == mailboxes_.end() ? 0 : box->second.arrived;
}

bool receiver::is_idle(channel of) const {
  const auto box = mailboxes_.find(of);
  return box == mailboxes_.end() || box->second.is_idle();
}

void receiver::drop(channel unwanted) {
  mailbox& box = mailboxes_[unwanted];
  box.dropping = true;
  drop_unexpected(box);
  for (std::size_t p = 0; p < peers_.size(); ++p) ask(int(p));
}

void receiver::drop_all() {
  if (std::exchange(leaving_, true)) return;
  for (auto& [of, box] : mailboxes_) drop_unexpected(box);
}

bool receiver::has_parted(int peer) const {
  return std::ranges::any_of(peers_[std::size_t(peer)].rails, &rail_state::farewell);
}

}  // namespace railpass::transport
