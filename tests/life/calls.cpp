// SPDX-License-Identifier: BSL-1.0
#include "calls.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace life {
namespace {

constexpr std::string_view names[] = {
    "Bcast",      "Reduce",   "Allreduce", "Reduce_scatter", "Reduce_scatter_block",
    "Gather",     "Gatherv",  "Scatter",   "Scatterv",       "Allgather",
    "Allgatherv", "Alltoall", "Alltoallv", "Alltoallw",      "Scan",
    "Exscan",     "Barrier"};
static_assert(std::size(names) == static_cast<std::size_t>(collective::count));

bool is_reduction(collective which) {
  switch (which) {
    case collective::reduce:
    case collective::all_reduce:
    case collective::reduce_scatter:
    case collective::reduce_scatter_block:
    case collective::scan:
    case collective::exscan:
      return true;
    default:
      return false;
  }
}

bool has_blocks(collective which) {
  switch (which) {
    case collective::gather:
    case collective::scatter:
    case collective::all_gather:
    case collective::all_to_all:
    case collective::reduce_scatter_block:
      return true;
    default:
      return false;
  }
}

/// Memory for elements between two zones that nobody may touch.
class buffer {
 public:
  explicit buffer(std::ptrdiff_t bytes)
      : memory_(static_cast<std::size_t>(bytes) + 2 * zone, '\xa5') {}

  char* at(std::ptrdiff_t byte = 0) { return memory_.data() + zone + byte; }
  bool operator==(const buffer& other) const { return memory_ == other.memory_; }

  /// Whether the zones are untouched and `count` elements from `byte` on are alike, whatever lies
  /// between their numbers and behind them.
  bool agrees(buffer& other, const element& what, std::ptrdiff_t byte, std::int64_t count) {
    for (std::size_t i = 0; i < zone; ++i)
      if (memory_[i] != '\xa5' || memory_[memory_.size() - 1 - i] != '\xa5') return false;
    for (std::int64_t i = 0; i < count; ++i, byte += what.extent_bytes)
      if (!same(what, at(byte), other.at(byte))) return false;
    return true;
  }

 private:
  static constexpr std::size_t zone = 64;
  std::vector<char> memory_;
};

/// What MPI is told of some elements: their datatype, or one made for this call, or what stands for
/// none of them.
class description {
 public:
  description(const element& what, int length, bool fresh, std::uint64_t h, bool is_nothing = false)
      : type(what.type), count(length) {
    if (is_nothing) {
      type = nothing(h >> 9 & 1);
      count = 1;
      return;
    }
    const int together = std::array{0, 1, 2, 4, length}[h % 5];
    if (!fresh || together == 0 || length % together != 0) return;
    if (h >> 8 & 1)
      MPI_Type_contiguous(together, what.type, &type);
    else
      MPI_Type_vector(together, 1, 1, what.type, &type);
    MPI_Type_commit(&type);
    count = length / together;
    is_own_ = true;
  }
  ~description() {
    if (is_own_) MPI_Type_free(&type);
  }
  description(const description&) = delete;
  description& operator=(const description&) = delete;

  MPI_Datatype type;
  int count;

 private:
  bool is_own_ = false;
};

/// Whether all ranks say that a call of length 0 moves nothing by one element without data: Open
/// MPI's own calls send an empty message to a rank that waits for none if only some ranks say it.
bool is_nothing(const call& c) { return c.nothing && c.length == 0; }

std::uint64_t of_rank(std::uint64_t key, int rank) {
  return mix(key ^ static_cast<std::uint64_t>(rank + 1) << 32);
}

/// In data that go from one rank to one other, what tells them apart.
int pair_of(int from, int to) { return 64 * from + to; }

int root_of(const call& c, const place& at) {
  return static_cast<int>((c.key >> 7) % static_cast<std::uint64_t>(at.size));
}

/// A count of a v-form: zero for every fourth.
int count_of(const call& c, int who, int most) {
  const std::uint64_t h = of_rank(c.key, who);
  return h % 4 == 0 ? 0 : static_cast<int>((h >> 8) % static_cast<std::uint64_t>(most + 1));
}

int block_length(const call& c, const place& at) {
  return c.length / at.size + (c.length > 0 ? 1 : 0);
}

void fill(buffer& b, std::ptrdiff_t first, int length, const call& c, const element& what,
          int giver) {
  for (int i = 0; i < length; ++i)
    put(what, b.at((first + i) * what.extent_bytes), given(c.op, c.key, giver, i));
}

/// Blocks of a v-form in one buffer: places with gaps between, in or against the ranks' order.
struct layout {
  std::vector<int> counts, places;
  int length = 0;

