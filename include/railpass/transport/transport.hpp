// SPDX-License-Identifier: BSL-1.0
//
// Messages between ranks over several rails. Three layers, as in NewMadeleine: messages are
// collected while the rails are busy; when a rail is idle, a strategy says what it carries next;
// the rails carry packets. Does no I/O itself: tests drive it with a simulated rail.
#pragma once

#include "railpass/base/clock.hpp"
#include "railpass/base/error.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/transport/link_profile.hpp"
#include "railpass/transport/packet_rail.hpp"
#include "railpass/transport/rate.hpp"
#include "railpass/transport/strategy.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace railpass::transport {

inline constexpr int any_source = -1;
inline constexpr int any_tag = -1;

/// The same on all ranks.
struct transport_options {
  /// Messages up to this are sent without asking, if the receiver has room; at most 64 KiB. What
  /// know() says of a rail goes before.
  std::int64_t eager_bytes = 16 << 10;
  /// What a rank may have to keep of each other rank's messages that it has not asked for yet, each
  /// counted with 256 bytes more; where a receive waits for what may be behind these, as much as
  /// that takes.
  std::int64_t credit_bytes = 1 << 20;
  /// Smallest part of a message worth a packet of its own on a second rail. Here, too.
  std::int64_t least_bytes = 8 << 10;
  /// A rail to a peer of which something is awaited has failed if the peer's host acknowledges
  /// nothing for so long; 0: never. May differ between ranks.
  double silence_s = 5;
  /// Messages are numbered from here on, modulo 2^32.
  std::uint32_t first_id = 1;
};

/// A message that is being sent or received.
class operation {
 public:
  /// May be asked while another thread lets messages advance.
  bool done() const { return done_.load(std::memory_order_acquire); }
  /// Of a receive that is done: who sent it, its tag, and its bytes that are in memory.
  int peer() const { return peer_; }
  int tag() const { return tag_; }
  std::int64_t bytes() const { return total_; }
  /// The message was longer than the memory for it; the rest was dropped.
  bool truncated() const { return truncated_; }

 private:
  friend class transport;
  int peer_ = 0;
  int tag_ = 0;
  channel channel_ = 0;
  std::atomic<bool> done_ = false;
  bool truncated_ = false;
  std::vector<piece> pieces_;
  std::shared_ptr<void> owner_;                  // of their memory
  std::function<piece(std::int64_t)> allocate_;  // for receives of unknown size
  std::int64_t capacity_ = 0;                    // bytes of the pieces
  std::int64_t total_ = 0;                       // bytes that travel
  // Of a send.
  std::uint32_t id_ = 0;
  std::int64_t next_ = 0;              // bytes from here on are carried by nobody yet
  std::vector<std::int64_t> carried_;  // by each rail
  int packets_ = 0;                    // that still need the memory
  // Of a receive: the parts that have arrived or are arriving, as offsets begin -> end.
  std::map<std::int64_t, std::int64_t> parts_;
  std::int64_t arrived_ = 0;
};

using operation_ptr = std::shared_ptr<operation>;

/// What a person may want to know of a rail to a peer.
struct rail_report {
  double bytes_per_s = 0;       ///< as estimated now
  int changes = 0;              ///< how often the estimate found that the rate had changed
  std::int64_t sent_bytes = 0;  ///< of messages
  /// |predicted - actual| / actual of the time that bytes took by the receiver's clock, median of
  /// the last 32 reports; nothing before the first one.
  std::optional<double> prediction_error{};
  double backlog_s = 0;  ///< mean time it was still busy whenever there was something to send
};

/// The messages of one rank with all others. Messages from one rank to another are matched in the
/// order in which they were sent, whatever rails carry them; each arrives exactly once. Those of
/// all channels wait in the same queues for the same rails, and small ones leave together. Messages
/// advance only inside send, receive and progress. Not thread safe.
///
/// After a rail has failed, a peer has broken the protocol or this rank could not go on in the
/// middle of something (no memory, say) every call throws error, and so does every other rank's
/// next one: all rails are given up, and no message's memory is touched any more.
class transport final : private packet_sink {
 public:
  /// `times[r]` is what is known of rail r before anything was sent; `known` whether that was
  /// measured.
  transport(int rank, int num_ranks, std::vector<std::unique_ptr<packet_rail>> rails,
            std::vector<transfer_time> times, bool known, std::unique_ptr<strategy> how,
            const transport_options& options = {})
      : rank_(rank), rails_(std::move(rails)), strategy_(std::move(how)), options_(options) {
    if (rails_.empty() || rails_.size() > most_rails || times.size() != rails_.size())
      throw error("a transport takes 1 to 16 rails with a transfer time each; got " +
                  std::to_string(rails_.size()));
    if (options.eager_bytes < 0 || options.eager_bytes > std::int64_t(most_eager_bytes) ||
        options.credit_bytes < options.eager_bytes || options.credit_bytes > 1 << 30 ||
        options.least_bytes < 1)
      throw error(
          "transport_options: expected eager_bytes <= 64 KiB, and eager_bytes <= "
          "credit_bytes <= 1 GiB");
    look_every_s_ = options.silence_s > 0 ? std::min(0.5, options.silence_s / 8)
                                          : std::numeric_limits<double>::infinity();
    given_bytes_.assign(rails_.size(), 0);
    peers_.resize(std::size_t(num_ranks));
    // The smallest credits, too, are for some messages.
    next_id_ = options.first_id;
    credit_bytes_ = options.credit_bytes + 16 * message_bytes;
    for (peer_state& p : peers_) {
      p.credit_bytes = credit_bytes_;
      p.least_bytes = options.least_bytes;
      p.rails.resize(rails_.size());
      for (std::size_t r = 0; r < rails_.size(); ++r) {
        p.rails[r].sampled = p.rails[r].time = times[r];
        p.rails[r].thresholds.eager_bytes = options.eager_bytes;
        p.rails[r].rate = rate_estimate(times[r].bytes_per_s(), known);
      }
    }
  }
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;

  int rank() const { return rank_; }
  const std::vector<std::unique_ptr<packet_rail>>& rails() const { return rails_; }

