// SPDX-License-Identifier: BSL-1.0
//
// Messages of the ranks of a communicator after a failure. Along a tree the ranks find the call
// from which on all of them are native (select/lockstep/fallback.hpp).
#pragma once

#include "lib/group/base.hpp"
#include "railpass/select/lockstep/fallback.hpp"

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace railpass::internal {

class failure_words {
 public:
  /// Allocates all memory that the messages need. A single rank sends none.
  failure_words(int rank, int num_ranks);
  /// Before all that follows, on several ranks.
  void connect(std::shared_ptr<base_lane> over) { lane_ = std::move(over); }

  select::fallback& state() { return state_; }
  const select::fallback& state() const { return state_; }

  /// This rank has failed or has heard of a failure, after it entered `entered` calls. Its messages
  /// hand on the reason `why`: `failed` or `unlike`.
  void begin(base_lane::trouble why, std::int64_t entered);
  /// Hands messages of the neighbours in the tree to state(). Returns their reason; `none`: no
  /// message has come. Local.
  base_lane::trouble look(std::int64_t entered);
  /// Sends news of state(). Returns whether all news could be sent. Local.
  bool tell();

 private:
  enum class kind : std::int32_t { allowed, last_call, answer };
  using words = std::array<std::int32_t, 4>;  // the kind, a call, why
  words words_of(kind what, std::int64_t call) const;
  void hear(const words& told, std::int64_t entered);

  struct receiver {
    int rank = 0;
    std::optional<words> told{};  // until it has left, then unchanged
    MPI_Request request = MPI_REQUEST_NULL;
  };
  bool tell(receiver& to, const words& now);

  std::shared_ptr<base_lane> lane_;
  select::fallback state_;
  base_lane::trouble why_ = base_lane::trouble::failed;
  std::vector<receiver> children_;
  receiver parent_;
};

}  // namespace railpass::internal
