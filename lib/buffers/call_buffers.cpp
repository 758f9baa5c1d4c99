// SPDX-License-Identifier: BSL-1.0
#include "lib/buffers/call_buffers.hpp"

#include "lib/buffers/elements.hpp"
#include "lib/exec/call_mark.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace railpass::internal {

namespace {

std::byte* bytes_of(const void* memory) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(memory));
}

std::int64_t distance_of(const void* to, const void* from) {  // see displaced
  return std::int64_t(reinterpret_cast<std::uintptr_t>(to) -
                      reinterpret_cast<std::uintptr_t>(from));
}

// The blocks of the message that a rank's buffer holds.
enum class holding { nothing, own_block, all_blocks };

holding input_of(const call& c, int rank) {
  switch (describe(c.op).what) {
    case promise::blocks_to_root:
    case promise::blocks_to_all:
      return holding::own_block;
    case promise::root_to_blocks:
      return rank == c.root ? holding::all_blocks : holding::nothing;
    default:
      return holding::all_blocks;
  }
}
holding output_of(const call& c, int rank) {
  switch (describe(c.op).what) {
    case promise::blocks_to_root:
      return rank == c.root ? holding::all_blocks : holding::nothing;
    case promise::root_to_blocks:
      return holding::own_block;
    default:
      return holding::all_blocks;
  }
}

// The elements of one side: one block, or the blocks of all physical ranks.
int blocks_of(const call_side& side, bool all, const calling_rank& at,
              std::vector<user_block>& blocks) {
  blocks.clear();
  datatype_layout layout;
  if (!side.types)
    if (const int failure = layout_of(side.type, at.datatype_key, layout)) return failure;
  if (!all) {
    blocks.push_back({bytes_of(side.memory), side.count, side.type, layout});
    return MPI_SUCCESS;
  }
  for (int i = 0; i < at.num_ranks; ++i) {
    user_block block{nullptr, side.counts ? side.counts[i] : side.count,
                     side.types ? side.types[i] : side.type, layout};
    if (side.types && block.count > 0)
      if (const int failure = layout_of(block.type, at.datatype_key, block.layout)) return failure;
    const std::int64_t distance = side.types           ? side.displacements[i]
                                  : side.displacements ? side.displacements[i] * layout.extent
                                                       : i * block.count * layout.extent;
    block.memory = displaced(bytes_of(side.memory), distance);
    blocks.push_back(block);
  }
  return MPI_SUCCESS;
}

int pack_block(const user_block& from, std::byte* to, MPI_Comm own) {
  return pack_elements(from.memory, from.count, from.type, from.layout.size, from.layout.extent, to,
                       own);
}
int unpack_block(const std::byte* from, const user_block& to, MPI_Comm own) {
  return unpack_elements(from, to.count, to.type, to.layout.size, to.layout.extent, to.memory, own);
}

}  // namespace

int element_operation::apply(void* self, const std::byte* left, std::byte* right,
                             std::int64_t units) {
  const auto& o = *static_cast<const element_operation*>(self);
  return in_portions(
      units, o.layout.size, o.layout.extent, [&](std::int64_t at, std::int64_t, int n, int) {
        return PMPI_Reduce_local(displaced(left, at), displaced(right, at), n, o.type, o.what);
      });
}
int element_operation::pack(void* self, const std::byte* memory, std::int64_t units,
                            std::byte* packed) {
  const auto& o = *static_cast<const element_operation*>(self);
  return pack_elements(memory, units, o.type, o.layout.size, o.layout.extent, packed, o.own);
}
int element_operation::unpack(void* self, const std::byte* packed, std::int64_t units,
                              std::byte* memory) {
  const auto& o = *static_cast<const element_operation*>(self);
  return unpack_elements(packed, units, o.type, o.layout.size, o.layout.extent, memory, o.own);
}

std::byte* call_buffers::staging(std::size_t which, std::int64_t bytes) {
  is_staged_ = true;
  staging_[which].borrow(bytes);
  return staging_[which].get();
}

