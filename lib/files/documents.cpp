// SPDX-License-Identifier: BSL-1.0
//
// Whole files in and out, by the tables of their fields.
#include "lib/files/files.hpp"
#include "lib/files/knowledge_fields.hpp"
#include "lib/files/statistics_fields.hpp"

namespace railpass::internal::files {

std::string to_json(const select::statistics_dump& d) { return document_of(d); }
select::statistics_dump parse_statistics(std::string_view text, const std::string& name) {
  return parse_document<select::statistics_dump>(text, name);
}
select::statistics_dump read_statistics(const std::string& path) {
  return parse_statistics(read_text(path), path);
}

std::string to_json(const knowledge::collection& c) { return document_of(c); }
knowledge::collection parse_knowledge(std::string_view text, const std::string& name) {
  return parse_document<knowledge::collection>(text, name);
}
knowledge::collection read_knowledge(const std::string& path) {
  return parse_knowledge(read_text(path), path);
}

}  // namespace railpass::internal::files
