// SPDX-License-Identifier: BSL-1.0
//
// The text of JSON documents, so that json_reader.hpp can read it back.
#pragma once

#include "railpass/base/error.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <optional>
#include <string>

namespace railpass::internal::files {

// Ordered, so that files read well and stay comparable line by line.
using json = nlohmann::ordered_json;

/// Numbers that JSON cannot say would come out as null and make the file unreadable.
inline void refuse_non_finite(const json& j, const std::string& place) {
  if (j.is_number_float() && !std::isfinite(j.get<double>()))
    throw error("cannot write " + place + ": not a finite number");
  for (const auto& [key, item] : j.items())
    if (j.is_structured()) refuse_non_finite(item, place + '/' + key);
}

/// The text of a document. Bytes that are no UTF-8 (a CPU's name, say) become replacement
/// characters.
inline std::string document_text(const json& j) {
  refuse_non_finite(j, j.value("format", ""));
  return j.dump(1, ' ', false, json::error_handler_t::replace) + '\n';
}

inline void put_optional(json& j, const char* key, const std::optional<double>& x) {
  if (x) j[key] = *x;
}

}  // namespace railpass::internal::files
