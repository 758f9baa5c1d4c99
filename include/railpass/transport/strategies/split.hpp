// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_STRATEGY
RAILPASS_LIST_STRATEGY(split, "as auto, but every small message is a transmission of its own")
#elif !defined(RAILPASS_STRATEGY_SPLIT)
#define RAILPASS_STRATEGY_SPLIT

#include "railpass/transport/strategy.hpp"

namespace railpass::transport {

/// As auto, but every small message is a transmission of its own.
class split_strategy final : public strategy {
 public:
  std::size_t small(std::size_t idle_rail, const rails_view& rails,
                    std::span<const std::int64_t> sizes) const override {
    return soonest(rails.rails, double(sizes.front())) == idle_rail ? 1 : 0;
  }
  std::int64_t large(std::size_t idle_rail, const rails_view& rails,
                     const large_view& l) const override {
    return detail::exact_share(idle_rail, rails, l);
  }
};

}  // namespace railpass::transport
#endif
