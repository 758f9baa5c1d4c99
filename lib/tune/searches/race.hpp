// SPDX-License-Identifier: BSL-1.0
//
// A race: in each round, every combination runs once more. Then combinations leave that are worse
// with confidence, and the worse half unless tied with the best. The race ends when the rest have
// run the wanted number of times (Karnin, Koren, Somekh: Almost Optimal Exploration in Multi-Armed
// Bandits, ICML 2013; Maron, Moore: Hoeffding Races, NIPS 1993).
#pragma once

#include "lib/tune/search.hpp"

#include <algorithm>

namespace railpass::internal::tune {

class race {
 public:
  explicit race(std::vector<combination> entrants = {}) : left_(std::move(entrants)) {}

  std::vector<combination> next(const search_view& view) {
    const int most = view.wanted.repetitions;
    while (round_ < most && !left_.empty()) {
      if (round_ > 0) leave(view);
      ++round_;
      std::vector<combination> starters;
      for (const combination& c : left_)
        if (const record* r = view.measured.find(c); !r || (!r->failed() && r->runs < round_))
          starters.push_back(c);
      if (!starters.empty()) return starters;
    }
    return {};
  }

 private:
  void leave(const search_view& view) {
    const standings ranks = view.ranks();
    std::vector<const standing*> running;
    for (const standing& s : ranks.all())
      if (std::find(left_.begin(), left_.end(), s.of->what) != left_.end()) running.push_back(&s);
    const std::size_t half = (left_.size() + 1) / 2;
    left_.clear();
    for (std::size_t i = 0; i < running.size(); ++i)
      if ((i < half && round_ == 1) || ranks.tied(*running.front(), *running[i]))
        left_.push_back(running[i]->of->what);
  }

  std::vector<combination> left_;
  int round_ = 0;
};

}  // namespace railpass::internal::tune
