// SPDX-License-Identifier: BSL-1.0
#include "railpass/rails.hpp"

#include "lib/cli/mpi/parallel.hpp"
#include "lib/cli/verb.hpp"
#include "lib/measure/rails_report.hpp"

#include <memory>

namespace railpass::internal::cli {
namespace {

struct options {
  std::string rails;
  std::string bytes = "1KiB,64KiB,1MiB,16MiB";
  std::string budget = "5s";
  json_output json;
};

int run(const options& o) {
  const double budget_s = parse_duration_s("--budget", o.budget);
  const std::vector<std::int64_t> sizes = parse_sizes("--bytes", o.bytes, std::int64_t{1} << 50);
  return run_job([&](const measure::job& j) {
    on_rank_0(j, [&] { o.json.check(); });
    const measure::rails_report r = measure::examine_rails(j, o.rails, budget_s);
    on_rank_0(j, [&] {
      if (o.json.text()) measure::print(r, sizes, screen());
      o.json.write(measure::to_json(r, sizes));
    });
    if (r.known) mpi::close_rails(MPI_COMM_WORLD);
    return succeeded;
  });
}

}  // namespace

const verb rails_verb{
    "  mpirun -n 2 --map-by node railpass rails\n"
    "  mpirun -n 2 --map-by node railpass rails --rails eth0,eth1 --bytes 64KiB,1MiB\n"
    "  RAILPASS_RAILS_PROFILE=r.json mpirun ... railpass rails   # keeps measurements\n"
    "  railpass rails   # also the rails' load by your programs on this host\n"
    "Without --rails or RAILPASS_RAILS: every network in which each host has one address.\n"
    "Rank 0 measures with one rank on its own host and one on another host.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      add_option(app, "--rails", o->rails,
                 "interfaces, networks or addresses, separated by commas; as RAILPASS_RAILS")
          .value_name("NAMES");
      add_option(app, "--bytes", o->bytes, "messages to plan").show_default().value_name("SIZES");
      add_option(app, "--budget", o->budget, "approximate time to measure each kind of link")
          .show_default()
          .value_name("TIME");
      o->json.declare(app);
      return [o] { return run(*o); };
    }};

}  // namespace railpass::internal::cli
