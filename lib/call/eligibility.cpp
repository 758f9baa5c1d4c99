// SPDX-License-Identifier: BSL-1.0
#include "lib/call/eligibility.hpp"

#include "lib/call/datatype.hpp"
#include "lib/call/is_mpich.hpp"
#include "lib/exec/binding.hpp"

#include <algorithm>
#include <initializer_list>

namespace railpass::internal {

namespace {

// The product of non-negative numbers; negative if a factor is negative or the product too large.
std::int64_t times(std::int64_t count, std::int64_t bytes) {
  std::int64_t product = 0;
  return count < 0 || bytes < 0 || __builtin_mul_overflow(count, bytes, &product) ? -1 : product;
}

// Packed bytes of `count` elements; negative: no valid arguments.
std::int64_t bytes_of(std::int64_t count, MPI_Datatype type) {
  MPI_Count size = 0;
  if (type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &size) != MPI_SUCCESS) return -1;
  return times(count, size);
}

// Whether each element lies before the one that precedes it.
bool runs_backwards(MPI_Datatype type) {
  MPI_Count lower = 0, extent = 0;
  return PMPI_Type_get_extent_x(type, &lower, &extent) == MPI_SUCCESS && extent < 0;
}

// Far beyond any memory, while sums of such lengths still fit.
std::int64_t within_limit(std::int64_t bytes) {
  return bytes <= std::int64_t{1} << 60 ? bytes : -1;
}

// Whether a rank sends (or receives) nothing, one block, or a block for each rank.
enum class part { none, one, of_each };
part sent_part(const call& c, int rank) {
  switch (describe(c.op).what) {
    case promise::root_to_all:
    case promise::all_arrive:
      return part::none;
    case promise::root_to_blocks:
      return rank == c.root ? part::of_each : part::none;
    case promise::blocks_to_blocks:
      return part::of_each;
    default:
      return part::one;
  }
}
part received_part(const call& c, int rank) {
  switch (describe(c.op).what) {
    case promise::all_arrive:
      return part::none;
    case promise::reduce_to_root:
      return rank == c.root ? part::one : part::none;
    case promise::prefix_before:
      return rank > 0 ? part::one : part::none;
    case promise::blocks_to_root:
      return rank == c.root ? part::of_each : part::none;
    case promise::blocks_to_all:
    case promise::blocks_to_blocks:
      return part::of_each;
    default:
      return part::one;
  }
}

// Whether blocks of different lengths are valid. MPICH refuses MPI_DATATYPE_NULL only if there is
// data.
bool are_valid(const call_side& side, bool has_types, int num_blocks) {
  if (!side.counts || !side.displacements) return false;
  if (has_types ? !side.types : bytes_of(0, side.type) < 0) return false;
  for (int i = 0; i < num_blocks; ++i) {
    if (side.counts[i] < 0) return false;
    if (has_types && !(is_mpich() && side.counts[i] == 0) &&
        bytes_of(side.counts[i], side.types[i]) < 0)
      return false;
  }
  return true;
}

// Whether arguments that differ between ranks are valid.
bool is_valid(const call& c, const call_side& side, part what, int num_ranks) {
  if (what == part::none || side.in_place()) return true;
  if (what == part::one) return bytes_of(side.count, side.type) >= 0;
  return are_valid(side, c.op == collective::all_to_allw, num_ranks);
}

// Whether the sides of a call are valid whose length message_bytes_of() takes from one of them.
bool has_valid_sides(const call& c, int rank) {
  const auto is_valid_side = [](const call_side& side, part what) {
    return what == part::none || side.in_place() || side.counts ||
           bytes_of(side.count, side.type) >= 0;
  };
  return is_valid_side(c.send, sent_part(c, rank)) &&
         is_valid_side(c.receive, received_part(c, rank));
}

// A null address where data should be. (Absolute addresses are in types that do not start at 0, or
// in displacements.)
bool is_refused_as_null(const call_side& side, part what, int num_ranks) {
  if (what == part::none || side.memory) return false;
  const auto has_data_there = [](MPI_Datatype type) {
    MPI_Count size = 0, lower = 0, extent = 0;
    return type != MPI_DATATYPE_NULL && PMPI_Type_size_x(type, &size) == MPI_SUCCESS && size > 0 &&
           PMPI_Type_get_true_extent_x(type, &lower, &extent) == MPI_SUCCESS && lower == 0;
  };
  if (what == part::one || !side.counts) return side.count > 0 && has_data_there(side.type);
  for (int i = 0; i < num_ranks; ++i)
    if (side.counts[i] > 0 && !(side.displacements && side.displacements[i] != 0) &&
        has_data_there(side.types ? side.types[i] : side.type))
      return true;
  return false;
}

// Where MPICH takes a rank's own block to be among all blocks: it counts sizes, not extents.
const void* own_block(const call_side& side, int rank) {
  const std::int64_t elements = side.displacements ? side.displacements[rank] : rank * side.count;
  return displaced(static_cast<const std::byte*>(side.memory), elements * bytes_of(1, side.type));
}
bool has_own_block(const call_side& side, int rank) {
  return (side.counts ? side.counts[rank] : side.count) != 0;
}

// Whether send and receive buffer are the same memory in cases that the MPI library checks. Only
// MPICH checks more than a reduce.
bool is_refused_as_alias(const call& c, int rank) {
  const call_side &s = c.send, &r = c.receive;
  if (s.in_place() || r.in_place() || !s.memory) return false;
  const promise what = describe(c.op).what;
  if (what == promise::reduce_to_root) return rank == c.root && s.memory == r.memory;
  if (!is_mpich()) return false;
  const auto one_among_all = [&](const call_side& one, const call_side& all) {
    return one.type == all.type && one.count != 0 && has_own_block(all, rank) &&
           one.memory == own_block(all, rank);
  };
  switch (what) {
    case promise::root_to_all:
    case promise::all_arrive:
      return false;
    case promise::blocks_to_root:
      return rank == c.root && one_among_all(s, r);
    case promise::root_to_blocks:
      return rank == c.root && one_among_all(r, s);
    case promise::blocks_to_all:
      return one_among_all(s, r);
    case promise::blocks_to_blocks:
      if (s.memory != r.memory) return false;
      if (s.types) return s.counts.same_array(r.counts) && s.types == r.types;
      if (s.counts) return s.counts.same_array(r.counts) && s.type == r.type;
      return s.count == r.count && s.count != 0 && s.type == r.type;
    default:
      return s.memory == r.memory;  // reductions
  }
}

// Whether MPI_IN_PLACE stands where MPI gives it no meaning.
bool is_wrongly_in_place(const call& c, int rank) {
  const promise what = describe(c.op).what;
  const bool is_root = rank == c.root, scatters = what == promise::root_to_blocks;
  const bool for_roots = what == promise::reduce_to_root || what == promise::blocks_to_root;
  const bool may_send = !scatters && (is_root || !for_roots), may_receive = scatters && is_root;
  return (c.send.in_place() && !may_send && sent_part(c, rank) != part::none) ||
         (c.receive.in_place() && !may_receive && received_part(c, rank) != part::none);
}

bool is_refused(const call& c, int rank, int num_ranks) {
  if (is_wrongly_in_place(c, rank) || is_refused_as_alias(c, rank)) return true;
  if (!is_mpich() || (c.send.memory && c.receive.memory)) return false;
  call_side sent = c.send;  // a reduction's count and type are for both sides
  if (c.is_reduction()) sent = {.memory = c.send.memory, .count = 1, .type = c.receive.type};
  call_side received = c.receive;
  if (c.is_reduction()) {  // of blocks that differ, a rank's own may be empty
    received.count = c.receive.counts ? c.receive.counts[rank] : 1;
    received.counts = {};
  }
  return is_refused_as_null(sent, sent_part(c, rank), num_ranks) ||
         is_refused_as_null(received, received_part(c, rank), num_ranks);
}

// Whether a side of a neighbourhood call, with a block per neighbour, is valid. MPICH requires a
// datatype only for blocks with elements. If each block has a separate length, MPICH accepts
// MPI_BOTTOM with types that start at 0. Tables that only some versions require without neighbours
// are not looked at: the library's own call, which is counted, refuses them.
bool is_valid_between_neighbors(const neighbor_call& c, const call_side& side, bool is_equal,
                                int num_neighbors) {
  if (side.in_place()) return false;
  if (is_equal) {
    if (is_mpich() && side.count == 0 && side.type == MPI_DATATYPE_NULL) return true;
    return bytes_of(side.count, side.type) >= 0 &&
           !(is_mpich() && num_neighbors > 0 && is_refused_as_null(side, part::one, num_neighbors));
  }
  if (num_neighbors == 0) return true;
  return are_valid(side, c.op == neighbor_function::all_to_allw, num_neighbors);
}

enum class kind_of_type : unsigned {
  other = 0,
  integer = 1,
  floating = 2,
  complex = 4,
  logical = 8,
  byte = 16,
  pair = 32
};

bool is_one_of(MPI_Datatype type, std::initializer_list<MPI_Datatype> types) {
  return type != MPI_DATATYPE_NULL && std::ranges::find(types, type) != types.end();
}

// By the tables of MPI's chapter on reductions. (MPI_CHAR is missing there, but all libraries
// accept it.)
kind_of_type kind_of(MPI_Datatype type) {
  if (is_one_of(type,
                {MPI_INT,         MPI_LONG,          MPI_SHORT,         MPI_UNSIGNED_SHORT,
                 MPI_UNSIGNED,    MPI_UNSIGNED_LONG, MPI_LONG_LONG_INT, MPI_UNSIGNED_LONG_LONG,
                 MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_CHAR,          MPI_INT8_T,
                 MPI_INT16_T,     MPI_INT32_T,       MPI_INT64_T,       MPI_UINT8_T,
                 MPI_UINT16_T,    MPI_UINT32_T,      MPI_UINT64_T,      MPI_AINT,
                 MPI_COUNT,       MPI_OFFSET,        MPI_INTEGER,       MPI_INTEGER1,
                 MPI_INTEGER2,    MPI_INTEGER4,      MPI_INTEGER8}))
    return kind_of_type::integer;
  if (is_one_of(type, {MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION,
                       MPI_REAL4, MPI_REAL8}))
    return kind_of_type::floating;
  if (is_one_of(type, {MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_C_LONG_DOUBLE_COMPLEX,
                       MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_COMPLEX8, MPI_COMPLEX16,
                       MPI_CXX_FLOAT_COMPLEX, MPI_CXX_DOUBLE_COMPLEX, MPI_CXX_LONG_DOUBLE_COMPLEX}))
    return kind_of_type::complex;
  if (is_one_of(type, {MPI_C_BOOL, MPI_LOGICAL, MPI_CXX_BOOL})) return kind_of_type::logical;
  if (type == MPI_BYTE) return kind_of_type::byte;
  if (is_one_of(type, {MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_2INT, MPI_SHORT_INT,
                       MPI_LONG_DOUBLE_INT, MPI_2REAL, MPI_2DOUBLE_PRECISION, MPI_2INTEGER}))
    return kind_of_type::pair;
  return kind_of_type::other;
}

unsigned kinds_for(MPI_Op op) {
  const auto any_of = [](auto... kinds) { return (unsigned(kinds) | ...); };
  using enum kind_of_type;
  if (op == MPI_MAX || op == MPI_MIN) return any_of(integer, floating);
  if (op == MPI_SUM || op == MPI_PROD) return any_of(integer, floating, complex);
  if (op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR) return any_of(integer, logical);
  if (op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR) return any_of(integer, byte);
  if (op == MPI_MAXLOC || op == MPI_MINLOC) return any_of(pair);
  return any_of(other) & 0u;
}

}  // namespace

