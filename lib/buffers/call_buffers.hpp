// SPDX-License-Identifier: BSL-1.0
//
// Converts the arguments of a call to the executor's input, and results back.
#pragma once

#include "lib/call/call.hpp"
#include "lib/call/datatype.hpp"
#include "lib/exec/binding.hpp"
#include "lib/exec/scratch.hpp"
#include "railpass/schedule/nodes.hpp"

#include <optional>
#include <span>
#include <vector>

namespace railpass::internal {

/// Consecutive elements of the user: a block of a message, or the whole message.
struct user_block {
  std::byte* memory = nullptr;
  std::int64_t count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  datatype_layout layout{};
  std::int64_t bytes() const { return count * layout.size; }
  /// Whether memory is in packed form. True for blocks without bytes, whatever their datatype.
  bool is_packed() const { return bytes() == 0 || layout.packed; }
};

/// The rank that makes a call.
struct calling_rank {
  int rank = 0;  ///< physical
  int num_ranks = 1;
  int datatype_key = 0;          ///< see layout_of
  MPI_Comm own = MPI_COMM_NULL;  ///< a communicator of railpass, whose errors are returned
};

/// The parts of the user's memory that hold the result of a call on this rank, by MPI's rules.
/// `before`: the parts that a call in place reads and may overwrite. Returns an MPI error code.
int result_blocks(const call& c, const calling_rank& at, bool before,
                  std::vector<user_block>& blocks);

/// The parts of the user's memory that this rank's call sends, by MPI's rules. Returns an MPI error
/// code.
int sent_blocks(const call& c, const calling_rank& at, std::vector<user_block>& blocks);

std::size_t packed_bytes(const std::vector<user_block>& blocks);
/// Convert to and from the wire format. Return an MPI error code. `own`: see calling_rank.
int pack_blocks(const std::vector<user_block>& blocks, std::vector<std::byte>& packed,
                MPI_Comm own);
int unpack_blocks(const std::vector<std::byte>& packed, const std::vector<user_block>& blocks,
                  MPI_Comm own);

/// Tells the executor how to reduce elements.
struct element_operation {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op what = MPI_OP_NULL;
  datatype_layout layout{};
  MPI_Comm own = MPI_COMM_NULL;  ///< see calling_rank
  static int apply(void* self, const std::byte* left, std::byte* right, std::int64_t units);
  static int pack(void* self, const std::byte* memory, std::int64_t units, std::byte* packed);
  static int unpack(void* self, const std::byte* packed, std::int64_t units, std::byte* memory);
};

/// Binds the buffers of a call: directly if memory is the wire format and the schedule can use the
/// blocks in place; otherwise through packed copies (datatypes with holes, wrapped blocks of a
/// root, displacements). Other ranks may lay out the same data differently, so nothing here chooses
/// an arm. Keeps its tables from call to call; packed copies are scratch memory of the thread.
class call_buffers {
 public:
  /// Binds the call's buffers for a schedule whose virtual rank 0 is the physical rank `root`, and
  /// packs the sent data. `nodes`: the order of virtual ranks; null: rank order starting at the
  /// root. `padded_bytes`, if not 0: for a schedule of equal blocks that serves an all_to_allv or
  /// all_to_allw, the length of each, see padded_bytes(). All arguments must live until finish().
  /// Returns an MPI error code.
  int prepare(const call& c, const calling_rank& at, const schedule& s, int root,
              const node_order* nodes = nullptr, std::int64_t padded_bytes = 0);
  /// The length of blocks that have room for `longest` bytes and for the length of the data.
  static std::int64_t padded_bytes(std::int64_t longest) {
    return longest + std::int64_t(sizeof(std::int64_t));
  }
  /// Marks the last prepared call, by arm number `arm`, with the values that must agree between
  /// ranks.
  void mark(std::uint64_t arm) { bound_.mark = call_mark(call_->message_bytes, call_->root, arm); }
  /// The binding of the last prepared call.
  const binding& bound() const { return bound_; }

  /// A call whose buffers were bound directly, without tables of blocks.
  struct as_they_are {
    binding bound{};
    element_operation operation{};
    const void *sent = nullptr, *received = nullptr;
    /// Whether the call has the same buffers.
    bool are_of(const call& c) const {
      return c.send.memory == sent && c.receive.memory == received;
    }
  };
  /// The last prepared call, if it was bound directly.
  std::optional<as_they_are> bound_directly() const;
  /// Like prepare(), for a call with the same arguments, but perhaps different buffers. `known`
  /// must live until finish().
  void prepare_again(const call& c, const as_they_are& known);

  /// Unpacks received data after the schedule has run, and gives back the packed copies. Returns an
  /// MPI error code. Throws unlike_calls if a padded block has more data than this rank has room
  /// for. After a failed schedule, whose messages may still be under way, call nothing, and
  /// prepare no further call.
  int finish();

 private:
  // For a call with blocks.
  struct bound_side {
    std::byte* memory = nullptr;
    std::span<const extent> table;
    bool staged = false;  // a packed copy
  };
  static constexpr std::size_t input = 0, output = 1;

  int prepare_reduction();
  int prepare_message();
  int prepare_blocks(const schedule& s);
  int bind_output(const schedule& s);
  int bind_input(const schedule& s, const call_side& user, bool copy);
  // Blocks of equal length that begin with the length of their data.
  int prepare_padded(std::int64_t padded_bytes);
  int unpack();
  int unpack_padded();
  int bind_side(std::size_t which, const call_side& user, bool all, bool copy, const schedule& s);
  std::byte* staging(std::size_t which, std::int64_t bytes);
  std::int32_t virtual_rank(int physical) const {
    return nodes_ ? nodes_->ranks().virtual_rank(physical)
                  : wrap(std::int64_t{physical} - bound_.root, at_.num_ranks);
  }
  std::int32_t virtual_rank() const { return virtual_rank(at_.rank); }

  const call* call_ = nullptr;
  calling_rank at_{};
  const node_order* nodes_ = nullptr;
  binding bound_{};
  element_operation operation_{};
  bound_side sides_[2];                // of input and output
  std::vector<extent> common_;         // blocks of all ranks
  std::vector<extent> tables_[2];      // of all ranks, by virtual rank
  std::vector<extent> dense_;          // of a packed output, by virtual rank
  std::vector<user_block> blocks_[2];  // by physical rank, or only this rank's block
  scratch_memory staging_[2];
  bool is_staged_ = false;           // staging_ is in use
  std::vector<std::byte> arrivals_;  // a byte per rank; also the result of a barrier
  bool unpack_output_ = false;
  std::int64_t padded_bytes_ = 0;  // 0: blocks are not padded
  user_block own_result_{};        // of a reduce_scatter in place
};

}  // namespace railpass::internal
