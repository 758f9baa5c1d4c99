// SPDX-License-Identifier: BSL-1.0
//
// Two-dimensional mesh: ranks in rows and columns; every rank sends its block to all ranks of
// its row, and then the blocks of its row to all ranks of its column. p = 8, rows of 4: 0 -> 1
// 2 3 one block, 4 -> 5 6 7; then 0 -> 4, 1 -> 5, ... four blocks.
//
// Cost: 2 alpha + (p-1)/p n beta, n the bytes of all blocks, in about 2 sqrt p messages.
// Good when: rows are nodes, or p messages at once are too many. Poor when: the number of ranks
// is prime (one row: linear).
// Needs: nothing.
// Source: Barnett, Gupta, Payne, Shuler, van de Geijn, Watts: Interprocessor collective
// communication library (InterCom), SHPCC 1994, doi:10.1109/SHPCC.1994.296665.
#ifdef RAILPASS_LIST_ALGORITHM
RAILPASS_LIST_ALGORITHM(all_gather, mesh)
#elif !defined(RAILPASS_COLLECTIVES_ALL_GATHER_MESH)
#define RAILPASS_COLLECTIVES_ALL_GATHER_MESH

#include "collectives/blocks.hpp"

namespace railpass::collectives::all_gather {

inline schedule build_mesh(const shape& s, const parameters&) {
  builder b(s);
  const int p = s.num_ranks, r = s.rank;
  const collectives::mesh grid(p);
  const int columns = grid.columns, row = grid.row(r) * columns, after_me = row + columns - 1 - r;
  const block_range own{.parts = p, .first = r};
  const auto from = [&](int first, int rounds) {
    return whole(b.receive(buffer::output, {.parts = p, .first = first, .stride = 1}, first, {},
                           {.rounds = rounds, .peer_stride = 1}));
  };
  std::vector<after> held{whole(b.copy(buffer::input, buffer::output, own)), from(row, r - row)};
  if (after_me > 0) {
    held.push_back(from(r + 1, after_me));
    b.send(buffer::input, own, r + 1, {}, {.rounds = after_me, .peer_stride = 1});
  }
  b.send(buffer::input, own, row, {}, {.rounds = r - row, .peer_stride = 1});
  const loop others{.rounds = grid.rows - 1, .peer_stride = columns},
      back{.rounds = grid.rows - 1, .peer_stride = -columns};
  b.receive(buffer::output,
            {.parts = p, .first = wrap(row - columns, p), .stride = -columns, .count = columns},
            wrap(r - columns, p), {}, back);
  b.send(buffer::output, {.parts = p, .first = row, .count = columns}, wrap(r + columns, p), held,
         others);
  return b.finish();
}

inline double cost_mesh(const cost_query& q, const parameters&) {
  const collectives::mesh grid(q.num_ranks);
  const double block = q.bytes / q.num_ranks;
  return q.machine.copy.time_s(block) + row_burst_s(q, routes(q, block), grid.columns) +
         strided_burst_s(q, routes(q, grid.columns * block), grid.columns, grid.rows - 1);
}

inline constexpr algorithm mesh{.op = collective::all_gather,
                                .name = "mesh",
                                .source = "Barnett et al. 1994, doi:10.1109/SHPCC.1994.296665",
                                .needs = {},
                                .spans_blocks = true,
                                .build = build_mesh,
                                .cost_s = cost_mesh};

}  // namespace railpass::collectives::all_gather

#endif
