// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_STRATEGY
RAILPASS_LIST_STRATEGY(greedy, "the first idle rail takes the first message that waits, whole")
#elif !defined(RAILPASS_STRATEGY_GREEDY)
#define RAILPASS_STRATEGY_GREEDY

#include "railpass/transport/strategy.hpp"

namespace railpass::transport {

/// The first rail that is idle takes the first message that waits, whole.
class greedy_strategy final : public strategy {
 public:
  std::size_t small(std::size_t, const rails_view&, std::span<const std::int64_t>) const override {
    return 1;
  }
  std::int64_t large(std::size_t idle_rail, const rails_view&, const large_view& l) const override {
    return detail::whole(idle_rail, l);
  }
};

}  // namespace railpass::transport
#endif