[[gnu::hot]] bool is_builtin(MPI_Op op) {
  for (const MPI_Op builtin :
       {MPI_OP_NULL, MPI_SUM, MPI_MAX, MPI_MIN, MPI_PROD, MPI_LAND, MPI_BAND, MPI_LOR, MPI_BOR,
        MPI_LXOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC, MPI_REPLACE, MPI_NO_OP})
    if (op == builtin) return true;
  return false;
}

bool names_only_predefined(const call& c, int rank) {
  if (c.is_reduction()) return is_builtin(c.operation) && is_predefined(c.receive.type);
  return (sent_part(c, rank) == part::none || c.send.in_place() || is_predefined(c.send.type)) &&
         (received_part(c, rank) == part::none || c.receive.in_place() ||
          is_predefined(c.receive.type));
}

bool is_integer(MPI_Datatype type) { return kind_of(type) == kind_of_type::integer; }
bool is_floating(MPI_Datatype type) { return kind_of(type) == kind_of_type::floating; }
bool is_unsigned(MPI_Datatype type) {
  return is_one_of(type,
                   {MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG,
                    MPI_UNSIGNED_LONG_LONG, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T});
}

bool is_defined(MPI_Op op, MPI_Datatype type) {
  return !is_builtin(op) || (kinds_for(op) & unsigned(kind_of(type))) != 0;
}

