// SPDX-License-Identifier: BSL-1.0
//
// Whole files in and out, by the tables of their fields.
#include "lib/files/advisories_fields.hpp"
#include "lib/files/bench_fields.hpp"
#include "lib/files/files.hpp"
#include "lib/files/halts_fields.hpp"
#include "lib/files/knowledge_fields.hpp"
#include "lib/files/plan_fields.hpp"
#include "lib/files/profile_fields.hpp"
#include "lib/files/quarantine_fields.hpp"
#include "lib/files/rails_fields.hpp"
#include "lib/files/samples_fields.hpp"
#include "lib/files/shipped_advisories.hpp"
#include "lib/files/statistics_fields.hpp"

namespace railpass::internal::files {

std::string to_json(const profile& p) { return document_of(p); }
profile parse_profile(std::string_view text, const std::string& name) {
  const json_document document(text, name);
  constexpr document_format format = format_for<profile>;
  if (document.expect(format.name, format.version).integer("version", 1) < format.version)
    throw error(name + ": the version of this profile is no longer supported: expected version " +
                std::to_string(format.version) +
                "; run `railpass fit` again on the original samples and bench results");
  return read_document<profile>(document);
}
profile read_profile(const std::string& path) { return parse_profile(read_text(path), path); }
profile read_profile(const std::string& path, const fingerprint& here) {
  profile p = read_profile(path);
  if (const std::string why = mismatch(p.machine_id, here); !why.empty())
    throw error(path + ": this profile is for another machine: " + why);
  return p;
}

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

std::string to_json(const transport::rails_measurement& m) { return document_of(m); }
transport::rails_measurement parse_rails(std::string_view text, const std::string& name) {
  return parse_document<transport::rails_measurement>(text, name);
}
transport::rails_measurement read_rails(const std::string& path) {
  return parse_rails(read_text(path), path);
}

std::string to_json(const knowledge::collection& c) { return document_of(c); }
knowledge::collection parse_knowledge(std::string_view text, const std::string& name) {
  return parse_document<knowledge::collection>(text, name);
}
knowledge::collection read_knowledge(const std::string& path) {
  return parse_knowledge(read_text(path), path);
}

std::string to_json(const knowledge::plan& p) { return document_of(p); }
knowledge::plan parse_plan(std::string_view text, const std::string& name) {
  return parse_document<knowledge::plan>(text, name);
}
knowledge::plan parse_plan(std::string_view text, const std::string& name,
                           const fingerprint& here) {
  knowledge::plan p = parse_plan(text, name);
  if (const std::string why = mismatch(p.machine, knowledge::marks_for_plan(here)); !why.empty())
    throw error(name + ": this plan is for another machine: " + why);
  return p;
}

std::string to_json(const knowledge::advisory_list& l) { return document_of(l); }
knowledge::advisory_list parse_advisories(std::string_view text, const std::string& name) {
  return parse_document<knowledge::advisory_list>(text, name);
}
knowledge::advisory_list read_advisories(const std::string& path) {
  return parse_advisories(read_text(path), path);
}
knowledge::advisory_list shipped_advisories() {
  return parse_advisories(text_of_shipped_advisories, "advisories.json");
}

std::string to_json(const knowledge::quarantined& q) { return document_of(q); }
knowledge::quarantined parse_quarantine(std::string_view text, const std::string& name) {
  return parse_document<knowledge::quarantined>(text, name);
}

std::string to_json(const knowledge::halted_rank& r) { return document_of(r); }
knowledge::halted_rank parse_halt(std::string_view text, const std::string& name) {
  return parse_document<knowledge::halted_rank>(text, name);
}

}  // namespace railpass::internal::files
