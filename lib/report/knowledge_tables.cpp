// SPDX-License-Identifier: BSL-1.0
#include "lib/report/knowledge_tables.hpp"

#include "railpass/base/printable.hpp"
#include "railpass/base/units.hpp"
#include "railpass/knowledge/freeze.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace railpass::internal::report {

namespace {

using nlohmann::ordered_json;

struct best_arm {
  const knowledge::arm_experience* arm = nullptr;
  knowledge::gain_over_native than_native{};
};

best_arm best_of(const knowledge::experience& e) {
  return {knowledge::best_arm_of(e), knowledge::surest_gain(e).second};
}

std::string speedup_text(const best_arm& best) {
  const auto& [gain, deviation] = best.than_native;
  if (best.arm->arm == "native" || !deviation) return "-";
  const double reach = 1.96 * *deviation;
  return fixed(std::exp(gain), 2) + " (" + fixed(std::exp(gain - reach), 2) + " .. " +
         fixed(std::exp(gain + reach), 2) + ")";
}

ordered_json json_of(const knowledge::experience& e, const best_arm& best) {
  ordered_json j{{"collective", e.of.collective},
                 {"operation", e.of.operation},
                 {"num_ranks", e.of.num_ranks},
                 {"ranks_per_node", e.of.ranks_per_node},
                 {"kind", e.of.kind},
                 {"bytes", e.of.bytes},
                 {"best_arm", best.arm->arm},
                 {"median_s", best.arm->times.quantiles.median_s},
                 {"samples", best.arm->times.samples},
                 {"runs", e.runs},
                 {"last_at", e.last_at}};
  if (best.than_native.deviation) {
    j["speedup"] = std::exp(best.than_native.gain);
    j["speedup_spread"] = *best.than_native.deviation;
  }
  return j;
}

}  // namespace

std::string text_of(const fingerprint& m) {
  return printable(
      (m.cpu_model.empty() ? "unknown CPU" : m.cpu_model) + ", " +
      (m.cores_per_host > 0 ? std::to_string(m.cores_per_host) + " cores" : "unknown cores") +
      ", " + (m.mpi_library.empty() ? "unknown MPI library" : m.mpi_library) +
      (m.num_hosts > 1 ? ", several hosts" : ", one host") +
      (m.rails.empty() ? "" : ", rails " + m.rails));
}

ordered_json to_json(const fingerprint& m) {
  ordered_json j{{"num_hosts", m.num_hosts},
                 {"cores_per_host", m.cores_per_host},
                 {"cpu_model", m.cpu_model},
                 {"mpi_library", m.mpi_library}};
  if (!m.rails.empty()) j["rails"] = m.rails;
  return j;
}

std::vector<best_arms> best_arms_of(std::span<const knowledge::experience> known) {
  std::map<std::string, std::vector<const knowledge::experience*>> by_title;
  for (const knowledge::experience& e : known)
    by_title[e.of.collective + (e.of.operation == "none" ? "" : ", operation " + e.of.operation)]
        .push_back(&e);
  std::vector<best_arms> all;
  for (auto& [title, contexts] : by_title) {
    std::ranges::sort(contexts, {}, [](const knowledge::experience* e) {
      return std::tie(e->of.num_ranks, e->of.ranks_per_node, e->of.kind, e->of.rails, e->of.bytes);
    });
    best_arms one{.title = title,
                  .lines = table({"ranks", "per node", "communicator", "size", "best arm", "time",
                                  "times as fast as native", "samples", "runs", "last"},
                                 4),
                  .contexts = {}};
    for (const knowledge::experience* e : contexts) {
      const best_arm best = best_of(*e);
      one.lines.add({std::to_string(e->of.num_ranks), std::to_string(e->of.ranks_per_node),
                     e->of.kind, format_bytes(e->of.bytes), best.arm->arm,
                     format_seconds(best.arm->times.quantiles.median_s), speedup_text(best),
                     std::to_string(best.arm->times.samples), std::to_string(e->runs),
                     e->last_at.substr(0, 10)});
      one.contexts.push_back(json_of(*e, best));
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace railpass::internal::report
