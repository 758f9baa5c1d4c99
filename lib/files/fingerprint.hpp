// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/files/json_reader.hpp"
#include "models/profile.hpp"

namespace railpass::files {

// Ordered, so that files read well and stay comparable line by line.
using json = nlohmann::ordered_json;

inline json fingerprint_json(const fingerprint& f) {
  json j{{"num_hosts", f.num_hosts},
         {"cores_per_host", f.cores_per_host},
         {"cpu_model", f.cpu_model},
         {"mpi_library", f.mpi_library}};
  if (!f.rails.empty()) j["rails"] = f.rails;
  return j;
}

inline fingerprint read_fingerprint(const json_reader& r) {
  r.expect_fields({"num_hosts", "cores_per_host", "cpu_model", "mpi_library", "rails"});
  return {.num_hosts = int(r.integer("num_hosts", 1, largest_count)),
          .cores_per_host = int(r.integer("cores_per_host", 0, largest_count)),
          .cpu_model = r.text("cpu_model"),
          .mpi_library = r.text("mpi_library"),
          .rails = r.has("rails") ? r.text("rails") : ""};
}

/// Numbers that JSON cannot say would come out as null and make the file unreadable.
inline void refuse_non_finite(const json& j, const std::string& place) {
  if (j.is_number_float() && !std::isfinite(j.get<double>()))
    throw error("cannot write " + place + ": it is not a finite number");
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

inline json collective_time_json(const collective_time& t) {
  return {{"collective", t.collective},         {"arm", t.arm},     {"num_ranks", t.num_ranks},
          {"ranks_per_node", t.ranks_per_node}, {"bytes", t.bytes}, {"median_s", t.median_s}};
}

inline collective_time read_collective_time(const json_reader& r) {
  r.expect_fields({"collective", "arm", "num_ranks", "ranks_per_node", "bytes", "median_s"});
  return {.collective = r.name("collective"),
          .arm = r.name("arm"),
          .num_ranks = int(r.integer("num_ranks", 1, largest_count)),
          .ranks_per_node = int(r.integer("ranks_per_node", 1, largest_count)),
          .bytes = r.integer("bytes"),
          .median_s = r.positive("median_s")};
}

}  // namespace railpass::files