  layout(const std::vector<int>& lengths, std::uint64_t h) : counts(lengths), places(lengths) {
    const int size = static_cast<int>(counts.size());
    for (int k = 0; k < size; ++k) {
      const auto i = static_cast<std::size_t>(h & 1 ? size - 1 - k : k);
      places[i] = length;
      length += counts[i] + static_cast<int>(of_rank(h, k) % 3);
    }
  }
};

bool takes_null_types(collective which) {
#ifdef MPICH_VERSION
  return which == collective::all_to_allw;
#else
  static_cast<void>(which);
  return false;
#endif
}

constexpr const char* wrong_result = "wrong result";
constexpr const char* input_changed = "the input was changed";

std::string verdict(int code, bool result_is_right, bool input_is_kept) {
  if (code != MPI_SUCCESS) return "returned error " + std::to_string(code);
  return !result_is_right ? wrong_result : !input_is_kept ? input_changed : "";
}

std::string broadcast(const call& c, const place& at) {
  const element& what = *c.what;
  const int root = root_of(c, at);
  buffer data(c.length * what.extent_bytes), expected(c.length * what.extent_bytes);
  fill(expected, 0, c.length, c, what, root);
  if (at.rank == root) fill(data, 0, c.length, c, what, root);
  const description d(what, c.length, c.fresh, of_rank(c.key, at.rank), is_nothing(c));
  const int code = MPI_Bcast(data.at(), d.count, d.type, root, at.comm);
  return verdict(code, data == expected, true);
}

// reduce, all_reduce, scan and exscan: one vector from each rank.
std::string reduce_vectors(const call& c, const place& at) {
  const element& what = *c.what;
  const int root = root_of(c, at);
  const bool has_output = c.which != collective::reduce || at.rank == root;
#ifdef MPICH_VERSION
  // MPI_Reduce in place at another rank than 0 crashes MPICH 4.0 if the message is large.
  const bool in_place = c.in_place && has_output && (c.which != collective::reduce || root == 0);
#else
  const bool in_place = c.in_place && has_output;
#endif
  const std::ptrdiff_t bytes = c.length * what.extent_bytes;
  buffer in(bytes), out(bytes), expected(bytes);
  fill(in_place ? out : in, 0, c.length, c, what, at.rank);
  buffer kept = in;
  const description d(what, c.length, c.fresh, c.key);
  const void* const input = in_place ? MPI_IN_PLACE : in.at();
  const MPI_Op op = mpi_operation(c.op);
  int code = MPI_SUCCESS, to = at.size;
  switch (c.which) {
    case collective::reduce:
      code = MPI_Reduce(input, has_output ? out.at() : nullptr, d.count, d.type, op, root, at.comm);
      break;
    case collective::all_reduce:
      code = MPI_Allreduce(input, out.at(), d.count, d.type, op, at.comm);
      break;
    case collective::scan:
      code = MPI_Scan(input, out.at(), d.count, d.type, op, at.comm);
      to = at.rank + 1;
      break;
    default:
      code = MPI_Exscan(input, out.at(), d.count, d.type, op, at.comm);
      to = at.rank;
  }
  const bool is_defined = has_output && to > 0;
  if (is_defined)
    for (int i = 0; i < c.length; ++i)
      put(what, expected.at(i * what.extent_bytes), reduced(c.op, c.key, 0, to, i));
  return verdict(code, out.agrees(expected, what, 0, is_defined ? c.length : 0),
                 in.agrees(kept, what, 0, in_place ? 0 : c.length));
}

std::string reduce_scatter(const call& c, const place& at) {
  const element& what = *c.what;
  const bool is_block = c.which == collective::reduce_scatter_block;
  const int most = block_length(c, at);
  std::vector<int> counts;
  int total = 0, before = 0;
  for (int rank = 0; rank < at.size; ++rank) {
    counts.push_back(is_block ? most : count_of(c, rank, most));
    if (rank < at.rank) before += counts.back();
    total += counts.back();
  }
  const int own = counts[static_cast<std::size_t>(at.rank)];
  buffer in(total * what.extent_bytes), out((c.in_place ? total : own) * what.extent_bytes);
  buffer expected(own * what.extent_bytes);
  fill(c.in_place ? out : in, 0, total, c, what, at.rank);
  buffer kept = in;
  const void* const input = c.in_place ? MPI_IN_PLACE : in.at();
  const MPI_Op op = mpi_operation(c.op);
  const description d(what, most, c.fresh && is_block, c.key);
  const int code = is_block
                       ? MPI_Reduce_scatter_block(input, out.at(), d.count, d.type, op, at.comm)
                       : MPI_Reduce_scatter(input, out.at(), counts.data(), what.type, op, at.comm);
  for (int i = 0; i < own; ++i)
    put(what, expected.at(i * what.extent_bytes), reduced(c.op, c.key, 0, at.size, before + i));
  return verdict(code, out.agrees(expected, what, 0, own),
                 in.agrees(kept, what, 0, c.in_place ? 0 : total));
}

std::string gather(const call& c, const place& at) {
  const element& what = *c.what;
  const int root = root_of(c, at);
  const bool to_all = c.which == collective::all_gather;
  const bool has_output = to_all || at.rank == root;
  const bool in_place = c.in_place && has_output;
  const std::ptrdiff_t bytes = has_output ? at.size * c.length * what.extent_bytes : 0;
  buffer in(c.length * what.extent_bytes), out(bytes), expected(bytes);
  if (in_place)
    fill(out, at.rank * c.length, c.length, c, what, at.rank);
  else
    fill(in, 0, c.length, c, what, at.rank);
  buffer kept = in;
  if (has_output)
    for (int rank = 0; rank < at.size; ++rank)
      fill(expected, rank * c.length, c.length, c, what, rank);
  const description s(what, c.length, c.fresh, of_rank(c.key, at.rank), is_nothing(c));
  const description r(what, c.length, c.fresh, of_rank(c.key, at.rank + at.size), is_nothing(c));
  const void* const input = in_place ? MPI_IN_PLACE : in.at();
  const int code = to_all
                       ? MPI_Allgather(input, s.count, s.type, out.at(), r.count, r.type, at.comm)
                       : MPI_Gather(input, s.count, s.type, has_output ? out.at() : nullptr,
                                    r.count, r.type, root, at.comm);
  return verdict(code, out == expected, in == kept);
}

std::string scatter(const call& c, const place& at) {
  const element& what = *c.what;
  const int root = root_of(c, at);
  const bool is_root = at.rank == root;
  const bool in_place = c.in_place && is_root;
  buffer in(is_root ? at.size * c.length * what.extent_bytes : 0);
  buffer out(c.length * what.extent_bytes), expected = out;
  if (is_root)
    for (int rank = 0; rank < at.size; ++rank) fill(in, rank * c.length, c.length, c, what, rank);
  buffer kept = in;
  if (!in_place) fill(expected, 0, c.length, c, what, at.rank);
  const description s(what, c.length, c.fresh, of_rank(c.key, at.rank), is_nothing(c));
  const description r(what, c.length, c.fresh, of_rank(c.key, at.rank + at.size), is_nothing(c));
  const int code = MPI_Scatter(is_root ? in.at() : nullptr, s.count, s.type,
                               in_place ? MPI_IN_PLACE : out.at(), r.count, r.type, root, at.comm);
  return verdict(code, out == expected, in == kept);
}

// gatherv, all_gatherv and scatterv: one rank, or all, have all blocks.
std::string v_forms(const call& c, const place& at) {
  const element& what = *c.what;
  const int root = root_of(c, at);
  const bool to_all = c.which == collective::all_gatherv;
  const bool is_scatter = c.which == collective::scatterv;
  const bool has_all = to_all || at.rank == root;
  const bool in_place = c.in_place && has_all;
  std::vector<int> lengths;
  for (int rank = 0; rank < at.size; ++rank)
    lengths.push_back(count_of(c, rank, block_length(c, at)));
  layout blocks(lengths, c.key >> 9);
  const int own = lengths[static_cast<std::size_t>(at.rank)];
  buffer whole(has_all ? blocks.length * what.extent_bytes : 0), block(own * what.extent_bytes);
  buffer all = whole, one = block;
  for (int rank = 0; rank < at.size && has_all; ++rank)
    fill(all, blocks.places[static_cast<std::size_t>(rank)],
         lengths[static_cast<std::size_t>(rank)], c, what, rank);
  fill(one, 0, own, c, what, at.rank);
  int* const counts = has_all ? blocks.counts.data() : nullptr;
  int* const places = has_all ? blocks.places.data() : nullptr;
  const description d(what, 1, c.fresh, of_rank(c.key, at.rank) | 1 << 8);  // one element each
  if (is_scatter) {
    if (has_all) whole = all;
    const buffer untouched = block;
    const int code = MPI_Scatterv(has_all ? whole.at() : nullptr, counts, places, what.type,
                                  in_place ? MPI_IN_PLACE : block.at(), own, d.type, root, at.comm);
    return verdict(code, block == (in_place ? untouched : one), whole == all);
  }
  if (in_place)
    fill(whole, blocks.places[static_cast<std::size_t>(at.rank)], own, c, what, at.rank);
  else
    block = one;
  const buffer kept = block;
  const void* const input = in_place ? MPI_IN_PLACE : block.at();
  const int code =
      to_all ? MPI_Allgatherv(input, own, d.type, whole.at(), counts, places, what.type, at.comm)
             : MPI_Gatherv(input, own, d.type, has_all ? whole.at() : nullptr, counts, places,
                           what.type, root, at.comm);
  return verdict(code, whole == all, block == kept);
}

std::string all_to_all(const call& c, const place& at) {
  const element& what = *c.what;
  const std::ptrdiff_t bytes = at.size * c.length * what.extent_bytes;
  buffer in(bytes), out(bytes), expected(bytes);
  for (int rank = 0; rank < at.size; ++rank) {
    fill(c.in_place ? out : in, rank * c.length, c.length, c, what, pair_of(at.rank, rank));
    fill(expected, rank * c.length, c.length, c, what, pair_of(rank, at.rank));
  }
  buffer kept = in;
  const description s(what, c.length, c.fresh, of_rank(c.key, at.rank), is_nothing(c));
  const description r(what, c.length, c.fresh, of_rank(c.key, at.rank + at.size), is_nothing(c));
  const int code =
      c.in_place
          ? MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out.at(), r.count, r.type, at.comm)
          : MPI_Alltoall(in.at(), s.count, s.type, out.at(), r.count, r.type, at.comm);
  return verdict(code, out == expected, in == kept);
}

