// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/workload.hpp"

#include "collectives/collective.hpp"
#include "railpass/base/error.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace railpass::internal::measure {

namespace {

constexpr unsigned char spoilt = 0xAA;

constexpr unsigned char byte_of(int from, int to, std::int64_t i) {
  return static_cast<unsigned char>(i * 131 + (i >> 8) * 17 + from * 29 + to * 53 + 7);
}

// Small whole numbers: their sums are exact in every order.
constexpr std::int64_t summand(std::int64_t element, int rank) { return element % 13 + rank % 5; }

}  // namespace

std::int64_t whole_message_bytes(collective op, std::int64_t bytes, int num_ranks) {
  const collective_traits& d = describe(op);
  if (d.what == promise::all_arrive) return num_ranks;
  // A rank may receive up to three times its sent bytes.
  constexpr std::int64_t most_bytes = std::numeric_limits<int>::max() / 3;
  if (d.what == promise::blocks_to_blocks && d.lengths == block_lengths::of_pair &&
      bytes > most_bytes)
    throw error("expected at most " + std::to_string(most_bytes) + " for " + std::string(d.name));
  const bool equal_blocks = traits_of(op).blocks && d.lengths == block_lengths::equal;
  for (;;) {  // the element size follows from the length
    const std::int64_t whole = unit_bytes_of(op, bytes) * (equal_blocks ? num_ranks : 1);
    if (bytes % whole == 0) return bytes;
    bytes += whole - bytes % whole;
  }
}

workload::workload(const job& j, collective op, std::int64_t bytes, int root, double empty)
    : rank_(j.rank),
      num_ranks_(j.num_ranks),
      op_(op),
      root_(traits_of(op).rooted ? root : 0),
      unit_bytes_(unit_bytes_of(op, bytes)),
      units_(bytes / unit_bytes_),
      empty_(empty),
      types_(std::size_t(j.num_ranks), MPI_BYTE) {
  const promise_traits traits = traits_of(op);
  const promise what = describe(op).what;
  call_.op = op;
  call_.root = root_;
  if (what == promise::all_arrive) return;
  // A further byte, so that no buffer is null.
  const auto bytes_of = [](const std::vector<block>& blocks) {
    return std::size_t(
        blocks.empty() ? 1 : blocks.back().offset_bytes + blocks.back().length_bytes + 1);
  };
  in_.resize(traits.reduces ? std::size_t(bytes) + 1 : bytes_of(sent()));
  out_.resize(traits.reduces ? std::size_t(bytes) + 1 : bytes_of(received()));
  call_.send.memory = in_.data();
  call_.receive.memory = out_.data();
  if (traits.reduces) {
    call_.operation = MPI_SUM;
    call_.receive.type = type();
    call_.receive.count = int(traits.blocks ? length_units(0, rank_) : units_);
    if (describe(op).lengths == block_lengths::known) {
      for (int k = 0; k < num_ranks_; ++k) receive_counts_.push_back(int(length_units(0, k)));
      call_.receive.counts = receive_counts_.data();
    }
  } else {
    const bool scatters = what == promise::root_to_blocks,
               all_to_all = what == promise::blocks_to_blocks;
    describe_side(call_.send, send_counts_, send_displacements_, sent(), scatters || all_to_all);
    describe_side(call_.receive, receive_counts_, receive_displacements_, received(),
                  traits.blocks && !scatters);
  }
  prepare();
}

bool workload::is_empty(int from, int to) const {
  constexpr double range = 1 << 16;
  const std::uint32_t mixed = (std::uint32_t(from) * 40503U + std::uint32_t(to)) * 2654435769U;
  return (mixed >> 16) < empty_ * range;
}

// Of the blocks before that for rank `to`. Weights 1, 2, 3, 1, 2, 3, ..., or 0; in an all_to_all,
// each rank starts at another weight.
std::int64_t workload::weight_before(int from, int to) const {
  const int row = describe(op_).what == promise::blocks_to_blocks ? from : 0;
  int i = empty_ > 0 ? 0 : to / 3 * 3;
  std::int64_t sum = 2 * i;
  for (; i < to; ++i)
    if (!is_empty(row, i)) sum += 1 + (row + i) % 3;
  return sum;
}

// Start of rank `to`'s block in rank `from`'s message.
std::int64_t workload::begin_units(int from, int to) const {
  if (!traits_of(op_).blocks) return to == 0 ? 0 : units_;
  if (describe(op_).lengths == block_lengths::equal) return units_ / num_ranks_ * to;
  const std::int64_t all = weight_before(from, num_ranks_);
  return all == 0 ? 0 : units_ * weight_before(from, to) / all;
}

std::vector<workload::block> workload::sent() const {
  const promise what = describe(op_).what;
  std::vector<block> blocks;
  std::int64_t offset = 0;
  const auto add = [&](int from, int to, int measured_by) {
    const std::int64_t length = length_units(from, measured_by) * unit_bytes_;
    blocks.push_back({from, to, offset, length});
    offset += length;
  };
  // The buffer of a broadcast is the receive side; a barrier has no buffer.
  if (what == promise::root_to_all || what == promise::all_arrive) return blocks;
  if (what == promise::blocks_to_blocks || (what == promise::root_to_blocks && rank_ == root_))
    for (int k = 0; k < num_ranks_; ++k) add(rank_, k, k);
  else if (what != promise::root_to_blocks)
    add(rank_, 0, rank_);
  return blocks;
}

