// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/verb.hpp"
#include "lib/files/files.hpp"
#include "lib/libraries/library.hpp"
#include "lib/measure/library_rules.hpp"
#include "lib/report/table.hpp"
#include "railpass/base/names.hpp"
#include "railpass/base/printable.hpp"
#include "railpass/base/statistics.hpp"
#include "railpass/base/units.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

namespace railpass::internal::cli {
namespace {

struct options {
  std::vector<std::string> files;
  std::string format;
  std::string output;
  std::string library;
  bool commutative = false;
};

const libraries::mpi_library& library_of_option(const std::string& format) {
  const auto known = libraries::all();
  const auto found = std::ranges::find(known, format, &libraries::mpi_library::name);
  if (found != known.end()) return **found;
  throw usage_error("--format " + expected_one_of(format, known, &libraries::mpi_library::name));
}

std::vector<libraries::named_bench> benches_of(const std::vector<std::string>& paths) {
  std::vector<libraries::named_bench> files;
  for (const std::string& path : paths) files.push_back({path, files::read_bench(path)});
  return files;
}

report::table table_of(const libraries::rule_set& rules) {
  report::table lines({"collective", "ranks", "from", "to", "algorithm", "segment", "/native"}, 3);
  for (const libraries::rules_of_collective& of : rules.collectives)
    for (const libraries::rules_of_ranks& here : of.ranks)
      for (const libraries::rule& r : here.rules)
        lines.add({std::string(name_of(of.op)), std::to_string(here.num_ranks),
                   format_bytes(r.from_bytes), format_bytes(r.to_bytes), r.algorithm.name,
                   r.segment_bytes > 0 ? format_bytes(r.segment_bytes) : "-", fixed(r.ratio, 3)});
  return lines;
}

void print(std::ostream& out, const std::string& title, const std::vector<std::string>& sentences) {
  if (sentences.empty()) return;
  out << '\n' << title << '\n';
  for (const std::string& one : sentences) out << "  " << printable(one) << '\n';
}

int run(const options& o) {
  const libraries::mpi_library& to = library_of_option(o.format);
  const libraries::rule_set rules = measure::rules_of(benches_of(o.files), to, o.commutative);
  // Standard output may be the file.
  const bool to_screen = o.output != "-";
  const std::string path = to_screen ? std::filesystem::absolute(o.output).string() : "FILE";
  const libraries::rules_file made = measure::rules_file_of(rules, to, path, o.library);
  write_output(o.output, made.text);

  std::ostream& out = to_screen ? screen().words() : std::cerr;
  if (rules.collectives.empty())
    out << "No rule: no algorithm was shown to be faster than the MPI library's default.\n";
  else if (to_screen)
    out << screen().printed(table_of(rules), "rules");
  print(out, "Settings with which the MPI library follows the file:", made.settings);
  print(out, "Measured, but without a rule:", rules.left_out);
  print(out, "The file cannot express:", made.limits);
  return succeeded;
}

}  // namespace

const verb export_verb{
    "  railpass bench --launches 6 -np 4 --arms native,native:all --json own.json\n"
    "  railpass export --format openmpi own.json -o rules.conf\n"
    "  railpass export --format mpich own4.json own8.json -o selection.json\n"
    "A rule names an algorithm of the MPI library that was faster than the library's default: by "
    "at\n"
    "least 5 % in the median, and with 95 % confidence over at least 6 launches. All other calls\n"
    "take the default. Prints the rules, the settings that make them effective, and what the file\n"
    "cannot express.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      add_option(app, "files", o->files,
                 "results of bench --launches --json, on one or more "
                 "numbers of ranks")
          .value_name("FILE")
          .required();
      add_option(app, "--format", o->format,
                 "openmpi: rules for coll_tuned_dynamic_rules_filename; mpich: a selection for "
                 "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE")
          .value_name("NAME")
          .required();
      add_option(app, "-o,--output", o->output, "file for the rules; - is standard output")
          .value_name("FILE")
          .required();
      add_option(app, "--library", o->library,
                 "mpich: the library file (libmpi.so) whose built-in selection the rules are added "
                 "to; default: the MPI library of this railpass")
          .value_name("FILE");
      add_flag(app, "--commutative", o->commutative,
               "openmpi: also write rules with which reductions by operations that are not "
               "commutative would give wrong results");
      return [o] { return run(*o); };
    }};

}  // namespace railpass::internal::cli
