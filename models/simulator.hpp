// SPDX-License-Identifier: BSL-1.0
//
// Simulates the schedules of all ranks on a machine model. Steps, segments, dependencies and
// windows are the executor's; time comes from piecewise LogGP links instead of a clock.
//
// Modelled:
// - rank: does one thing at a time: the send overhead o and receive overhead o of each message,
//   reductions, copies. The order is that in which they become possible; steps take turns, and
//   messages go before local work.
// - NIC of a node: sends one message and receives one message at a time (full duplex). A message of
//   n bytes occupies the NIC for g + n G; the CPU is free for the next message after o. A node with
//   several rails puts a message on the rail that is free first. Ranks of one node have a port each
//   for messages between them, and use no NIC.
// - message above the eager limit: waits until its receiver has posted. The handshake itself is
//   part of the link's latency for these sizes, as measured.
// - phases of a schedule: a rank starts a phase when it has ended the phase before.
// - shared memory of a node: publishing takes as long as a copy. Then other ranks can fetch, which
//   takes the transfer of a cache line, between two caches or within one, and another copy. The
//   ring of slots is assumed to be long enough.
//
// Not modelled: contention inside the network or a node's memory, noise, and the interference of
// messages that closed forms take from link_model::exchange, shift, flow and crowd.
//
// Source: Alexandrov, Ionescu, Schauser, Scheiman: LogGP, SPAA'95, doi:10.1145/215399.215427.
#pragma once

#include "models/machine.hpp"
#include "railpass/base/error.hpp"
#include "railpass/base/hash.hpp"
#include "railpass/schedule/schedule.hpp"

#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace railpass {

/// The node of each (physical) rank; nodes are numbered from 0.
struct node_layout {
  std::vector<std::int32_t> node_of_rank;
  std::vector<std::int32_t> cache_of_rank{};  ///< empty: the ranks of a node share one cache

  /// Ranks 0 .. ranks_per_node-1 on node 0, the next ranks on node 1, and so on; likewise for
  /// caches, if ranks_per_cache is not 0.
  static node_layout blocks(std::int32_t num_ranks, std::int32_t ranks_per_node,
                            std::int32_t ranks_per_cache = 0) {
    node_layout result;
    for (std::int32_t r = 0; r < num_ranks; ++r) {
      result.node_of_rank.push_back(r / std::max(1, ranks_per_node));
      if (ranks_per_cache > 0) result.cache_of_rank.push_back(r / ranks_per_cache);
    }
    return result;
  }
  std::int32_t num_nodes() const {
    return node_of_rank.empty() ? 0
                                : 1 + *std::max_element(node_of_rank.begin(), node_of_rank.end());
  }
};

/// One action of a rank, for the trace.
struct timeline_event {
  step_kind kind = step_kind::send;
  std::int32_t rank = 0;  ///< physical
  std::int32_t peer = 0;  ///< physical; the rank itself for reduce, copy and publish
  std::int32_t step = 0;  ///< index into the schedule of the rank, through all phases
  std::int32_t round = 0;
  std::int64_t segment = 0;
  std::int64_t bytes = 0;
  std::int64_t message = -1;  ///< equal at both ends of a message; -1: none
  double begin_s = 0;
  double end_s = 0;
};

/// The input of a simulation.
struct simulation_setup {
  const machine_model& machine;
  const node_layout& nodes;             ///< one entry per rank
  std::span<const schedule> schedules;  ///< by virtual rank
  message_size size{};
  std::int32_t root = 0;  ///< physical rank of virtual rank 0
  /// The order of virtual ranks; empty: virtual ranks count from the root.
  rank_order ranks{};
  bool in_place = false;     ///< input is output: copies between them are free
  std::int32_t window = 64;  ///< most sends, and most receives, of a rank in flight
  bool record = false;       ///< fill simulation::events
};

struct simulation {
  double time_s = 0;             ///< when the last rank is done
  std::vector<double> finish_s;  ///< by physical rank; all ranks start at 0
  std::int64_t messages = 0;     ///< delivered messages; empty messages do not count
  std::vector<timeline_event> events;
};

/// Keeps its memory from run to run. Runs with equal arguments give bitwise equal results.
class simulator {
 public:
  /// Simulates the schedules to their end. The result lives until the next run.
  /// @throws error if the arguments do not fit together, or if a rank waits forever
  const simulation& run(const simulation_setup& setup) {
    prepare(setup);
    const std::size_t phases = phases_of(setup.schedules[0]).size();
    for (std::size_t k = 0; k < phases; ++k) {
      begin_phase(setup.schedules, k);
      while (!heap_.empty()) {
        const event e = pop();
        now_ = e.time_s;
        handle(e);
      }
      check_ended();
    }
    for (std::int32_t v = 0; v < p_; ++v) {
      const double t = ranks_[std::size_t(v)].finish_s;
      result_.finish_s[std::size_t(physical(v))] = t;
      result_.time_s = std::max(result_.time_s, t);
    }
    return result_;
  }

