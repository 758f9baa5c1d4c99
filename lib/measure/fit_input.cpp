// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/fit_input.hpp"

#include "collectives/registry.hpp"
#include "lib/store/store.hpp"
#include "railpass/base/error.hpp"

#include <algorithm>
#include <optional>

namespace railpass::internal::measure {

namespace {

struct origin {
  fingerprint machine_id;
  std::string time;
};

// Where a file of railpass was measured; nothing for the output of other programs.
std::optional<origin> origin_of(const std::string& path) {
  const std::string text = files::read_text(path);
  const std::string format = files::format_of(text, path);
  if (format.empty()) return std::nullopt;
  if (format == "railpass samples") {
    const sample_set s = files::parse_samples(text, path);
    return origin{s.machine_id, s.sampled_at};
  }
  if (format == "railpass bench") {
    const bench_results b = files::parse_bench(text, path);
    return origin{b.machine_id, b.measured_at};
  }
  const select::statistics_dump d = files::parse_statistics(text, path);
  return origin{d.machine_id, d.written_at};
}

bool is_known(const std::string& name, const std::string& arm) {
  const auto op = find_collective(name);
  return op && is_arm(*op, arm);
}

// Files may be of another version of railpass, which had other arms.
void leave_out_unknown_arms(fit_input& from) {
  std::string unknown;
  const auto left_out = std::erase_if(from.all.collectives, [&](const collective_time& t) {
    if (is_known(t.collective, t.arm)) return false;
    if (unknown.empty()) unknown = t.arm + " of " + t.collective;
    return true;
  });
  if (left_out > 0)
    from.problems.push_back("left out " + std::to_string(left_out) +
                            " times of arms that this railpass does not have, such as " + unknown);
}

// The knowledge of earlier runs on a machine, without arms that this railpass does not have.
store::known known_times(const std::string& where, fingerprint here) {
  here.num_hosts = 1;  // knowledge of one host and of several hosts complement each other
  store::known found = store::read(store::locations_of(where), here, 100000);
  for (knowledge::experience& e : found.contexts)
    std::erase_if(e.arms, [&](const knowledge::arm_experience& a) {
      return !is_known(e.of.collective, a.arm);
    });
  return found;
}

}  // namespace

fit_input collect_fit_input(const std::vector<std::string>& paths, const files::import_facts& facts,
                            const std::string& knowledge,
                            const std::function<fingerprint()>& here) {
  fit_input result;
  std::optional<origin> first;
  std::string first_path;
  for (const std::string& path : paths) {
    result.all.append(files::read_measurements(path, facts));
    const auto from = origin_of(path);
    if (!from) continue;
    if (!first) {
      first = from;
      first_path = path;
      continue;
    }
    fingerprint other = from->machine_id;
    other.num_hosts = first->machine_id.num_hosts;  // one host and several complement each other
    if (const std::string why = mismatch(first->machine_id, other); !why.empty())
      throw error(path + ": cannot be fitted together with " + first_path + ": " + why);
    first->machine_id.num_hosts = std::max(first->machine_id.num_hosts, from->machine_id.num_hosts);
  }
  leave_out_unknown_arms(result);
  if (!knowledge.empty()) {
    store::known found = known_times(knowledge, first ? first->machine_id : here());
    result.problems.insert(result.problems.end(), found.problems.begin(), found.problems.end());
    const measurements known = files::measurements_of(found.contexts);
    if (!first && !known.collectives.empty()) {
      first = origin{here(), files::utc_now()};
      if (!paths.empty() && facts.link == link_class::across_nodes) first->machine_id.num_hosts = 2;
    }
    for (const collective_time& t : known.collectives)
      if (t.num_ranks > t.ranks_per_node)
        first->machine_id.num_hosts = std::max(2, first->machine_id.num_hosts);
    result.all.append(known);
  }
  // The output of other programs does not say where it was measured.
  if (!first)
    first = origin{{.num_hosts = facts.link == link_class::across_nodes ? 2 : 1,
                    .cores_per_host = 0,
                    .cpu_model = {},
                    .mpi_library = {}},
                   {}};
  result.machine_id = first->machine_id;
  result.time = first->time;
  return result;
}

}  // namespace railpass::internal::measure
