// SPDX-License-Identifier: BSL-1.0
//
// A network inside one process, for executors without MPI: messages are matched in posting order
// per pair of ranks and tag, take a random number of polls, and end in random order.
#pragma once

#include "railpass/transport/rail.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <stdexcept>
#include <tuple>
#include <vector>

namespace railpass::test {

class fake_network {
 public:
  /// Sends of at most `eager_bytes` end at once; longer ones when their receive does.
  fake_network(int num_ranks, std::int64_t eager_bytes, std::uint64_t seed)
      : eager_bytes_(eager_bytes), random_(seed), ended_(std::size_t(num_ranks)) {}

  class rail {
   public:
    rail(fake_network& n, int rank) : network_(&n), rank_(rank) {}

    void reserve(std::size_t) {}
    post_result post_send(std::int32_t peer, std::int32_t tag, const std::byte* from,
                          std::int64_t bytes, rail_token token) {
      if (fails_after_-- == 0) return post_result::failed;
      network_->check(rank_, peer, bytes);
      auto& c = network_->channels_[{rank_, peer, tag}];
      if (bytes <= network_->eager_bytes_) {
        c.sends.push_back({nullptr, {from, from + bytes}, bytes, token});
        network_->match(rank_, peer, c);
        return post_result::done;
      }
      ++pending_;
      most_sends_ = std::max(most_sends_, ++sends_);
      c.sends.push_back({from, {}, bytes, token});
      network_->match(rank_, peer, c);
      return post_result::pending;
    }
    post_result post_receive(std::int32_t peer, std::int32_t tag, std::byte* to, std::int64_t bytes,
                             rail_token token) {
      network_->check(peer, rank_, bytes);
      ++pending_;
      most_receives_ = std::max(most_receives_, ++receives_);
      auto& c = network_->channels_[{peer, rank_, tag}];
      c.receives.push_back({to, bytes, token});
      network_->match(peer, rank_, c);
      return post_result::pending;
    }
    int poll(std::span<rail_token> completed) {
      auto& mine = network_->ended_[std::size_t(rank_)];
      std::shuffle(mine.begin(), mine.end(), network_->random_);
      std::size_t found = 0;
      for (std::size_t i = 0; i < mine.size();) {
        if (found == completed.size()) break;
        if (mine[i].polls_left-- > 0) {
          ++i;
          continue;
        }
        const ended e = mine[i];
        mine.erase(mine.begin() + std::ptrdiff_t(i));
        if (e.to && !e.data.empty()) std::memcpy(e.to, e.data.data(), e.data.size());
        --(e.to ? receives_ : sends_);
        --pending_;
        completed[found++] = e.token;
      }
      return static_cast<int>(found);
    }
    int pending() const { return pending_; }
    void give_way() {}
    static constexpr int large_messages_at_once = 1;
    int error_code() const { return 17; }
    void abandon() { pending_ = 0; }

    void fail_after(int sends) { fails_after_ = sends; }
    int most_sends() const { return most_sends_; }
    int most_receives() const { return most_receives_; }

   private:
    fake_network* network_;
    int rank_;
    int pending_ = 0, sends_ = 0, receives_ = 0;
    int most_sends_ = 0, most_receives_ = 0;
    int fails_after_ = -1;
  };

  /// Messages sent or awaited that found no partner.
  std::size_t unmatched() const {
    std::size_t n = 0;
    for (const auto& [key, c] : channels_) n += c.sends.size() + c.receives.size();
    return n;
  }

 private:
  struct send {
    const std::byte* from;  // null: eager, the data are in `copy`
    std::vector<std::byte> copy;
    std::int64_t bytes;
    rail_token token;
  };
  struct receive {
    std::byte* to;
    std::int64_t bytes;
    rail_token token;
  };
  struct channel {
    std::deque<send> sends;
    std::deque<receive> receives;
  };
  struct ended {
    rail_token token;
    std::byte* to;  // null: a send
    std::vector<std::byte> data;
    int polls_left;
  };

  void check(int from, int to, std::int64_t bytes) const {
    const int n = static_cast<int>(ended_.size());
    if (from < 0 || from >= n || to < 0 || to >= n || from == to || bytes <= 0)
      throw std::logic_error("message from " + std::to_string(from) + " to " + std::to_string(to) +
                             " of " + std::to_string(bytes) + " bytes");
  }
  int delay() { return std::uniform_int_distribution<int>(0, 5)(random_); }
  void match(int from, int to, channel& c) {
    while (!c.sends.empty() && !c.receives.empty()) {
      send s = std::move(c.sends.front());
      const receive r = c.receives.front();
      c.sends.pop_front();
      c.receives.pop_front();
      if (s.bytes != r.bytes) throw std::logic_error("the ends of a message differ in size");
      std::vector<std::byte> data =
          s.from ? std::vector<std::byte>(s.from, s.from + s.bytes) : std::move(s.copy);
      if (s.from) ended_[std::size_t(from)].push_back({s.token, nullptr, {}, delay()});
      ended_[std::size_t(to)].push_back({r.token, r.to, std::move(data), delay()});
    }
  }

  std::int64_t eager_bytes_;
  std::mt19937_64 random_;
  std::map<std::tuple<int, int, int>, channel> channels_;
  std::vector<std::vector<ended>> ended_;
};

static_assert(railpass::rail<fake_network::rail>);

}  // namespace railpass::test