[[gnu::hot]] std::int64_t message_bytes_of(const call& c, int rank, int num_ranks) {
  const collective_traits& d = describe(c.op);
  switch (d.lengths) {
    case block_lengths::of_pair:
      // All ranks are in place or no rank is, so all ranks use the MPI library.
      if (d.what == promise::blocks_to_blocks && c.send.in_place()) return -1;
      return is_valid(c, c.send, sent_part(c, rank), num_ranks) &&
                     is_valid(c, c.receive, received_part(c, rank), num_ranks)
                 ? 0
                 : -1;
    case block_lengths::known: {
      if (!c.receive.counts || (!c.is_reduction() && !c.receive.displacements)) return -1;
      std::int64_t sum = 0;
      for (int i = 0; i < num_ranks; ++i) {
        const std::int64_t count = c.receive.counts[i];
        if (count < 0 || __builtin_add_overflow(sum, count, &sum)) return -1;
      }
      return within_limit(bytes_of(sum, c.receive.type));
    }
    case block_lengths::equal:
      break;
  }
  if (d.what == promise::all_arrive) return num_ranks;
  const call_side& side =
      (d.what == promise::blocks_to_root || d.what == promise::root_to_blocks) &&
              (d.what == promise::root_to_blocks) == (c.root == rank)
          ? c.send
          : c.receive;
  // classify() has already asked MPI for a reduction's type.
  const std::int64_t bytes =
      c.element_bytes > 0 ? times(side.count, c.element_bytes) : bytes_of(side.count, side.type);
  return within_limit(c.traits().blocks ? times(num_ranks, bytes) : bytes);
}