 private:
  static constexpr std::int32_t none = -1;

  struct step_state {
    const step* what = nullptr;
    std::int32_t rank = 0;        // virtual
    std::int32_t channel = none;  // of a send or receive with one peer
    std::int32_t round = 0;       // of the next instance
    std::int64_t segment = 0;
    std::int64_t segments = 1;  // per round
    std::int64_t segment_units = 0;
    extent whole{};  // of the next instance's round
    std::int64_t issued = 0;
    std::int64_t done = 0;    // all instances before this one are done
    std::uint64_t later = 0;  // bit k: instance done + k is done
    std::int64_t instances = 0;
    // All shown instances before this one are visible to other ranks, or to ranks of the cache.
    std::int64_t seen = 0, seen_near = 0;
  };
  struct rank_state {
    double cpu_free_s = 0;
    double memory_free_s = 0;  // for single copies by other ranks
    bool meets = false;        // see machine_model::single_copy_s
    double finish_s = 0;
    double received_s = 0;  // end of the last receive drawn
    std::int32_t sends = 0;
    std::int32_t receives = 0;
    std::int32_t turn[2] = {0, 0};  // the step after the last started: messages, local
    bool computing = false;         // a reduction or copy is running
  };
  // The times of a message, cached for neighbours of equal size.
  struct message_cost {
    std::int64_t bytes = -1;
    double send_overhead_s = 0, latency_s = 0, transfer_s = 0, receive_overhead_s = 0, busy_s = 0;
    bool eager = true;
  };
  // A message from the first posting to the end at both ranks, or a local operation.
  struct task {
    std::int32_t send_step = none;  // or the rank that starts
    std::int32_t receive_step = none;
    std::int64_t send_instance = 0;
    std::int64_t receive_instance = 0;
    std::int64_t number = 0;
    std::uint32_t sequence = 0;
    double posted_s = 0;   // by the receiver
    double started_s = 0;  // on the sender's CPU
    double ready_s = 0;    // the sender's CPU is done
    double head_s = 0;     // drawn start of the receive
    message_cost cost;
    std::int32_t next = none;  // in the queue of a channel, or of free tasks
    std::int32_t rail = 0;
    bool arrived = false;
    bool send_ended = false;
    bool receive_ended = false;
  };
  // An ordered pair of ranks: the messages that one end has posted, all of the same end.
  struct channel {
    std::int64_t pair = none;
    std::int32_t first = none;
    std::int32_t last = none;
    bool same_node = false;
  };
  enum class happening : std::uint32_t {
    begins,
    send_ready,
    sent,
    head,
    arrived,
    received,
    computed,
    seen_near,
    seen
  };
  struct event {
    double time_s;
    std::uint64_t order;  // sequence number, then kind of event and task
  };

  // --- set-up

  void prepare(const simulation_setup& setup) {
    p_ = std::int32_t(setup.schedules.size());
    setup_machine_ = &setup.machine;
    size_ = setup.size;
    root_ = setup.root;
    physical_ = setup.ranks;
    window_ = setup.window;
    in_place_ = setup.in_place;
    record_ = setup.record;
    if (p_ < 1) throw error("simulator: expected the schedules of at least one rank");
    if (setup.nodes.node_of_rank.size() != std::size_t(p_))
      throw error("simulator: the node layout has " +
                  std::to_string(setup.nodes.node_of_rank.size()) + " ranks, expected " +
                  std::to_string(p_));
    const std::vector<std::int32_t>& caches = setup.nodes.cache_of_rank;
    if (!caches.empty() && caches.size() != std::size_t(p_))
      throw error("simulator: expected the caches of all ranks, or of none");
    if (root_ < 0 || root_ >= p_) throw error("simulator: expected a root below the rank count");
    if (!physical_.empty() && physical_.num_ranks() != p_)
      throw error("simulator: expected an order of all ranks, or none");
    if (window_ < 1) throw error("simulator: expected a window of at least 1");
    if (size_.units < 0 || size_.unit_bytes < 1)
      throw error("simulator: expected units >= 0 of at least one byte");
    if (setup.machine.rails_per_node < 1)
      throw error("simulator: expected at least one rail per node");
    if (setup.machine.same_node.pieces.empty() || setup.machine.across_nodes.pieces.empty())
      throw error("simulator: the machine model has a link class without pieces");

    node_of_rank_.resize(std::size_t(p_));
    for (std::int32_t v = 0; v < p_; ++v)
      node_of_rank_[std::size_t(v)] = setup.nodes.node_of_rank[std::size_t(physical(v))];
    cache_of_rank_.clear();
    for (std::size_t v = 0; v < caches.size(); ++v)
      cache_of_rank_.push_back(caches[std::size_t(physical(std::int32_t(v)))]);
    rails_ = setup.machine.rails_per_node;
    const auto nics = std::size_t(setup.nodes.num_nodes()) * std::size_t(rails_);
    nic_out_free_s_.assign(nics, 0);
    nic_in_free_s_.assign(nics, 0);
    own_out_free_s_.assign(std::size_t(p_), 0);
    own_in_free_s_.assign(std::size_t(p_), 0);
    last_cost_[0].bytes = last_cost_[1].bytes = -1;

    ranks_.assign(std::size_t(p_), {});
    steps_before_.assign(std::size_t(p_), 0);
    heap_.clear();
    sequence_ = 0;
    now_ = 0;
    result_.time_s = 0;
    result_.messages = 0;
    result_.finish_s.assign(std::size_t(p_), 0);
    result_.events.clear();
  }

