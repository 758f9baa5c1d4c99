// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/verb.hpp"
#include "lib/files/files.hpp"
#include "lib/measure/job.hpp"
#include "lib/report/table.hpp"
#include "lib/store/store.hpp"
#include "railpass/base/printable.hpp"
#include "railpass/base/units.hpp"
#include "railpass/fit/links.hpp"
#include "railpass/fit/profile.hpp"

#include <algorithm>
#include <iostream>
#include <memory>

namespace railpass::internal::cli {
namespace {

struct options {
  std::vector<std::string> inputs;
  std::string output;
  std::string knowledge;
  std::string link = "across_nodes";
  int num_ranks = 0;
  int ranks_per_node = 1;
  std::string arm = "native";
  json_output json;
};

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

link_class parse_link(const std::string& name) {
  if (name == "same_node") return link_class::same_node;
  if (name == "across_nodes") return link_class::across_nodes;
  throw usage_error("--link '" + name + "': expected same_node or across_nodes");
}

void print_link(const std::string& name, const link_model& link) {
  screen().words() << name << ": eager up to "
                   << (std::isfinite(link.eager_limit_bytes)
                           ? format_bytes(std::int64_t(link.eager_limit_bytes))
                           : "any size")
                   << ", measured times lie within a factor "
                   << fixed(std::exp(link.residual_spread), 2) << " (residual spread "
                   << fixed(link.residual_spread, 3) << ")\n";
  report::table lines(
      {"from bytes", "latency L", "send o", "receive o", "gap g", "ns per byte", "MB/s"});
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
  screen().words() << screen().printed(lines, name) << '\n';
}

void print(const profile& p, const measurements& m) {
  for (const link_class link : {link_class::same_node, link_class::across_nodes}) {
    const bool across = link == link_class::across_nodes;
    const std::string name = across ? "across nodes" : "same node";
    const bool sampled =
        std::ranges::any_of(m.links, [&](const link_sample& s) { return s.link == link; });
    const bool used = std::ranges::any_of(m.collectives, [&](const collective_time& t) {
      return across ? t.num_ranks > t.ranks_per_node : t.ranks_per_node > 1;
    });
    if (!sampled && (!m.links.empty() || !used)) {
      screen().words() << name << ": not measured"
                       << (m.links.empty()
                               ? ""
                               : "; the profile uses the model of the other link instead")
                       << "\n\n";
      continue;
    }
    print_link(sampled ? name : name + ", from times of algorithms",
               across ? p.machine.across_nodes : p.machine.same_node);
    if (!sampled) continue;
    const hockney_fit h = fit_hockney(m.links, link);
    screen().words() << "Hockney, " << name << ": alpha " << format_seconds(h.line.alpha_s)
                     << ", beta " << fixed(h.line.s_per_byte * 1e9, 3)
                     << " ns per byte, residual spread " << fixed(h.residual_spread, 3) << "\n\n";
  }
  const auto local = [](const char* name, const local_model& l) {
    screen().words() << name << ": " << format_seconds(l.alpha_s) << " + "
                     << fixed(l.s_per_byte * 1e9, 3) << " ns per byte\n";
  };
  if (!m.copies.empty()) local("copy", p.machine.copy);
  if (!m.reductions.empty()) local("reduce", p.machine.reduce);
  if (const shared_memory_model& shared = p.machine.shared; shared.measured) {
    screen().words() << "time until another rank of the node sees a write: "
                     << format_seconds(shared.seen_s)
                     << (shared.near_seen_s > 0
                             ? ", within a cache " + format_seconds(shared.near_seen_s) + '\n'
                             : "\n");
    local("copy to or from shared memory", shared.copy);
    if (!m.single_copies.empty()) local("single copy", shared.single_copy);
  }
  if (!p.corrections.empty()) {
    report::table lines({"collective", "algorithm", "factor", "off by up to", "times measured"}, 2);
    for (const algorithm_correction& c : p.corrections) {
      double most = 0;
      for (const algorithm_correction::point& at : c.points)
        most = std::max(most, std::abs(select::misfit_at(c, at.features).mean));
      lines.add({c.collective, c.algorithm, fixed(c.factor, 3), fixed(std::exp(most), 2),
                 std::to_string(c.points.size())});
    }
    screen().words() << "\nClosed forms, corrected by what was measured\n"
                     << screen().printed(lines);
  }
  if (!p.measured.empty())
    screen().words() << p.measured.size()
                     << " times of the MPI library's own collectives are kept\n";
  say_if_disturbed(p.core_share);
}

// The times that earlier runs learnt on the machine of the files, or on this machine. Arms that
// this railpass does not have are left out.
measurements known_times(const std::string& where, const std::optional<origin>& of_files) {
  fingerprint here = of_files ? of_files->machine_id : measure::machine_marks(1);
  here.num_hosts = 1;  // what is known of one host and of several complement each other
  store::known found = store::read(store::locations_of(where), here, 100000);
  for (const std::string& problem : found.problems)
    std::cerr << "railpass fit: " << printable(problem) << '\n';
  for (knowledge::experience& e : found.contexts)
    std::erase_if(e.arms, [&](const knowledge::arm_experience& a) {
      const auto op = find_collective(e.of.collective);
      try {
        if (op) parse_arm(*op, a.arm);
        return !op;
      } catch (const error&) {
        return true;
      }
    });
  return files::measurements_of(found.contexts);
}

int run(const options& o) {
  if (o.inputs.empty() && o.knowledge.empty())
    throw usage_error("expected files with measurements, or --knowledge");
  const files::import_facts facts{.link = parse_link(o.link),
                                  .num_ranks = o.num_ranks,
                                  .ranks_per_node = o.ranks_per_node,
                                  .arm = o.arm};
  measurements all;
  std::optional<origin> first;
  std::string first_path;
  for (const std::string& path : o.inputs) {
    all.append(files::read_measurements(path, facts));
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
  if (!o.knowledge.empty()) {
    const measurements known = known_times(o.knowledge, first);
    if (o.inputs.empty() && known.collectives.empty())
      throw error("--knowledge '" + o.knowledge + "': no knowledge of this machine");
    if (!first && !known.collectives.empty()) {
      first = origin{measure::machine_marks(1), files::utc_now()};
      if (!o.inputs.empty() && facts.link == link_class::across_nodes)
        first->machine_id.num_hosts = 2;
    }
    for (const collective_time& t : known.collectives)
      if (t.num_ranks > t.ranks_per_node)
        first->machine_id.num_hosts = std::max(2, first->machine_id.num_hosts);
    all.append(known);
  }
  // The output of other programs does not say where it was measured.
  if (!first)
    first = origin{{.num_hosts = facts.link == link_class::across_nodes ? 2 : 1,
                    .cores_per_host = 0,
                    .cpu_model = {},
                    .mpi_library = {}},
                   {}};
  const profile p = fit_profile(all, first->machine_id, first->time);
  const std::string text = files::to_json(p);
  files::write_text(o.output, text);
  if (o.json.text()) {
    print(p, all);
    screen().words() << "written to " << o.output << '\n';
  }
  o.json.write(text);
  return succeeded;
}

}  // namespace

const verb fit_verb{
    "fit", "Turn measurements into a profile of this machine",
    "  railpass fit samples.json -o profile.json\n"
    "  railpass fit samples.json bench.json dump.json -o profile.json\n"
    "  railpass fit osu_latency.txt osu_bcast.txt -p 8 -o profile.json\n"
    "  railpass fit samples.json --knowledge on -o profile.json\n"
    "Files are recognised by their content: results of railpass sample and bench, statistics "
    "dumps,\n"
    "output of the OSU micro-benchmarks and of IMB-MPI1.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      add_option(app, "files", o->inputs, "measurements").value_name("FILE");
      add_option(app, "--knowledge", o->knowledge,
                 "also use knowledge of earlier runs on this machine: a store, or on for the "
                 "usual store")
          .value_name("PLACE");
      add_option(app, "-o,--output", o->output, "file for the profile")
          .value_name("FILE")
          .required();
      add_option(app, "--link", o->link,
                 "OSU, IMB: link of point-to-point tests, same_node or across_nodes")
          .value_name("CLASS")
          .show_default();
      add_option(app, "-p,--ranks", o->num_ranks, "OSU: ranks of the collective tests")
          .value_name("RANKS")
          .range(1, most_ranks);
      add_option(app, "--ranks-per-node", o->ranks_per_node, "OSU, IMB: ranks on each node")
          .value_name("RANKS")
          .range(1, most_ranks)
          .show_default();
      add_option(app, "--arm", o->arm, "OSU, IMB: the arm that was forced to run, if any")
          .value_name("ARM")
          .show_default();
      o->json.declare(app);
      return [o] { return run(*o); };
    }};

}  // namespace railpass::internal::cli
