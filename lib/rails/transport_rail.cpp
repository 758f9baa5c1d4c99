// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/transport_rail.hpp"

#include <utility>

namespace railpass::internal {

template <class Begin>
post_result transport_rail::added(direction way, rail_token token, std::int64_t bytes,
                                  const Begin& begin) {
  try {
    message m{begin(), way, token, bytes};
    if (m.operation->done()) {
      check_length(m);
      return post_result::done;
    }
    under_way_.push_back(std::move(m));
    return post_result::pending;
  } catch (const std::exception& e) {
    fail(e);
    return post_result::failed;
  }
}

post_result transport_rail::post_send(std::int32_t peer, std::int32_t tag, const std::byte* from,
                                      std::int64_t bytes, rail_token token) {
  return added(direction::sends, token, bytes, [&] {
    return channel_->send(peer, tag, {{const_cast<std::byte*>(from), std::size_t(bytes)}});
  });
}

post_result transport_rail::post_receive(std::int32_t peer, std::int32_t tag, std::byte* to,
                                         std::int64_t bytes, rail_token token) {
  return added(direction::receives, token, bytes, [&] {
    return channel_->receive(peer, tag, {{to, std::size_t(bytes)}});
  });
}

int transport_rail::poll(std::span<rail_token> completed) {
  try {
    return channel_->transport().with([&](transport::transport& t) {
      empty_polls_ = t.progress() ? 0 : empty_polls_ + 1;
      std::size_t found = 0;
      for (std::size_t i = 0; i < under_way_.size() && found < completed.size();) {
        message& m = under_way_[i];
        if (!m.operation->done()) {
          ++i;
          continue;
        }
        check_length(m);
        completed[found++] = m.token;
        m = std::move(under_way_.back());
        under_way_.pop_back();
      }
      return int(found);
    });
  } catch (const std::exception& e) {
    fail(e);
    return -1;
  }
}

void transport_rail::check_length(const message& m) {
  const transport::operation& ended = *m.operation;
  if (!ended.truncated() && ended.bytes() == m.bytes) return;
  const std::string peer = "rank " + std::to_string(channel_->rank_of(ended.peer())),
                    moved = std::to_string(ended.bytes()), bytes = std::to_string(m.bytes);
  if (m.way == direction::sends)
    unlike_ = peer + " takes " + moved + " bytes of the " + bytes + " that this rank sends";
  else
    unlike_ = peer + " sent " + (ended.truncated() ? "more" : moved) + " where this rank expects " +
              bytes + " bytes";
  throw error(unlike_);
}

void transport_rail::fail(const std::exception& why) {
  error_code_ = unlike_.empty() ? MPI_ERR_OTHER : MPI_ERR_TRUNCATE;
  failure_ = why.what();
}

void transport_rail::abandon() {
  under_way_.clear();
  channel_->transport().with([this](transport::transport& t) {
    t.fail(failure_.empty() ? "a collective was given up" : failure_);
  });
}

}  // namespace railpass::internal
