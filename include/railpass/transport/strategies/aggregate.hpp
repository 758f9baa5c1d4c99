// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_STRATEGY
RAILPASS_LIST_STRATEGY(
    aggregate,
    "small messages together on the quickest rail, a large one whole on the first idle rail")
#elif !defined(RAILPASS_STRATEGY_AGGREGATE)
#define RAILPASS_STRATEGY_AGGREGATE

#include "railpass/transport/strategy.hpp"

namespace railpass::transport {

/// Small messages that wait together go in one transmission on the rail that carries them soonest;
/// a large one goes whole to the first rail that is idle.
class aggregate_strategy final : public strategy {
 public:
  std::size_t small(std::size_t idle_rail, const rails_view& rails,
                    std::span<const std::int64_t> sizes) const override {
    if (soonest(rails.rails, double(sizes.front())) != idle_rail) return 0;
    return detail::as_many_as_fit(rails, sizes);
  }
  std::int64_t large(std::size_t idle_rail, const rails_view&, const large_view& l) const override {
    return detail::whole(idle_rail, l);
  }
};

}  // namespace railpass::transport
#endif
