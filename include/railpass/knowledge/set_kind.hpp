// SPDX-License-Identifier: BSL-1.0
//
// The properties that distinguish contexts of a function set, as the text that dumps and knowledge
// have in place of an operation: "set+shape=64x64+features=8192x512+region=solve".
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace railpass::knowledge {

struct set_kind {
  std::vector<std::int64_t> shape{}, features{};
  std::string region{};  ///< the region whose times count; empty: the calls' own times
  friend bool operator==(const set_kind&, const set_kind&) = default;

  std::string text() const {
    return "set" + part("+shape=", shape) + part("+features=", features) +
           (region.empty() ? "" : "+region=" + region);
  }
  /// Parses such a text; empty if it is none.
  static std::optional<set_kind> of(std::string_view text) {
    if (!taken(text, "set")) return std::nullopt;
    set_kind kind;
    if (!take(text, "+shape=", kind.shape) || !take(text, "+features=", kind.features))
      return std::nullopt;
    if (taken(text, "+region=")) kind.region = std::exchange(text, {});
    if (!text.empty()) return std::nullopt;
    return kind;
  }

 private:
  static std::string part(const char* name, const std::vector<std::int64_t>& sizes) {
    std::string text;
    for (const std::int64_t n : sizes) text += (text.empty() ? name : "x") + std::to_string(n);
    return text;
  }
  static bool taken(std::string_view& text, std::string_view start) {
    if (!text.starts_with(start)) return false;
    text.remove_prefix(start.size());
    return true;
  }
  // Returns false if the text starts with the name but is invalid.
  static bool take(std::string_view& text, std::string_view name,
                   std::vector<std::int64_t>& sizes) {
    if (!taken(text, name)) return true;
    do {
      std::int64_t n = 0;
      const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), n);
      if (problem != std::errc()) return false;
      text.remove_prefix(std::size_t(end - text.data()));
      sizes.push_back(n);
    } while (taken(text, "x"));
    return true;
  }
};

}  // namespace railpass::knowledge
