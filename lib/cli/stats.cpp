// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/verb.hpp"
#include "lib/files/files.hpp"
#include "lib/report/statistics_tables.hpp"

#include <memory>
#include <string>

namespace railpass::internal::cli {
namespace {

struct options {
  std::string file;
  report::statistics_view view;
  bool hosts = false;
  json_output json;
};

std::string text_of(const select::statistics_dump& dump, const options& o) {
  if (screen().csv)
    return screen().printed(o.hosts ? report::hosts_numbers(dump)
                                    : report::statistics_numbers(dump));
  return o.hosts ? report::hosts_text(dump, o.view, screen())
                 : report::statistics_text(dump, o.view, screen());
}

int run(const options& o) {
  const select::statistics_dump dump = files::read_statistics(o.file);
  if (o.json.text()) screen().words() << text_of(dump, o);
  o.json.write(files::to_json(dump));
  return succeeded;
}

}  // namespace

const verb stats_verb{
    "  RAILPASS_STATS=dump.json mpirun -n 4 ./program && railpass stats dump.json\n"
    "  railpass stats dump.json --csv > dump.csv\n"
    "  railpass stats dump.json --hosts\n"
    "prior and posterior are mean times (x/1.20: the true mean is likely within a factor of "
    "1.20).\n"
    "next is the probability that the next call takes the arm. won counts the paired trials that\n"
    "the arm won against native; the speedup over native is estimated from these trials.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      add_option(app, "dump", o->file, "file written by RAILPASS_STATS or dump_statistics")
          .value_name("FILE")
          .required();
      add_flag(app, "--markdown", o->view.markdown, "tables as Markdown");
      add_flag(app, "--all", o->view.all, "show all contexts and arms, not only the most used");
      add_flag(app, "--hosts", o->hosts, "show hosts that come late to calls or lack cores");
      o->json.declare(app);
      return [o] { return run(*o); };
    }};

}  // namespace railpass::internal::cli
