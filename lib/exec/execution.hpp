// SPDX-License-Identifier: BSL-1.0
//
// One run of a schedule: the executor's state between two polls of the rail.
#pragma once

#include "lib/exec/memory.hpp"
#include "lib/exec/wait_watch.hpp"
#include "railpass/schedule/schedule.hpp"
#include "railpass/transport/rail.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace railpass::internal {

/// Tags of schedules' messages, from 0 on. Calls in flight at the same time have different tags;
/// messages of later calls with the same tag match in order.
inline constexpr int num_schedule_tags = 16;

/// Limits of a call's messages in flight, for sends and receives separately. A step has at most 64
/// messages in flight (one large send, see large_message_bytes). A step without messages in flight
/// may always start one: so a window never keeps a schedule from ending.
struct windows {
  int sends = 64;
  int receives = 64;
};

/// Memory is allocated only when a larger schedule or message than before is bound. Memory does not
/// grow with the number of segments. Each step has a cursor, the number of instances done in order,
/// and a mask of at most 64 later instances.
class execution {
 public:
  execution() = default;
  execution(const execution&) = delete;
  execution& operator=(const execution&) = delete;

  /// Prepares the run. Its messages have the tokens `first_token` + 32 bits.
  void bind(const schedule& s, const binding& b, const windows& w, rail_token first_token,
            std::int32_t tag) {
    const bool again = is_repetition(s, b);
    schedule_ = &s;
    memory_.bind(b);
    first_token_ = first_token;
    tag_ = tag;
    windows_ = w;
    free_[sending] = w.sends;
    free_[receiving] = w.receives;
    code_ = 0;
    num_unfinished_ = 0;
    bound_serial_ = 0;
    if (b.size.units == 0) return;  // every extent is empty, at all ranks
    if (again) {
      memory_.lay_out_again(s);
      reset_steps();
    } else {
      memory_.lay_out(s);
      if (s.serial == 0 || s.serial != structure_serial_) {
        structure_serial_ = 0;
        bind_structure();
        structure_serial_ = s.serial;
      }
      bind_size();
    }
    bound_serial_ = s.serial;
  }

  bool done() const { return num_unfinished_ == 0; }
  int code() const { return code_; }
  void fail(int code) {
    code_ = code;
    num_unfinished_ = 0;
    bound_serial_ = 0;
  }
  /// The call is done. After a failure, messages may still write to its scratch memory.
  void end() {
    if (code_ == 0) memory_.give_back();
  }
  /// Limit of the messages under way at a time.
  std::size_t most_in_flight() const {
    // Each step may have a message beyond the windows.
    return done() ? 0
                  : std::size_t(windows_.sends) + std::size_t(windows_.receives) + steps_.size();
  }
  bool has_work() const {
    if (done()) return false;
    std::uint64_t any = 0;
    for (const std::uint64_t w : work_) any |= w;
    return any != 0;
  }

  /// Starts everything that can start, with a limit for local work, so that the rail is polled.
  /// False if the rail failed; see code() for a hook's failure.
  template <rail R>
  bool advance(R& r) {
    std::int64_t local_bytes = local_bytes_per_turn;
    // After a hook's failure, data that the hook should have made is not sent.
    while (!done() && code_ == 0) {
      int step = take_message_step();
      if (step >= 0) {
        const bool ok = steps_[std::size_t(step)].kind == step_kind::send
                            ? start_messages<sending>(r, step)
                            : start_messages<receiving>(r, step);
        if (!ok) return false;
        continue;
      }
      if (local_bytes <= 0) break;
      step = take_local_step();
      if (step < 0) break;
      local_bytes -= work_locally(step);
    }
    return true;
  }

  /// A message has ended. `token`: without first_token.
  void complete(std::uint32_t token) {
    const auto index = static_cast<int>(token / max_in_flight);
    const unsigned bit = token % max_in_flight;
    bound_step& s = steps_[std::size_t(index)];
    const int direction = s.kind == step_kind::send ? sending : receiving;
    if (bound().hooks.unpack && direction == receiving) unpack(s, bit);
    ++free_[direction];
    retry_starved(direction);
    s.mask |= std::uint64_t{1} << bit;
    if (bit == s.done % max_in_flight) {
      count_done(s);
      publish(s, index);
    }
    if (s.next < s.total) put(work_, index);
  }

