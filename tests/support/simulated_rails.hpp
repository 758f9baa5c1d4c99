// SPDX-License-Identifier: BSL-1.0
//
// Simulated rails with a clock of their own, and a rate and latency each. The packets of a host
// leave one after the other, even if they are of several ranks. As on a real network, bytes may be
// read from memory until they have left.
#pragma once

#include "railpass/transport/transport.hpp"

#include <cstring>
#include <deque>
#include <optional>
#include <queue>
#include <stdexcept>

namespace railpass::test {

class simulated_network {
 public:
  struct rail_model {
    double latency_s = 1e-5;
    double bytes_per_s = 1e8;
    double answer_s = 0;  ///< until the sender knows that a packet has left
  };

  simulated_network(int num_ranks, std::vector<rail_model> rails, int ranks_per_host = 1)
      : num_ranks_(num_ranks), ranks_per_host_(ranks_per_host), models_(std::move(rails)) {
    free_s_.assign(models_.size(), std::vector<double>(std::size_t(num_ranks), 0));
    silent_since_s_.assign(models_.size(), 1e300);
    given_up_.assign(models_.size(), std::vector<bool>(std::size_t(num_ranks), false));
    carried_bytes_.assign(models_.size(), 0);
    probed_bytes_.assign(models_.size(), 0);
    transmissions_.assign(models_.size(), 0);
    channels_.resize(models_.size() * std::size_t(num_ranks * num_ranks));
  }

  double now_s() const { return now_s_; }
  void set_rate(std::size_t rail, double bytes_per_s) { models_[rail].bytes_per_s = bytes_per_s; }

  /// From now on, packets on the rail are lost without any notice.
  void silence(std::size_t rail) { silent_since_s_[rail] = now_s_; }

  /// Time in which ranks do something else.
  void pass(double seconds) { now_s_ += seconds; }

  /// Advances to the next event; returns false if nothing is in flight.
  bool advance() {
    double next_s = 1e300;
    for (const auto& c : channels_)
      for (const flight& f : c) {
        if (!f.left) next_s = std::min(next_s, f.leaves_s);
        next_s = std::min(next_s, f.begun ? f.arrives_s : f.begins_s);
        break;  // later ones of the channel come later
      }
    for (const auto& c : channels_)
      for (const flight& f : c)
        if (!f.left) {
          next_s = std::min(next_s, f.leaves_s);
          break;
        }
    if (next_s >= 1e300) return false;
    now_s_ = std::max(now_s_, next_s);
    return true;
  }

  /// Bytes of messages.
  std::int64_t carried_bytes(std::size_t rail) const { return carried_bytes_[rail]; }
  /// Bytes of probes.
  std::int64_t probed_bytes(std::size_t rail) const { return probed_bytes_[rail]; }
  int transmissions(std::size_t rail) const { return transmissions_[rail]; }

  std::vector<std::unique_ptr<transport::packet_rail>> rails_of(int rank) {
    std::vector<std::unique_ptr<transport::packet_rail>> result;
    for (std::size_t r = 0; r < models_.size(); ++r)
      result.push_back(std::make_unique<simulated_rail>(*this, int(r), rank));
    return result;
  }
  /// The true times of the rails.
  std::vector<transport::transfer_time> times() const {
    std::vector<transport::transfer_time> result;
    for (const rail_model& m : models_) result.emplace_back(m.latency_s, m.bytes_per_s);
    return result;
  }

  /// Injects a packet that breaks the protocol.
  void inject(std::size_t rail, int from, int to, const transport::packet& p) {
    flight f;
    f.header = transport::pack(p);
    f.data.resize(p.length);
    f.left = true;
    f.leaves_s = f.begins_s = f.arrives_s = now_s_;
    channel(int(rail), from, to).push_back(std::move(f));
  }

 private:
  struct flight {
    transport::packed_header header;
    std::vector<transport::piece> from;
    std::vector<std::byte> data;
    std::uint64_t token = 0;
    double leaves_s = 0;
    double begins_s = 0, arrives_s = 0;  // header and payload, at the receiver
    bool left = false;
    std::optional<transport::packet> begun;  // the header has arrived
    std::vector<transport::piece> where;
  };

  std::deque<flight>& channel(int rail, int from, int to) {
    return channels_[std::size_t((rail * num_ranks_ + from) * num_ranks_ + to)];
  }

  class simulated_rail final : public transport::packet_rail {
   public:
    simulated_rail(simulated_network& n, int index, int rank)
        : network_(n), index_(index), rank_(rank) {}

