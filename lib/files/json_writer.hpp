// SPDX-License-Identifier: BSL-1.0
//
// The text of JSON documents, so that json_reader.hpp can read it back.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace railpass::internal::files {

// Ordered, so that files read well and stay comparable line by line.
using json = nlohmann::ordered_json;

/// The text of a document. Bytes that are no UTF-8 (a CPU's name, say) become replacement
/// characters.
/// @throws error if a number is not finite
std::string document_text(const json& j);

}  // namespace railpass::internal::files
