// SPDX-License-Identifier: BSL-1.0
#include "lib/group/failure_words.hpp"

#include <algorithm>

namespace railpass::internal {

failure_words::failure_words(int rank, int num_ranks) : state_(rank, num_ranks) {
  const select::tree_position& tree = state_.tree();
  for (int i = 0; i < tree.num_children(); ++i) children_.push_back({.rank = tree.child(i)});
  if (rank > 0) parent_.rank = tree.parent();
}

failure_words::words failure_words::words_of(kind what, std::int64_t call) const {
  const auto bits = std::uint64_t(call);
  return {std::int32_t(what), std::int32_t(std::uint32_t(bits)), std::int32_t(bits >> 32),
          std::int32_t(why_)};
}

void failure_words::begin(base_lane::trouble why, std::int64_t entered) {
  why_ = why;
  state_.hear(entered);
}

base_lane::trouble failure_words::look(std::int64_t entered) {
  auto heard = base_lane::trouble::none;
  if (!lane_) return heard;
  const MPI_Comm comm = lane_->of().comm;
  for (;;) {
    int found = 0;
    MPI_Status status;
    if (PMPI_Iprobe(MPI_ANY_SOURCE, lane_->first_tag() + base_lane::fallback_tag, comm, &found,
                    &status) != MPI_SUCCESS ||
        !found)
      return heard;
    words told{};
    if (PMPI_Recv(told.data(), int(told.size()), MPI_INT32_T, status.MPI_SOURCE, status.MPI_TAG,
                  comm, MPI_STATUS_IGNORE) != MPI_SUCCESS)
      return heard;
    // Other sources may have failed on a communicator that used this number before.
    bool is_ours = false;
    for (int r = 0; r < lane_->num_ranks(); ++r)
      is_ours = is_ours || lane_->ranks()[r] == status.MPI_SOURCE;
    if (!is_ours) continue;
    heard = std::max(heard, base_lane::trouble(told[3]));
    hear(told, entered);
  }
}

void failure_words::hear(const words& told, std::int64_t entered) {
  const auto call = std::int64_t(std::uint64_t(std::uint32_t(told[2])) << 32 |
                                 std::uint64_t(std::uint32_t(told[1])));
  switch (kind(told[0])) {
    case kind::allowed:
    case kind::last_call:
      state_.take({call, kind(told[0]) == kind::last_call}, entered);
      break;
    case kind::answer:
      state_.add_answer(call, entered);
      break;
  }
}

bool failure_words::tell() {
  if (!lane_) return true;
  bool all = true;
  if (const auto now = state_.for_children())
    for (receiver& child : children_)
      all =
          tell(child, words_of(now->is_final ? kind::last_call : kind::allowed, now->last_call)) &&
          all;
  if (const auto mine = state_.for_parent(); mine && lane_->rank() > 0)
    all = tell(parent_, words_of(kind::answer, *mine)) && all;
  return all;
}

bool failure_words::tell(receiver& to, const words& now) {
  if (to.told == now) return true;
  int left = 0;
  if (PMPI_Test(&to.request, &left, MPI_STATUS_IGNORE) == MPI_SUCCESS && !left) return false;
  to.told = now;
  // A failure of this send cannot be reported to any rank.
  lane_->isend(to.told->data(), int(now.size()), to.rank, base_lane::fallback_tag, &to.request);
  return true;
}

}  // namespace railpass::internal
