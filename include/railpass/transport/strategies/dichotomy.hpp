// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_STRATEGY
RAILPASS_LIST_STRATEGY(dichotomy,
                       "as auto, but each large message by itself, split by dichotomy on the ratio")
#elif !defined(RAILPASS_STRATEGY_DICHOTOMY)
#define RAILPASS_STRATEGY_DICHOTOMY

#include "railpass/transport/strategy.hpp"

namespace railpass::transport {

/// How NewMadeleine splits (A sampling-based approach for communication libraries auto-tuning, IEEE
/// Cluster 2011, https://hal.inria.fr/inria-00605735). Rails that become idle after another one
/// would have carried everything are left aside. Two rails begin with halves, and whichever would
/// finish first takes half of what is undecided from the other one, until one byte is. Three and
/// more: what each carries at its rate for large messages from when it is idle, latencies left out,
/// so that they do not finish together. The shares add up to `bytes`.
inline void split_by_dichotomy(std::span<const rail_outlook> rails, std::int64_t bytes,
                               std::span<std::int64_t> shares) {
  const auto total = double(bytes);
  double alone_s = std::numeric_limits<double>::infinity();
  for (const rail_outlook& r : rails) alone_s = std::min(alone_s, finish_s(r, total));
  std::size_t used[most_rails], n = 0;
  for (std::size_t i = 0; i < rails.size(); ++i)
    if (finish_s(rails[i], 0) < alone_s) used[n++] = i;
  double exact[most_rails] = {};
  if (n == 2) {
    double low = 0, high = total;  // of the first one's share
    while (high - low > 1) {
      const double part = (low + high) / 2;
      const bool first_is_quicker =
          finish_s(rails[used[0]], part) < finish_s(rails[used[1]], total - part);
      (first_is_quicker ? low : high) = part;
    }
    exact[used[0]] = low;
    exact[used[1]] = total - low;
  } else {
    for (std::size_t before = n + 1; n < before;) {
      double carried = total, rate = 0;
      for (std::size_t k = 0; k < n; ++k) {
        const rail_outlook& r = rails[used[k]];
        carried += r.busy_s * r.time->bytes_per_s();
        rate += r.time->bytes_per_s();
      }
      before = n;
      n = 0;
      for (std::size_t k = 0; k < before; ++k) {
        const rail_outlook& r = rails[used[k]];
        exact[used[k]] = std::max(0.0, (carried / rate - r.busy_s) * r.time->bytes_per_s());
        if (exact[used[k]] > 0) used[n++] = used[k];
      }
    }
  }
  detail::to_bytes({exact, rails.size()}, bytes, shares.first(rails.size()));
}

/// To compare with auto: knows neither what else waits, nor which rails share a bottleneck.
class dichotomy_strategy final : public strategy {
 public:
  std::size_t small(std::size_t idle_rail, const rails_view& rails,
                    std::span<const std::int64_t> sizes) const override {
    if (soonest(rails.rails, double(sizes.front())) != idle_rail) return 0;
    return detail::as_many_as_fit(rails, sizes);
  }
  std::int64_t large(std::size_t idle_rail, const rails_view& rails,
                     const large_view& l) const override {
    std::int64_t shares[most_rails] = {};
    split_by_dichotomy(rails.rails, l.left_bytes, shares);
    return shares[idle_rail];
  }
};

}  // namespace railpass::transport
#endif