    void send(int peer, std::vector<transport::outgoing>& packets,
              transport::packet_sink&) override {
      if (peer == rank_ || peer < 0 || peer >= network_.num_ranks_)
        throw std::logic_error("a packet to " + std::to_string(peer));
      const rail_model& m = network_.models_[std::size_t(index_)];
      ++network_.transmissions_[std::size_t(index_)];
      const int host = rank_ / network_.ranks_per_host_;
      double& free_s = network_.free_s_[std::size_t(index_)][std::size_t(host)];
      for (transport::outgoing& o : packets) {
        std::uint64_t sum = 0;
        for (const transport::piece& p : o.payload) sum += p.bytes;
        if (sum != o.header.length) throw std::logic_error("a payload of another length");
        flight f;
        f.header = transport::pack(o.header);
        f.from = std::move(o.payload);
        f.token = o.token;
        free_s = std::max(free_s, network_.now_s_) +
                 double(sum + transport::header_bytes) / m.bytes_per_s;
        f.leaves_s = free_s;
        f.arrives_s = free_s + m.latency_s;
        f.begins_s = f.arrives_s - double(sum) / m.bytes_per_s;
        network_.channel(index_, rank_, peer).push_back(std::move(f));
        unanswered_.push_back(
            {peer, free_s + m.answer_s, std::int64_t(sum + transport::header_bytes)});
      }
    }
    std::int64_t under_way_bytes(int peer) override {
      std::erase_if(unanswered_, [&](const auto& u) {
        return u.until_s <= std::min(network_.now_s_, silent_since_s());
      });
      std::int64_t sum = 0;
      for (const auto& u : unanswered_)
        if (u.peer == peer) sum += u.bytes;
      return sum;
    }
    std::int64_t under_way_bytes() override {
      std::int64_t sum = 0;
      for (int p = 0; p < network_.num_ranks_; ++p)
        if (p != rank_) sum += under_way_bytes(p);
      return sum;
    }
    std::optional<double> unanswered_s(int peer) override {
      if (under_way_bytes(peer) == 0) return 0;
      return std::max(1e-3, network_.now_s_ - silent_since_s());
    }
    bool poll(transport::packet_sink& sink) override {
      bool moved = false;
      if (network_.given_up_[std::size_t(index_)][std::size_t(rank_)]) return false;
      for (int peer = 0; peer < network_.num_ranks_; ++peer) {
        if (peer == rank_) continue;
        if (network_.given_up_[std::size_t(index_)][std::size_t(peer)])
          sink.failed(index_, peer, "the other rank has closed the connection");
        for (flight& f : network_.channel(index_, rank_, peer)) {
          if (f.left || f.leaves_s > network_.now_s_) continue;
          f.left = true;
          for (const transport::piece& p : f.from)
            f.data.insert(f.data.end(), p.data, p.data + p.bytes);
          if (f.token != 0) sink.sent(f.token);
          moved = true;
        }
        auto& c = network_.channel(index_, peer, rank_);
        const double until_s = std::min(network_.now_s_, silent_since_s());
        while (!c.empty() && c.front().begins_s <= until_s) {
          if (!c.front().begun) {
            c.front().begun = transport::parse(c.front().header);
            if (!c.front().begun) throw std::logic_error("a header that cannot be parsed");
            sink.arrived(index_, peer, *c.front().begun, c.front().where);
            moved = true;
          }
          if (!c.front().left || c.front().arrives_s > until_s) break;
          const flight f = std::move(c.front());
          c.pop_front();
          const std::byte* from = f.data.data();
          std::size_t left = f.data.size();
          for (const transport::piece& p : f.where) {
            if (p.bytes > left) throw std::logic_error("memory for more than the payload");
            std::memcpy(p.data, from, p.bytes);
            from += p.bytes;
            left -= p.bytes;
          }
          if (left > 0) throw std::logic_error("no memory for all of the payload");
          (f.begun->type == transport::packet_type::probe
               ? network_.probed_bytes_
               : network_.carried_bytes_)[std::size_t(index_)] += std::int64_t(f.data.size());
          sink.complete(index_, peer, *f.begun,
                        {.at_s = network_.now_s_, .late_s = network_.now_s_ - f.arrives_s});
          moved = true;
        }
      }
      return moved;
    }
    void abandon() override {
      network_.given_up_[std::size_t(index_)][std::size_t(rank_)] = true;
      for (int peer = 0; peer < network_.num_ranks_; ++peer)
        network_.channel(index_, rank_, peer).clear();
    }
    int descriptor() const override { return -1; }
    const std::string& name() const override { return name_; }

   private:
    double silent_since_s() const { return network_.silent_since_s_[std::size_t(index_)]; }

    struct unanswered {
      int peer;
      double until_s;
      std::int64_t bytes;
    };

    simulated_network& network_;
    int index_, rank_;
    std::vector<unanswered> unanswered_;
    std::string name_ = "simulated";
  };

  int num_ranks_, ranks_per_host_;
  double now_s_ = 0;
  std::vector<rail_model> models_;
  std::vector<std::vector<double>> free_s_;   // by rail and host
  std::vector<double> silent_since_s_;        // by rail
  std::vector<std::vector<bool>> given_up_;   // by rail and rank
  std::vector<std::deque<flight>> channels_;  // by rail, sender, receiver
  std::vector<std::int64_t> carried_bytes_;   // by rail
  std::vector<std::int64_t> probed_bytes_;    // by rail
  std::vector<int> transmissions_;            // by rail
};

}  // namespace railpass::test