/// Some of the blocks of MPI_Alltoallw that have no elements get one without data.
void stand_for_none(std::vector<int>& counts, std::vector<MPI_Datatype>& types, std::uint64_t h) {
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (const std::uint64_t mine = of_rank(h, static_cast<int>(i)); counts[i] == 0 && mine & 1) {
      counts[i] = 1;
      types[i] = nothing(mine >> 1 & 1);
    }
}

std::string all_to_allv(const call& c, const place& at) {
  const bool is_w = c.which == collective::all_to_allw;
  const auto size = static_cast<std::size_t>(at.size);
  const auto either = [&](int rank) {
    return pair_of(std::min(at.rank, rank), std::max(at.rank, rank));
  };
  std::vector<int> out_lengths, in_lengths;  // of what this rank sends, and receives
  std::vector<const element*> whats;
  const int most = block_length(c, at);
  for (int rank = 0; rank < at.size; ++rank) {
    out_lengths.push_back(count_of(c, c.in_place ? either(rank) : pair_of(at.rank, rank), most));
    in_lengths.push_back(count_of(c, c.in_place ? either(rank) : pair_of(rank, at.rank), most));
    whats.push_back(!is_w || !c.what->is_derived
                        ? c.what
                        : &elements()[of_rank(c.key, either(rank)) % elements().size()]);
  }
  layout sent(out_lengths, c.key >> 9), received(in_lengths, c.key >> 10);
  // MPI_Alltoallw counts bytes: the same places, in units that are enough for any element.
  constexpr int unit_bytes = 16;
  std::vector<MPI_Datatype> send_types, receive_types;
  if (is_w)
    for (std::size_t i = 0; i < size; ++i) {
      sent.places[i] *= unit_bytes;
      received.places[i] *= unit_bytes;
      const bool leaves_out =
          c.null_types && takes_null_types(c.which) && of_rank(c.key, at.rank + 2000) % 2 == 0;
      send_types.push_back(leaves_out && out_lengths[i] == 0 ? MPI_DATATYPE_NULL : whats[i]->type);
      receive_types.push_back(leaves_out && in_lengths[i] == 0 ? MPI_DATATYPE_NULL
                                                               : whats[i]->type);
    }
  const std::ptrdiff_t step = is_w ? 1 : c.what->extent_bytes;
  buffer in(sent.length * std::ptrdiff_t{unit_bytes});
  buffer out(received.length * std::ptrdiff_t{unit_bytes}), expected = out;
  const auto put_block = [&](buffer& b, int place, int length, const element& what, int giver) {
    for (int i = 0; i < length; ++i)
      put(what, b.at(place * step + i * what.extent_bytes), given(c.op, c.key, giver, i));
  };
  for (std::size_t i = 0; i < size; ++i) {
    const int rank = static_cast<int>(i);
    put_block(c.in_place ? out : in, (c.in_place ? received : sent).places[i],
              (c.in_place ? received : sent).counts[i], *whats[i], pair_of(at.rank, rank));
    put_block(expected, received.places[i], received.counts[i], *whats[i], pair_of(rank, at.rank));
  }
  buffer kept = in;
  const description d(*c.what, 1, c.fresh, of_rank(c.key, at.rank) | 1 << 8);
  int code = MPI_SUCCESS;
  if (is_w && c.nothing && !c.in_place) {
    stand_for_none(sent.counts, send_types, of_rank(c.key, at.rank + 3000));
    stand_for_none(received.counts, receive_types, of_rank(c.key, at.rank + 4000));
  }
  if (is_w)
    code = c.in_place ? MPI_Alltoallw(MPI_IN_PLACE, nullptr, nullptr, nullptr, out.at(),
                                      received.counts.data(), received.places.data(),
                                      receive_types.data(), at.comm)
                      : MPI_Alltoallw(in.at(), sent.counts.data(), sent.places.data(),
                                      send_types.data(), out.at(), received.counts.data(),
                                      received.places.data(), receive_types.data(), at.comm);
  else
    code =
        c.in_place
            ? MPI_Alltoallv(MPI_IN_PLACE, nullptr, nullptr, MPI_DATATYPE_NULL, out.at(),
                            received.counts.data(), received.places.data(), c.what->type, at.comm)
            : MPI_Alltoallv(in.at(), sent.counts.data(), sent.places.data(), d.type, out.at(),
                            received.counts.data(), received.places.data(), c.what->type, at.comm);
  return verdict(code, out == expected, in == kept);
}

