// SPDX-License-Identifier: BSL-1.0
//
// Memory of files in memory: allocated now, so that no later access fails.
#pragma once

#include "lib/base/descriptor.hpp"

#include <algorithm>
#include <cstdint>
#include <fcntl.h>

namespace railpass::internal {

/// Allocates memory for a part of a file. False: see errno.
inline bool allocate(int descriptor, std::int64_t begin, std::int64_t bytes) {
  // A signal undoes the whole call: a timer could undo a long one again and again.
  constexpr std::int64_t piece = 64 << 10;
  for (const std::int64_t end = begin + bytes; begin < end; begin += piece)
    if (uninterrupted(
            [&] { return ::fallocate(descriptor, 0, begin, std::min(piece, end - begin)); }) != 0)
      return false;
  return true;
}

}  // namespace railpass::internal