int call_buffers::prepare(const call& c, const calling_rank& at, const schedule& s, int root,
                          const node_order* nodes, std::int64_t padded_bytes) {
  call_ = &c;
  at_ = at;
  nodes_ = nodes;
  unpack_output_ = is_staged_ = false;
  own_result_ = {};
  bound_ = {.root = root};
  if (nodes) bound_.ranks = nodes->ranks();
  padded_bytes_ = padded_bytes;
  if (padded_bytes > 0) return prepare_padded(padded_bytes);
  if (c.is_reduction()) return prepare_reduction();
  switch (describe(c.op).what) {
    case promise::root_to_all:
      return prepare_message();
    case promise::all_arrive:
      bound_.size = {.units = at.num_ranks, .unit_bytes = 1};
      arrivals_.resize(2 * std::size_t(at.num_ranks));
      bound_.input = arrivals_.data();
      bound_.output = arrivals_.data() + at.num_ranks;
      return MPI_SUCCESS;
    default:
      return prepare_blocks(s);
  }
}

std::optional<call_buffers::as_they_are> call_buffers::bound_directly() const {
  const bool has_tables =
      !bound_.size.blocks.empty() || !bound_.input_blocks.empty() || !bound_.output_blocks.empty();
  if (is_staged_ || has_tables) return std::nullopt;
  return as_they_are{.bound = bound_,
                     .operation = operation_,
                     .sent = call_->send.memory,
                     .received = call_->receive.memory};
}

void call_buffers::prepare_again(const call& c, const as_they_are& known) {
  call_ = &c;
  nodes_ = nullptr;
  padded_bytes_ = 0;
  unpack_output_ = is_staged_ = false;
  own_result_ = {};
  bound_ = known.bound;
  operation_ = known.operation;
  const std::int64_t sent = distance_of(c.send.memory, known.sent);
  const std::int64_t received = distance_of(c.receive.memory, known.received);
  if (bound_.input) bound_.input = displaced(bound_.input, c.send.in_place() ? received : sent);
  if (bound_.output)
    bound_.output = displaced(bound_.output, c.receive.in_place() ? sent : received);
}

int call_buffers::prepare_message() {
  const call& c = *call_;
  if (const int failure = blocks_of(c.receive, false, at_, blocks_[output])) return failure;
  const user_block& message = blocks_[output][0];
  bound_.size = {.units = message.bytes(), .unit_bytes = 1};
  bound_.output = message.memory;
  if (message.layout.packed) return MPI_SUCCESS;
  bound_.output = staging(output, message.bytes());
  unpack_output_ = at_.rank != c.root;
  dense_.assign(1, {0, message.bytes()});
  return unpack_output_ ? MPI_SUCCESS : pack_block(message, bound_.output, at_.own);
}

int call_buffers::prepare_reduction() {
  const call& c = *call_;
  operation_.type = c.receive.type;
  operation_.what = c.operation;
  operation_.own = at_.own;
  datatype_layout& layout = operation_.layout;
  if (const int failure = layout_of(c.receive.type, at_.datatype_key, layout)) return failure;
  bound_.hooks = {.user_data = &operation_, .reduce = element_operation::apply};
  if (!layout.packed) {
    bound_.hooks.pack = element_operation::pack;
    bound_.hooks.unpack = element_operation::unpack;
    bound_.layout = {.extent_bytes = layout.extent,
                     .true_lower_bound_bytes = layout.true_lower_bound,
                     .true_extent_bytes = layout.true_extent};
  }
  const promise what = describe(c.op).what;
  bound_.size = {.units = c.receive.count, .unit_bytes = layout.size};
  extent mine{0, c.receive.count};
  if (what == promise::reduce_to_blocks) {
    if (c.receive.counts) {
      common_.clear();
      std::int64_t end = 0;
      for (int i = 0; i < at_.num_ranks; ++i) {
        common_.push_back({end, end + c.receive.counts[i]});
        end = common_.back().end;
      }
      bound_.size.units = end;
      bound_.size.blocks = common_;
    } else {
      bound_.size.units = std::int64_t{c.receive.count} * at_.num_ranks;
    }
    mine = blocks_extent(at_.rank, 1, at_.num_ranks, bound_.size);
  }
  bound_.input = bytes_of(c.send.in_place() ? c.receive.memory : c.send.memory);
  bound_.output = bytes_of(c.receive.memory);
  // Memory of railpass with the layout of the user's memory.
  const auto own_elements = [&](std::int64_t n) {
    const std::int64_t bytes = n == 0 ? 0 : (n - 1) * layout.extent + layout.true_extent;
    return displaced(staging(output, bytes), -layout.true_lower_bound);
  };
  if (what == promise::reduce_to_root && at_.rank != c.root) {
    // In rank order the result comes to rank 0 first, which is not the root here.
    bound_.output = at_.rank == 0 && bound_.root == 0 ? own_elements(bound_.size.units) : nullptr;
  }
  if (what == promise::reduce_to_blocks) {
    if (c.send.in_place()) {
      bound_.output = own_elements(mine.size());
      own_result_ = {bound_.output, mine.size(), operation_.type, layout};
      if (!layout.packed) staging(input, own_result_.bytes());  // for finish
    }
    bound_.output =
        displaced(bound_.output, -mine.begin * (layout.packed ? layout.size : layout.extent));
  }
  return MPI_SUCCESS;
}

