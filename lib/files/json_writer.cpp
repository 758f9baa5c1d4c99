// SPDX-License-Identifier: BSL-1.0
#include "lib/files/json_writer.hpp"

#include "railpass/base/error.hpp"

#include <cmath>

namespace railpass::internal::files {
namespace {

// Numbers that JSON cannot say would come out as null and make the file unreadable.
void refuse_non_finite(const json& j, const std::string& path) {
  if (j.is_number_float() && !std::isfinite(j.get<double>()))
    throw error("cannot write " + path + ": not a finite number");
  for (const auto& [key, item] : j.items())
    if (j.is_structured()) refuse_non_finite(item, path + '/' + key);
}

}  // namespace

std::string document_text(const json& j) {
  refuse_non_finite(j, j.value("format", ""));
  return j.dump(1, ' ', false, json::error_handler_t::replace) + '\n';
}

}  // namespace railpass::internal::files
