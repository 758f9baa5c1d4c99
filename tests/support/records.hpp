// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "railpass/base/log.hpp"

#include <string>
#include <vector>

namespace railpass::test {

/// What railpass records while this lives.
struct records {
  std::vector<std::string> texts;
  records() {
    set_log_handler(
        [](const char* text, void* self) { static_cast<records*>(self)->texts.emplace_back(text); },
        this);
  }
  ~records() { set_log_handler(nullptr); }
  bool any_has(const std::string& part) const {
    for (const std::string& text : texts)
      if (text.find(part) != std::string::npos) return true;
    return false;
  }
};

}  // namespace railpass::test