int call_buffers::prepare_blocks(const schedule& s) {
  const call& c = *call_;
  const int p = at_.num_ranks;
  bound_.size = {.units = c.message_bytes, .unit_bytes = 1};
  if (describe(c.op).lengths == block_lengths::known) {
    datatype_layout layout;
    if (const int failure = layout_of(c.receive.type, at_.datatype_key, layout)) return failure;
    common_.clear();
    std::int64_t end = 0;
    for (int i = 0; i < p; ++i) {
      const std::int64_t count = c.receive.counts[physical_rank(i, bound_.root, p, bound_.ranks)];
      common_.push_back({end, end + count * layout.size});
      end = common_.back().end;
    }
    bound_.size.blocks = common_;
  } else if (describe(c.op).lengths == block_lengths::of_pair) {
    bound_.size.units = 1;  // there may be data; the tables have the lengths
  }

  bound_side &in = sides_[input], &out = sides_[output];
  in = out = {};
  if (output_of(c, at_.rank) != holding::nothing && !c.receive.in_place())
    if (const int failure = bind_output(s)) return failure;
  const bool transposes = describe(c.op).what == promise::blocks_to_blocks;
  if (c.send.in_place() && !transposes) {
    in = out;
    // The data for other ranks is in the output, in the rank's own block.
    if (out.staged)
      if (const int failure =
              pack_block(blocks_[output][std::size_t(at_.rank)],
                         out.memory + dense_[std::size_t(virtual_rank())].begin, at_.own))
        return failure;
  } else if (input_of(c, at_.rank) != holding::nothing) {
    // An exchange in place reads its input from a copy.
    const call_side& side = c.send.in_place() ? c.receive : c.send;
    if (const int failure = bind_input(s, side, c.send.in_place())) return failure;
  }
  if (c.receive.in_place()) out = in;
  bound_.input = in.memory;
  bound_.output = out.memory;
  bound_.input_blocks = in.table;
  bound_.output_blocks = out.table;
  return MPI_SUCCESS;
}

int call_buffers::bind_output(const schedule& s) {
  const bool all = output_of(*call_, at_.rank) == holding::all_blocks;
  if (const int failure = bind_side(output, call_->receive, all, false, s)) return failure;
  unpack_output_ = sides_[output].staged;
  return MPI_SUCCESS;
}

int call_buffers::bind_input(const schedule& s, const call_side& user, bool copy) {
  const bool all = input_of(*call_, at_.rank) == holding::all_blocks;
  std::vector<extent> dense_output;
  dense_output.swap(dense_);  // of the output, for finish
  if (const int failure = bind_side(input, user, all, copy, s)) return failure;
  dense_.swap(dense_output);
  if (!sides_[input].staged) return MPI_SUCCESS;
  for (std::size_t i = 0; i < blocks_[input].size(); ++i) {
    const std::size_t k = all ? std::size_t(virtual_rank(int(i))) : 0;
    if (const int failure =
            pack_block(blocks_[input][i], staging_[input].get() + dense_output[k].begin, at_.own))
      return failure;
  }
  return MPI_SUCCESS;
}