  /// What was measured of the rails to a peer, for all that is decided from now on; what reports
  /// count begins anew. Throws error if it is of another number of rails.
  void know(int peer, const link_profile& measured) {
    if (measured.rails.size() != rails_.size() || measured.least_bytes < 1)
      throw error("a link_profile of " + std::to_string(measured.rails.size()) +
                  " rails: expected one of " + std::to_string(rails_.size()));
    peer_state& p = peers_[std::size_t(peer)];
    p.least_bytes = measured.least_bytes;
    for (std::size_t r = 0; r < rails_.size(); ++r) {
      rail_state& state = p.rails[r];
      state.sampled = state.time = measured.rails[r].time;
      state.rate = rate_estimate(state.time.bytes_per_s(), true);
      state.thresholds = measured.rails[r].thresholds;
      state.thresholds.eager_bytes =
          std::clamp<std::int64_t>(state.thresholds.eager_bytes, 0,
                                   std::min(options_.credit_bytes, std::int64_t(most_eager_bytes)));
      state.spare = measured.rails[r].spare;
      state.sent_bytes = 0;
      state.num_reports = 0;
      state.backlog_s = 0;
      state.looks = 0;
    }
  }

  /// Decides from now on; the one before comes back.
  std::unique_ptr<strategy> use(std::unique_ptr<strategy> how) {
    strategy_.swap(how);
    return how;
  }

  /// Begins to send a message of several pieces, which stay the caller's and unchanged until it is
  /// done; `owner` is kept until then. 0 <= peer < num_ranks, tag >= 0.
  operation_ptr send(int peer, int tag, std::vector<piece> from, std::shared_ptr<void> owner = {},
                     channel on = 0) {
    check_alive();
    auto op = std::make_shared<operation>();
    op->peer_ = peer;
    op->tag_ = tag;
    op->channel_ = on;
    op->pieces_ = std::move(from);
    op->owner_ = std::move(owner);
    op->capacity_ = op->total_ = bytes_of(op->pieces_);
    if (op->total_ > std::int64_t(most_message_bytes))
      throw error("a message of more than 2^60 bytes");
    whole_or_failed([&] {
      if (peer == rank_) {
        send_to_myself(op);
      } else {
        ++mailboxes_[on].unsent;
        peers_[std::size_t(peer)].small.push_back(op);
        note_work(peer);
        flush();
      }
    });
    return op;
  }

  /// Begins to receive into several pieces. `source` and `tag` may be any_source and any_tag.
  operation_ptr receive(int source, int tag, std::vector<piece> to, channel on = 0) {
    auto op = std::make_shared<operation>();
    op->channel_ = on;
    op->pieces_ = std::move(to);
    op->capacity_ = bytes_of(op->pieces_);
    return post(source, tag, std::move(op));
  }

  /// Begins to receive a message of unknown size: `allocate(bytes)` is called once, when it is
  /// known, and returns memory for that.
  operation_ptr receive(int source, int tag, std::function<piece(std::int64_t)> allocate,
                        channel on = 0) {
    auto op = std::make_shared<operation>();
    op->channel_ = on;
    op->allocate_ = std::move(allocate);
    return post(source, tag, std::move(op));
  }

  /// Lets everything advance, without blocking. Whether anything moved. `now_s`: by any clock.
  bool progress(double now_s = steady_clock_s()) {
    check_alive();
    bool moved = false;
    whole_or_failed([&] {
      if (now_s >= looked_s_ + look_every_s_) look_for_silence(now_s);
      for (auto& r : rails_) moved |= r->poll(*this);
      moved |= flush();
    });
    check_alive();
    return moved;
  }

  /// Messages of a channel to other ranks that were begun and have not left yet.
  std::int64_t unsent(channel of) const {
    const auto box = mailboxes_.find(of);
    return box == mailboxes_.end() ? 0 : box->second.unsent;
  }
  /// Messages of a channel that have come from other ranks, received or not: small ones whole,
  /// large ones as far as they were announced.
  std::int64_t arrived(channel of) const {
    const auto box = mailboxes_.find(of);
    return box == mailboxes_.end() ? 0 : box->second.arrived;
  }
  /// Nobody receives on a channel any more: messages that have come are dropped, and so are those
  /// that come from now on, large ones where they are, so that they leave there.
  void drop(channel unwanted) {
    if (!alive_) return;
    whole_or_failed([&] {
      mailbox& box = mailboxes_[unwanted];
      box.dropping = true;
      drop_unexpected(box);
      relieve_starved();
      flush();
    });
  }
  /// Ends a channel on which everything has arrived and left: receives that have met nothing never
  /// end.
  void forget(channel ended) { mailboxes_.erase(ended); }

  /// Says to all peers that nothing more will be sent, once all messages that were begun have left.
  /// Nobody receives any more.
  void say_farewell() {
    whole_or_failed([&] {
      if (!std::exchange(leaving_, true))
        for (auto& [of, box] : mailboxes_) drop_unexpected(box);
      relieve_starved();
      flush();
    });
  }
  /// Whether everybody has said so, this rank included.
  bool all_have_said_farewell() const {
    if (!said_farewell_) return false;
    for (const auto& r : rails_)
      if (r->under_way_bytes() > 0) return false;
    for (std::size_t p = 0; p < peers_.size(); ++p)
      for (const rail_state& r : peers_[p].rails)
        if (int(p) != rank_ && !r.farewell) return false;
    return true;
  }
  /// Whether all messages that were begun have left.
  bool all_sent() const { return with_work_.empty() && requested_.empty() && sending_.empty(); }

  bool alive() const { return alive_; }
  /// Ends it: this rank cannot go on.
  void fail(std::string_view why) noexcept {
    note_failure(why);
    if (!std::exchange(given_up_, true))
      for (auto& r : rails_) r->abandon();
  }

  rail_report report(int peer, int rail) const {
    const rail_state& r = peers_[std::size_t(peer)].rails[std::size_t(rail)];
    rail_report result{r.rate.bytes_per_s(), r.rate.changes(), r.sent_bytes};
    if (r.num_reports > 0)
      result.prediction_error = median({r.errors.data(), std::min(r.num_reports, r.errors.size())});
    if (r.looks > 0) result.backlog_s = r.backlog_s / double(r.looks);
    return result;
  }

