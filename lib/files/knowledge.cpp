// SPDX-License-Identifier: BSL-1.0
//
// Knowledge files, which carry results of runs from one store to another.
#include "lib/files/files.hpp"
#include "lib/files/knowledge_parts.hpp"

namespace railpass::internal::files {

namespace {

constexpr std::string_view format = "railpass knowledge";
constexpr int version = 1;

}  // namespace

std::string to_json(const knowledge::collection& c) {
  json runs = json::array();
  for (const knowledge::stored_run& r : c.runs) {
    json contexts = json::array();
    for (const knowledge::experience& e : r.run.contexts) contexts.push_back(experience_json(e));
    runs.push_back({{"ids", r.ids},
                    {"machine_id", fingerprint_json(r.run.machine)},
                    {"was", conditions_json(r.run.was)},
                    {"ended_at", r.run.ended_at},
                    {"contexts", std::move(contexts)}});
  }
  return document_text({{"format", format},
                        {"version", version},
                        {"written_at", c.written_at},
                        {"runs", std::move(runs)}});
}

knowledge::collection parse_knowledge(std::string_view text, const std::string& name) {
  const json_document document(text, name);
  const json_reader top = document.expect(format, version);
  top.expect_fields({"format", "version", "written_at", "runs"});
  knowledge::collection c{.written_at = detail::point_in_time(top, "written_at")};
  for (const json_reader& r : top.list("runs")) {
    r.expect_fields({"ids", "machine_id", "was", "ended_at", "contexts"});
    knowledge::stored_run& run = c.runs.emplace_back();
    run.ids = read_run_ids(r.field("ids"));
    if (run.ids.empty()) r.field("ids").fail("expected at least one name");
    run.run.machine = read_fingerprint(r.field("machine_id"));
    run.run.was = read_conditions(r.field("was"));
    run.run.ended_at = detail::point_in_time(r, "ended_at");
    for (const json_reader& e : r.list("contexts")) run.run.contexts.push_back(read_experience(e));
  }
  return c;
}

knowledge::collection read_knowledge(const std::string& path) {
  return parse_knowledge(read_text(path), path);
}

}  // namespace railpass::internal::files
