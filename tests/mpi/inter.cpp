// SPDX-License-Identifier: BSL-1.0
//
// Inter-communicators: every collective does what the MPI library's own does, roots that are
// MPI_ROOT or MPI_PROC_NULL included.
#include "lib/call/call.hpp"
#include "railpass/mpi.hpp"
#include "support/call_railpass.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"

#include <algorithm>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

TEST_CASE("every collective on an inter-communicator") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  // The first third of the ranks and the rest, so that the groups differ in size.
  const int side = world.rank() < (world.size() + 2) / 3 ? 0 : 1;
  const int leader_of_others = side == 0 ? (world.size() + 2) / 3 : 0;
  MPI_Comm part = MPI_COMM_NULL, inter = MPI_COMM_NULL;
  MPI_Comm_split(world, side, world.rank(), &part);
  const communicator half(part);
  MPI_Intercomm_create(half, 0, world, leader_of_others, 7, &inter);
  const communicator bridge(inter);
  int here = 0, there = 0;
  MPI_Comm_size(bridge, &here);
  MPI_Comm_remote_size(bridge, &there);
  CHECK(mpi::start_tuning(bridge) == MPI_SUCCESS);

  constexpr int count = 3;
  const int most = count * (world.size() + here * there);  // more than any side needs
  std::vector<int> send(std::size_t(most), 0);
  for (int i = 0; i < most; ++i) send[std::size_t(i)] = 100 * world.rank() + i;
  std::vector<int> counts(std::size_t(there), count), places, bytes;
  for (int k = 0; k < there; ++k) {
    places.push_back(count * k);
    bytes.push_back(count * k * int(sizeof(int)));
  }
  const std::vector<MPI_Datatype> types(std::size_t(there), MPI_INT);
  // A reduce_scatter's message is as long in both groups.
  const std::vector<int> scattered(std::size_t(here), there * count);

  for (const collective op : all_collectives) {
    const promise_traits traits = traits_of(op);
    if (op == collective::scan || op == collective::exscan) continue;  // MPI has none
    for (const int root_side : {0, 1}) {
      if (!traits.rooted && root_side == 1) continue;
      CAPTURE(name_of(op), root_side);
      call c{.op = op, .comm = bridge};
      // The last rank of the root's group.
      if (traits.rooted)
        c.root = side != root_side                ? there - 1
                 : half.rank() == half.size() - 1 ? MPI_ROOT
                                                  : MPI_PROC_NULL;
      const bool blocks = !traits.reduces && op != collective::broadcast;
      c.send = {.memory = send.data(), .count = blocks ? count : 0, .type = MPI_INT};
      c.receive = {.count = count, .type = MPI_INT};
      if (traits.reduces) c.operation = MPI_SUM;
      if (op == collective::reduce_scatter) c.receive.counts = scattered.data();
      if (op == collective::reduce_scatter_block) c.receive.count = scattered[0];
      const bool each_of_all = describe(op).lengths == block_lengths::of_pair;
      if (op == collective::all_gatherv || op == collective::gatherv || each_of_all) {
        c.receive.counts = counts.data();
        c.receive.displacements = places.data();
      }
      if (op == collective::scatterv || each_of_all) {
        c.send.counts = counts.data();
        c.send.displacements = places.data();
      }
      if (op == collective::all_to_allw) {
        c.send.displacements = c.receive.displacements = bytes.data();
        c.send.types = c.receive.types = types.data();
      }
      std::vector<int> ours(std::size_t(most), -1);
      if (op == collective::broadcast) std::copy(send.begin(), send.end(), ours.begin());
      std::vector<int> theirs = ours;
      const std::vector<int> untouched = ours;
      c.receive.memory = ours.data();
      CHECK(call_railpass(c, {}) == MPI_SUCCESS);
      c.receive.memory = theirs.data();
      CHECK(run_native(c) == MPI_SUCCESS);
      CHECK(ours == theirs);
      const bool receives = !traits.rooted || (op == collective::broadcast ||
                                                       describe(op).what == promise::root_to_blocks
                                                   ? side != root_side
                                                   : c.root == MPI_ROOT);
      if (op != collective::barrier) CHECK((ours != untouched) == receives);
      CHECK(mpi::last_arm(bridge) == "native");
    }
  }
}
