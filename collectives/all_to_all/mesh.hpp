// SPDX-License-Identifier: BSL-1.0
//
// Two-dimensional mesh: ranks in rows and columns; in its column every rank sends the rank of
// each row all blocks for that row, and then in its row, repacked, each rank the blocks for it.
// p = 8, rows of 4: 0 -> 4 the blocks for 4 5 6 7; then 0 -> 1 the blocks of 0 and 4 for 1, ...
//
// Cost: 2 alpha + 2 n beta in about 2 sqrt p messages, n the bytes of all blocks of a rank, and
// two copies.
// Good when: blocks are of medium length and p messages are too many. Poor when: blocks are long
// (each travels twice), or the number of ranks is prime (one row: linear).
// Needs: nothing.
// Source: Suh, Yalamanchili: All-to-all communication with minimum start-up costs in 2D/3D tori
// and meshes, TPDS 9(5), 1998, doi:10.1109/71.679215.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_to_all, mesh)
#elif !defined(RAILPASS_COLLECTIVES_ALL_TO_ALL_MESH)
#define RAILPASS_COLLECTIVES_ALL_TO_ALL_MESH

#include "collectives/blocks.hpp"

namespace railpass::collectives::all_to_all {

inline schedule build_mesh_of(const shape& s, const collectives::mesh& grid) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  const int rows = grid.rows, columns = grid.columns;
  const int row = grid.row(r) * columns, column = grid.column(r);
  const auto row_of_blocks = [&](int first, int stride) {
    return block_range{.parts = p, .first = wrap(first, p), .stride = stride, .count = columns};
  };
  // Block x columns + y of scratch0 is from this column's rank in row x for this row's in column y.
  const step_id collected =
      b.receive(buffer::scratch0, row_of_blocks(row - columns, -columns), wrap(r - columns, p), {},
                {.rounds = rows - 1, .peer_stride = -columns});
  b.send(buffer::input, row_of_blocks(row + columns, columns), wrap(r + columns, p), {},
         {.rounds = rows - 1, .peer_stride = columns});
  const step_id kept = b.copy(buffer::input, buffer::scratch0, row_of_blocks(row, 0));
  // Block y rows + x of scratch1 is the same: what is for one rank stands together.
  std::vector<after> packed;
  for (int x = 0; x < rows; ++x)
    packed.push_back(
        whole(b.copy(buffer::scratch0, {.parts = p, .first = x * columns, .stride = 1},
                     buffer::scratch1, {.parts = p, .first = x, .stride = rows},
                     {whole(x == grid.row(r) ? kept : collected)}, {.rounds = columns})));
  // Block y rows + x of scratch2 is from the rank in row x, column y.
  const auto column_of_blocks = [&](int y) {
    return block_range{.parts = p, .first = y * rows, .stride = rows, .count = rows};
  };
  std::vector<after> arrived{
      whole(b.copy(buffer::scratch1, buffer::scratch2,
                   {.parts = p, .first = column * rows, .count = rows}, packed))};
  const int above = columns - 1 - column;
  if (above > 0) {
    const loop all{.rounds = above, .peer_stride = 1};
    arrived.push_back(
        whole(b.receive(buffer::scratch2, column_of_blocks(column + 1), r + 1, {}, all)));
    b.send(buffer::scratch1, column_of_blocks(column + 1), r + 1, packed, all);
  }
  if (column > 0) {
    const loop all{.rounds = column, .peer_stride = 1};
    arrived.push_back(whole(b.receive(buffer::scratch2, column_of_blocks(0), row, {}, all)));
    b.send(buffer::scratch1, column_of_blocks(0), row, packed, all);
  }
  for (int x = 0; x < rows; ++x)
    b.copy(buffer::scratch2, {.parts = p, .first = x, .stride = rows}, buffer::output,
           {.parts = p, .first = x * columns, .stride = 1}, arrived, {.rounds = columns});
  return b.finish();
}

inline schedule build_mesh(const shape& s, const parameters&) {
  return build_mesh_of(s, collectives::mesh(s.num_ranks));
}

inline double cost_mesh_of(const cost_query& q, const collectives::mesh& grid) {
  const double block = q.bytes / q.num_ranks;
  return 2 * q.num_ranks * q.machine.copy.time_s(block) + q.machine.copy.time_s(grid.rows * block) +
         strided_burst_s(q, routes(q, grid.columns * block), grid.columns, grid.rows - 1) +
         row_burst_s(q, routes(q, grid.rows * block), grid.columns);
}

inline double cost_mesh(const cost_query& q, const parameters&) {
  return cost_mesh_of(q, collectives::mesh(q.num_ranks));
}

inline constexpr algorithm mesh{.op = collective::all_to_all,
                                .name = "mesh",
                                .source = "Suh and Yalamanchili 1998, doi:10.1109/71.679215",
                                .needs = {},
                                .scratch = {.messages = 3},
                                .build = build_mesh,
                                .cost_s = cost_mesh};

}  // namespace railpass::collectives::all_to_all

#endif