// Stores in dense_ the extents of the blocks in a packed copy.
int call_buffers::bind_side(std::size_t which, const call_side& user, bool all, bool copy,
                            const schedule& s) {
  const bool of_pair = describe(call_->op).lengths == block_lengths::of_pair;
  const bool equal = describe(call_->op).lengths == block_lengths::equal;
  const auto p = std::size_t(at_.num_ranks);
  bound_side& side = sides_[which];
  std::vector<user_block>& blocks = blocks_[which];
  std::vector<extent>& table = tables_[which];
  dense_.clear();
  if (!all) {
    if (const int failure = blocks_of(user, false, at_, blocks)) return failure;
    const user_block& own = blocks[0];
    dense_.push_back({0, own.bytes()});
    side.staged = !own.is_packed();
    side.memory = side.staged ? staging(which, own.bytes()) : own.memory;
    if (of_pair) {
      table.assign(p, {0, 0});
      table[std::size_t(virtual_rank())] = {0, own.bytes()};
      side.table = table;
    } else {
      side.memory = displaced(side.memory,
                              -blocks_extent(virtual_rank(), 1, at_.num_ranks, bound_.size).begin);
    }
    return MPI_SUCCESS;
  }
  if (equal && !copy && bound_.root == 0 &&
      (!nodes_ || nodes_->facts().in_rank_order)) {  // the usual case ends early
    datatype_layout layout;
    if (const int failure = layout_of(user.type, at_.datatype_key, layout)) return failure;
    if (layout.packed) {
      side.memory = bytes_of(user.memory);
      return MPI_SUCCESS;
    }
  }
  if (const int failure = blocks_of(user, true, at_, blocks)) return failure;
  bool packed = !copy, dense = true;
  std::int64_t end = 0;
  table.clear();
  for (std::size_t k = 0; k < p; ++k) {
    const user_block& block =
        blocks[std::size_t(physical_rank(int(k), bound_.root, int(p), bound_.ranks))];
    dense_.push_back({end, end + block.bytes()});
    end = dense_.back().end;
    const std::int64_t begin = block.bytes() > 0 ? distance_of(block.memory, user.memory) : 0;
    table.push_back({begin, begin + block.bytes()});
    packed = packed && block.is_packed();
    dense = dense && (block.bytes() == 0 || table.back() == dense_.back());
  }
  const buffer named = which == input ? buffer::input : buffer::output;
  side.staged = !packed || (!dense && spans_blocks(s, named));
  side.memory = side.staged ? staging(which, end) : bytes_of(user.memory);
  if (side.staged || dense) table = dense_;
  if (of_pair || (!side.staged && !dense)) side.table = table;
  return MPI_SUCCESS;
}

int call_buffers::prepare_padded(std::int64_t padded_bytes) {
  bound_.size = {.units = padded_bytes * at_.num_ranks, .unit_bytes = 1};
  std::byte* const sent = staging(input, bound_.size.units);
  bound_.input = sent;
  bound_.output = staging(output, bound_.size.units);
  if (const int failure = blocks_of(call_->receive, true, at_, blocks_[output])) return failure;
  if (const int failure = blocks_of(call_->send, true, at_, blocks_[input])) return failure;
  for (int i = 0; i < at_.num_ranks; ++i) {
    const user_block& block = blocks_[input][std::size_t(i)];
    std::byte* const to = sent + padded_bytes * virtual_rank(i);
    const std::int64_t bytes = block.bytes();
    std::memcpy(to, &bytes, sizeof bytes);
    if (const int failure = pack_block(block, to + sizeof bytes, at_.own)) return failure;
  }
  return MPI_SUCCESS;
}

int call_buffers::unpack_padded() {
  for (int i = 0; i < at_.num_ranks; ++i) {
    user_block block = blocks_[output][std::size_t(i)];
    const std::byte* const from = bound_.output + padded_bytes_ * virtual_rank(i);
    std::int64_t bytes = 0;
    std::memcpy(&bytes, from, sizeof bytes);
    if (bytes > block.bytes())
      throw unlike_calls("rank " + std::to_string(i) + " gives " + std::to_string(bytes) +
                         " bytes where this rank has room for " + std::to_string(block.bytes()));
    // A block of fewer elements than expected leaves the rest of the memory as it is.
    if (bytes < block.bytes()) block.count = bytes / block.layout.size;
    if (const int failure = unpack_block(from + sizeof bytes, block, at_.own)) return failure;
  }
  return MPI_SUCCESS;
}

int call_buffers::finish() {
  if (!is_staged_) return MPI_SUCCESS;
  struct at_end {
    scratch_memory (&copies)[2];
    ~at_end() {
      for (scratch_memory& copy : copies) copy.give_back();
    }
  } const gives_back{staging_};
  return unpack();
}

