// SPDX-License-Identifier: BSL-1.0
//
// The schemas of docs/reference/schemas are those of the fields that lib/files reads and writes.
// RAILPASS_WRITE_SCHEMAS=1 writes them anew.
#include "lib/files/advisories_fields.hpp"
#include "lib/files/bench_fields.hpp"
#include "lib/files/comparison_fields.hpp"
#include "lib/files/files.hpp"
#include "lib/files/halts_fields.hpp"
#include "lib/files/knowledge_fields.hpp"
#include "lib/files/plan_fields.hpp"
#include "lib/files/profile_fields.hpp"
#include "lib/files/quarantine_fields.hpp"
#include "lib/files/rails_fields.hpp"
#include "lib/files/samples_fields.hpp"
#include "lib/files/schema.hpp"
#include "lib/files/statistics_fields.hpp"
#include "support/catch.hpp"

#include <cstdlib>

using namespace railpass;
using namespace railpass::internal;
using files::json;

namespace {

// A line for each value that fits in it.
std::string laid_out(const json& j, const std::string& indent = "") {
  constexpr std::size_t width = 120;
  if (!j.is_structured()) return j.dump();
  const std::string deeper = indent + ' ';
  std::string line, lines;
  for (const auto& [key, value] : j.items()) {
    const std::string name = j.is_object() ? json(key).dump() + ": " : "",
                      text = name + laid_out(value, deeper);
    line += (line.empty() ? "" : ", ") + text;
    lines += (lines.empty() ? "\n" : ",\n") + deeper + text;
  }
  const bool fits = indent.size() + line.size() < width && line.find('\n') == std::string::npos;
  const bool is_list = j.is_array() && !j.empty() && !j.front().is_structured();
  const std::string inside = fits || is_list ? line : lines + '\n' + indent;
  return j.is_object() ? '{' + inside + '}' : '[' + inside + ']';
}

template <class T>
void check_schema() {
  const std::string format = files::format_for<T>.name;
  const std::string path =
      std::string(RAILPASS_SCHEMAS) + '/' + format.substr(format.find(' ') + 1) + ".json";
  const std::string text = laid_out(files::document_schema<T>()) + '\n';
  if (std::getenv("RAILPASS_WRITE_SCHEMAS")) files::write_text(path, text);
  INFO(path << " is stale: RAILPASS_WRITE_SCHEMAS=1 unit_schemas writes it anew");
  CHECK(files::read_text(path) == text);
}

}  // namespace

TEST_CASE("schemas are those of the fields") {
  check_schema<bench_results>();
  check_schema<files::comparison>();
  check_schema<knowledge::advisory_list>();
  check_schema<knowledge::collection>();
  check_schema<knowledge::halted_rank>();
  check_schema<knowledge::plan>();
  check_schema<knowledge::quarantined>();
  check_schema<profile>();
  check_schema<transport::rails_measurement>();
  check_schema<sample_set>();
  check_schema<select::statistics_dump>();
}
