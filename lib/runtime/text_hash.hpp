// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <string_view>

namespace railpass::internal {

/// Hash (FNV-1a) of a list of texts, equal on all ranks.
class text_hash {
 public:
  text_hash& add(std::string_view text) {
    for (const char c : text) add_byte(std::uint8_t(c));
    add_byte(0xff);
    return *this;
  }
  std::uint64_t value() const { return hash_; }

 private:
  void add_byte(std::uint8_t byte) { hash_ = (hash_ ^ byte) * 1099511628211u; }
  std::uint64_t hash_ = 14695981039346656037u;
};

}  // namespace railpass::internal
