// SPDX-License-Identifier: BSL-1.0
//
// All strategies of strategies.def, by name.
#pragma once

#include "railpass/base/error.hpp"
#include "railpass/base/names.hpp"
#include "railpass/transport/strategies.def"
#include "railpass/transport/strategy.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace railpass::transport {

struct strategy_description {
  std::string_view name;
  std::string_view text;
  std::unique_ptr<strategy> (*make)();
};

#define RAILPASS_LIST_STRATEGY(name, text)                              \
  strategy_description{#name, text, []() -> std::unique_ptr<strategy> { \
                         return std::make_unique<name##_strategy>();    \
                       }},
inline constexpr strategy_description strategies[] = {
#include "railpass/transport/strategies.def"
};
#undef RAILPASS_LIST_STRATEGY

/// Throws error listing the known ones if there is none of this name.
inline std::unique_ptr<strategy> make_strategy(std::string_view name) {
  for (const strategy_description& s : strategies)
    if (s.name == name) return s.make();
  throw error("strategy " + expected_one_of(name, strategies, &strategy_description::name));
}

}  // namespace railpass::transport
