// SPDX-License-Identifier: BSL-1.0
#ifdef RAILPASS_LIST_STRATEGY
RAILPASS_LIST_STRATEGY(auto,
                       "small messages together on the quickest rail, large ones split so that all "
                       "rails finish together")
#elif !defined(RAILPASS_STRATEGY_AUTO)
#define RAILPASS_STRATEGY_AUTO

#include "railpass/transport/strategy.hpp"

namespace railpass::transport {

/// Small messages that wait together on the rail that carries them soonest, in one transmission;
/// large ones split so that all rails finish together. What the paper of 2007 on NewMadeleine
/// (High-performance multi-rail support with the NewMadeleine communication library, HCW 2007)
/// arrives at, with the split of the one of 2011.
class auto_strategy final : public strategy {
 public:
  std::size_t small(std::size_t idle_rail, const rails_view& rails,
                    std::span<const std::int64_t> sizes) const override {
    if (soonest(rails.rails, double(sizes.front())) != idle_rail) return 0;
    return detail::as_many_as_fit(rails, sizes);
  }
  std::int64_t large(std::size_t idle_rail, const rails_view& rails,
                     const large_view& l) const override {
    return detail::exact_share(idle_rail, rails, l);
  }
};

}  // namespace railpass::transport
#endif