std::vector<workload::block> workload::received() const {
  const promise what = describe(op_).what;
  std::vector<block> blocks;
  std::int64_t offset = 0;
  const auto add = [&](int from, int to, int row, int column) {
    const std::int64_t length = length_units(row, column) * unit_bytes_;
    blocks.push_back({from, to, offset, length});
    offset += length;
  };
  if (what == promise::root_to_all)
    add(root_, 0, 0, 0);
  else if (what == promise::root_to_blocks)
    add(root_, rank_, root_, rank_);
  else if (what == promise::blocks_to_blocks)
    for (int k = 0; k < num_ranks_; ++k) add(k, rank_, k, rank_);
  else if (what == promise::blocks_to_all || (what == promise::blocks_to_root && rank_ == root_))
    for (int k = 0; k < num_ranks_; ++k) add(k, 0, 0, k);
  return blocks;
}

// Describes one block, or the blocks of all ranks in order.
void workload::describe_side(call_side& side, std::vector<int>& counts,
                             std::vector<int>& displacements, const std::vector<block>& blocks,
                             bool all) const {
  side.type = type();
  if (describe(op_).lengths == block_lengths::equal || !all) {
    // The counts of all blocks are used even without memory for the blocks.
    side.count = int(blocks.empty() ? length_units(0, 0) : blocks[0].length_bytes);
    return;
  }
  for (const block& b : blocks) {
    counts.push_back(int(b.length_bytes));
    displacements.push_back(int(b.offset_bytes));
  }
  side.counts = counts.data();
  side.displacements = displacements.data();
  if (op_ == collective::all_to_allw) side.types = types_.data();
}

MPI_Datatype workload::type() const {
  if (!traits_of(op_).reduces) return MPI_BYTE;
  return unit_bytes_ == 8 ? MPI_DOUBLE : unit_bytes_ == 4 ? MPI_FLOAT : MPI_UNSIGNED_CHAR;
}

template <class F>
void workload::with_elements(F&& f) const {
  if (unit_bytes_ == 8)
    f(double{});
  else if (unit_bytes_ == 4)
    f(float{});
  else
    f(static_cast<unsigned char>(0));
}

// The elements of a reduction's result that this rank has.
std::int64_t workload::first_element() const {
  return traits_of(op_).blocks ? begin_units(0, rank_) : 0;
}
std::int64_t workload::num_elements() const {
  if (traits_of(op_).blocks) return length_units(0, rank_);
  const promise what = describe(op_).what;
  const bool nothing = (what == promise::reduce_to_root && rank_ != root_) ||
                       (what == promise::prefix_before && rank_ == 0);
  return nothing ? 0 : units_;
}
// The number of ranks that contribute to the result, and the sum of their contributions.
std::pair<std::int64_t, std::int64_t> workload::summands() const {
  const promise what = describe(op_).what;
  const int end = what == promise::prefix          ? rank_ + 1
                  : what == promise::prefix_before ? rank_
                                                   : num_ranks_;
  std::int64_t sum = 0;
  for (int r = 0; r < end; ++r) sum += summand(0, r);
  return {end, sum};
}

void workload::prepare() {
  std::fill(out_.begin(), out_.end(), spoilt);
  if (traits_of(op_).reduces)
    return with_elements([&](auto zero) {
      auto* const in = reinterpret_cast<decltype(zero)*>(in_.data());
      for (std::int64_t i = 0; i < units_; ++i) in[i] = decltype(zero)(summand(i, rank_));
    });
  const auto write = [](std::vector<unsigned char>& memory, const block& b) {
    for (std::int64_t i = 0; i < b.length_bytes; ++i)
      memory[std::size_t(b.offset_bytes + i)] = byte_of(b.from, b.to, i);
  };
  for (const block& b : sent()) write(in_, b);
  if (describe(op_).what == promise::root_to_all && rank_ == root_) write(out_, received()[0]);
}

bool workload::is_right() const {
  bool right = true;
  if (traits_of(op_).reduces) {
    const auto [ranks, sum] = summands();
    with_elements([&, ranks = ranks, sum = sum](auto zero) {
      const auto* const out = reinterpret_cast<const decltype(zero)*>(out_.data());
      for (std::int64_t i = 0; i < num_elements(); ++i)
        right = right && out[i] == decltype(zero)(ranks * summand(first_element() + i, 0) + sum);
    });
    return right;
  }
  for (const block& b : received())
    for (std::int64_t i = 0; i < b.length_bytes; ++i)
      right = right && out_[std::size_t(b.offset_bytes + i)] == byte_of(b.from, b.to, i);
  return right;
}

call workload::made_on(MPI_Comm comm) const {
  call c = call_;
  c.comm = comm;
  return c;
}

}  // namespace railpass::internal::measure
