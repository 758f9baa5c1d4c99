// SPDX-License-Identifier: BSL-1.0
//
// Circulant graphs: in round k every rank r sends to r + skip_k and receives from r - skip_k, where
// the skips halve the number of ranks, rounded up. They make logarithmic algorithms work equally
// for every number of ranks.
#pragma once

#include "collectives/parts.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace railpass::collectives {

/// skips[q] = p, skips[k] = ceil(skips[k+1] / 2) down to skips[0] = 1; q = ceil(log2 p).
inline std::vector<int> halving_skips(int p) {
  std::vector<int> skips(std::size_t(ceil_log2(p)) + 1, p);
  for (std::size_t k = skips.size() - 1; k-- > 0;) skips[k] = (skips[k + 1] + 1) / 2;
  return skips;
}

/// The broadcast of n blocks from rank 0 in n - 1 + q rounds. In each round a rank sends at most
/// one block and receives at most one; every rank except rank 0 receives every block once. Source:
/// Traeff: Optimal broadcast schedules in logarithmic time with applications to broadcast,
/// all-broadcast, reduction and all-reduction, 2024, doi:10.48550/arXiv.2407.18004.
class circulant_broadcast {
 public:
  struct message {
    int peer = 0;
    int block = -1;  ///< none: no message
  };
  struct round {
    message send, receive;
  };

  explicit circulant_broadcast(int p) : p_(p), skips_(halving_skips(p)) {
    ranks_of_base_.resize(skips_.size());
    for (int r = 0; r < p; ++r) ranks_of_base_[std::size_t(base(r))].push_back(r);
  }

  /// The broadcast for p ranks, cached: a program uses it repeatedly with different roots, and its
  /// construction takes as long as hundreds of schedules.
  static std::shared_ptr<const circulant_broadcast> among(int p) {
    struct known {
      std::mutex mutex;
      std::map<int, std::shared_ptr<const circulant_broadcast>> by_ranks;
    };
    constexpr std::size_t most = 16;
    static known& all = *new known;  // never destroyed, because atexit handlers may make calls
    const std::lock_guard lock(all.mutex);
    if (all.by_ranks.size() >= most && !all.by_ranks.contains(p)) all.by_ranks.clear();
    auto& made = all.by_ranks[p];
    if (!made) made = std::make_shared<const circulant_broadcast>(p);
    return made;
  }

  std::vector<round> rounds(int rank, int blocks) const {
    const int q = rounds_per_phase();
    const std::vector<int> mine = receives(rank);
    std::vector<int> theirs;  // of the receiving rank in each round
    for (int k = 0; k < q; ++k) theirs.push_back(receives(to(rank, k))[std::size_t(k)]);
    // Block numbers grow by q every q rounds. The first rounds are left out, so that the last round
    // ends a phase; block numbers beyond the last block stand for the last block.
    const int left_out = wrap(-(blocks - 1), q);
    std::vector<round> all;
    for (int i = left_out; i < left_out + blocks - 1 + q; ++i) {
      const int k = i % q, shift = i / q * q - left_out;
      const auto block = [&](int receiver, int number) {
        return receiver == 0 || number + shift < 0 ? -1 : std::min(number + shift, blocks - 1);
      };
      all.push_back({{to(rank, k), block(to(rank, k), theirs[std::size_t(k)])},
                     {wrap(rank - skips_[std::size_t(k)], p_), block(rank, mine[std::size_t(k)])}});
    }
    return all;
  }

 private:
  int rounds_per_phase() const { return int(skips_.size()) - 1; }
  int to(int rank, int k) const { return wrap(rank + skips_[std::size_t(k)], p_); }

  // The last of the skips that lead greedily to rank r; rank 0 has none.
  int base(int r) const {
    int last = rounds_per_phase();
    for (int rest = r, k = rounds_per_phase() - 1; rest > 0; --k)
      if (rest >= skips_[std::size_t(k)]) {
        rest -= skips_[std::size_t(k)];
        last = k;
      }
    return last;
  }

  // Whether one of the ranks first, ..., last has that base block; both ends are in [0, p).
  bool has(int block, int first, int last) const {
    const std::vector<int>& ranks = ranks_of_base_[std::size_t(block)];
    const auto found = std::lower_bound(ranks.begin(), ranks.end(), first);
    return found != ranks.end() && *found <= last;
  }

  // The blocks that a rank receives in the rounds of a phase: its base block for the first time,
  // and all other blocks of the phase before, written as their numbers less q. The block of round k
  // comes from the ranks (r - skip_k+1, r - skip_k]: it is the largest base block among them that
  // is not taken yet. If there is none, it is the base block of rank r - skip_k+1.
  std::vector<int> receives(int r) const {
    const int q = rounds_per_phase();
    if (r == 0) return std::vector<int>(std::size_t(q), -1);
    std::vector<bool> taken(std::size_t(q) + 1, false);
    const int own = base(r);
    taken[std::size_t(own)] = true;
    std::vector<int> blocks;
    for (int k = 0; k < q; ++k) {
      const int low = wrap(r - skips_[std::size_t(k) + 1], p_),
                high = wrap(r - skips_[std::size_t(k)], p_), first = wrap(low + 1, p_);
      int best = q;
      while (best >= 0 && (taken[std::size_t(best)] ||
                           !(first <= high ? has(best, first, high)
                                           : has(best, first, p_ - 1) || has(best, 0, high))))
        --best;
      if (best < 0) best = base(low);
      taken[std::size_t(best)] = true;
      blocks.push_back(best == q ? own : best - q);
    }
    return blocks;
  }

  int p_;
  std::vector<int> skips_;
  std::vector<std::vector<int>> ranks_of_base_;  // ascending
};

/// The time of the broadcast, or of its reverse.
/// @param local_s work in each round of the reverse
/// @param rounds_ahead rounds by which a rank may be ahead of the data it has received
inline double circulant_broadcast_s(const cost_query& q, double blocks, double local_s = 0,
                                    double rounds_ahead = std::numeric_limits<double>::infinity()) {
  blocks = std::clamp(q.bytes / q.unit_bytes, 1.0, blocks);  // empty blocks are not sent
  const routes r(q, q.bytes / blocks);
  const std::vector<int> skips = halving_skips(q.num_ranks);
  const std::size_t rounds = skips.size() - 1;
  // The path of the first block, then one round for each other block.
  double way_s = 0;
  for (std::size_t k = 0; k < rounds; ++k) way_s += r.to(skips[k]).one_way_s + local_s;
  double phase_s = 0;
  for (std::size_t k = 0; k < rounds; ++k)
    phase_s += std::max({r.exchange_s(skips[k]) - r.to(skips[k]).one_way_s + r.to(skips[k]).busy_s,
                         r.far.stage_s(1, q.num_ranks > 2 ? 1 : 0, local_s),
                         q.num_ranks > 2 ? r.to(skips[k]).one_way_s / rounds_ahead : 0});
  return way_s + (blocks - 1) * phase_s / double(rounds);
}

}  // namespace railpass::collectives
