// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_STRATEGY
RAILPASS_LIST_STRATEGY(equal, "large messages split into equal parts")
#elif !defined(RAILPASS_STRATEGY_EQUAL)
#define RAILPASS_STRATEGY_EQUAL

#include "railpass/transport/strategy.hpp"

namespace railpass::transport {

/// Every large message is split into equal parts; small ones go to the rail with the lowest
/// latency. To compare with.
class equal_strategy final : public strategy {
 public:
  std::size_t small(std::size_t idle_rail, const rails_view& rails,
                    std::span<const std::int64_t>) const override {
    return detail::lowest_latency(rails.rails) == idle_rail ? 1 : 0;
  }
  std::int64_t large(std::size_t idle_rail, const rails_view& rails,
                     const large_view& l) const override {
    double weights[most_rails] = {};
    std::fill_n(weights, rails.rails.size(), 1.0);
    return detail::fixed_share(idle_rail, {weights, rails.rails.size()}, l);
  }
};

}  // namespace railpass::transport
#endif
