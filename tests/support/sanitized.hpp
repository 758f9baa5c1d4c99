// SPDX-License-Identifier: BSL-1.0
//
// The sanitizers make everything take ten times as long, and look for wrong memory, which shows in
// one of many like cases. How good results are is said by the same tests without sanitizers.
#pragma once

namespace railpass::test {

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace railpass::test
