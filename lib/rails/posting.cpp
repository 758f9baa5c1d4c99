// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/posting.hpp"

#include "railpass/base/clock.hpp"

#include <algorithm>
#include <vector>

namespace railpass::internal {

namespace {

constexpr double least_pause_s = 10e-3, most_pause_s = 1;  // from one post to the next

}  // namespace

posting::posting(std::uint64_t id, int num_ranks, const transport::transport& of)
    : of_(of), board_(id, num_ranks, int(of.rails().size()), of.rank()) {
  post();
}

void posting::post() {
  const double now_s = steady_clock_s();
  if (now_s < next_s_) return;
  std::vector<posted_rail> rails;
  for (std::size_t r = 0; r < of_.rails().size(); ++r) {
    const transport::rail_report known = of_.report(int(r));
    rails.push_back({.rail = of_.rails()[r]->name(),
                     .sent_bytes = known.sent_bytes,
                     .bytes_per_s = known.bytes_per_s,
                     .prediction_error = known.prediction_error,
                     .backlog_bytes = of_.rails()[r]->under_way_bytes(),
                     .posted_at_s = now_s});
  }
  board_.post(rails);
  const double took_s = steady_clock_s() - now_s;
  next_s_ = now_s + std::clamp(1e3 * took_s, least_pause_s, most_pause_s);
}

}  // namespace railpass::internal
