// SPDX-License-Identifier: BSL-1.0
//
// The interface with which the executor moves bytes between ranks: it posts messages and asks which
// have ended. A rail is a single network, or a combination of several networks.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace railpass {

/// Names a posted message for its owner; the rail returns the token when the message has ended.
using rail_token = std::uint64_t;

enum class post_result : std::uint8_t {
  pending,  ///< poll will return the token
  done,     ///< ended at once; poll will not return the token
  failed    ///< see error_code()
};

/// A rail of one communicator. Not thread safe.
///
/// reserve(messages): memory for so many pending messages at once, so that posting them allocates
///     nothing more. Throws std::bad_alloc.
/// post_send, post_receive(peer, tag, memory, bytes, token): begin a message of bytes > 0 to or
///     from the physical rank `peer`. The memory belongs to the rail until the message has ended.
///     The messages of an ordered pair of ranks with the same tag are matched in the order in which
///     they are posted, at both ends, and have the same size at both ends. They end in any order.
/// poll(completed): lets the rail work, without blocking, and writes the tokens of messages that
///     have ended, each once. Returns their number, or -1 if the rail failed: see error_code().
/// pending(): messages posted and not yet returned by poll.
/// give_way(): the last polls found nothing: gives the core to others, or sleeps until something
///     may have come, for at most 200 us.
/// error_code(): the code of the last failure, 0 if there was none (for MPI an MPI error code).
/// abandon(): forgets all pending messages after a failure; what they left in memory is undefined.
/// large_messages_at_once: that a step sends to one peer; more than one only where the answers that
///     a large message needs do not queue behind those under way.
template <class R>
concept rail = requires(R r, const R c, std::int32_t peer, std::int32_t tag, const std::byte* from,
                        std::byte* to, std::int64_t bytes, rail_token token,
                        std::span<rail_token> completed, std::size_t messages) {
  { r.reserve(messages) } -> std::same_as<void>;
  { r.post_send(peer, tag, from, bytes, token) } -> std::same_as<post_result>;
  { r.post_receive(peer, tag, to, bytes, token) } -> std::same_as<post_result>;
  { r.poll(completed) } -> std::same_as<int>;
  { c.pending() } -> std::same_as<int>;
  { r.give_way() } -> std::same_as<void>;
  { R::large_messages_at_once } -> std::convertible_to<int>;
  { c.error_code() } -> std::same_as<int>;
  { r.abandon() } -> std::same_as<void>;
};

}  // namespace railpass
