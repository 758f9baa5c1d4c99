// SPDX-License-Identifier: BSL-1.0
//
// What leaders of communicators learn that are not the world's rank 0: it goes there by messages of
// a base of the world, where there is one, so that it is kept with the rest. Nobody waits for them
// but, at the end and for a moment, rank 0.
#pragma once

#include "lib/group/base.hpp"
#include "railpass/knowledge/experience.hpp"

#include <mpi.h>

#include <list>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace railpass::internal {

class leaders {
 public:
  /// What this leader knows by now of some contexts, to rank 0. What cannot be sent is dropped.
  /// Local; throws std::bad_alloc.
  void tell(std::span<const knowledge::experience> learnt);
  /// The same before MPI ends, for the last time: if something was told before, as rank 0 waits for
  /// nobody else. Messages that nobody receives are what some MPI libraries complain of at the end.
  void tell_last(std::span<const knowledge::experience> learnt);

  /// On rank 0: takes what has come, the latest that each has told of each context. Local; throws
  /// std::bad_alloc.
  void hear();
  /// Waits so long at most for the last words of those who have told something.
  void hear_last(double patience_s);
  std::vector<knowledge::experience> heard();

 private:
  struct message {
    std::string bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  struct told {
    int by = 0;
    knowledge::experience what;
  };

  bool has_base();
  void send(std::string bytes);
  bool take_one();

  std::mutex mutex_;
  base_place world_;
  std::list<message> under_way_;  // their bytes stay where they are
  bool has_told_ = false;
  std::vector<told> heard_;
  std::set<int> speaking_;  // who has told something, and not yet for the last time
};

/// Whether a leader tells of a communicator of so many ranks. Of many that are alike, as the rows
/// of a grid are, some do.
bool tells(int world_rank, int world_size, int num_ranks);

}  // namespace railpass::internal
