// SPDX-License-Identifier: BSL-1.0
//
// Messages between ranks over several rails, in three layers, as in NewMadeleine. The transport
// collects messages while the rails are busy; a strategy decides what an idle rail carries next;
// the rails carry packets. The transport does no I/O itself: tests drive it with a simulated rail.
//
// The parts have a file each: messages in flight (message.hpp), messages that arrive
// (receiving.hpp) and their receives (matching.hpp), messages that leave (sending.hpp) and those
// that wait for a rail (outbox.hpp), packets given to a rail (under_way.hpp), flow control
// (credit.hpp), large messages (rendezvous.hpp), speed of rails (rate_meter.hpp, known_rail.hpp),
// failures (failure.hpp) and detection of dead peers (silence.hpp).
#pragma once

#include "railpass/base/clock.hpp"
#include "railpass/transport/failure.hpp"
#include "railpass/transport/known_rail.hpp"
#include "railpass/transport/link_profile.hpp"
#include "railpass/transport/message.hpp"
#include "railpass/transport/options.hpp"
#include "railpass/transport/packet_rail.hpp"
#include "railpass/transport/silence.hpp"
#include "railpass/transport/strategy.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::transport {

class receiver;
class sender;

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
            const std::vector<transfer_time>& times, bool known, std::unique_ptr<strategy> how,
            const transport_options& options = {});
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;
  ~transport();

  int rank() const { return rank_; }
  const std::vector<std::unique_ptr<packet_rail>>& rails() const { return rails_; }

  /// Sets the measured times of the rails to a peer for later decisions; reports restart.
  /// @throws error if the number of rails is wrong
  void know(int peer, const link_profile& measured);

  /// Replaces the strategy and returns the former strategy.
  std::unique_ptr<strategy> use(std::unique_ptr<strategy> how);

  /// Starts to send a message of several pieces. 0 <= peer < num_ranks, tag >= 0.
  /// @param from memory of the caller, unchanged until the message is done
  /// @param owner kept until the message is done
  /// @param may_end_early whether a small message that cannot leave yet may be copied, and is done
  /// then. The message leaves in a later call, which callers that block elsewhere may not make.
  operation_ptr send(int peer, int tag, std::vector<piece> from, std::shared_ptr<void> owner = {},
                     channel on = 0, bool may_end_early = true);

  /// Starts to receive into several pieces. `source` and `tag` may be any_source and any_tag.
  operation_ptr receive(int source, int tag, std::vector<piece> to, channel on = 0);

  /// Starts to receive a message of unknown size. `allocate(bytes)` is called once, when the size
  /// is known, and returns the memory.
  operation_ptr receive(int source, int tag, std::function<piece(std::int64_t)> allocate,
                        channel on = 0);

  /// Advances all messages without blocking; returns whether anything moved.
  /// @param now_s from any clock, in seconds
  bool progress(double now_s = steady_clock_s());

  /// Messages of a channel to other ranks that were started and have not left yet.
  std::int64_t unsent(channel of) const;
  /// Messages of a channel that arrived from other ranks, received or not. Small messages count
  /// when complete, large messages when announced.
  std::int64_t arrived(channel of) const;
  /// Drops all present and future messages of a channel that no rank receives any more. Senders
  /// drop large messages, which thereby count as left.
  void drop(channel unwanted);
  /// Ends a channel on which everything has arrived and left. Receives without a message never end.
  void forget(channel ended);
  /// Ends a channel on which this rank has received every message. All ranks of the channel call
  /// leave(). Remaining and later messages are dropped.
  void leave(channel ended);

  /// Tells all peers that this rank sends nothing more, once all started messages have left. No
  /// rank receives any more.
  void say_farewell();
  /// Tells all peers at once, so that no peer waits for this rank; drops messages that have not
  /// left.
  void part_at_once();
  /// A rank for which this transport still holds a message whose send has ended, so that only this
  /// transport can deliver it. Ranks that have said farewell do not count, because they receive
  /// nothing more.
  std::optional<int> owed() const;
  /// Whether all ranks have said farewell, this rank included.
  bool all_have_said_farewell() const;
  /// Whether all started messages have left.
  bool all_sent() const;

  bool alive() const { return failure_.alive(); }
  /// The reason of a failure; empty if unknown.
  const std::string& failure() const { return failure_.reason(); }
  /// Ends the transport because this rank cannot continue.
  void fail(std::string_view why) noexcept { failure_.fail(why); }

  rail_report report(int peer, int rail) const;
  /// The report of a rail, summed over all peers.
  rail_report report(int rail) const;

 private:
  void arrived(int rail, int peer, const packet& h, std::vector<piece>& where) override;
  void complete(int rail, int peer, const packet& h, const arrival& timing) override;
  void sent(std::uint64_t token) override;
  void failed(int rail, int peer, const std::string& why) override;

  operation_ptr post(std::shared_ptr<message> op);
  void look_for_silence(double now_s);
  std::vector<bool> awaited() const;

  int rank_, num_ranks_;
  std::vector<std::unique_ptr<packet_rail>> rails_;
  failure_state failure_;
  std::unique_ptr<sender> sender_;
  std::unique_ptr<receiver> receiver_;
  silence_watch silence_;
};

}  // namespace railpass::transport
