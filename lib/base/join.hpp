// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal {

/// The words as a list in a message.
inline std::string join(const std::vector<std::string>& words, std::string_view separator = ", ") {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : separator).append(word);
  return text;
}

}  // namespace railpass::internal