constexpr std::uint64_t num_wrong_calls = 12;

}  // namespace

place place::of(MPI_Comm comm) {
  place p;
  p.comm = comm;
  if (comm == MPI_COMM_NULL) return p;
  MPI_Comm_rank(comm, &p.rank);
  MPI_Comm_size(comm, &p.size);
  return p;
}

std::string call::describe(const place& at) const {
  std::string text = "MPI_" + std::string(names[static_cast<std::size_t>(which)]) + " on rank " +
                     std::to_string(at.rank) + " of " + std::to_string(at.size) + ", " +
                     std::to_string(length) + " of " + what->name + ", root " +
                     std::to_string(root_of(*this, at));
  if (is_reduction(which)) text += ", operation " + std::to_string(static_cast<int>(op));
  if (in_place) text += ", in place";
  if (fresh) text += ", types of this call";
  if (null_types) text += ", null types";
  if (nothing) text += ", elements without data";
  return text;
}

call draw_call(stream& shared, const groups& on) {
  call c{};
  c.which = static_cast<collective>(shared.below(static_cast<int>(collective::count)));
  const int size = shared.below(20);
  const int small = 1 + shared.below(16), medium = 1 + shared.below(3000);
  c.length = size < 2 ? 0 : size < 5 ? 1 : size < 12 ? small : size < 19 ? medium : 10 * medium;
  if (has_blocks(c.which)) c.length = std::min(c.length, 4000);
  const bool wants_even = shared.one_in(2);
  if (wants_even && c.length > 4) c.length -= c.length % 4;  // several elements are one item
  c.in_place = shared.one_in(3) && on.has(group::in_place);
  c.fresh = shared.one_in(4) && on.has(group::fresh);
  c.null_types = shared.one_in(2) && on.has(group::null_types);
  c.op = static_cast<operation>(shared.below(static_cast<int>(operation::count)));
  if (c.op >= operation::user && !on.has(group::user_ops)) c.op = operation::sum;
  if (!is_reduction(c.which)) c.op = operation::sum;
  // MPI's own operations are defined for its own datatypes only.
  if (is_reduction(c.which) && c.op < operation::user) c.fresh = false;
  const std::size_t first = static_cast<std::size_t>(shared.next() % elements().size());
  for (std::size_t i = 0; i < elements().size(); ++i) {
    const element& candidate = elements()[(first + i) % elements().size()];
    if (candidate.is_derived && !on.has(group::derived)) continue;
    if (is_reduction(c.which) && !fits(c.op, candidate)) continue;
#ifdef MPICH_VERSION
    // MPICH 4.0 alone gives wrong results, and writes behind the buffer.
    if ((c.which == collective::reduce_scatter_block || c.which == collective::reduce_scatter) &&
        c.op == operation::user_ordered && !candidate.is_dense())
      continue;
#endif
    c.what = &candidate;
    break;
  }
  c.key = shared.next();
  c.nothing = mix(c.key) % 3 == 0 && on.has(group::nothing);
  return c;
}