  // Each rank starts a phase when it has ended the phase before.
  void begin_phase(std::span<const schedule> schedules, std::size_t number) {
    schedules_ = schedules;
    if (!schedules[0].phases.empty()) {
      phase_.clear();
      for (const schedule& s : schedules) {
        if (s.phases.size() != schedules[0].phases.size())
          throw error("simulator: expected as many phases on all ranks");
        phase_.push_back(s.phases[number]);
      }
      schedules_ = phase_;
    }
    steps_.clear();
    first_step_.assign(1, 0);
    first_word_.assign(1, 0);
    local_.clear();
    std::size_t pairs = 0;
    for (std::int32_t v = 0; v < p_; ++v) {
      const schedule& s = schedules_[std::size_t(v)];
      const rank_state& before = ranks_[std::size_t(v)];
      ranks_[std::size_t(v)] = {.cpu_free_s = before.finish_s, .finish_s = before.finish_s};
      if (number > 0)
        steps_before_[std::size_t(v)] +=
            std::int32_t(schedules[std::size_t(v)].phases[number - 1].steps.size());
      if (s.rank != v || s.num_ranks != p_)
        throw error("simulator: schedule " + std::to_string(v) + " is of rank " +
                    std::to_string(s.rank) + " of " + std::to_string(s.num_ranks));
      ranks_[std::size_t(v)].meets =
          std::ranges::count_if(s.steps, [](const step& x) { return opens_memory(x.kind); }) > 1 &&
          std::ranges::count_if(s.steps, [](const step& x) { return is_single_copy(x.kind); }) > 1;
      const std::int64_t segment_units = size_.segment_units(s.segment_bytes);
      local_.resize(first_word_.back() + (s.steps.size() + 63) / 64, 0);
      first_word_.push_back(local_.size());
      for (const step& what : s.steps) {
        step_state state{.what = &what, .rank = v};
        state.segments = segments_per_round(what, segment_units, size_);
        state.segment_units = what.segmented ? segment_units : size_.units;
        state.whole = round_extent(what.blocks, 0, size_);
        state.instances = state.segments * what.rounds;
        if (what.kind == step_kind::send)
          pairs += std::size_t(what.peer_stride == 0 ? 1 : std::min(what.rounds, p_));
        if (!is_message(what.kind)) set(local_, v, steps_.size() - first_step_.back());
        steps_.push_back(state);
      }
      first_step_.push_back(steps_.size());
    }
    candidates_.assign(local_.size(), 0);
    starved_.assign(local_.size(), 0);
    for (const step_state& state : steps_)
      set(candidates_, state.rank,
          std::size_t(&state - steps_.data()) - first_step_[std::size_t(state.rank)]);
    channels_.assign(std::bit_ceil(2 * pairs + 1), {});
    find_publishers();

    tasks_.clear();
    free_task_ = none;
    for (std::int32_t v = 0; v < p_; ++v) {
      const double begin_s = ranks_[std::size_t(v)].finish_s;
      if (number == 0) {
        run_rank(v);
        continue;
      }
      const std::int32_t beginning = new_task();
      tasks_[std::size_t(beginning)].send_step = v;
      push(begin_s, happening::begins, beginning);
    }
  }

