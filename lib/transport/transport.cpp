// SPDX-License-Identifier: BSL-1.0
#include "railpass/transport/transport.hpp"

#include "railpass/base/error.hpp"
#include "railpass/transport/receiving.hpp"
#include "railpass/transport/sending.hpp"

#include <utility>

namespace railpass::transport {

transport::transport(int rank, int num_ranks, std::vector<std::unique_ptr<packet_rail>> rails,
                     const std::vector<transfer_time>& times, bool known,
                     std::unique_ptr<strategy> how, const transport_options& options)
    : rank_(rank),
      num_ranks_(num_ranks),
      rails_(std::move(rails)),
      failure_(rank, rails_),
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
  sender_ = std::make_unique<sender>(rank, num_ranks, rails_, times, known, std::move(how), options,
                                     static_cast<packet_sink&>(*this), failure_);
  receiver_ =
      std::make_unique<receiver>(rank, num_ranks, rails_.size(), options, *sender_, failure_);
}

transport::~transport() = default;

void transport::know(int peer, const link_profile& measured) { sender_->know(peer, measured); }

std::unique_ptr<strategy> transport::use(std::unique_ptr<strategy> how) {
  return sender_->use(std::move(how));
}

operation_ptr transport::send(int peer, int tag, std::vector<piece> from,
                              std::shared_ptr<void> owner, channel on, bool may_end_early) {
  failure_.check_alive();
  auto op =
      std::make_shared<message>(peer, tag, on, std::move(from), std::move(owner), may_end_early);
  if (op->bytes() > std::int64_t(most_message_bytes))
    throw error("a message of more than 2^60 bytes");
  failure_.whole_or_failed([&] {
    if (peer == rank_) {
      receiver_->send_to_myself(op);
    } else {
      sender_->add(op);
      sender_->flush();
    }
  });
  return op;
}

operation_ptr transport::receive(int source, int tag, std::vector<piece> to, channel on) {
  return post(std::make_shared<message>(source, tag, on, std::move(to)));
}

operation_ptr transport::receive(int source, int tag, std::function<piece(std::int64_t)> allocate,
                                 channel on) {
  return post(std::make_shared<message>(source, tag, on, std::move(allocate)));
}

operation_ptr transport::post(std::shared_ptr<message> op) {
  failure_.check_alive();
  failure_.whole_or_failed([&] {
    receiver_->post(op);
    sender_->flush();
  });
  return op;
}

bool transport::progress(double now_s) {
  failure_.check_alive();
  bool moved = false;
  failure_.whole_or_failed([&] {
    if (silence_.is_time(now_s)) look_for_silence(now_s);
    for (auto& r : rails_) moved |= r->poll(*this);
    moved |= sender_->flush();
  });
  failure_.check_alive();
  return moved;
}

std::int64_t transport::unsent(channel of) const { return sender_->unsent(of); }

std::int64_t transport::arrived(channel of) const { return receiver_->arrived(of); }

void transport::drop(channel unwanted) {
  if (!alive()) return;
  failure_.whole_or_failed([&] {
    receiver_->drop(unwanted);
    sender_->flush();
  });
}

void transport::forget(channel ended) {
  sender_->forget(ended);
  receiver_->forget(ended);
}

void transport::leave(channel ended) {
  if (receiver_->is_idle(ended) && sender_->unsent(ended) == 0)
    forget(ended);
  else
    drop(ended);
}

void transport::say_farewell() {
  failure_.check_alive();
  failure_.whole_or_failed([&] {
    receiver_->drop_all();
    sender_->part_when_all_sent();
    sender_->flush();
  });
}

void transport::part_at_once() {
  failure_.check_alive();
  failure_.whole_or_failed([&] {
    if (!sender_->has_parted()) sender_->part();
  });
}

std::optional<int> transport::owed() const {
  std::optional<int> peer;
  sender_->for_each([&](const message& op) {
    if (op.done() && !receiver_->has_parted(op.peer())) peer = op.peer();
  });
  return peer;
}

bool transport::all_have_said_farewell() const {
  if (!sender_->has_parted()) return false;
  for (const auto& r : rails_)
    if (r->under_way_bytes() > 0) return false;
  for (int p = 0; p < num_ranks_; ++p)
    for (std::size_t r = 0; r < rails_.size(); ++r)
      if (p != rank_ && !receiver_->has_parted(p, r)) return false;
  return true;
}

bool transport::all_sent() const { return sender_->all_sent(); }

rail_report transport::report(int peer, int rail) const { return sender_->report(peer, rail); }

rail_report transport::report(int rail) const {
  std::vector<rail_report> peers;
  for (int peer = 0; peer < num_ranks_; ++peer) peers.push_back(report(peer, rail));
  return together(peers);
}

void transport::arrived(int rail, int peer, const packet& h, std::vector<piece>& where) {
  receiver_->arrived(rail, peer, h, where);
}

void transport::complete(int rail, int peer, const packet& h, const arrival& timing) {
  receiver_->complete(rail, peer, h, timing);
}

void transport::sent(std::uint64_t token) { sender_->sent(token); }

void transport::failed(int rail, int peer, const std::string& why) {
  if (receiver_->has_parted(peer, std::size_t(rail))) return;
  failure_.note("rail " + rails_[std::size_t(rail)]->name() + " to rank " + std::to_string(peer) +
                ": " + why);
}

// A rank that waits without packets in flight sends an empty packet, which the peer's host must
// acknowledge.
void transport::look_for_silence(double now_s) {
  const bool again = silence_.look(now_s);
  const std::vector<bool> waits = awaited();
  for (std::size_t p = 0; p < waits.size(); ++p)
    for (std::size_t r = 0; r < rails_.size(); ++r) {
      const std::size_t watched = p * rails_.size() + r;
      if (!waits[p]) silence_.excuse(watched);
      if (!waits[p] || receiver_->has_parted(int(p), r)) continue;
      const std::optional<double> unanswered_s = rails_[r]->unanswered_s(int(p));
      if (!unanswered_s) continue;
      if (silence_.is_lost(watched, *unanswered_s))
        failed(int(r), int(p), "its host has acknowledged nothing for several seconds");
      else if (again && !sender_->has_parted() && rails_[r]->under_way_bytes(int(p)) == 0)
        sender_->ping(int(p), r);
    }
}

// The peers from which messages are expected. A peer that computes for minutes is not silent,
// because its host acknowledges packets.
std::vector<bool> transport::awaited() const {
  std::vector<bool> result(std::size_t(num_ranks_), false);
  const auto mark = [&](int peer) {
    if (peer == any_source)
      result.assign(result.size(), true);
    else
      result[std::size_t(peer)] = true;
  };
  receiver_->mark_awaited(mark);
  sender_->mark_awaited(mark);
  result[std::size_t(rank_)] = false;
  return result;
}

}  // namespace railpass::transport
