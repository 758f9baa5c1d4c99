// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/mpi/parallel.hpp"
#include "lib/cli/verb.hpp"
#include "lib/files/files.hpp"
#include "lib/measure/sampler.hpp"
#include "lib/report/table.hpp"
#include "railpass/base/units.hpp"

#include <iostream>
#include <memory>

namespace railpass::internal::cli {
namespace {

struct options {
  std::string budget = "20s";
  std::string collectives = "all";
  json_output json;
};

void print(const sample_set& samples) {
  if (!samples.machine_id.rails.empty())
    screen().words() << "Messages over " << samples.machine_id.rails << "\n\n";
  const auto optional_time = [](const std::optional<double>& s) {
    return s ? format_seconds(*s) : std::string("-");
  };
  for (const link_class link : {link_class::same_node, link_class::across_nodes}) {
    report::table lines({"bytes", "one way", "spread", "rendezvous", "exchange", "ring", "flow",
                         "crowd", "send o.", "receive o.", "busy", "MB/s"});
    for (const link_sample& s : samples.measured.links) {
      if (s.link != link) continue;
      std::optional<double> busy_s;
      for (const stream_sample& stream : samples.measured.streams)
        if (stream.link == link && stream.bytes == s.bytes) busy_s = stream.busy_s;
      lines.add({format_bytes(s.bytes), format_seconds(s.one_way_s), optional_time(s.spread_s),
                 optional_time(s.rendezvous_s), optional_time(s.exchange_s),
                 optional_time(s.shift_s), optional_time(s.flow_s), optional_time(s.crowd_s),
                 optional_time(s.send_overhead_s), optional_time(s.receive_overhead_s),
                 optional_time(busy_s), busy_s ? fixed(double(s.bytes) / *busy_s / 1e6, 1) : "-"});
    }
    if (lines.empty()) continue;
    screen().words() << (link == link_class::same_node ? "Same node" : "Across nodes")
                     << ", eager up to "
                     << format_bytes(samples.measured.eager_limits_bytes.at(link)) << "\n"
                     << screen().printed(
                            lines, link == link_class::same_node ? "same node" : "across nodes")
                     << '\n';
  }
  report::table lines({"bytes", "copy", "reduce (sum of doubles)"});
  for (std::size_t i = 0; i < samples.measured.copies.size(); ++i)
    lines.add({format_bytes(samples.measured.copies[i].bytes),
               format_seconds(samples.measured.copies[i].seconds),
               format_seconds(samples.measured.reductions[i].seconds)});
  screen().words() << screen().printed(lines);

  report::table handovers({"bytes", "through shared memory", "within a cache", "by a single copy"});
  for (const local_sample& s : samples.measured.handovers) {
    std::optional<double> near_s;
    for (const local_sample& near : samples.measured.near_handovers)
      if (near.bytes == s.bytes) near_s = near.seconds;
    handovers.add({format_bytes(s.bytes), format_seconds(s.seconds), optional_time(near_s), "-"});
  }
  for (const local_sample& s : samples.measured.single_copies)
    handovers.add({format_bytes(s.bytes), "-", "-", format_seconds(s.seconds)});
  if (!handovers.empty()) screen().words() << '\n' << screen().printed(handovers);

  report::table natives({"the MPI library's own", "bytes", "median"}, 2);
  for (const collective_time& t : samples.measured.collectives)
    natives.add({t.collective, format_bytes(t.bytes), format_seconds(t.median_s)});
  if (!natives.empty()) screen().words() << '\n' << screen().printed(natives);
  say_if_disturbed(samples.measured.core_share);
}

int run(const options& o) {
  const double budget_s = parse_duration_s("--budget", o.budget);
  const std::vector<collective> natives = parse_collectives("--collectives", o.collectives);
  return run_job([&](const measure::job& j) {
    if (j.num_ranks < 2)
      throw usage_error("expected at least 2 ranks: mpirun -n 2 railpass sample");
    on_rank_0(j, [&] { o.json.check(); });
    sample_set samples;
    samples.machine_id = measure::machine_marks(j.num_nodes());
    {
      report::progress_bar bar("sample", j.rank == 0);
      samples.measured = measure::sample_machine(
          j, samples.machine_id.rails, budget_s, natives,
          [&](double fraction, const std::string& doing) { bar.show(fraction, doing); });
    }
    on_rank_0(j, [&] {
      samples.sampled_at = files::utc_now();
      if (o.json.text()) print(samples);
      o.json.write(files::to_json(samples));
    });
    return succeeded;
  });
}

}  // namespace

const verb sample_verb{
    "  mpirun -n 2 railpass sample --json samples.json\n"
    "  mpirun -n 2 --map-by node railpass sample --budget 30s --json samples.json\n"
    "With RAILPASS_RAILS set, messages go over these networks, as in collectives.\n"
    "Fewer collectives leave more time for each: --collectives broadcast,all_reduce\n"
    "Two ranks on one node measure the link within a node, two nodes the link across them.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      add_option(app, "--budget", o->budget, "about how long to measure")
          .show_default()
          .value_name("TIME");
      add_option(app, "--collectives", o->collectives,
                 "which of the MPI library's own to time, or all")
          .value_name("NAMES")
          .show_default();
      o->json.declare(app);
      return [o] { return run(*o); };
    }};

}  // namespace railpass::internal::cli
