// SPDX-License-Identifier: BSL-1.0
//
// Whole files in and out, by the tables of their fields.
#include "lib/files/bench_fields.hpp"
#include "lib/files/files.hpp"
#include "lib/files/knowledge_fields.hpp"
#include "lib/files/samples_fields.hpp"
#include "lib/files/statistics_fields.hpp"

namespace railpass::internal::files {

std::string to_json(const sample_set& s) { return document_of(s); }
sample_set parse_samples(std::string_view text, const std::string& name) {
  return parse_document<sample_set>(text, name);
}
sample_set read_samples(const std::string& path) { return parse_samples(read_text(path), path); }

std::string to_json(const bench_results& b) { return document_of(b); }
bench_results parse_bench(std::string_view text, const std::string& name) {
  return parse_document<bench_results>(text, name);
}
bench_results read_bench(const std::string& path) { return parse_bench(read_text(path), path); }

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
