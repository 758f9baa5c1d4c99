// SPDX-License-Identifier: BSL-1.0
//
// Parts shared by several kinds of files: the marks of a machine, and the time of a collective.
#pragma once

#include "lib/files/json_reader.hpp"
#include "lib/files/json_writer.hpp"
#include "models/profile.hpp"

namespace railpass::internal::files {

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

}  // namespace railpass::internal::files
