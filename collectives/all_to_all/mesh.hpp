// SPDX-License-Identifier: BSL-1.0
//
// Mesh of two or three dimensions: one dimension after the other, every rank sends the ranks that
// differ from it in that dimension alone all blocks that go on from there, repacked. p = 8, rows of
// 4: 0 -> 4 the blocks for 4 5 6 7; then 0 -> 1 the blocks of 0 and 4 for 1, ...
//
// Cost: d alpha + d n beta in about d p^(1/d) messages for d dimensions, n the bytes of all blocks
// of a rank, and 2 (d - 1) copies.
// Good when: blocks are of medium length and p messages are too many. Poor when: blocks are long
// (each travels d times), or the number of ranks is prime (one dimension: linear).
// Needs: nothing.
// Source: Suh, Yalamanchili: All-to-all communication with minimum start-up costs in 2D/3D tori
// and meshes, TPDS 9(5), 1998, doi:10.1109/71.679215.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_to_all, mesh)
#elif !defined(RAILPASS_COLLECTIVES_ALL_TO_ALL_MESH)
#define RAILPASS_COLLECTIVES_ALL_TO_ALL_MESH

#include "collectives/blocks.hpp"

namespace railpass::collectives::all_to_all {

/// The steps of one rank. All blocks of the rank are in one buffer, which every function changes.
class mesh_steps {
 public:
  explicit mesh_steps(const shape& s) : b_(s), p_(s.num_ranks), rank_(s.rank) {}

  /// Gives the k-th of `extent` equal parts to the k-th rank of those that are `stride` apart, and
  /// takes as much from it.
  void exchange(int extent, int stride) {
    const int own = rank_ / stride % extent, part = p_ / extent;
    const buffer from = at_, to = begin_next();
    const auto blocks = [&](int first) {
      return block_range{.parts = p_, .first = first * part, .stride = part, .count = part};
    };
    const auto with = [&](int first, int end) {
      const loop all{.rounds = end - first, .peer_stride = stride};
      const int peer = rank_ + (first - own) * stride;
      written_.push_back(whole(b_.receive(to, blocks(first), peer, free_, all)));
      note_read(from, b_.send(from, blocks(first), peer, ready_, all));
    };
    if (own + 1 < extent) with(own + 1, extent);
    if (own > 0) with(0, own);
    copy(from, blocks(own), to, blocks(own), 1);
    end_next(to);
  }

  /// Blocks in `rows` of `columns` chunks become `columns` rows of `rows` chunks.
  void transpose(int rows, int columns, int chunk) {
    transpose_to(begin_next(), rows, columns, chunk);
  }
  void transpose_to_output(int rows, int columns, int chunk) {
    free_ = reads_of(buffer::input);
    transpose_to(buffer::output, rows, columns, chunk);
  }

  schedule finish() { return b_.finish(); }

 private:
  std::vector<after>& reads_of(buffer x) { return reads_[std::size_t(x)]; }
  void note_read(buffer from, step_id step) { reads_of(from).push_back(whole(step)); }
  // The scratch memory that has been read longest ago.
  buffer begin_next() {
    constexpr std::array turns{buffer::scratch0, buffer::scratch1, buffer::scratch2};
    const buffer to = turns[std::size_t(turn_++ % 3)];
    free_ = std::exchange(reads_of(to), {});
    return to;
  }
  void end_next(buffer to) {
    ready_ = std::exchange(written_, {});
    at_ = to;
  }
  void copy(buffer from, const block_range& source, buffer to, const block_range& blocks,
            int rounds) {
    std::vector<after> waits = ready_;
    waits.insert(waits.end(), free_.begin(), free_.end());
    const step_id step = b_.copy(from, source, to, blocks, waits, {.rounds = rounds});
    written_.push_back(whole(step));
    note_read(from, step);
  }
  void transpose_to(buffer to, int rows, int columns, int chunk) {
    const auto blocks = [&](int first, int stride) {
      return block_range{
          .parts = p_, .first = first * chunk, .stride = stride * chunk, .count = chunk};
    };
    for (int i = 0; rows <= columns && i < rows; ++i)
      copy(at_, blocks(i * columns, 1), to, blocks(i, rows), columns);
    for (int i = 0; rows > columns && i < columns; ++i)
      copy(at_, blocks(i, columns), to, blocks(i * rows, 1), rows);
    end_next(to);
  }

  builder b_;
  int p_, rank_, turn_ = 0;
  buffer at_ = buffer::input;
  std::vector<after> ready_, written_, free_;
  std::array<std::vector<after>, max_buffers> reads_;
};

/// From dimension to dimension the blocks are sorted by what is left of their way, and by the
/// coordinates of their senders in reverse: a b c, then b A c, then c B A.
inline schedule build_mesh_of(const shape& s, const std::vector<int>& extents) {
  mesh_steps steps(s);
  int before = 1, behind = s.num_ranks;  // ranks in the dimensions before and behind
  for (const int extent : extents) {
    behind /= extent;
    if (before > 1) steps.transpose(before, extent, behind);
    steps.exchange(extent, behind);
    before *= extent;
  }
  for (std::size_t i = extents.size(); i-- > 1;) {  // C B A, then B A C, then A B C
    before /= extents[i];
    if (i > 1)
      steps.transpose(extents[i], before, s.num_ranks / extents[i] / before);
    else
      steps.transpose_to_output(extents[i], before, s.num_ranks / extents[i] / before);
  }
  if (extents.size() == 1) steps.transpose_to_output(1, 1, s.num_ranks);
  return steps.finish();
}

inline schedule build_mesh(const shape& s, const parameters& values) {
  return build_mesh_of(s, mesh_extents(s.num_ranks, int(values[0])));
}

inline double cost_mesh_of(const cost_query& q, const std::vector<int>& extents) {
  const double block = q.bytes / q.num_ranks;
  const local_model& copy = q.machine.copy;
  double total_s = copy.time_s(extents.size() == 1 ? q.bytes : 0);
  int before = 1, behind = q.num_ranks;
  for (const int extent : extents) {
    behind /= extent;
    const double part = q.bytes / extent;
    total_s += copy.time_s(part) + row_burst_s(q, routes(q, part), extent, behind);
    // To sort them before they are sent, and afterwards.
    if (before > 1)
      total_s += before * extent * copy.time_s(behind * block) +
                 q.num_ranks / double(behind) * copy.time_s(behind * block);
    before *= extent;
  }
  return total_s;
}

inline double cost_mesh(const cost_query& q, const parameters& values) {
  return cost_mesh_of(q, mesh_extents(q.num_ranks, int(values[0])));
}

inline constexpr parameter dimensions_parameter{"dimensions", {2, 3}};

inline constexpr algorithm mesh{.op = collective::all_to_all,
                                .name = "mesh",
                                .source = "Suh and Yalamanchili 1998, doi:10.1109/71.679215",
                                .needs = {},
                                .scratch = {.messages = 3},
                                .spans_blocks = true,
                                .parameter_list = {dimensions_parameter},
                                .build = build_mesh,
                                .cost_s = cost_mesh};

}  // namespace railpass::collectives::all_to_all

#endif