std::string make_call(const call& c, const place& at) {
  switch (c.which) {
    case collective::broadcast:
      return broadcast(c, at);
    case collective::reduce:
    case collective::all_reduce:
    case collective::scan:
    case collective::exscan:
      return reduce_vectors(c, at);
    case collective::reduce_scatter:
    case collective::reduce_scatter_block:
      return reduce_scatter(c, at);
    case collective::gather:
    case collective::all_gather:
      return gather(c, at);
    case collective::scatter:
      return scatter(c, at);
    case collective::gatherv:
    case collective::all_gatherv:
    case collective::scatterv:
      return v_forms(c, at);
    case collective::all_to_all:
      return all_to_all(c, at);
    case collective::all_to_allv:
    case collective::all_to_allw:
      return all_to_allv(c, at);
    default:
      return verdict(MPI_Barrier(at.comm), true, true);
  }
}

bool is_wrong_operation(std::uint64_t variant) {
  return variant % num_wrong_calls == 4 || variant % num_wrong_calls == 5;
}

int make_wrong_call(std::uint64_t variant, const place& at, std::string& description) {
  static const int in[64] = {};
  int out[64];
  const MPI_Datatype none = MPI_DATATYPE_NULL;
#define WRONG(call)    \
  description = #call; \
  return call
  switch (variant % num_wrong_calls) {
    case 0:
      WRONG(MPI_Bcast(out, 1, MPI_INT, at.size, at.comm));
    case 1:
      WRONG(MPI_Bcast(out, 1, none, 0, at.comm));
    case 2:
      WRONG(MPI_Allreduce(in, out, 1, none, MPI_SUM, at.comm));
    case 3:
      WRONG(MPI_Allreduce(in, out, 1, MPI_INT, MPI_OP_NULL, at.comm));
    case 4:
      WRONG(MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_BAND, at.comm));
    case 5:
      WRONG(MPI_Reduce(in, out, 1, MPI_DOUBLE, MPI_BAND, 0, at.comm));
    case 6:
      WRONG(MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, at.size, at.comm));
    case 7:
      WRONG(MPI_Scan(in, out, 1, MPI_INT, MPI_OP_NULL, at.comm));
    case 8:
      WRONG(MPI_Exscan(in, out, 1, none, MPI_SUM, at.comm));
    case 9:
      WRONG(MPI_Gather(in, 1, MPI_INT, out, 1, MPI_INT, -2, at.comm));
    case 10:
      WRONG(MPI_Reduce_scatter_block(in, out, 1, MPI_INT, MPI_OP_NULL, at.comm));
    default:
      WRONG(MPI_Scatter(in, 1, none, out, 1, none, 0, at.comm));
  }
#undef WRONG
}

}  // namespace life
