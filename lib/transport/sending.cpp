// SPDX-License-Identifier: BSL-1.0
#include "railpass/transport/sending.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace railpass::transport {

namespace {

// At most one segment in flight may have arrived, because receivers delay acknowledgements by up
// to 40 ms. Without this limit a ping-pong changed from rail to rail, and no answer carried an
// acknowledgement.
constexpr std::int64_t unanswered_bytes = 1500;

std::int64_t travelling_bytes(const message& op, const rail_thresholds& sizes) {
  return std::int64_t(header_bytes) + (op.bytes() <= sizes.eager_bytes ? op.bytes() : 0);
}

}  // namespace

sender::sender(int rank, int num_ranks, const std::vector<std::unique_ptr<packet_rail>>& rails,
               const std::vector<transfer_time>& times, bool known, std::unique_ptr<strategy> how,
               const transport_options& options, packet_sink& sink, failure_state& failure)
    : rank_(rank),
      rails_(rails),
      strategy_(std::move(how)),
      most_small_bytes_(most_small_bytes(options)),
      sink_(sink),
      failure_(failure),
      given_bytes_(rails.size(), 0),
      announced_(options.first_id) {
  // Even the smallest credit must hold several messages.
  peer_state nothing_yet{
      credit_account(options.credit_bytes + most_small_bytes_ + 16 * credit_account::message_bytes,
                     most_small_bytes_),
      options.least_bytes,
      {}};
  for (const transfer_time& time : times)
    nothing_yet.rails.push_back(known_rail(time, known, options.eager_bytes));
  peers_.assign(std::size_t(num_ranks), nothing_yet);
}

void sender::know(int peer, const link_profile& measured) {
  if (measured.rails.size() != rails_.size() || measured.least_bytes < 1)
    throw error("a link_profile of " + std::to_string(measured.rails.size()) +
                " rails: expected one of " + std::to_string(rails_.size()));
  peer_state& p = peers_[std::size_t(peer)];
  p.least_bytes = measured.least_bytes;
  for (std::size_t r = 0; r < rails_.size(); ++r)
    p.rails[r].know(measured.rails[r], most_small_bytes_);
}

std::unique_ptr<strategy> sender::use(std::unique_ptr<strategy> how) {
  strategy_.swap(how);
  return how;
}

rail_report sender::report(int peer, int rail) const {
  return peers_[std::size_t(peer)].rails[std::size_t(rail)].report();
}

void sender::add(const message_ptr& op) {
  ++unsent_[op->on()];
  peers_[std::size_t(op->peer())].waiting.add(op);
  note_work(op->peer());
}

void sender::control(int peer, const packet& p) {
  peers_[std::size_t(peer)].waiting.add_control(p);
  note_work(peer);
}

void sender::note_work(int peer) {
  peer_state& p = peers_[std::size_t(peer)];
  if (p.has_work) return;
  p.has_work = true;
  with_work_.push_back(peer);
}

bool sender::flush() {
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
  if (leaving_ && !parted_ && all_sent()) part();
  return moved;
}

