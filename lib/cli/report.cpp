// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/verb.hpp"
#include "lib/files/files.hpp"
#include "lib/files/json_reader.hpp"
#include "lib/report/results_page.hpp"
#include "railpass/version.hpp"

#include <iostream>
#include <memory>

namespace railpass::internal::cli {
namespace {

struct options {
  std::vector<std::string> files;
  std::string output;
};

report::result_file read(const std::string& path) {
  const std::string text = files::read_text(path);
  report::result_file found{.name = path.substr(path.rfind('/') + 1), .holds = {}};
  if (text.starts_with(files::trace_header)) {
    found.holds = files::parse_trace(text, path);
    return found;
  }
  const std::string format = files::json_document(text, path).format();
  if (format == "railpass compare")
    found.holds = files::parse_comparison(text, path);
  else if (format == "railpass statistics")
    found.holds = files::parse_statistics(text, path);
  else if (format == "railpass bench")
    found.holds = files::parse_bench(text, path);
  else
    throw error(path + ": a file of format '" + format.substr(0, 60) +
                "'; expected railpass compare, statistics or bench, or a trace");
  return found;
}

int run(const options& o) {
  std::vector<report::result_file> results;
  for (const std::string& path : o.files) results.push_back(read(path));
  write_output(o.output, report::results_page(results, RAILPASS_VERSION));
  if (o.output != "-") std::cout << "page: " << o.output << '\n';
  return succeeded;
}

}  // namespace

const verb report_verb{
    "  railpass compare --json compare.json -- mpirun -n 4 ./program\n"
    "  RAILPASS_STATS=dump.json RAILPASS_TRACE=trace railpass run -np 4 ./program\n"
    "  railpass report compare.json dump.json trace.0 bench.json -o page.html\n"
    "The page is one file that needs nothing but a browser.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      add_option(app, "files", o->files,
                 "results of compare --json, RAILPASS_STATS, RAILPASS_TRACE and bench --json")
          .value_name("FILE")
          .required();
      add_option(app, "-o,--output", o->output, "file for the page; - is standard output")
          .value_name("FILE")
          .required();
      return [o] { return run(*o); };
    }};

}  // namespace railpass::internal::cli