std::int64_t own_bytes_of(const call& c, int rank, int num_ranks) {
  const auto bytes_in = [&](const call_side& side, part what) -> std::int64_t {
    if (what == part::none || side.in_place()) return 0;
    if (what == part::one) return bytes_of(side.count, side.type);
    std::int64_t sum = 0;
    for (int i = 0; i < num_ranks; ++i)
      if (side.counts[i] > 0)
        sum += bytes_of(side.counts[i], side.types ? side.types[i] : side.type);
    return sum;
  };
  return std::max(bytes_in(c.send, sent_part(c, rank)),
                  bytes_in(c.receive, received_part(c, rank)));
}

std::int64_t longest_block_of(const call& c, int num_ranks) {
  std::int64_t longest = 0;
  for (int i = 0; i < num_ranks; ++i)
    if (c.send.counts[i] > 0)
      longest = std::max(longest,
                         bytes_of(c.send.counts[i], c.send.types ? c.send.types[i] : c.send.type));
  return longest;
}

[[gnu::hot]] eligibility classify(call& c, int rank, int num_ranks) {
  if (c.root < 0 || c.root >= num_ranks) return eligibility::leave_to_mpi;
  if (c.is_reduction()) {
    // Programs repeat few combinations, and the tables are long.
    struct question {
      MPI_Op op;
      MPI_Datatype type;
    };
    [[gnu::tls_model("initial-exec")]] static thread_local question defined{MPI_OP_NULL,
                                                                            MPI_DATATYPE_NULL};
    if (c.operation != defined.op || c.receive.type != defined.type) {
      if (!is_defined(c.operation, c.receive.type)) return eligibility::leave_to_mpi;
      if (is_builtin(c.operation)) defined = {c.operation, c.receive.type};
    }
    c.element_bytes = bytes_of(1, c.receive.type);
    if (c.element_bytes <= 0) return eligibility::leave_to_mpi;
    // Elements one behind the other; a predefined type's are.
    if (!is_builtin(c.operation) && runs_backwards(c.receive.type))
      return eligibility::leave_to_mpi;
  }
  c.message_bytes = message_bytes_of(c, rank, num_ranks);
  if (c.message_bytes < 0) return eligibility::leave_to_mpi;
  const bool of_pair = describe(c.op).lengths == block_lengths::of_pair;
  if (!of_pair && !c.is_reduction() && !has_valid_sides(c, rank)) return eligibility::leave_to_mpi;
  if (c.message_bytes == 0 && !of_pair) return eligibility::empty;
  // Hardly any call is odd, but every call pays for the check.
  const bool is_odd =
      is_mpich() || c.send.in_place() || c.receive.in_place() || c.send.memory == c.receive.memory;
  return is_odd && is_refused(c, rank, num_ranks) ? eligibility::leave_to_mpi
                                                  : eligibility::eligible;
}

eligibility classify(const neighbor_call& c, const neighbors& around) {
  using enum neighbor_function;
  const bool sends_equal = c.op == all_to_all || c.sends_one_block();
  const bool receives_equal = c.op == all_to_all || c.op == all_gather;
  return is_valid_between_neighbors(c, c.send, sends_equal, int(around.destinations.size())) &&
                 is_valid_between_neighbors(c, c.receive, receives_equal,
                                            int(around.sources.size()))
             ? eligibility::eligible
             : eligibility::leave_to_mpi;
}

}  // namespace railpass::internal
