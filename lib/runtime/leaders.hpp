// SPDX-License-Identifier: BSL-1.0
//
// Experience that leaders of communicators send to the world's rank 0, which stores it with its
// own. Messages use a base of the world, if there is one. Leaders never wait; rank 0 waits for a
// short time at the end.
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
  /// Sends this leader's experience of some contexts to rank 0, and drops what cannot be sent.
  /// Local. Throws std::bad_alloc.
  void tell(std::span<const knowledge::experience> learnt);
  /// Sends the last message of this leader, once, before MPI ends. Only leaders that have called
  /// tell() send it, because rank 0 waits for them alone. Some MPI libraries complain at the end
  /// about messages that were never received.
  void tell_last(std::span<const knowledge::experience> learnt);

  /// On rank 0: receives the messages that have arrived, and keeps each leader's latest experience
  /// of each context. Local. Throws std::bad_alloc.
  void hear();
  /// Waits up to `patience_s` seconds for the last message of each leader that has sent something.
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
  base_mapping world_;
  std::list<message> under_way_;  // a list: the bytes stay in place during the send
  bool has_told_ = false;
  std::vector<told> heard_;
  std::set<int> speaking_;  // leaders whose last message has not arrived yet
};

/// Whether the leader of a communicator of `num_ranks` ranks sends its experience. If many
/// communicators have equal sizes, such as the rows of a grid, only some leaders do.
bool tells(int world_rank, int world_size, int num_ranks);

}  // namespace railpass::internal
