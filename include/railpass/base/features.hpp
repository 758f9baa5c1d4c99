// SPDX-License-Identifier: BSL-1.0
//
// Features of a problem: sizes on which times depend steadily, such as lengths of messages.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace railpass {

/// How far what is known of some features is from what is wanted, which has as many.
using feature_distance = std::function<double(std::span<const std::int64_t> known,
                                              std::span<const std::int64_t> wanted)>;

}  // namespace railpass