  /// The same of all peers together: sums, and medians over the peers that it was used to.
  rail_report report(int rail) const {
    rail_report result;
    std::vector<double> rates, errors, backlogs_s;
    for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
      const rail_report r = report(int(peer), rail);
      result.sent_bytes += r.sent_bytes;
      result.changes += r.changes;
      if (r.prediction_error) errors.push_back(*r.prediction_error);
      if (r.sent_bytes == 0) continue;
      rates.push_back(r.bytes_per_s);
      backlogs_s.push_back(r.backlog_s);
    }
    if (!rates.empty()) result.bytes_per_s = median(rates);
    if (!errors.empty()) result.prediction_error = median(errors);
    if (!backlogs_s.empty()) result.backlog_s = median(backlogs_s);
    return result;
  }

 private:
  // A message that nobody has asked for yet, or that came before its turn.
  struct envelope {
    int source = 0;
    packet header;
    std::vector<std::byte> data;  // of an eager one
    bool complete = true;
    bool in_turn = false;
    operation_ptr claimed;  // by a receive, before it was complete
    operation_ptr from_me;  // a large one to this rank itself
  };
  using envelope_ptr = std::shared_ptr<envelope>;

  // Of a channel: what has not met yet, in order, and what unsent() and arrived() say.
  struct mailbox {
    std::deque<operation_ptr> posted;
    std::deque<envelope_ptr> unexpected;
    bool dropping = false;  // nobody receives any more
    std::int64_t unsent = 0;
    std::int64_t arrived = 0;
  };

  // What is arriving on a rail from a peer.
  struct incoming {
    operation_ptr receive;
    envelope_ptr buffered;
    std::vector<std::byte> dropped;
  };

  struct rail_state {
    transfer_time sampled, time;
    rate_estimate rate{1e9, false};
    rail_thresholds thresholds;
    bool spare = false;
    std::int64_t sent_bytes = 0;
    std::array<double, 32> errors{};  // of predictions, in a ring
    std::size_t num_reports = 0;
    // That others carried messages to the peer since it was last known how quick this rail is.
    double unmeasured_s = 0;
    double backlog_s = 0;  // of all looks together
    std::int64_t looks = 0;
    bool farewell = false;  // from the peer
    double silent_since_s = 0;
    incoming current;
    // What is measured of the rail from the peer: packets that followed another one without a
    // pause, since the last report.
    bool measuring = false, follows = false;  // the last packet followed another one
    double ended_s = 0, late_s = 0;           // of the last packet
    std::int64_t bytes_since = 0;             // of the short ones since then
    std::int64_t measured_bytes = 0;
    double measured_s = 0, uncertain_s = 0;
    // What `measure` of the peer sees, since its last report: bytes to it, and all bytes that left
    // meanwhile, to whichever peer.
    std::int64_t reported_bytes = 0, shared_bytes = 0;
    std::int64_t unreported_bytes = 0;  // to it since the last packet that can be timed
    std::int64_t timed_at_bytes = 0;    // of all that the rail was given, with that packet
  };

  struct peer_state {
    std::uint32_t next_sequence = 0;  // of what is sent to it
    std::uint32_t expected = 0;       // of what comes from it
    std::int64_t credit_bytes = 0;    // that may still be sent without asking
    std::int64_t owed_bytes = 0;      // of its credit that it can have back
    std::int64_t kept_bytes = 0;      // of its credit that it has not got back
    std::int64_t lent_bytes = 0;      // that it got back too early
    bool has_work = false;
    std::vector<packet> control;
    std::deque<operation_ptr> small;
    std::deque<operation_ptr> large;
    std::int64_t large_bytes = 0;  // of these, not carried yet
    std::int64_t least_bytes = 1;
    std::map<std::uint32_t, envelope_ptr> early;
    std::vector<rail_state> rails;
  };

  static std::int64_t bytes_of(const std::vector<piece>& pieces) {
    std::int64_t sum = 0;
    for (const piece& p : pieces) sum += std::int64_t(p.bytes);
    return sum;
  }

  // Appends the part [from, from + bytes) of the pieces.
  static void cut(const std::vector<piece>& pieces, std::int64_t from, std::int64_t bytes,
                  std::vector<piece>& part) {
    for (const piece& p : pieces) {
      if (bytes == 0) break;
      const auto here = std::int64_t(p.bytes);
      if (from < here) {
        const std::int64_t n = std::min(here - from, bytes);
        part.push_back({p.data + from, std::size_t(n)});
        bytes -= n;
        from = 0;
      } else {
        from -= here;
      }
    }
  }

  static void copy(const std::byte* from, std::int64_t bytes, const std::vector<piece>& to) {
    std::vector<piece> part;
    cut(to, 0, bytes, part);
    for (const piece& p : part) {
      std::memcpy(p.data, from, p.bytes);
      from += p.bytes;
    }
  }

  void note_failure(std::string_view why) noexcept {
    if (!std::exchange(alive_, false)) return;
    try {
      failure_ = why;
    } catch (const std::bad_alloc&) {  // then nobody learns why
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
  // What is left half done by an exception is nothing to go on with.
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
      give_up("an exception of another kind");
      throw;
    }
  }
  [[noreturn]] void violated(int peer, const std::string& what) {
    fail("rank " + std::to_string(peer) + " broke the protocol of the rails: " + what);
    throw error(failure_);
  }

  // ---- matching ----

  static bool fits(const operation& wanted, int source, const packet& h) {
    return (wanted.peer_ == any_source || wanted.peer_ == source) &&
           (wanted.tag_ == any_tag || wanted.tag_ == h.tag);
  }

  operation_ptr post(int source, int tag, operation_ptr op) {
    check_alive();
    op->peer_ = source;
    op->tag_ = tag;
    whole_or_failed([&] {
      mailbox& box = mailboxes_[op->channel_];
      for (auto e = box.unexpected.begin(); e != box.unexpected.end(); ++e)
        if (fits(*op, (*e)->source, (*e)->header)) {
          const envelope_ptr found = *e;
          box.unexpected.erase(e);
          deliver(*found, op);
          flush();
          return;
        }
      box.posted.push_back(op);
      for (std::size_t p = 0; p < peers_.size(); ++p)
        if ((source == any_source || source == int(p)) && is_starved(peers_[p])) lend(int(p));
      flush();
    });
    return op;
  }

  operation_ptr take_posted(int source, const packet& h) {
    auto& posted = mailboxes_[h.on()].posted;
    for (auto op = posted.begin(); op != posted.end(); ++op)
      if (fits(**op, source, h)) {
        operation_ptr found = *op;
        posted.erase(op);
        return found;
      }
    return nullptr;
  }

  static void finish(operation& op) {
    op.owner_ = nullptr;  // which may hold whoever holds the operation
    op.allocate_ = nullptr;
    op.done_.store(true, std::memory_order_release);
  }

  // A message to another rank has left.
  void leave(operation& op) {
    finish(op);
    const auto box = mailboxes_.find(op.channel_);
    if (box != mailboxes_.end()) --box->second.unsent;
  }

  // The receive gets a message of `bytes`.
  static void start(operation& op, int source, int tag, std::int64_t bytes) {
    op.peer_ = source;
    op.tag_ = tag;
    if (op.allocate_) {
      op.pieces_ = {op.allocate_(bytes)};
      op.capacity_ = bytes_of(op.pieces_);
    }
    op.truncated_ = bytes > op.capacity_;
    op.total_ = std::min(bytes, op.capacity_);
  }

  void deliver(envelope& e, const operation_ptr& op) {
    if (e.from_me) {
      start(*op, e.source, e.header.tag, e.from_me->total_);
      std::int64_t at = 0;
      for (const piece& p : e.from_me->pieces_) {
        const std::int64_t n = std::min(std::int64_t(p.bytes), op->total_ - at);
        std::vector<piece> part;
        cut(op->pieces_, at, n, part);
        const std::byte* from = p.data;
        for (const piece& to : part) {
          std::memcpy(to.data, from, to.bytes);
          from += to.bytes;
        }
        at += n;
      }
      finish(*e.from_me);
      finish(*op);
    } else if (e.header.type == packet_type::request) {
      start(*op, e.source, e.header.tag, std::int64_t(e.header.message_bytes()));
      owe(e.source, cost_of(e.header));
      grant(e.source, e.header.sender_id(), op);
    } else {
      start(*op, e.source, e.header.tag, std::int64_t(e.header.message_bytes()));
      e.claimed = op;
      if (e.complete) finish_buffered(e);
    }
  }

  void finish_buffered(envelope& e) {
    copy(e.data.data(), e.claimed->total_, e.claimed->pieces_);
    finish(*e.claimed);
    if (e.source != rank_) owe(e.source, cost_of(e.header));
  }

  void drop_unexpected(mailbox& box) {
    for (const envelope_ptr& e : std::exchange(box.unexpected, {})) drop(*e);
  }
  void drop(envelope& e) {
    if (e.from_me) finish(*e.from_me);
    if (e.source == rank_) return;
    owe(e.source, cost_of(e.header));
    if (e.header.type == packet_type::request)
      grant(e.source, e.header.sender_id(), std::make_shared<operation>());
  }

  // The next one that names no other message: after 2^32 of them numbers come again.
  template <class Named>
  std::uint32_t free_id(const Named& named) {
    while (named.contains(next_id_)) ++next_id_;
    return next_id_++;
  }

  void grant(int peer, std::uint32_t sender_id, const operation_ptr& op) {
    const std::uint32_t mine = free_id(receiving_);
    if (op->total_ == 0)
      finish(*op);
    else
      receiving_.emplace(mine, op);
    peers_[std::size_t(peer)].control.push_back(
        packet::grant(sender_id, mine, std::uint64_t(op->total_)));
    note_work(peer);
  }

  // Of credit: what a receiver keeps of a message that nobody has asked for.
  static std::int64_t cost_of(const packet& h) { return message_bytes + std::int64_t(h.length); }

  // The peer may send so many bytes again without asking.
  void owe(int peer, std::int64_t bytes) {
    peer_state& p = peers_[std::size_t(peer)];
    const std::int64_t paid_back = std::min(bytes, p.lent_bytes);
    p.lent_bytes -= paid_back;
    p.owed_bytes += bytes - paid_back;
    if (p.owed_bytes >= credit_bytes_ / 2) give_back(peer);
  }
  void give_back(int peer) {
    peers_[std::size_t(peer)].control.push_back(packet::credit_alone());
    note_work(peer);
  }

  // It can send nothing more before some of its messages are received. If somebody waits for
  // another one of it, which may be behind these, it must be let: else both would wait for ever.
  bool is_starved(const peer_state& p) const {
    return p.kept_bytes - p.owed_bytes > credit_bytes_ - message_bytes;
  }
  void lend(int peer) {
    peer_state& p = peers_[std::size_t(peer)];
    p.lent_bytes += credit_bytes_ / 2;
    p.owed_bytes += credit_bytes_ / 2;
    give_back(peer);
  }
  void relieve_starved() {
    std::vector<bool> waits;  // for whom
    for (std::size_t p = 0; p < peers_.size(); ++p) {
      if (!is_starved(peers_[p])) continue;
      if (waits.empty()) waits = awaited();
      if (waits[p]) lend(int(p));
    }
  }

  void send_to_myself(const operation_ptr& op) {
    auto e = std::make_shared<envelope>();
    const auto bytes = std::uint64_t(op->total_);
    e->source = rank_;
    if (op->total_ <= options_.eager_bytes) {
      e->header = packet::eager(op->channel_, op->tag_, 0, bytes, false);
      for (const piece& p : op->pieces_) e->data.insert(e->data.end(), p.data, p.data + p.bytes);
      finish(*op);
    } else {
      e->header = packet::request(op->channel_, op->tag_, 0, 0, bytes);
      e->from_me = op;
    }
    match(e);
  }

  void match(const envelope_ptr& e) {
    e->in_turn = true;
    mailbox& box = mailboxes_[e->header.on()];
    if (e->complete && e->source != rank_) ++box.arrived;
    if (const operation_ptr op = take_posted(e->source, e->header)) {
      deliver(*e, op);
    } else if (leaving_ || box.dropping) {
      drop(*e);
    } else {
      box.unexpected.push_back(e);
      if (e->source != rank_ && is_starved(peers_[std::size_t(e->source)])) relieve_starved();
    }
  }

  // ---- what comes ----

  void arrived(int rail, int peer, const packet& h, std::vector<piece>& where) override {
    peer_state& p = peers_[std::size_t(peer)];
    incoming& current = p.rails[std::size_t(rail)].current;
    p.credit_bytes += h.credit;
    if (p.credit_bytes > credit_bytes_) violated(peer, "more credit than there is");
    if (h.begins_message()) {
      p.kept_bytes += cost_of(h);
      if (p.kept_bytes > credit_bytes_) violated(peer, "more messages than it has credit");
    }
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
    if (h.sequence == p.expected) {
      if (const operation_ptr op = take_posted(peer, h)) {
        ++p.expected;
        start(*op, peer, h.tag, std::int64_t(h.length));
        cut(op->pieces_, 0, op->total_, where);
        if (op->truncated_) {
          current.dropped.resize(std::size_t(h.length) - std::size_t(op->total_));
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

  // Hands messages on in the order in which they were sent.
  void in_turn(const envelope_ptr& e) {
    peer_state& p = peers_[std::size_t(e->source)];
    const std::uint32_t ahead = e->header.sequence - p.expected;
    if (ahead >= std::uint32_t{1} << 31 || p.early.contains(e->header.sequence))
      violated(e->source, "message " + std::to_string(e->header.sequence) + " came twice");
    if (ahead > 0) {
      p.early.emplace(e->header.sequence, e);
      return;
    }
    ++p.expected;
    match(e);
    take_early(p);
  }
  void take_early(peer_state& p) {
    for (auto next = p.early.find(p.expected); next != p.early.end();
         next = p.early.find(p.expected)) {
      const envelope_ptr e = next->second;
      p.early.erase(next);
      ++p.expected;
      match(e);
    }
  }

  void receive_chunk(int peer, const packet& h, incoming& current, std::vector<piece>& where) {
    const auto found = receiving_.find(h.receiver_id());
    if (found == receiving_.end() || found->second->peer_ != peer)
      violated(peer, "a part of a message that was not asked for");
    operation& op = *found->second;
    const auto begins = std::int64_t(h.offset_bytes()), ends = begins + std::int64_t(h.length);
    const auto after = op.parts_.lower_bound(begins);
    if (ends > op.total_ || (after != op.parts_.end() && after->first < ends) ||
        (after != op.parts_.begin() && std::prev(after)->second > begins))
      violated(peer, "a part of a message outside of it, or twice");
    op.parts_.emplace_hint(after, begins, ends);
    current.receive = found->second;
    cut(op.pieces_, begins, ends - begins, where);
  }

  void complete(int rail, int peer, const packet& h, const arrival& timing) override {
    peer_state& p = peers_[std::size_t(peer)];
    rail_state& r = p.rails[std::size_t(rail)];
    if (r.farewell) violated(peer, "a packet after the last one");
    measure(r, peer, rail, h, timing);
    const operation_ptr op = std::exchange(r.current.receive, nullptr);
    switch (h.type) {
      case packet_type::eager:
        if (op) {
          finish(*op);
          owe(peer, cost_of(h));
          r.current = {};
          ++mailboxes_[h.on()].arrived;
        } else if (const envelope_ptr e = std::exchange(r.current.buffered, nullptr)) {
          e->complete = true;
          if (e->in_turn) ++mailboxes_[h.on()].arrived;
          if (e->claimed) finish_buffered(*e);
        }
        break;
      case packet_type::request: {
        auto e = std::make_shared<envelope>();
        e->source = peer;
        e->header = h;
        in_turn(e);
        break;
      }
      case packet_type::grant: {
        const auto found = requested_.find(h.sender_id());
        if (found == requested_.end() || found->second->peer_ != peer ||
            std::int64_t(h.wanted_bytes()) > found->second->capacity_)
          violated(peer, "asked for a message that was not announced");
        const operation_ptr granted = found->second;
        requested_.erase(found);
        begin_large(peer, granted, h);
        break;
      }
      case packet_type::chunk:
        op->arrived_ += std::int64_t(h.length);
        if (op->arrived_ == op->total_) {
          receiving_.erase(h.receiver_id());
          op->parts_.clear();
          finish(*op);
        }
        break;
      case packet_type::rate:
        if (h.rail() >= rails_.size()) violated(peer, "a rate of a rail that there is not");
        learn(p.rails[h.rail()], double(h.bytes_per_s()), h.of_probe());
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
  }

  void begin_large(int peer, const operation_ptr& op, const packet& h) {
    op->total_ = std::int64_t(h.wanted_bytes());
    if (op->total_ == 0) {
      leave(*op);
      return;
    }
    op->id_ = h.receiver_id();
    op->carried_.assign(rails_.size(), 0);
    peer_state& p = peers_[std::size_t(peer)];
    p.large.push_back(op);
    p.large_bytes += op->total_;
    note_work(peer);
  }

  void sent(std::uint64_t token) override {
    const auto found = sending_.find(token);
    const operation_ptr op = found->second;
    sending_.erase(found);
    if (--op->packets_ == 0 && op->next_ == op->total_) leave(*op);
  }

  void failed(int rail, int peer, const std::string& why) override {
    if (peers_[std::size_t(peer)].rails[std::size_t(rail)].farewell) return;
    note_failure("rail " + rails_[std::size_t(rail)]->name() + " to rank " + std::to_string(peer) +
                 ": " + why);
  }

  // ---- silence ----

  // Peers that somebody waits for; one that computes for minutes is not silent, for its host
  // answers.
  std::vector<bool> awaited() const {
    std::vector<bool> result(peers_.size(), leaving_);
    const auto mark = [&](int peer) {
      if (peer == any_source)
        result.assign(result.size(), true);
      else
        result[std::size_t(peer)] = true;
    };
    for (const auto& [of, box] : mailboxes_) {
      if (box.dropping) mark(any_source);  // who closes it waits for all that comes
      for (const operation_ptr& op : box.posted) mark(op->peer_);
    }
    for (const auto* const some : {&requested_, &receiving_})
      for (const auto& [id, op] : *some) mark(op->peer_);
    for (const auto& [token, op] : sending_) mark(op->peer_);
    for (const int peer : with_work_) mark(peer);
    result[std::size_t(rank_)] = false;
    return result;
  }

  // Whoever waits and has nothing under way that would have to be acknowledged sends a packet that
  // says nothing. Silence counts only from one look to the next one: what was under way when this
  // rank went off to compute tells nothing of the time since.
  void look_for_silence(double now_s) {
    const bool again = now_s <= looked_s_ + 2 * look_every_s_;
    looked_s_ = now_s;
    const std::vector<bool> waits = awaited();
    for (std::size_t p = 0; p < peers_.size(); ++p)
      for (std::size_t r = 0; r < rails_.size(); ++r) {
        rail_state& state = peers_[p].rails[r];
        if (!again || !waits[p]) state.silent_since_s = now_s;
        if (!waits[p] || state.farewell) continue;
        const std::optional<double> unanswered_s = rails_[r]->unanswered_s(int(p));
        if (!unanswered_s) continue;
        if (*unanswered_s > 0)
          state.silent_since_s = std::max(state.silent_since_s, now_s - *unanswered_s);
        else
          state.silent_since_s = now_s;
        // Noticed by the last look before the time is over, counted from an unfortunate moment.
        if (now_s - state.silent_since_s > options_.silence_s - 2.5 * look_every_s_)
          failed(int(r), int(p), "its host has acknowledged nothing for several seconds");
        else if (again && !said_farewell_ && rails_[r]->under_way_bytes(int(p)) == 0)
          ping(int(p), r);
      }
  }
  void ping(int peer, std::size_t rail) {
    std::vector<outgoing> packets(1);
    packets[0].header = packet::credit_alone();
    note_given(peers_[std::size_t(peer)].rails[rail], packets[0].header, given_bytes_[rail]);
    given_bytes_[rail] += std::int64_t(header_bytes);
    rails_[rail]->send(peer, packets, *this);
  }

  // ---- rates ----

  // The end of a packet that followed another one without a pause is a whole packet's time after
  // the end of that one; short ones count, but tell nothing. Reported to the sender once enough
  // bytes make up for not looking all the time, be they of several messages.
  void measure(rail_state& r, int peer, int rail, const packet& h, const arrival& timing) {
    r.bytes_since += std::int64_t(h.length + header_bytes);
    if (!can_be_timed(h)) return;
    const bool followed = r.measuring && h.rail_was_busy();
    const double took_s = timing.at_s - r.ended_s;
    const std::int64_t bytes = std::exchange(r.bytes_since, 0);
    r.ended_s = timing.at_s;
    // A probe says by itself how quick the rail is now.
    if (h.type == packet_type::probe && followed &&
        r.late_s + timing.late_s <= most_uncertainty * took_s)
      tell_rate(r, peer, rail, double(bytes) / took_s, true);
    if (!followed || h.type == packet_type::probe) {
      if (r.follows) r.uncertain_s += r.late_s;  // the last one before the pause
      r.late_s = timing.late_s;
      r.measuring = true;
      r.follows = false;
      return;
    }
    if (!r.follows) r.uncertain_s += r.late_s;  // the first one after it
    r.late_s = timing.late_s;
    r.follows = true;
    r.measured_bytes += bytes;
    r.measured_s += took_s;
    if (r.measured_bytes < report_bytes ||
        r.uncertain_s + timing.late_s > most_uncertainty * r.measured_s) {
      // Begin anew where even much more time would not make up for how late the first look was.
      if (r.measured_bytes > 16 * report_bytes) {
        r.measuring = r.follows = false;
        r.measured_bytes = 0;
        r.measured_s = r.uncertain_s = 0;
      }
      return;
    }
    tell_rate(r, peer, rail, double(r.measured_bytes) / r.measured_s, false);
    r.measured_bytes = 0;
    r.measured_s = 0;
    r.uncertain_s = timing.late_s;
  }

  void tell_rate(rail_state& r, int peer, int rail, double bytes_per_s, bool of_probe) {
    // Most networks carry as much one way as the other.
    r.rate.suppose(bytes_per_s);
    r.time = r.sampled.at_rate(r.rate.bytes_per_s());
    peers_[std::size_t(peer)].control.push_back(packet::rate(
        std::uint32_t(rail), std::max<std::uint64_t>(1, std::uint64_t(bytes_per_s)), of_probe));
    note_work(peer);
  }

  static bool can_be_timed(const packet& h) {
    return (h.type == packet_type::chunk || h.type == packet_type::eager ||
            h.type == packet_type::probe) &&
           h.length >= least_timed_bytes;
  }

  // A packet goes to a rail that had been given so many bytes before. What left between two packets
  // to a peer is what the time between their ends was for: nothing else if they are neighbours,
  // however much waits for other peers.
  static void note_given(rail_state& r, const packet& h, std::int64_t given_bytes) {
    r.unreported_bytes += std::int64_t(h.length + header_bytes);
    if (!can_be_timed(h)) return;
    const std::int64_t now_bytes = given_bytes + std::int64_t(h.length + header_bytes);
    if (h.rail_was_busy() && h.type != packet_type::probe) {
      r.reported_bytes += r.unreported_bytes;
      r.shared_bytes += now_bytes - r.timed_at_bytes;
    }
    r.unreported_bytes = 0;
    r.timed_at_bytes = now_bytes;
  }

  // What a peer sees is its part of what the rail carries for all of them; a probe is sent alone.
  static void learn(rail_state& r, double bytes_per_s, bool of_probe) {
    double part = 1;
    if (!of_probe) {
      if (r.reported_bytes > 0) part = double(r.shared_bytes) / double(r.reported_bytes);
      r.reported_bytes = r.shared_bytes = 0;
    }
    r.errors[r.num_reports++ % r.errors.size()] =
        std::abs(bytes_per_s * part / r.rate.bytes_per_s() - 1);
    r.rate.report(bytes_per_s * part);
    r.time = r.sampled.at_rate(r.rate.bytes_per_s());
    // What a rail in use carries says soon enough how quick it is.
    r.unmeasured_s =
        of_probe && r.rate.may_be_quicker() ? std::numeric_limits<double>::infinity() : 0;
  }

  // A rail thought slow is given no small messages, nor parts of others, so that nothing says when
  // it has become quicker; and one that is quicker than thought is never busy at its next packet,
  // which could be timed then. Bytes that nobody needs can, if others have carried messages for so
  // long that these cost little; if they come quicker than expected, more follow at once.
  static bool is_to_be_probed(const rail_state& r) {
    return !r.spare && r.unmeasured_s > probe_every * double(first_probe_bytes + probe_bytes) /
                                            r.rate.bytes_per_s();
  }

  // ---- what goes ----

  void note_work(int peer) {
    peer_state& p = peers_[std::size_t(peer)];
    if (p.has_work) return;
    p.has_work = true;
    with_work_.push_back(peer);
  }

  // Whether anything was given to a rail.
  bool flush() {
    bool moved = false;
    // Peers take turns in who comes first.
    if (with_work_.size() > 1)
      std::rotate(with_work_.begin(), with_work_.begin() + 1, with_work_.end());
    // Asking a rail may take a system call per peer: once for all of them.
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
    std::int64_t room_bytes = 0;  // that it may still be given
    std::vector<outgoing> packets;
  };

  bool flush(int peer) {
    peer_state& p = peers_[std::size_t(peer)];
    if (said_farewell_) {  // nobody wants to know any more
      p.has_work = false;
      return false;
    }
    const std::size_t n = rails_.size();
    rail_outlook outlook[most_rails];
    double unanswered_s[most_rails] = {};
    bool was_idle[most_rails];
    std::int64_t under_way_bytes[most_rails];
    plans_.resize(n);
    for (std::size_t r = 0; r < n; ++r) {
      const std::int64_t mine = rails_[r]->under_way_bytes(peer);
      const double rate = p.rails[r].rate.bytes_per_s();
      outlook[r] = {.time = &p.rails[r].time,
                    .busy_s = double(backlog_bytes_[r]) / rate,
                    .spare = p.rails[r].spare};
      p.rails[r].backlog_s += outlook[r].busy_s;
      ++p.rails[r].looks;
      was_idle[r] = backlog_bytes_[r] <= unanswered_bytes;
      if (was_idle[r]) unanswered_s[r] = std::exchange(outlook[r].busy_s, 0);
      under_way_bytes[r] = mine;
      plans_[r].room_bytes = window_bytes(p.rails[r]) - mine;
      plans_[r].packets.clear();
    }
    rails_view view{.rails = {outlook, n}, .least_bytes = p.least_bytes};
    // Bytes that nobody has acknowledged yet may have arrived: of few one cannot tell.
    const auto is_busy = [&](std::size_t r) {
      return under_way_bytes[r] > quantum_bytes(p.rails[r]) / 4;
    };
    const auto add = [&](std::size_t r, outgoing&& packet) {
      const auto bytes = std::int64_t(packet.header.length + header_bytes);
      outlook[r].busy_s += double(bytes) / p.rails[r].rate.bytes_per_s();
      plans_[r].room_bytes -= bytes;
      backlog_bytes_[r] += bytes;
      under_way_bytes[r] += bytes;
      note_given(p.rails[r], packet.header, given_bytes_[r]);
      if (packet.header.type != packet_type::probe) {
        p.rails[r].sent_bytes += std::int64_t(packet.header.length);
        for (std::size_t other = 0; can_be_timed(packet.header) && other < n; ++other)
          if (other != r)
            p.rails[other].unmeasured_s += double(bytes) / p.rails[r].rate.bytes_per_s();
      }
      given_bytes_[r] += bytes;
      plans_[r].packets.push_back(std::move(packet));
    };

    // Control packets are few and small: at once.
    if (!p.control.empty()) {
      const std::size_t r = soonest(view.rails, header_bytes);
      for (const packet& c : p.control) add(r, {.header = c, .payload = {}});
      p.control.clear();
    }
    bool moved = false;
    // One transmission.
    const auto hand_over = [&](std::size_t r) {
      if (plans_[r].packets.empty()) return;
      moved = true;
      // The credit goes with whatever leaves first.
      plans_[r].packets.front().header.credit = std::uint32_t(p.owed_bytes);
      p.kept_bytes -= p.owed_bytes;
      p.owed_bytes = 0;
      rails_[r]->send(peer, plans_[r].packets, *this);
      plans_[r].packets.clear();
    };
    for (std::size_t r = 0; r < n; ++r) {
      const rail_thresholds& sizes = p.rails[r].thresholds;
      view.aggregate_bytes = sizes.aggregate_bytes;
      while (!p.small.empty() && plans_[r].room_bytes > 0 && p.credit_bytes >= message_bytes) {
        sizes_.clear();
        for (std::size_t i = 0; i < std::min<std::size_t>(p.small.size(), 64); ++i)
          sizes_.push_back(travelling_bytes(*p.small[i], sizes));
        std::size_t take = std::min(strategy_->small(r, view, sizes_), sizes_.size());
        if (take == 0) break;
        for (; take > 0 && p.credit_bytes >= message_bytes; --take) {
          add(r, first_packet(p, p.small.front(), sizes, is_busy(r)));
          p.small.pop_front();
        }
        if (!p.small.empty()) hand_over(r);
      }
    }
    for (std::size_t r = 0; r < n; ++r) outlook[r].busy_s += unanswered_s[r];
    for (std::size_t r = 0; r < n; ++r)
      while (plans_[r].room_bytes > 0 && add_chunk(p, r, view, is_busy(r), add)) {
      }

    for (std::size_t r = 0; r < n; ++r) {
      if (was_idle[r] && is_to_be_probed(p.rails[r])) {
        p.rails[r].unmeasured_s = 0;
        nothing_.resize(std::size_t(probe_bytes));
        for (const std::int64_t length : {first_probe_bytes, probe_bytes})
          add(r, {.header = packet::probe(std::uint64_t(length), length == probe_bytes),
                  .payload = {{nothing_.data(), std::size_t(length)}}});
      }
      hand_over(r);
    }
    p.has_work = !p.control.empty() || !p.small.empty() || !p.large.empty();
    return moved;
  }

  static std::int64_t travelling_bytes(const operation& op, const rail_thresholds& sizes) {
    return std::int64_t(header_bytes) + (op.total_ <= sizes.eager_bytes ? op.total_ : 0);
  }

  // The message itself where it is small and the receiver has room, else its announcement.
  outgoing first_packet(peer_state& p, const operation_ptr& op, const rail_thresholds& sizes,
                        bool was_busy) {
    outgoing o;
    const std::uint32_t sequence = p.next_sequence++;
    const auto bytes = std::uint64_t(op->total_);
    if (op->total_ <= sizes.eager_bytes && message_bytes + op->total_ <= p.credit_bytes) {
      o.header = packet::eager(op->channel_, op->tag_, sequence, bytes, was_busy);
      o.payload = op->pieces_;
      o.copy = op->total_ <= sizes.copy_bytes;
      op->next_ = op->total_;
      o.token = announce(op);
    } else {
      op->id_ = free_id(requested_);
      o.header = packet::request(op->channel_, op->tag_, sequence, op->id_, bytes);
      requested_.emplace(op->id_, op);
    }
    p.credit_bytes -= cost_of(o.header);
    return o;
  }

  std::uint64_t announce(const operation_ptr& op) {
    ++op->packets_;
    sending_.emplace(++last_token_, op);
    return last_token_;
  }

  template <class Add>
  bool add_chunk(peer_state& p, std::size_t r, const rails_view& view, bool was_busy,
                 const Add& add) {
    for (std::size_t i = 0; i < p.large.size(); ++i) {
      operation& op = *p.large[i];
      const large_view l{op.total_, op.total_ - op.next_, op.carried_, p.large_bytes};
      std::int64_t bytes = std::min(strategy_->large(r, view, l), l.left_bytes);
      if (bytes <= 0) continue;
      const std::int64_t quantum = quantum_bytes(p.rails[r]);
      if (bytes - quantum >= p.least_bytes) bytes = quantum;
      outgoing o;
      o.header = packet::chunk(op.id_, std::uint64_t(op.next_), std::uint64_t(bytes), was_busy);
      cut(op.pieces_, op.next_, bytes, o.payload);
      op.next_ += bytes;
      op.carried_[r] += bytes;
      p.large_bytes -= bytes;
      o.token = announce(p.large[i]);
      if (op.next_ == op.total_) p.large.erase(p.large.begin() + std::ptrdiff_t(i));
      add(r, std::move(o));
      return true;
    }
    return false;
  }

  // About a millisecond: long enough to be worth a packet, short enough that what was decided wrong
  // and the small messages behind it wait for little.
  // Where a rail is not known yet, nothing is learnt from a message that is one part.
  static std::int64_t quantum_bytes(const rail_state& r) {
    constexpr std::int64_t least = 32 << 10, most = 1 << 20;
    if (!r.rate.known()) return least;
    return std::clamp(std::int64_t(r.rate.bytes_per_s() * 1e-3), least, most);
  }
  // Given to a rail in advance, so that it never waits for us: two such parts, or what fills the
  // way to the peer and back.
  static std::int64_t window_bytes(const rail_state& r) {
    return std::max(2 * quantum_bytes(r),
                    std::int64_t(4 * r.time.latency_s() * r.rate.bytes_per_s()));
  }

  void part() {
    said_farewell_ = true;
    for (std::size_t p = 0; p < peers_.size(); ++p)
      for (auto& r : rails_) {
        if (int(p) == rank_) continue;
        std::vector<outgoing> last;
        last.push_back({.header = packet::farewell(), .payload = {}});
        r->send(int(p), last, *this);
      }
  }

  // If no more than a segment is under way, it may have arrived: receivers may not say so for 40
  // ms. A ping-pong that went by it changed from rail to rail, so that no answer said so, either.
  static constexpr std::int64_t unanswered_bytes = 1500;
  static constexpr std::int64_t message_bytes =
      256;  // what a message is counted with beside its own
  static constexpr std::int64_t report_bytes = 128 << 10;
  static constexpr std::uint64_t least_timed_bytes = 4 << 10;
  static constexpr double most_uncertainty = 0.1;
  // The first part is about what a token bucket lets pass at once, whatever its rate.
  static constexpr std::int64_t first_probe_bytes = 16 << 10, probe_bytes = 48 << 10;
  static constexpr double probe_every = 32;  // times what it takes

  int rank_;
  std::vector<std::unique_ptr<packet_rail>> rails_;
  std::unique_ptr<strategy> strategy_;
  transport_options options_;
  std::int64_t credit_bytes_;
  std::vector<peer_state> peers_;
  std::vector<int> with_work_;
  std::vector<idle_rail> plans_;             // of flush
  std::vector<std::int64_t> sizes_;          // of flush
  std::vector<std::int64_t> backlog_bytes_;  // of flush: under way on each rail, to all peers
  std::vector<std::int64_t> given_bytes_;    // to each rail, ever
  std::vector<std::byte> nothing_;           // what probes carry
  std::unordered_map<channel, mailbox> mailboxes_;
  std::unordered_map<std::uint32_t, operation_ptr> requested_;  // by the sender's id
  std::unordered_map<std::uint32_t, operation_ptr> receiving_;  // by the receiver's id
  std::unordered_map<std::uint64_t, operation_ptr> sending_;  // by token: packets that need memory
  std::uint64_t last_token_ = 0;
  std::uint32_t next_id_;
  double look_every_s_, looked_s_ = -std::numeric_limits<double>::infinity();
  bool leaving_ = false, said_farewell_ = false, alive_ = true, given_up_ = false;
  std::string failure_;
};

}  // namespace railpass::transport
