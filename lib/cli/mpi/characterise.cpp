// SPDX-License-Identifier: BSL-1.0
#include "lib/characterise/gains.hpp"
#include "lib/characterise/guidelines.hpp"
#include "lib/characterise/measuring.hpp"
#include "lib/characterise/outcome.hpp"
#include "lib/characterise/page.hpp"
#include "lib/cli/environment.hpp"
#include "lib/cli/launched.hpp"
#include "lib/cli/verb.hpp"
#include "lib/files/files.hpp"
#include "lib/launch/launcher.hpp"
#include "lib/launch/planned_job.hpp"
#include "lib/report/table.hpp"
#include "lib/tune/command.hpp"
#include "railpass/base/printable.hpp"
#include "railpass/base/units.hpp"
#include "railpass/version.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>

namespace railpass::internal::cli {
namespace {

struct options {
  std::string output;
  std::string ranks;
  std::string launcher;
  std::string budget = "20min";
  std::string collectives =
      "broadcast,all_reduce,reduce,reduce_scatter_block,gather,scatter,all_gather,all_to_all,scan,"
      "barrier";
  std::string slurm;
};

std::vector<int> ranks_of(const options& o) {
  if (o.ranks.empty()) {
    const auto reserved = launch::reserved_ranks(launch::environment());
    if (!reserved || *reserved < 2)
      throw usage_error("-n: expected numbers of ranks of at least 2, such as -n 4,6,8");
    return {*reserved};
  }
  std::vector<int> all;
  for (const std::string& word : split_list("-n", o.ranks)) {
    int ranks = 0;
    const char* const end = word.data() + word.size();
    if (const auto [at, problem] = std::from_chars(word.data(), end, ranks);
        problem != std::errc() || at != end || ranks < 2)
      throw usage_error("-n '" + word + "': expected a number of ranks of at least 2");
    if (std::ranges::find(all, ranks) == all.end()) all.push_back(ranks);
  }
  return all;
}

// The same command in a batch script, with srun unless another launcher was named.
std::string job_script(const options& o, const characterise::question& q) {
  std::string ranks;
  for (const int n : q.ranks) ranks += (ranks.empty() ? "" : ",") + std::to_string(n);
  const std::vector<std::string> command{own_words().front(),
                                         "characterise",
                                         "-o",
                                         std::filesystem::absolute(o.output).string(),
                                         "-n",
                                         ranks,
                                         "--launcher",
                                         o.launcher.empty() ? "srun" : o.launcher,
                                         "--budget",
                                         o.budget,
                                         "--collectives",
                                         o.collectives};
  // Sampling, a last launch that ends late, and the fit.
  const auto minutes = std::int64_t(std::ceil(1.2 * q.budget_s / 60)) + 10;
  return "#!/bin/bash\n#SBATCH --job-name=railpass-characterise\n#SBATCH --ntasks=" +
         std::to_string(std::ranges::max(q.ranks)) +
         "\n#SBATCH --exclusive\n#SBATCH --time=" + std::to_string(minutes) + "\n\n" +
         launch::quoted(command) + '\n';
}

report::table table_of(const characterise::outcome& found) {
  report::table lines({"collective", "ranks", "sizes", "the library's own / default",
                       "railpass / default", "cliffs"},
                      2);
  for (const libraries::named_bench& one : found.benches) {
    const auto cliffs = characterise::cliffs_of(one.bench);
    for (const characterise::collective_gain& g : characterise::gains_of(one.bench))
      lines.add({g.collective, std::to_string(g.num_ranks), std::to_string(g.sizes.size()),
                 fixed(g.library_ratio, 3), fixed(g.railpass_ratio, 3),
                 std::to_string(std::ranges::count_if(cliffs, [&](const characterise::cliff& c) {
                   return c.is_certain && c.collective == g.collective;
                 }))});
  }
  return lines;
}

void print(const characterise::outcome& found, const std::string& page) {
  std::ostream& out = screen().words();
  out << found.launches << " launches in " << format_seconds(found.measured_s) << "\n\n"
      << screen().printed(table_of(found), "gains") << '\n';
  std::ptrdiff_t violations = 0;
  for (const libraries::named_bench& one : found.benches)
    violations += std::ranges::count(characterise::violations_of(one.bench), true,
                                     &characterise::violation::is_certain);
  if (violations > 0)
    out << violations << " violations of performance guidelines; the page has them.\n";
  for (const std::string& sentence : found.left_out) out << printable(sentence) << '\n';
  for (const std::string& sentence : characterise::advice(found))
    out << printable(sentence) << '\n';
  out << "page: " << printable(page) << '\n';
}

int run(const options& o) {
  const characterise::question q{.ops = parse_collectives("--collectives", o.collectives),
                                 .ranks = ranks_of(o),
                                 .budget_s = parse_duration_s("--budget", o.budget)};
  if (!o.slurm.empty()) {
    write_output(o.slurm, job_script(o, q));
    if (o.slurm != "-") std::cout << "job script: " << printable(o.slurm) << '\n';
    return succeeded;
  }
  if (is_rank())
    throw usage_error(
        "railpass characterise starts the ranks itself; expected no mpirun around it");
  require_railpass_on();
  const characterise::folder to(o.output);
  bool was_interrupted = false;
  try {
    report::progress_bar bar("characterise", true);
    characterise::measure_machine(
        to, q, o.launcher,
        [&](double fraction, const std::string& doing) { bar.show(fraction, doing); });
  } catch (const tune::interrupted&) {
    was_interrupted = true;
    if (to.launches().empty()) throw;
  }
  const characterise::outcome found = characterise::write_outcome(to, q);
  const std::string page = to.file("page.html");
  files::write_text(page, characterise::page_of(found, RAILPASS_VERSION));
  print(found, page);
  if (was_interrupted) throw error("interrupted; run the same command again to resume");
  return succeeded;
}

}  // namespace

const verb characterise_verb{
    "  railpass characterise -o results -n 4,6,8\n"
    "  railpass characterise -o results -n 16 --launcher 'mpiexec --hostfile hosts' --budget "
    "120min\n"
    "  railpass characterise -o results -n 64,96,128 --slurm job.sh\n"
    "Measures the MPI library's collectives, its own algorithms and railpass's algorithms in many\n"
    "launches.\n"
    "Each launch goes where knowledge is least. The budget is of all launches in the folder: the "
    "same\n"
    "command resumes after an interrupt, and with a larger budget adds launches. The folder gets\n"
    "samples, bench_N.json for each number N of ranks, profile.json, rules of the MPI library, "
    "plan.json\n"
    "and page.html.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      add_option(app, "-o,--output", o->output, "folder for the results")
          .value_name("FOLDER")
          .required();
      add_option(app, "-n,--ranks", o->ranks,
                 "numbers of ranks, separated by commas (also -np); default: the number that the "
                 "batch system has reserved")
          .value_name("RANKS");
      add_option(app, "--launcher", o->launcher,
                 "the command that starts ranks, with its own options; default: the mpiexec of "
                 "railpass's MPI")
          .value_name("COMMAND");
      add_option(app, "--budget", o->budget, "approximate time for all launches")
          .value_name("TIME")
          .show_default();
      add_option(app, "--collectives", o->collectives, "collectives to measure, or all")
          .value_name("NAMES")
          .show_default();
      add_option(app, "--slurm", o->slurm,
                 "write a job script to this file instead, which runs this command with srun; - is "
                 "standard output")
          .value_name("FILE");
      return [o] { return run(*o); };
    }};

}  // namespace railpass::internal::cli
