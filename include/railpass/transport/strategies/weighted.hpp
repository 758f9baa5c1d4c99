// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_STRATEGY
RAILPASS_LIST_STRATEGY(weighted,
                       "large messages split by the rails' rates, whatever the rails are doing")
#elif !defined(RAILPASS_STRATEGY_WEIGHTED)
#define RAILPASS_STRATEGY_WEIGHTED

#include "railpass/transport/strategy.hpp"

namespace railpass::transport {

/// Every large message is split in proportion to the rates of the rails, whatever they are doing;
/// small ones go to the rail with the lowest latency. To compare with.
class weighted_strategy final : public strategy {
 public:
  std::size_t small(std::size_t idle_rail, const rails_view& rails,
                    std::span<const std::int64_t>) const override {
    return detail::lowest_latency(rails.rails) == idle_rail ? 1 : 0;
  }
  std::int64_t large(std::size_t idle_rail, const rails_view& rails,
                     const large_view& l) const override {
    double weights[most_rails] = {};
    for (std::size_t i = 0; i < rails.rails.size(); ++i)
      weights[i] = rails.rails[i].time->bytes_per_s();
    return detail::fixed_share(idle_rail, {weights, rails.rails.size()}, l);
  }
};

}  // namespace railpass::transport
#endif
