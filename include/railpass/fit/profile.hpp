// SPDX-License-Identifier: BSL-1.0
//
// From measurements to a profile. The layer fit is the only one whose headers include Eigen.
#pragma once

#include "collectives/registry.hpp"
#include "models/samples.hpp"
#include "railpass/base/error.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/fit/collectives.hpp"
#include "railpass/fit/links.hpp"
#include "railpass/fit/shared_memory.hpp"
#include "railpass/predict/predict.hpp"
#include "railpass/select/belief/prior.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace railpass {

/// Everything that measurements tell about a machine. A link class without samples gets the other
/// one's model and a wide spread. Throws error if there is neither a one-way time of a link nor a
/// time of a collective.
inline profile fit_profile(const measurements& m, const fingerprint& machine_id,
                           std::string sampled_at) {
  profile result{.machine_id = machine_id, .sampled_at = std::move(sampled_at)};
  result.core_share = m.core_share;
  result.machine = select::generic_machine();
  if (!m.copies.empty()) result.machine.copy = fit_local(m.copies);
  if (!m.reductions.empty()) result.machine.reduce = fit_local(m.reductions);
  result.machine.shared = fit_shared_memory(m, result.machine.shared);

  const auto sampled = [&](link_class link) {
    return std::any_of(m.links.begin(), m.links.end(),
                       [&](const link_sample& s) { return s.link == link; });
  };
  const bool same_node = sampled(link_class::same_node), across = sampled(link_class::across_nodes);
  if (same_node) result.machine.same_node = fit_link(m, link_class::same_node);
  if (across) result.machine.across_nodes = fit_link(m, link_class::across_nodes);
  if (same_node && !across) {
    result.machine.across_nodes = result.machine.same_node;
    result.machine.across_nodes.residual_spread = unsampled_spread;
  }
  if (across && !same_node) {
    result.machine.same_node = result.machine.across_nodes;
    result.machine.same_node.residual_spread = unsampled_spread;
  }

  bool any_closed_form = false;
  std::map<std::tuple<std::string, int, int, std::int64_t>, std::vector<double>> native;
  for (const collective_time& t : m.collectives) {
    const auto op = find_collective(t.collective);
    const algorithm* base =
        op ? find_algorithm(*op, std::string_view(t.arm).substr(0, t.arm.find('+'))) : nullptr;
    if (base && base->is_native())
      native[{t.collective, t.num_ranks, t.ranks_per_node, t.bytes}].push_back(t.median_s);
    else
      any_closed_form = true;
  }
  for (const auto& [key, seconds] : native) {
    const auto& [collective, num_ranks, ranks_per_node, bytes] = key;
    result.measured.push_back({.collective = collective,
                               .arm = "native",
                               .num_ranks = num_ranks,
                               .ranks_per_node = ranks_per_node,
                               .bytes = bytes,
                               .median_s = median(seconds)});
  }
  if (any_closed_form) {
    collective_fit fit =
        fit_collectives(result.machine, m.collectives,
                        same_node || across ? machine_trust::sampled : machine_trust::guessed);
    result.machine = std::move(fit.machine);
    result.corrections = std::move(fit.corrections);
    if (!same_node && !across) {
      const auto spread_of = [&](link_class link) {
        const bool used = std::ranges::any_of(m.collectives, [&](const collective_time& t) {
          return t.arm != "native" && uses_link(t, link);
        });
        return used ? fit.residual_spread : unsampled_spread;
      };
      result.machine.same_node.residual_spread = spread_of(link_class::same_node);
      result.machine.across_nodes.residual_spread = spread_of(link_class::across_nodes);
    }
  } else if (!same_node && !across) {
    throw error("fit: expected one-way times of a link or times of algorithms, found neither");
  }
  return result;
}

}  // namespace railpass
