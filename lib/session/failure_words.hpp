// SPDX-License-Identifier: BSL-1.0
//
// What the ranks of a communicator tell each other once all have been told that one of them has
// failed: along a tree they find out from which call on all are native (select/fallback.hpp).
#pragma once

#include "lib/session/base.hpp"
#include "railpass/select/fallback.hpp"

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace railpass {

class failure_words {
 public:
  /// Allocates all that will be needed. A rank that is alone tells nobody.
  failure_words(int rank, int num_ranks);
  /// Before all that follows, on several ranks.
  void connect(std::shared_ptr<base_lane> over) { lane_ = std::move(over); }

  select::fallback& state() { return state_; }
  const select::fallback& state() const { return state_; }

  /// This rank, which has entered so many calls, has failed or has heard of it: `failed` or
  /// `unlike`, which it hands on.
  void begin(base_lane::trouble why, std::int64_t entered);
  /// Hands on to state() what ranks next to this one in the tree have told; why they say that,
  /// `none` if they have told nothing. Local.
  base_lane::trouble look(std::int64_t entered);
  /// Tells what is new in state(). Local; whether it could tell all of it.
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

}  // namespace railpass
