// SPDX-License-Identifier: BSL-1.0
#include "lib/report/profile_tables.hpp"

#include "railpass/base/units.hpp"
#include "railpass/fit/links.hpp"
#include "railpass/select/belief/misfit.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace railpass::internal::report {

namespace {

void print_link(const std::string& name, const link_model& link, output& out) {
  out.words() << name << ": eager up to "
              << (std::isfinite(link.eager_limit_bytes)
                      ? format_bytes(std::int64_t(link.eager_limit_bytes))
                      : "any size")
              << ", measured times lie within a factor " << fixed(std::exp(link.residual_spread), 2)
              << " (residual spread " << fixed(link.residual_spread, 3) << ")\n";
  table lines({"from bytes", "latency L", "send o", "receive o", "gap g", "ns per byte", "MB/s"});
  const auto overhead = [](double seconds, double s_per_byte) {
    return format_seconds(seconds) +
           (s_per_byte > 0 ? " + " + fixed(s_per_byte * 1e9, 3) + " ns/B" : "");
  };
  for (const link_piece& p : link.pieces)
    lines.add({format_bytes(std::int64_t(p.from_bytes)), format_seconds(p.latency_s),
               overhead(p.send_overhead_s, p.send_overhead_s_per_byte),
               overhead(p.receive_overhead_s, p.receive_overhead_s_per_byte),
               format_seconds(p.gap_s), fixed(p.gap_s_per_byte * 1e9, 3),
               p.gap_s_per_byte > 0 ? fixed(1e-6 / p.gap_s_per_byte, 1) : "-"});
  out.words() << out.printed(lines, name) << '\n';
}

}  // namespace

void print(const profile& p, const measurements& m, output& out) {
  for (const link_class link : {link_class::same_node, link_class::across_nodes}) {
    const bool across = link == link_class::across_nodes;
    const std::string name = across ? "across nodes" : "same node";
    const bool sampled =
        std::ranges::any_of(m.links, [&](const link_sample& s) { return s.link == link; });
    const bool used = std::ranges::any_of(
        m.collectives, [&](const collective_time& t) { return uses_link(t, link); });
    if (!sampled && (!m.links.empty() || !used)) {
      out.words() << name << ": not measured"
                  << (m.links.empty() ? ""
                                      : "; the profile uses the model of the other link instead")
                  << "\n\n";
      continue;
    }
    print_link(sampled ? name : name + ", from times of algorithms",
               across ? p.machine.across_nodes : p.machine.same_node, out);
    if (!sampled) continue;
    const hockney_fit h = fit_hockney(m.links, link);
    out.words() << "Hockney, " << name << ": alpha " << format_seconds(h.line.alpha_s) << ", beta "
                << fixed(h.line.s_per_byte * 1e9, 3) << " ns per byte, residual spread "
                << fixed(h.residual_spread, 3) << "\n\n";
  }
  const auto local = [&](const char* name, const local_model& l) {
    out.words() << name << ": " << format_seconds(l.alpha_s) << " + "
                << fixed(l.s_per_byte * 1e9, 3) << " ns per byte\n";
  };
  if (!m.copies.empty()) local("copy", p.machine.copy);
  if (!m.reductions.empty()) local("reduce", p.machine.reduce);
  if (const shared_memory_model& shared = p.machine.shared; shared.measured) {
    out.words() << "time until another rank of the node sees a write: "
                << format_seconds(shared.seen_s)
                << (shared.near_seen_s > 0
                        ? ", within a cache " + format_seconds(shared.near_seen_s) + '\n'
                        : "\n");
    local("copy to or from shared memory", shared.copy);
    if (!m.single_copies.empty()) local("single copy", shared.single_copy);
  }
  if (!p.corrections.empty()) {
    table lines({"collective", "algorithm", "factor", "off by up to", "times measured"}, 2);
    for (const algorithm_correction& c : p.corrections) {
      double most = 0;
      for (const algorithm_correction::point& at : c.points)
        most = std::max(most, std::abs(select::misfit_at(c, at.features).mean));
      lines.add({c.collective, c.algorithm, fixed(c.factor, 3), fixed(std::exp(most), 2),
                 std::to_string(c.points.size())});
    }
    out.words() << "\nClosed forms, corrected by what was measured\n" << out.printed(lines);
  }
  if (!p.measured.empty())
    out.words() << p.measured.size() << " times of the MPI library's own collectives are kept\n";
}

}  // namespace railpass::internal::report