  void find_publishers() {
    publisher_.clear();
    readers_.clear();
    if (setup_has_no_places()) return;
    publisher_.assign(steps_.size(), none);
    readers_.assign(steps_.size(), {});
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const step& x = *steps_[i].what;
      if (!looks(x.kind)) continue;
      if (x.peer < 0 || x.peer >= p_)
        throw error("simulator: a step names a rank that does not exist");
      for (std::size_t k = first_step_[std::size_t(x.peer)];
           k < first_step_[std::size_t(x.peer) + 1]; ++k)
        if (finds(x, steps_[i].rank, *steps_[k].what)) {
          publisher_[i] = std::int32_t(k);
          readers_[k].push_back(std::int32_t(i));
        }
    }
  }
  bool setup_has_no_places() const {
    return std::ranges::all_of(schedules_, [](const schedule& s) { return s.places == 0; });
  }

  std::int32_t physical(std::int32_t v) const { return physical_rank(v, root_, p_, physical_); }

  // The channel of a pair, by hashing. A receive without a sender may fill the table.
  std::int32_t channel_of(std::int32_t sender, std::int32_t receiver) {
    const std::int64_t pair = std::int64_t{sender} * p_ + receiver;
    const std::size_t mask = channels_.size() - 1;
    std::size_t i = (scattered(std::uint64_t(pair)) >> 32) & mask;
    for (std::size_t tries = 0; tries <= mask; ++tries, i = (i + 1) & mask) {
      channel& c = channels_[i];
      if (c.pair == pair) return std::int32_t(i);
      if (c.pair == none) {
        c.pair = pair;
        c.same_node = node_of_rank_[std::size_t(sender)] == node_of_rank_[std::size_t(receiver)];
        return std::int32_t(i);
      }
    }
    throw error("simulator: rank " + std::to_string(receiver) +
                " receives from ranks that do not send to it");
  }

  // --- events, a binary heap by time and then by order of creation

  void push(double time_s, happening what, std::int32_t task_number) {
    push(time_s, sequence_++, what, task_number);
  }
  void push(double time_s, std::uint32_t sequence, happening what, std::int32_t task_number) {
    heap_.push_back({time_s, (std::uint64_t(sequence) << 32) | (std::uint64_t(what) << 28) |
                                 std::uint64_t(task_number)});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const event e = heap_.back();
    heap_.pop_back();
    return e;
  }
  // A lambda, because algorithms inline it but call a function by its address.
  static constexpr auto later = [](const event& a, const event& b) {
    // Times are not negative, so their bits have the same order and compare without branches.
    const auto x = std::bit_cast<std::uint64_t>(a.time_s),
               y = std::bit_cast<std::uint64_t>(b.time_s);
    return (x > y) | ((x == y) & (a.order > b.order));
  };

  std::int32_t new_task() {
    if (free_task_ == none) {
      if (tasks_.size() >= (1u << 28)) throw error("simulator: more than 2^28 messages in flight");
      tasks_.emplace_back();
      return std::int32_t(tasks_.size() - 1);
    }
    const std::int32_t t = free_task_;
    free_task_ = tasks_[std::size_t(t)].next;
    tasks_[std::size_t(t)] = {};
    return t;
  }
  void free_task(std::int32_t t) {
    tasks_[std::size_t(t)].next = free_task_;
    free_task_ = t;
  }

  // Occupies the CPU of a rank from the moment it is free; returns the start.
  double compute(std::int32_t rank, double seconds) {
    rank_state& r = ranks_[std::size_t(rank)];
    const double begin = std::max(now_, r.cpu_free_s);
    r.cpu_free_s = begin + seconds;
    return begin;
  }

  // A copy from or to another rank's memory; the kernel allows one at a time.
  double copy_at(std::int32_t peer, std::int32_t rank, double seconds) {
    double& memory_free_s = ranks_[std::size_t(peer)].memory_free_s;
    double& cpu_free_s = ranks_[std::size_t(rank)].cpu_free_s;
    cpu_free_s = std::max(cpu_free_s, memory_free_s);
    const double begin = compute(rank, seconds);
    memory_free_s = cpu_free_s;
    return begin;
  }

  const message_cost& cost_of(bool same_node, std::int64_t bytes) {
    message_cost& c = last_cost_[same_node ? 0 : 1];
    if (c.bytes == bytes) return c;
    const link_model& link = same_node ? setup_machine_->same_node : setup_machine_->across_nodes;
    const link_piece& piece = link.piece(double(bytes));
    c.bytes = bytes;
    c.send_overhead_s = link.sending_s(double(bytes));
    c.latency_s = piece.latency_s;
    c.transfer_s = double(bytes) * std::max(0.0, piece.gap_s_per_byte + piece.latency_s_per_byte -
                                                     piece.send_overhead_s_per_byte -
                                                     piece.receive_overhead_s_per_byte);
    c.receive_overhead_s = link.receiving_s(double(bytes));
    c.busy_s = piece.gap_s + double(bytes) * piece.gap_s_per_byte;
    c.eager = double(bytes) <= link.eager_limit_bytes;
    return c;
  }

  // --- starting steps

  using bits = std::vector<std::uint64_t>;  // of all ranks' steps, each rank in new words

  void set(bits& b, std::int32_t rank, std::size_t step_of_rank) {
    b[first_word_[std::size_t(rank)] + step_of_rank / 64] |= std::uint64_t{1}
                                                             << (step_of_rank % 64);
  }

  // Takes the candidate whose turn it is; `none` if there is none of this kind.
  std::int32_t take(std::int32_t rank, bool local) {
    const std::size_t first = first_word_[std::size_t(rank)];
    const std::size_t words = first_word_[std::size_t(rank) + 1] - first;
    if (words == 0) return none;
    std::int32_t& turn = ranks_[std::size_t(rank)].turn[local ? 1 : 0];
    std::size_t word = std::size_t(turn) / 64;
    std::uint64_t mask = ~std::uint64_t{0} << (std::size_t(turn) % 64);
    for (std::size_t looked = 0; looked <= words; ++looked) {
      if (word >= words) word = 0;
      const std::uint64_t kind = local_[first + word];
      const std::uint64_t found = candidates_[first + word] & (local ? kind : ~kind) & mask;
      if (found != 0) {
        const int bit = std::countr_zero(found);
        candidates_[first + word] &= ~(std::uint64_t{1} << bit);
        turn = std::int32_t(word * 64) + bit + 1;
        return turn - 1;
      }
      mask = ~std::uint64_t{0};
      ++word;
    }
    return none;
  }

  // Starts everything that a rank may start now: steps take turns, messages before local work.
  void run_rank(std::int32_t rank) {
    const auto base = std::int32_t(first_step_[std::size_t(rank)]);
    for (;;) {
      std::int32_t s = take(rank, false);
      if (s == none && !ranks_[std::size_t(rank)].computing) s = take(rank, true);
      if (s == none) return;
      start(base + s);
    }
  }

  bool may_issue(const step_state& s) const {
    const std::size_t base = first_step_[std::size_t(s.rank)];
    for (const dependency& d : schedules_[std::size_t(s.rank)].dependencies_of(*s.what)) {
      const step_state& other = steps_[base + std::size_t(d.step)];
      if (d.lag == dependency::in_turn && !goes_alone(bytes_of(other, 0))) continue;
      const std::int64_t awaited =
          instances_awaited(d, s.round, s.segment, s.segments, other.what->rounds, other.instances);
      if ((d.lag == dependency::posted ? other.issued : other.done) < awaited) return false;
    }
    return true;
  }

  // Several rails carry several messages, as they would carry the parts of one message.
  bool goes_alone(std::int64_t bytes) const { return bytes >= large_message_bytes && rails_ == 1; }
  // Bytes of a segment of the next round.
  std::int64_t bytes_of(const step_state& s, std::int64_t segment) const {
    const std::int64_t left = s.whole.size() - segment * s.segment_units;
    return std::clamp<std::int64_t>(left, 0, s.segment_units) * size_.unit_bytes;
  }

  // Starts the next instance of a step, if allowed.
  void start(std::int32_t index) {
    step_state& s = steps_[std::size_t(index)];
    const step& what = *s.what;
    rank_state& r = ranks_[std::size_t(s.rank)];
    const std::size_t own_number = std::size_t(index) - first_step_[std::size_t(s.rank)];
    // At most 64 beyond the first unfinished instance, because `later` has 64 bits.
    if (s.issued == s.instances || s.issued - s.done >= what.window || !may_issue(s)) return;
    const std::int64_t bytes = bytes_of(s, s.segment);
    if (bytes == 0) {
      mark_done(s, s.issued);
      wake_successors(index);
    } else if (is_message(what.kind)) {
      std::int32_t& in_flight = what.kind == step_kind::send ? r.sends : r.receives;
      const bool has_one = s.issued != s.done;  // instance `done` is one of them
      if (in_flight >= window_ && has_one) return set(starved_, s.rank, own_number);
      // Checked again when that message ends.
      if (what.kind == step_kind::send && has_one && what.peer_stride == 0 && goes_alone(bytes))
        return;
      ++in_flight;
      if (what.kind == step_kind::send)
        issue_send(index, bytes);
      else
        issue_receive(index);
    } else {
      if (!is_shown(index)) return;  // checked again when it is shown
      issue_local(index, bytes);
    }
    ++s.issued;
    if (++s.segment == s.segments) {
      s.segment = 0;
      if (++s.round < what.rounds) s.whole = round_extent(what.blocks, s.round, size_);
    }
    if (s.issued < s.instances)
      set(candidates_, s.rank, own_number);
    else
      wake_successors(index);
  }

  void mark_done(step_state& s, std::int64_t instance) {
    s.later |= std::uint64_t{1} << (instance - s.done);
    const int more = std::countr_one(s.later);
    s.later = more == 64 ? 0 : s.later >> more;
    s.done += more;
    ranks_[std::size_t(s.rank)].finish_s = std::max(ranks_[std::size_t(s.rank)].finish_s, now_);
  }

  void wake_successors(std::int32_t index) {
    const step_state& s = steps_[std::size_t(index)];
    for (const std::int32_t other : schedules_[std::size_t(s.rank)].successors_of(*s.what))
      set(candidates_, s.rank, std::size_t(other));
  }

  // Ends one instance: updates the step, its successors and the steps that wait for a window.
  void finish(std::int32_t index, std::int64_t instance) {
    step_state& s = steps_[std::size_t(index)];
    rank_state& r = ranks_[std::size_t(s.rank)];
    const std::int64_t done_before = s.done;
    mark_done(s, instance);
    if (s.what->kind == step_kind::send)
      --r.sends;
    else if (s.what->kind == step_kind::receive)
      --r.receives;
    else
      r.computing = false;
    if (is_single_copy(s.what->kind)) close_memory(s.what->peer);
    for (std::size_t w = first_word_[std::size_t(s.rank)]; w < first_word_[std::size_t(s.rank) + 1];
         ++w)
      candidates_[w] |= std::exchange(starved_[w], 0);
    if (s.done != done_before) wake_successors(index);
    set(candidates_, s.rank, std::size_t(index) - first_step_[std::size_t(s.rank)]);
    if (shows(s.what->kind)) show(index, instance);
    run_rank(s.rank);
  }

  // The rank sees the data itself at once, other ranks later.
  void show(std::int32_t index, std::int64_t instance) {
    const std::int32_t rank = steps_[std::size_t(index)].rank;
    for (const std::int32_t reader : readers_[std::size_t(index)])
      if (steps_[std::size_t(reader)].rank == rank) look_again(reader);
    if (!cache_of_rank_.empty()) be_seen_after(reach::cache, index, instance);
    be_seen_after(reach::node, index, instance);
  }
  void be_seen_after(reach r, std::int32_t index, std::int64_t instance) {
    const std::int32_t number = new_task();
    tasks_[std::size_t(number)].send_step = index;
    tasks_[std::size_t(number)].send_instance = instance;
    push(now_ + setup_machine_->line_s(r),
         r == reach::cache ? happening::seen_near : happening::seen, number);
  }
  void be_seen(std::int32_t index, std::int64_t instance, reach r) {
    step_state& shown = steps_[std::size_t(index)];
    (r == reach::cache ? shown.seen_near : shown.seen) = instance + 1;
    for (const std::int32_t reader : readers_[std::size_t(index)]) {
      look_again(reader);
      run_rank(steps_[std::size_t(reader)].rank);
    }
  }
  void look_again(std::int32_t index) {
    const std::int32_t rank = steps_[std::size_t(index)].rank;
    set(candidates_, rank, std::size_t(index) - first_step_[std::size_t(rank)]);
  }

  // A rank that opened memory ends when it has heard that the peer has copied.
  void close_memory(std::int32_t rank) {
    double& finish_s = ranks_[std::size_t(rank)].finish_s;
    finish_s = std::max(finish_s, now_ + setup_machine_->seen_s());
  }

  // Whether the data for the next instance of a step are visible.
  bool is_shown(std::int32_t index) const {
    const step_state& s = steps_[std::size_t(index)];
    if (!looks(s.what->kind)) return true;
    const std::int32_t from = publisher_[std::size_t(index)];
    if (from == none) return false;
    const step_state& shown = steps_[std::size_t(from)];
    const std::int64_t seen = shown.rank == s.rank                           ? shown.done
                              : reach_of(shown.rank, s.rank) == reach::cache ? shown.seen_near
                                                                             : shown.seen;
    return seen > s.issued;
  }
  reach reach_of(std::int32_t a, std::int32_t b) const {
    return !cache_of_rank_.empty() &&
                   cache_of_rank_[std::size_t(a)] == cache_of_rank_[std::size_t(b)]
               ? reach::cache
               : reach::node;
  }

  std::int32_t channel_of_instance(step_state& s) {
    if (s.channel != none) return s.channel;
    const std::int32_t peer = peer_of(*s.what, s.round, p_);
    const std::int32_t c =
        s.what->kind == step_kind::send ? channel_of(s.rank, peer) : channel_of(peer, s.rank);
    if (s.what->peer_stride == 0) s.channel = c;
    return c;
  }

  // Takes the oldest message that the other end has posted, or queues a new message. Returns
  // whether the other end has posted.
  bool match(channel& c, bool other_is_receive, std::int32_t& number) {
    if (c.first != none && (tasks_[std::size_t(c.first)].send_step == none) == other_is_receive) {
      number = c.first;
      c.first = tasks_[std::size_t(number)].next;
      return true;
    }
    number = new_task();
    if (c.first == none)
      c.first = number;
    else
      tasks_[std::size_t(c.last)].next = number;
    c.last = number;
    return false;
  }

  void issue_send(std::int32_t index, std::int64_t bytes) {
    step_state& s = steps_[std::size_t(index)];
    channel& c = channels_[std::size_t(channel_of_instance(s))];
    std::int32_t number = none;
    const bool posted = match(c, true, number);
    task& t = tasks_[std::size_t(number)];
    t.send_step = index;
    t.send_instance = s.issued;
    t.number = result_.messages++;
    t.cost = cost_of(c.same_node, bytes);
    t.sequence = sequence_++;  // a NIC takes equally ready messages in the sender's order
    t.started_s = compute(s.rank, t.cost.send_overhead_s);
    t.ready_s = t.started_s + t.cost.send_overhead_s;
    if (t.cost.eager)
      push(t.ready_s, t.sequence, happening::send_ready, number);
    else if (posted)
      push(std::max(t.ready_s, t.posted_s), t.sequence, happening::send_ready, number);
  }

  void issue_receive(std::int32_t index) {
    step_state& s = steps_[std::size_t(index)];
    channel& c = channels_[std::size_t(channel_of_instance(s))];
    std::int32_t number = none;
    const bool sent = match(c, false, number);
    task& t = tasks_[std::size_t(number)];
    t.receive_step = index;
    t.receive_instance = s.issued;
    t.posted_s = std::max(now_, ranks_[std::size_t(s.rank)].cpu_free_s);
    if (!sent) return;
    if (!t.cost.eager)
      push(std::max(t.ready_s, t.posted_s), t.sequence, happening::send_ready, number);
    else if (t.arrived)
      receive(number);
  }

  void issue_local(std::int32_t index, std::int64_t bytes) {
    step_state& s = steps_[std::size_t(index)];
    const step& what = *s.what;
    const auto is_message = [](buffer b) { return b == buffer::input || b == buffer::output; };
    const bool free = in_place_ && what.kind == step_kind::copy && is_message(what.from) &&
                      is_message(what.to) && what.from_first == what.blocks.first;
    const double seconds = free ? 0 : working_s(what, s.rank, double(bytes));
    const double begin =
        is_single_copy(what.kind) ? copy_at(what.peer, s.rank, seconds) : compute(s.rank, seconds);
    ranks_[std::size_t(s.rank)].computing = true;
    const std::int32_t number = new_task();
    task& t = tasks_[std::size_t(number)];
    t.send_step = index;
    t.send_instance = s.issued;
    push(begin + seconds, happening::computed, number);
    if (record_)
      draw(what.kind, s, s.issued, is_shared(what.kind) ? what.peer : s.rank, bytes, -1, begin,
           begin + seconds);
  }
  double working_s(const step& what, std::int32_t rank, double bytes) const {
    const machine_model& m = *setup_machine_;
    // Data that the rank has published itself are in its own cache.
    const bool own = what.peer == rank;
    switch (what.kind) {
      case step_kind::copy:
        return m.copy.time_s(bytes);
      case step_kind::publish:
        return m.publish_s(bytes);
      case step_kind::fetch:
        return own ? m.publish_s(bytes) : m.fetch_s(bytes, reach_of(what.peer, rank));
      case step_kind::combine:
        return own ? m.reduce.time_s(bytes) : m.combine_s(bytes, reach_of(what.peer, rank));
      case step_kind::offer:
      case step_kind::invite:
        return m.publish_s(sizeof(std::uint64_t));
      case step_kind::get:
      case step_kind::put:
        return m.single_copy_s(bytes, ranks_[std::size_t(rank)].meets);
      default:
        return m.reduce.time_s(bytes);
    }
  }

  // --- events of messages

  static happening what_happens(const event& e) { return happening((e.order >> 28) & 15); }
  void handle(const event& e) {
    const auto number = std::int32_t(e.order & ((1u << 28) - 1));
    task& t = tasks_[std::size_t(number)];
    switch (what_happens(e)) {
      case happening::begins: {
        const std::int32_t rank = t.send_step;
        free_task(number);
        return run_rank(rank);
      }
      case happening::send_ready:
        return depart(number);
      case happening::head:
        return land(number);
      case happening::sent:
        t.send_ended = true;
        return end(number, t.receive_ended, t.send_step, t.send_instance);
      case happening::arrived:
        t.arrived = true;
        if (t.receive_step != none) receive(number);
        return;
      case happening::received:
        t.receive_ended = true;
        return end(number, t.send_ended, t.receive_step, t.receive_instance);
      case happening::computed:
        return end(number, true, t.send_step, t.send_instance);
      case happening::seen_near:
      case happening::seen: {
        const auto [shown, instance] = std::pair(t.send_step, t.send_instance);
        free_task(number);
        return be_seen(shown, instance,
                       what_happens(e) == happening::seen_near ? reach::cache : reach::node);
      }
    }
  }

  void end(std::int32_t number, bool is_last, std::int32_t step_number, std::int64_t instance) {
    if (is_last) free_task(number);
    finish(step_number, instance);
  }

  // The message leaves by the port that is free first.
  void depart(std::int32_t number) {
    task& t = tasks_[std::size_t(number)];
    const step_state& s = steps_[std::size_t(t.send_step)];
    const bool same_node = is_local(t);
    double* port = &own_out_free_s_[std::size_t(s.rank)];
    if (!same_node) {
      double* const first =
          &nic_out_free_s_[std::size_t(node_of_rank_[std::size_t(s.rank)]) * std::size_t(rails_)];
      port = std::min_element(first, first + rails_);
      t.rail = std::int32_t(port - first);
    }
    const double begin = std::max(now_, *port), end = begin + t.cost.transfer_s;
    if (record_)
      draw(step_kind::send, s, t.send_instance, peer_of_instance(s, t.send_instance), t.cost.bytes,
           t.number, std::max(t.started_s, std::min(*port, begin)), end);
    *port = begin + t.cost.busy_s;
    push(end, happening::sent, number);
    push(begin + t.cost.latency_s, happening::head, number);
  }

  // The first byte has arrived at the receiver's port.
  void land(std::int32_t number) {
    task& t = tasks_[std::size_t(number)];
    const step_state& s = steps_[std::size_t(t.send_step)];
    const std::int32_t receiver = peer_of_instance(s, t.send_instance);
    double& port = is_local(t) ? own_in_free_s_[std::size_t(receiver)]
                               : nic_in_free_s_[std::size_t(node_of_rank_[std::size_t(receiver)]) *
                                                    std::size_t(rails_) +
                                                std::size_t(t.rail)];
    const double begin = std::max(now_, port), end = begin + t.cost.transfer_s;
    port = begin + t.cost.busy_s;
    t.head_s = begin;
    push(end, happening::arrived, number);
  }

  void receive(std::int32_t number) {
    task& t = tasks_[std::size_t(number)];
    const step_state& s = steps_[std::size_t(t.receive_step)];
    const double end = compute(s.rank, t.cost.receive_overhead_s) + t.cost.receive_overhead_s;
    push(end, happening::received, number);
    if (!record_) return;
    rank_state& r = ranks_[std::size_t(s.rank)];
    draw(step_kind::receive, s, t.receive_instance, peer_of_instance(s, t.receive_instance),
         t.cost.bytes, t.number, std::min(end, std::max(t.head_s, r.received_s)), end);
    r.received_s = end;
  }

  std::int32_t peer_of_instance(const step_state& s, std::int64_t instance) const {
    return s.what->peer_stride == 0 ? s.what->peer
                                    : peer_of(*s.what, std::int32_t(instance / s.segments), p_);
  }
  bool is_local(const task& t) const {
    const step_state& s = steps_[std::size_t(t.send_step)];
    return node_of_rank_[std::size_t(s.rank)] ==
           node_of_rank_[std::size_t(peer_of_instance(s, t.send_instance))];
  }

  void draw(step_kind kind, const step_state& s, std::int64_t instance, std::int32_t peer,
            std::int64_t bytes, std::int64_t message, double begin_s, double end_s) {
    const auto index = std::size_t(&s - steps_.data());
    result_.events.push_back({.kind = kind,
                              .rank = physical(s.rank),
                              .peer = physical(peer),
                              .step = steps_before_[std::size_t(s.rank)] +
                                      std::int32_t(index - first_step_[std::size_t(s.rank)]),
                              .round = std::int32_t(instance / s.segments),
                              .segment = instance % s.segments,
                              .bytes = bytes,
                              .message = message,
                              .begin_s = begin_s,
                              .end_s = end_s});
  }

  void check_ended() const {
    for (const step_state& s : steps_)
      if (s.done != s.instances)
        throw error(
            "simulator: the schedules do not end: step " +
            std::to_string(std::size_t(&s - steps_.data()) - first_step_[std::size_t(s.rank)]) +
            " of virtual rank " + std::to_string(s.rank) + " waits for ever, " +
            std::to_string(s.done) + " of " + std::to_string(s.instances) + " instances are done");
  }

  std::int32_t p_ = 0, root_ = 0, window_ = 64, rails_ = 1;
  bool in_place_ = false, record_ = false;
  rank_order physical_;  // by virtual rank; empty: counted from the root on
  const machine_model* setup_machine_ = nullptr;
  message_size size_;
  std::span<const schedule> schedules_;                 // of the phase
  std::vector<schedule> phase_;                         // if phases are part of the schedules
  std::vector<std::int32_t> steps_before_;              // of earlier phases, by virtual rank
  std::vector<std::int32_t> node_of_rank_;              // by virtual rank
  std::vector<std::int32_t> cache_of_rank_;             // virtual; empty: no caches are known
  std::vector<double> nic_out_free_s_, nic_in_free_s_;  // node * rails + rail
  std::vector<double> own_out_free_s_, own_in_free_s_;  // by virtual rank
  message_cost last_cost_[2];                           // same node, across nodes
  std::vector<rank_state> ranks_;
  std::vector<step_state> steps_;  // of all ranks
  std::vector<std::size_t> first_step_;
  std::vector<channel> channels_;  // hash table
  std::vector<task> tasks_;
  std::int32_t free_task_ = none;
  std::vector<event> heap_;
  std::vector<std::size_t> first_word_;  // by virtual rank
  std::vector<std::int32_t> publisher_;  // per fetch and combine: the step that publishes
  std::vector<std::vector<std::int32_t>> readers_;  // per publish
  bits local_;                                      // all steps except messages
  bits candidates_;                                 // steps to check
  bits starved_;                                    // steps that wait for a window
  std::uint32_t sequence_ = 0;
  double now_ = 0;
  simulation result_;
};

}  // namespace railpass
