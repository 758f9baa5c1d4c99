// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/verb.hpp"
#include "lib/files/files.hpp"
#include "lib/launch/engine.hpp"
#include "lib/measure/fit_input.hpp"
#include "lib/measure/marks.hpp"
#include "lib/report/profile_tables.hpp"
#include "railpass/base/printable.hpp"
#include "railpass/fit/profile.hpp"

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

link_class parse_link(const std::string& name) {
  if (name == "same_node") return link_class::same_node;
  if (name == "across_nodes") return link_class::across_nodes;
  throw usage_error("--link '" + name + "': expected same_node or across_nodes");
}

fingerprint marks_here() {
  return measure::marks_with(launch::marks_of(launch::engine_of_this_job()).library, 1);
}

int run(const options& o) {
  if (o.inputs.empty() && o.knowledge.empty())
    throw usage_error("expected files with measurements, or --knowledge");
  const measure::fit_input input = measure::collect_fit_input(o.inputs,
                                                              {.link = parse_link(o.link),
                                                               .num_ranks = o.num_ranks,
                                                               .ranks_per_node = o.ranks_per_node,
                                                               .arm = o.arm},
                                                              o.knowledge, marks_here);
  for (const std::string& problem : input.problems)
    std::cerr << "railpass fit: " << printable(problem) << '\n';
  if (o.inputs.empty() && input.all.collectives.empty())
    throw error("--knowledge '" + o.knowledge + "': no knowledge of this machine");
  const profile p = fit_profile(input.all, input.machine_id, input.time);
  const std::string text = files::to_json(p);
  files::write_text(o.output, text);
  if (o.json.text()) {
    report::print(p, input.all, screen());
    say_if_disturbed(p.core_share);
    screen().words() << "written to " << o.output << '\n';
  }
  o.json.write(text);
  return succeeded;
}

}  // namespace

const verb fit_verb{
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