bool sender::flush(int peer) {
  peer_state& p = peers_[std::size_t(peer)];
  if (parted_) {  // no peer needs the message any more
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
    known_rail& known = p.rails[r];
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
    return under_way_bytes[r] > p.rails[r].quantum_bytes() / 4;
  };
  const auto add = [&](std::size_t r, outgoing&& packet) {
    const std::int64_t bytes = bytes_on_rail(packet.header);
    const double takes_s = double(bytes) / p.rails[r].bytes_per_s();
    outlook[r].busy_s += takes_s;
    plans_[r].room_bytes -= bytes;
    backlog_bytes_[r] += bytes;
    under_way_bytes[r] += bytes;
    note_given(peer, r, packet.header);
    if (packet.header.type != packet_type::probe && can_be_timed(packet.header))
      for (std::size_t other = 0; other < n; ++other)
        if (other != r) p.rails[other].note_passed_over(takes_s);
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
    const rail_thresholds& sizes = p.rails[r].thresholds();
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
    if (was_idle[r] && p.rails[r].is_to_be_probed()) {
      p.rails[r].note_probed();
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
void sender::offer_wanted(peer_state& p) {
  if (p.credit.allows()) return p.waiting.forget_wants();
  if (const auto o = p.waiting.take_wanted(most_small_bytes_))
    p.waiting.add_control(packet::offer(o->op->on(), o->op->tag(), o->sequence,
                                        announced_.add(o->op), std::uint64_t(o->op->bytes()),
                                        o->overtakes));
}

// A small message itself if the receiver has room, else its announcement.
outgoing sender::first_packet(peer_state& p, const rail_thresholds& sizes, bool was_busy) {
  const auto [op, sequence] = p.waiting.take_small();
  const auto bytes = std::uint64_t(op->bytes());
  outgoing o;
  if (op->bytes() <= sizes.eager_bytes && p.credit.allows_whole(op->bytes())) {
    o.header = packet::eager(op->on(), op->tag(), sequence, bytes, was_busy);
    op->cut_all(o.payload);
    o.copy = op->bytes() <= sizes.copy_bytes;
    o.token = under_way_.add(op);
  } else {
    o.header = packet::request(op->on(), op->tag(), sequence, announced_.add(op), bytes);
  }
  p.credit.spend(o.header);
  return o;
}

template <class Add>
bool sender::add_chunk(peer_state& p, std::size_t r, const rails_view& view, bool was_busy,
                       const Add& add) {
  auto part = p.waiting.take_part(r, [&](const large_view& l) {
    const std::int64_t bytes =
        std::min({strategy_->large(r, view, l), l.left_bytes, std::int64_t(most_payload_bytes)});
    if (bytes <= 0) return bytes;
    const std::int64_t quantum = p.rails[r].quantum_bytes();
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

void sender::part() {
  parted_ = true;
  for (std::size_t p = 0; p < peers_.size(); ++p)
    for (std::size_t r = 0; r < rails_.size(); ++r) {
      if (int(p) == rank_) continue;
      std::vector<outgoing> last;
      last.push_back({.header = packet::farewell(), .payload = {}});
      give(int(p), r, last);
    }
}

// The only way to a rail; the packets then belong to the rail (under_way.hpp).
void sender::give(int peer, std::size_t rail, std::vector<outgoing>& packets) {
  rails_[rail]->send(peer, packets, sink_);
}

void sender::note_given(int peer, std::size_t rail, const packet& h) {
  peers_[std::size_t(peer)].rails[rail].note_given(h, given_bytes_[rail]);
  given_bytes_[rail] += bytes_on_rail(h);
}

void sender::ping(int peer, std::size_t rail) {
  std::vector<outgoing> packets(1);
  packets[0].header = packet::credit_alone();
  note_given(peer, rail, packets[0].header);
  give(peer, rail, packets);
}

void sender::sent(std::uint64_t token) {
  if (const message_ptr op = under_way_.remove(token)) leave(*op);
}

// Notes that a message has left.
void sender::leave(message& op) {
  op.finish();
  const auto count = unsent_.find(op.on());
  if (count != unsent_.end()) --count->second;
}

std::int64_t sender::unsent(channel of) const {
  const auto count = unsent_.find(of);
  return count == unsent_.end() ? 0 : count->second;
}

void sender::granted(int peer, const packet& grant) {
  const message_ptr op = announced_.find(peer, grant.sender_id());
  if (!op || std::int64_t(grant.wanted_bytes()) > op->capacity_bytes())
    failure_.violated(peer, "asked for a message that was not announced");
  announced_.remove(grant.sender_id());
  outbox& waiting = peers_[std::size_t(peer)].waiting;
  waiting.note_taken(*op);
  op->grant(grant.receiver_id(), std::int64_t(grant.wanted_bytes()), rails_.size());
  if (op->bytes() == 0)
    leave(*op);
  else
    waiting.add_granted(op);
  note_work(peer);
}

void sender::declined(int peer, const packet& decline) {
  const message_ptr op = announced_.find(peer, decline.sender_id());
  if (!peers_[std::size_t(peer)].waiting.take_back(op))
    failure_.violated(peer, "declined a message that was not offered");
  announced_.remove(decline.sender_id());
  note_work(peer);
}

void sender::wanted(int peer, const packet& want) {
  peer_state& p = peers_[std::size_t(peer)];
  p.waiting.note_want(want.on(), want.of_any_tag() ? any_tag : want.tag);
  // If the wanted message has not been started, the sends before it may have to end first.
  if (!p.credit.allows())
    announced_.for_each([&](message& op) {
      if (op.peer() == peer && op.bytes() <= most_small_bytes_) op.end_early();
    });
  note_work(peer);
}

void sender::rate_told(int peer, const packet& rate) {
  if (rate.rail() >= rails_.size()) failure_.violated(peer, "a rate of a rail that does not exist");
  peers_[std::size_t(peer)].rails[rate.rail()].learn(double(rate.bytes_per_s()), rate.of_probe());
}

void sender::tell_rate(int peer, int rail, const rate_meter::measured& rate) {
  peers_[std::size_t(peer)].rails[std::size_t(rail)].suppose(rate.bytes_per_s);
  control(peer,
          packet::rate(std::uint32_t(rail),
                       std::max<std::uint64_t>(1, std::uint64_t(rate.bytes_per_s)), rate.of_probe));
}

}  // namespace railpass::transport
