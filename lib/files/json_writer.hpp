// SPDX-License-Identifier: BSL-1.0
//
// The text of JSON documents, so that json_reader.hpp can read it back.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace railpass::internal::files {

// Ordered, so that files read well and stay comparable line by line.
using json = nlohmann::ordered_json;

/// The text of a document. Bytes that are no UTF-8 (a CPU's name, say) become replacement
/// characters.
/// @throws error if a number is not finite
std::string document_text(const json& j);

inline void put_optional(json& j, const char* key, const std::optional<double>& x) {
  if (x) j[key] = *x;
}

}  // namespace railpass::internal::files