  /// Ranks with messages under way, ascending.
  std::vector<awaited_peer> awaited() const {
    std::vector<awaited_peer> peers;
    if (done()) return peers;
    const auto entry = [&](std::int32_t rank) -> awaited_peer& {
      auto found = std::lower_bound(
          peers.begin(), peers.end(), rank,
          [](const awaited_peer& p, std::int32_t wanted) { return p.rank < wanted; });
      if (found == peers.end() || found->rank != rank)
        found = peers.insert(found, awaited_peer{.rank = rank});
      return *found;
    };
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const bound_step& s = steps_[i];
      if (!railpass::is_message(s.kind)) continue;
      for (std::int64_t k = s.done; k < s.next; ++k) {
        if (s.mask >> (k % max_in_flight) & 1) continue;
        const std::int32_t peer =
            peer_of(schedule_->steps[i], std::int32_t(k / s.segments), schedule_->num_ranks);
        awaited_peer& p =
            entry(physical_rank(peer, bound().root, schedule_->num_ranks, bound().ranks));
        ++(s.kind == step_kind::send ? p.sends : p.receives);
      }
    }
    return peers;
  }

 private:
  static constexpr int sending = 0, receiving = 1;
  static constexpr int messages = 0, locals = 1;
  static constexpr unsigned max_in_flight = max_window;  // bits of a mask
  static constexpr std::int64_t cache_line = 64;
  static constexpr std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max();
  // Bytes of local work before the rail is polled, and before messages that became possible are
  // posted.
  static constexpr std::int64_t local_bytes_per_turn = 64 * 1024;
  static constexpr std::int64_t local_bytes_per_look = 8 * 1024;
  // Numbers of instances: larger than any; a wait until the step has published `ended`; no wait.
  // Sums of these and of real numbers of instances stay far from overflow.
  static constexpr std::int64_t ended = std::int64_t{1} << 62;
  static constexpr std::int64_t until_ended = -(std::int64_t{1} << 61);
  static constexpr std::int64_t without_waiting = std::int64_t{1} << 61;

  // Extents of the blocks in a buffer cut into `parts` parts; most steps of a schedule share a cut.
  struct cut {
    std::int32_t parts = 1;
    buffer of = buffer::output;
    std::int64_t part_units = 0;  // block k begins at k * part_units + min(k, longer_parts)
    std::int64_t longer_parts = 0;
    const extent* blocks = nullptr;  // if the parts are not equal

    std::int64_t begin(std::int64_t block) const {
      return blocks ? blocks[block].begin : block * part_units + std::min(block, longer_parts);
    }
    std::int64_t end(std::int64_t block) const {
      return blocks ? blocks[block].end : begin(block + 1);
    }
  };
  // Two cache lines, because memory limits schedules of many steps.
  struct alignas(cache_line) bound_step {
    std::int64_t begin = 0;  // units of instance `next`: [begin, min(begin + segment, end))
    std::int64_t round_end = 0;
    std::int64_t next = 0;   // instances started
    std::int64_t done = 0;   // instances done, without those after a gap
    std::uint64_t mask = 0;  // bit k mod 64: instance k >= done is done
    std::int64_t total = 0;
    std::int64_t segment = 0;  // of `next`, in its round
    std::int64_t segments = 1;
    std::int64_t from_distance = 0;  // reduce, copy: unit read for unit u: u + from_distance
    std::int32_t peer = 0;           // physical, of this round
    std::int32_t peer_stride = 0;
    std::int32_t block = 0;
    std::int32_t block_stride = 0;
    std::int32_t block_count = 1;
    std::int32_t from_block = 0;
    std::int32_t from_stride = 0;
    std::int32_t first_dependency = 0;
    std::int32_t num_dependencies = 0;
    std::int32_t first_successor = 0;
    std::int32_t num_successors = 0;
    std::uint16_t cut = 0;       // index into cuts_, of `to`
    std::uint16_t from_cut = 0;  // of `from`: reduce, copy
    step_kind kind = step_kind::send;
    buffer from = buffer::output;
    buffer to = buffer::output;
    std::uint8_t window = max_window;
    bool segmented = false;
    bool reads_elsewhere = false;  // from_distance is not always 0
    bool idle = false;             // a copy of memory onto itself
  };
  static_assert(sizeof(bound_step) == 2 * cache_line && max_window < 256);
  // An instance may start once published_[index] + offset is larger than its number.
  struct bound_dependency {
    std::int64_t offset = 0;
    std::size_t index = 0;
  };
  using bits = std::vector<std::uint64_t>;

  const binding& bound() const { return memory_.bound(); }
  static bool is_message(const step& s) { return railpass::is_message(s.kind); }

  // ---- binding ----

  // Whether this call repeats the last call, perhaps with other data of the same size. Then nearly
  // all preparations still hold.
  bool is_repetition(const schedule& s, const binding& b) const {
    const auto simple = [](const binding& x) {
      return !x.hooks.pack && x.size.blocks.empty() && x.input_blocks.empty() &&
             x.output_blocks.empty();
    };
    return s.serial != 0 && s.serial == bound_serial_ && b.size.units == bound().size.units &&
           b.size.unit_bytes == bound().size.unit_bytes &&
           (b.input == b.output) == (bound().input == bound().output) && simple(b) &&
           simple(bound());
  }
  void reset_steps() {
    const schedule& s = *schedule_;
    std::fill(published_.begin(), published_.end(), 0);
    std::copy(ready_.begin(), ready_.end(), work_.begin());
    turn_[messages] = turn_[locals] = 0;
    num_unfinished_ = static_cast<int>(steps_.size());
    for (std::size_t i = 0; i < steps_.size(); ++i) start_over(steps_[i], s.steps[i]);
  }
  // Resets the cursor, and values that depend on root and memory. If nodes give the order of ranks,
  // peers are virtual until a message is posted.
  void start_over(bound_step& to, const step& from) const {
    to.next = to.done = to.segment = 0;
    to.mask = 0;
    to.block = in_range(from.blocks.first, from.blocks.parts);
    to.peer = in_range(from.peer, schedule_->num_ranks);
    if (bound().ranks.empty()) to.peer = in_range(to.peer + bound().root, schedule_->num_ranks);
    if (!is_message(from)) to.from_block = in_range(from.from_first, from.blocks.parts);
    enter_round(to);
  }

  std::int32_t physical(std::int32_t peer) const {
    return bound().ranks.empty() ? peer : bound().ranks[peer];
  }

  // Prepares everything that depends on the schedule alone.
  void bind_structure() {
    const schedule& s = *schedule_;
    const std::size_t n = s.steps.size();
    steps_.resize(n);
    published_.resize(2 * n);
    dependencies_.resize(s.dependencies.size());
    const std::size_t words = (n + 63) / 64;
    work_.resize(words);
    local_.assign(words, 0);
    starved_[sending].resize(words);
    starved_[receiving].resize(words);
    cuts_.clear();
    for (std::size_t i = 0; i < n; ++i) {
      const step& from = s.steps[i];
      bound_step& to = steps_[i];
      const block_range& blocks = from.blocks;
      to.window = static_cast<std::uint8_t>(from.window);
      to.kind = from.kind;
      to.from = from.from;
      to.to = from.to;
      to.segmented = from.segmented;
      to.from_distance = 0;
      to.reads_elsewhere = to.idle = false;
      to.cut = index_of_cut(blocks.parts, from.to);
      if (!is_message(from)) {
        put(local_, static_cast<int>(i));
        to.from_stride = in_range(from.from_stride, blocks.parts);
        to.from_cut = index_of_cut(blocks.parts, from.from);
      }
      to.block_stride = in_range(blocks.stride, blocks.parts);
      to.block_count = blocks.count;
      to.peer_stride = in_range(from.peer_stride, s.num_ranks);
      to.first_dependency = from.first_dependency;
      to.num_dependencies = from.num_dependencies;
      to.first_successor = from.first_successor;
      to.num_successors = from.num_successors;
      for (std::int32_t d = 0; d < from.num_dependencies; ++d) {
        const dependency& wait = s.dependencies[std::size_t(from.first_dependency + d)];
        dependencies_[std::size_t(from.first_dependency + d)].index =
            2 * std::size_t(wait.step) + (wait.lag == dependency::posted ? 1 : 0);
      }
    }
  }

  // Prepares everything that depends on size, root and memory.
  void bind_size() {
    const schedule& s = *schedule_;
    const std::size_t n = s.steps.size();
    std::fill(published_.begin(), published_.end(), 0);
    std::fill(work_.begin(), work_.end(), 0);
    for (const int direction : {sending, receiving}) {
      std::fill(starved_[direction].begin(), starved_[direction].end(), 0);
      any_starved_[direction] = false;
    }
    turn_[messages] = turn_[locals] = 0;
    num_unfinished_ = static_cast<int>(n);

    for (cut& c : cuts_) {
      c.part_units = bound().size.units / c.parts;
      c.longer_parts = bound().size.units % c.parts;
      c.blocks = table_of(c.of, c.parts);
    }
    const std::int64_t segment_units = bound().size.segment_units(s.segment_bytes);
    segment_units_[0] = most_bytes;  // more than any block
    segment_units_[1] = segment_units;
    // Divisions are slow, and nearly all steps of a schedule have the same cut.
    std::int64_t longest = 0, longest_segments = 1;
    for (std::size_t i = 0; i < n; ++i) {
      const step& from = s.steps[i];
      bound_step& to = steps_[i];
      const cut& mine = cuts_[to.cut];
      if (!is_message(from)) {
        to.reads_elsewhere = from.from_first != from.blocks.first ||
                             (from.rounds > 1 && from.from_stride != from.blocks.stride) ||
                             cuts_[to.from_cut].blocks != mine.blocks;
        if (!to.reads_elsewhere) to.from_distance = 0;
        to.idle =
            from.kind == step_kind::copy && !to.reads_elsewhere && memory_.same(from.from, from.to);
      }
      to.segments = 1;
      if (from.segmented) {
        const std::int64_t count = from.blocks.count;
        const std::int64_t whole =
            mine.blocks ? longest_range(from.blocks.count, mine.parts, bound().size)
                        : count * mine.part_units + std::min(count, mine.longer_parts);
        if (whole != longest) {
          longest = whole;
          longest_segments = std::max<std::int64_t>(1, (whole + segment_units - 1) / segment_units);
        }
        to.segments = longest_segments;
      }
      to.total = from.rounds * to.segments;
      bool waits = false;
      for (std::int32_t d = 0; d < from.num_dependencies; ++d) {
        const dependency& wait = s.dependencies[std::size_t(from.first_dependency + d)];
        // instances_awaited() solved for the instance: with k instances of the other step done,
        // instances below k + lag * segments may start, and all instances once that step has ended.
        std::int64_t offset = wait.lag >= 0 ? wait.lag * to.segments : until_ended;
        if (wait.lag == dependency::in_turn)
          offset = is_large(steps_[std::size_t(wait.step)]) ? 0 : without_waiting;
        waits = waits || offset <= 0;
        dependencies_[std::size_t(from.first_dependency + d)].offset = offset;
      }
      if (!waits) put(work_, static_cast<int>(i));
      start_over(to, from);
    }
    ready_ = work_;
  }

  // Extents of the blocks of a buffer that are not equal parts of the message; null: equal parts.
  const extent* table_of(buffer b, std::int32_t parts) const {
    const std::span<const extent>& own = b == buffer::input    ? bound().input_blocks
                                         : b == buffer::output ? bound().output_blocks
                                                               : bound().size.blocks;
    const std::span<const extent>& blocks = own.empty() ? bound().size.blocks : own;
    return std::size_t(parts) == blocks.size() ? blocks.data() : nullptr;
  }

  // Index of a buffer's cut into `parts` parts, which is added if missing.
  std::uint16_t index_of_cut(std::int32_t parts, buffer of) {
    std::size_t i = 0;
    while (i < cuts_.size() && (cuts_[i].parts != parts || cuts_[i].of != of)) ++i;
    if (i == cuts_.size()) cuts_.push_back({.parts = parts, .of = of});
    return static_cast<std::uint16_t>(i);
  }

  static std::int32_t in_range(std::int32_t a, std::int32_t n) {
    if (a >= 0 && a < n) return a;
    if (a >= n && a < 2 * std::int64_t{n}) return a - n;
    return wrap(a, n);
  }

  // ---- cursors ----

  void enter_round(bound_step& s) const {
    const cut& c = cuts_[s.cut];
    s.begin = c.begin(s.block);
    s.round_end = c.end(s.block + s.block_count - 1);
    if (s.reads_elsewhere) [[unlikely]]
      s.from_distance = cuts_[s.from_cut].begin(s.from_block) - s.begin;
  }
  std::int64_t current_units(const bound_step& s) const {
    return std::min(segment_units_[s.segmented], s.round_end - s.begin);
  }
  // Whether the next instance of a send is a large message.
  bool is_large(const bound_step& s) const {
    return current_units(s) * bound().size.unit_bytes >= large_message_bytes;
  }
  void step_on(bound_step& s) const {
    if (++s.next == s.total) return;
    if (++s.segment < s.segments) {
      s.begin = std::min(s.begin + segment_units_[s.segmented], s.round_end);
      return;
    }
    s.segment = 0;
    const std::int32_t parts = cuts_[s.cut].parts;
    s.block += s.block_stride;
    if (s.block >= parts) s.block -= parts;
    s.peer += s.peer_stride;
    if (s.peer >= schedule_->num_ranks) s.peer -= schedule_->num_ranks;
    s.from_block += s.from_stride;
    if (s.from_block >= parts) s.from_block -= parts;
    enter_round(s);
  }

  // Instances below this number may start.
  std::int64_t limit(const bound_step& s) const {
    std::int64_t least = s.total;
    const bound_dependency* d = dependencies_.data() + s.first_dependency;
    for (const bound_dependency* end = d + s.num_dependencies; d != end; ++d)
      least = std::min(least, published_[d->index] + d->offset);
    return least;
  }

  // ---- which steps to look at ----

  static void put(bits& set, int index) {
    set[std::size_t(index) / 64] |= std::uint64_t{1} << (index % 64);
  }
  int take_message_step() {
    const int step = take_next(turn_[messages], 0, ~std::uint64_t{0});
    if (step >= 0) turn_[messages] = step + 1;
    return step;
  }
  int take_local_step() {
    const int step = take_next(turn_[locals], ~std::uint64_t{0}, 0);
    if (step >= 0) turn_[locals] = step + 1;
    return step;
  }
  // The first step with work, in cyclic order from step `turn`, among local steps (if_local all
  // ones) or messages (if_message all ones).
  int take_next(int turn, std::uint64_t if_local, std::uint64_t if_message) {
    const auto candidates = [&](std::size_t w) {
      return work_[w] & ((local_[w] & if_local) | (~local_[w] & if_message));
    };
    const std::size_t words = work_.size(), start = std::size_t(turn) / 64;
    if (words == 1) [[likely]] {
      const auto found = candidates(0);
      if (found == 0) return -1;
      const auto later = turn < 64 ? found & (~std::uint64_t{0} << turn) : 0;
      return take(0, later ? later : found);
    }
    if (start < words) {
      if (const auto found = candidates(start) & (~std::uint64_t{0} << (turn % 64)))
        return take(start, found);
      for (std::size_t w = start + 1; w < words; ++w)
        if (const auto found = candidates(w)) return take(w, found);
    }
    for (std::size_t w = 0; w < words && w <= start; ++w)
      if (const auto found = candidates(w)) return take(w, found);
    return -1;
  }
  bool other_messages_to_start() const {
    for (std::size_t w = 0; w < work_.size(); ++w)
      if (work_[w] & ~local_[w]) return true;
    return false;
  }
  int take(std::size_t word, std::uint64_t found) {
    work_[word] &= ~(found & (0 - found));
    return static_cast<int>(word * 64) + std::countr_zero(found);
  }
  void retry_starved(int direction) {
    if (!any_starved_[direction] || free_[direction] <= 0) return;
    any_starved_[direction] = false;
    for (std::size_t w = 0; w < work_.size(); ++w) {
      work_[w] |= starved_[direction][w];
      starved_[direction][w] = 0;
    }
  }

  // Publishes the step's progress to the steps that wait for it.
  void publish(const bound_step& s, int index) {
    std::int64_t* published = published_.data() + 2 * index;
    if (s.done == s.total) {
      published[0] = ended;
      --num_unfinished_;
    } else {
      published[0] = s.done;
    }
    if (s.next == s.total) published[1] = ended;
    const std::int32_t* successor = schedule_->successors.data() + s.first_successor;
    for (const std::int32_t* end = successor + s.num_successors; successor != end; ++successor)
      put(work_, *successor);
  }

  static void count_done(bound_step& s) {
    const auto from = static_cast<int>(s.done % max_in_flight);
    const int more = std::countr_one(std::rotr(s.mask, from));
    s.done += more;
    s.mask = more == 64 ? 0 : s.mask & ~std::rotl((std::uint64_t{1} << more) - 1, from);
  }

  // ---- doing it ----

  template <int direction, rail R>
  bool start_messages(R& r, int index) {
    bound_step& s = steps_[std::size_t(index)];
    const std::int64_t end = limit(s);
    const std::int64_t done_before = s.done, next_before = s.next;
    const std::int64_t unit_bytes = bound().size.unit_bytes;
    const std::byte* memory = memory_.message_memory(s.to);
    // Steps take turns with one message each, so that segments for several peers interleave.
    bool my_turn = true;
    const bool alone = !other_messages_to_start();
    while (s.next < end && s.next - s.done < s.window) {
      const std::int64_t units = current_units(s);
      bool ended_at_once = true;
      if (units > 0) {
        if (!my_turn) {
          put(work_, index);
          break;
        }
        my_turn = alone;
        // If the step has instances in flight, instance `done` is in flight.
        const bool has_one = s.next != s.done;
        if (free_[direction] <= 0 && has_one) {
          put(starved_[direction], index);
          any_starved_[direction] = true;
          break;
        }
        // Tried again when that message ends.
        if (direction == sending && s.next - s.done >= R::large_messages_at_once &&
            s.peer_stride == 0 && is_large(s))
          break;
        const auto bit = static_cast<unsigned>(s.next % max_in_flight);
        const rail_token token = first_token_ + std::uint64_t(index) * max_in_flight + bit;
        std::byte* bytes = displaced(memory, s.begin * unit_bytes);
        post_result posted;
        if constexpr (direction == sending) {
          if (bound().hooks.pack) {
            note(memory_.pack(s.from, s.begin, units));
            if (code_ != 0) return true;
          }
          posted = r.post_send(physical(s.peer), tag_, bytes, units * unit_bytes, token);
        } else {
          posted = r.post_receive(physical(s.peer), tag_, bytes, units * unit_bytes, token);
        }
        if (posted == post_result::failed) return false;
        ended_at_once = posted == post_result::done;
        if (!ended_at_once)
          --free_[direction];
        else if (direction == receiving && bound().hooks.unpack)
          note(memory_.unpack(s.to, s.begin, units));
      }
      if (ended_at_once) {
        if (s.next == s.done)
          ++s.done;
        else
          s.mask |= std::uint64_t{1} << (s.next % max_in_flight);
      }
      step_on(s);
    }
    if (s.mask != 0) count_done(s);
    if (s.done != done_before || (s.next != next_before && s.next == s.total)) publish(s, index);
    return true;
  }

  // Returns the number of bytes processed.
  std::int64_t work_locally(int index) {
    bound_step& s = steps_[std::size_t(index)];
    const std::int64_t end = limit(s);
    if (s.next >= end) return 0;
    std::int64_t bytes = 0;
    if (s.idle) {
      s.next = end;
    } else {
      do {
        const std::int64_t units = current_units(s);
        if (units > 0) {
          const std::int64_t source = s.begin + s.from_distance;
          note(s.kind == step_kind::reduce ? memory_.reduce(s.from, source, s.to, s.begin, units)
                                           : memory_.copy(s.from, source, s.to, s.begin, units));
          bytes += units * bound().size.unit_bytes;
        }
        step_on(s);
      } while (s.next < end && bytes < local_bytes_per_look);
      if (s.next < end) put(work_, index);
    }
    s.done = s.next;
    publish(s, index);
    return bytes;
  }

  void note(int code) {
    if (code_ == 0) code_ = code;
  }
  // Called when the receive with this bit in the mask has ended.
  void unpack(const bound_step& s, unsigned bit) {
    const std::int64_t instance = s.done + (bit - static_cast<unsigned>(s.done)) % max_in_flight;
    const auto index = static_cast<std::size_t>(&s - steps_.data());
    message_size size = bound().size;
    const cut& c = cuts_[s.cut];
    if (c.blocks) size.blocks = {c.blocks, std::size_t(c.parts)};
    const extent e = instance_extent(schedule_->steps[index], std::int32_t(instance / s.segments),
                                     instance % s.segments, segment_units_[s.segmented], size);
    note(memory_.unpack(s.to, e.begin, e.size()));
  }

  const schedule* schedule_ = nullptr;
  // The schedule for which everything below is prepared, with this or another binding.
  std::uint64_t bound_serial_ = 0, structure_serial_ = 0;
  bound_memory memory_;
  rail_token first_token_ = 0;
  std::int32_t tag_ = 0;
  windows windows_{};
  int free_[2] = {0, 0};
  bool any_starved_[2] = {false, false};
  int num_unfinished_ = 0;
  int code_ = 0;
  std::vector<bound_step> steps_;
  std::vector<cut> cuts_;
  std::int64_t segment_units_[2] = {};  // for unsegmented and for segmented steps
  std::vector<bound_dependency> dependencies_;
  std::vector<std::int64_t> published_;     // per step: instances done; `ended` once all are posted
  bits work_, ready_, local_, starved_[2];  // ready_: the work at the start
  int turn_[2] = {0, 0};                    // messages, locals: the step that is next in turn
};

}  // namespace railpass::internal