int call_buffers::unpack() {
  if (padded_bytes_ > 0) return unpack_padded();
  if (own_result_.memory) {
    user_block to = own_result_;
    to.memory = bytes_of(call_->receive.memory);
    if (to.layout.packed) {
      if (to.count > 0) std::memcpy(to.memory, own_result_.memory, std::size_t(to.bytes()));
      return MPI_SUCCESS;
    }
    std::byte* const packed = staging(input, to.bytes());
    if (const int failure = pack_block(own_result_, packed, at_.own)) return failure;
    return unpack_block(packed, to, at_.own);
  }
  if (!unpack_output_) return MPI_SUCCESS;
  const bool all = blocks_[output].size() > 1;
  for (std::size_t i = 0; i < blocks_[output].size(); ++i) {
    const std::size_t k = all ? std::size_t(virtual_rank(int(i))) : 0;
    if (const int failure =
            unpack_block(staging_[output].get() + dense_[k].begin, blocks_[output][i], at_.own))
      return failure;
  }
  return MPI_SUCCESS;
}

int result_blocks(const call& c, const calling_rank& at, bool before,
                  std::vector<user_block>& blocks) {
  blocks.clear();
  const promise what = describe(c.op).what;
  if (what == promise::all_arrive || c.receive.in_place()) return MPI_SUCCESS;
  if (c.is_reduction()) {
    if ((what == promise::reduce_to_root && at.rank != c.root) ||
        (what == promise::prefix_before && at.rank == 0))
      return MPI_SUCCESS;
    call_side own = c.receive;
    if (c.receive.counts) own.count = c.receive.counts[at.rank];
    if (const int failure = blocks_of(own, false, at, blocks)) return failure;
    if (what != promise::reduce_to_blocks || !before) return MPI_SUCCESS;
    blocks[0].count = c.element_bytes > 0 ? c.message_bytes / c.element_bytes : 0;
    return MPI_SUCCESS;
  }
  if (what == promise::root_to_all) return blocks_of(c.receive, false, at, blocks);
  const holding held = output_of(c, at.rank);
  if (held == holding::nothing) return MPI_SUCCESS;
  return blocks_of(c.receive, held == holding::all_blocks, at, blocks);
}

int sent_blocks(const call& c, const calling_rank& at, std::vector<user_block>& blocks) {
  blocks.clear();
  const promise what = describe(c.op).what;
  if (what == promise::all_arrive || (what == promise::root_to_all && at.rank != c.root))
    return MPI_SUCCESS;
  if (what == promise::root_to_all) return blocks_of(c.receive, false, at, blocks);
  if (c.is_reduction()) {
    call_side all = c.receive;
    if (!c.send.in_place()) all.memory = c.send.memory;
    all.counts = nullptr;
    if (const int failure = blocks_of(all, false, at, blocks)) return failure;
    blocks[0].count = c.message_bytes / c.element_bytes;
    return MPI_SUCCESS;
  }
  const holding held = input_of(c, at.rank);
  if (held == holding::nothing) return MPI_SUCCESS;
  if (!c.send.in_place()) return blocks_of(c.send, held == holding::all_blocks, at, blocks);
  if (const int failure = blocks_of(c.receive, true, at, blocks)) return failure;
  if (held == holding::own_block) blocks = {blocks[std::size_t(at.rank)]};
  return MPI_SUCCESS;
}

std::size_t packed_bytes(const std::vector<user_block>& blocks) {
  std::int64_t bytes = 0;
  for (const user_block& b : blocks) bytes += b.bytes();
  return std::size_t(bytes);
}

int pack_blocks(const std::vector<user_block>& blocks, std::vector<std::byte>& packed,
                MPI_Comm own) {
  packed.resize(packed_bytes(blocks));
  std::byte* to = packed.data();
  for (const user_block& b : blocks) {
    if (const int failure = pack_block(b, to, own)) return failure;
    to += b.bytes();
  }
  return MPI_SUCCESS;
}

int unpack_blocks(const std::vector<std::byte>& packed, const std::vector<user_block>& blocks,
                  MPI_Comm own) {
  const std::byte* from = packed.data();
  for (const user_block& b : blocks) {
    if (const int failure = unpack_block(from, b, own)) return failure;
    from += b.bytes();
  }
  return MPI_SUCCESS;
}

}  // namespace railpass::internal
