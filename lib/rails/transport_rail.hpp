// SPDX-License-Identifier: BSL-1.0
//
// The transport as the one rail that schedules run over.
#pragma once

#include "lib/rails/channel.hpp"
#include "railpass/transport/rail.hpp"

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace railpass::internal {

/// See the concept `rail`. The user's messages over the same transport never meet these.
class transport_rail {
 public:
  /// A large message is on its way while the next one is announced, and answers do not queue behind
  /// it. With more of them the slower rail carries parts of later ones while the first are waited
  /// for: 4 made a pipelined broadcast of 1 MiB over two rails take 24 ms instead of 21.
  static constexpr int large_messages_at_once = 2;

  explicit transport_rail(std::shared_ptr<rail_channel> messages) : channel_(std::move(messages)) {}
  transport_rail(const transport_rail&) = delete;
  transport_rail& operator=(const transport_rail&) = delete;

  void reserve(std::size_t messages) { under_way_.reserve(messages); }
  post_result post_send(std::int32_t peer, std::int32_t tag, const std::byte* from,
                        std::int64_t bytes, rail_token token);
  post_result post_receive(std::int32_t peer, std::int32_t tag, std::byte* to, std::int64_t bytes,
                           rail_token token);
  int poll(std::span<rail_token> completed);
  int pending() const { return static_cast<int>(under_way_.size()); }
  void give_way() { channel_->transport().give_way(empty_polls_); }
  int error_code() const { return error_code_; }
  /// Gives up the transport, whether or not this rank has seen it fail: other ranks learn that this
  /// one cannot go on, and no memory of any message is touched any more.
  void abandon();

  /// The rails, as they were named.
  const std::string& names() const { return channel_->transport().rails(); }
  /// Message for the user about the last failure; empty: no failure.
  const std::string& failure() const { return failure_; }
  /// The message if error_code() is MPI_ERR_TRUNCATE, because a message had another length than its
  /// receive; else empty.
  const std::string& unlike() const { return unlike_; }

 private:
  enum class direction : std::uint8_t { sends, receives };
  struct message {
    transport::operation_ptr operation;
    direction way = direction::sends;
    rail_token token = 0;
    std::int64_t bytes = 0;
  };

  template <class Begin>
  post_result added(direction way, rail_token token, std::int64_t bytes, const Begin& begin);
  void check_length(const message& m);
  void fail(const std::exception& why);

  std::shared_ptr<rail_channel> channel_;
  std::vector<message> under_way_;
  unsigned empty_polls_ = 0;  // in a row
  int error_code_ = 0;
  std::string failure_, unlike_;
};

static_assert(rail<transport_rail>);

}  // namespace railpass::internal
