// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/library_rules.hpp"

#include "lib/files/files.hpp"
#include "lib/measure/own_algorithms.hpp"
#include "lib/runtime/known_faults.hpp"
#include "lib/runtime/settings_in_force.hpp"
#include "railpass/base/error.hpp"

#include <cstdint>

namespace railpass::internal::measure {

libraries::rule_filter filter_of_rules(const libraries::mpi_library& to, bool commutative) {
  return [&to, commutative, site_file = read_settings(environ).values.advisories](
             collective op, const own_algorithm& algorithm,
             const bench_results& bench) -> std::string {
    for (const knowledge::advisory& a : known_faults(site_file, bench.machine_id.mpi_library))
      if (knowledge::names_algorithm(a, op, algorithm.name,
                                     {.num_ranks = bench.num_ranks,
                                      .num_hosts = bench.machine_id.num_hosts,
                                      .commutative = commutative}))
        return "known fault: " + text_of(a);
    return to.why_not(op, algorithm, bench, commutative);
  };
}

libraries::rule_set rules_of(std::span<const libraries::named_bench> files,
                             const libraries::mpi_library& to, bool commutative) {
  if (!to.no_rules.empty()) throw error(std::string(to.no_rules));
  for (const libraries::named_bench& file : files)
    if (const std::string& mark = file.bench.machine_id.mpi_library; !to.is(mark))
      throw error(file.name + ": machine_id: measured with '" + mark + "', but the rules are for " +
                  std::string(to.full));
  return libraries::rules_from(files, filter_of_rules(to, commutative));
}

libraries::rules_file rules_file_of(const libraries::rule_set& rules,
                                    const libraries::mpi_library& to, const std::string& path,
                                    const std::string& library) {
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;
  // Calls without a rule take what the file says.
  if (const std::string here = mark_of_mpi_library();
      to.reads_file && library.empty() && here != rules.mpi_library)
    throw error("measured with '" + rules.mpi_library +
                "', but the MPI library of this railpass is '" + here +
                "'; name the file of the former (libmpi.so) with --library");
  libraries::rules_file file = to.write(
      rules, to.reads_file
                 ? files::read_text(library.empty() ? file_of_mpi_library() : library, most_bytes)
                 : std::string());
  for (std::string& setting : file.settings)
    if (const std::size_t at = setting.find("{file}"); at != setting.npos)
      setting.replace(at, 6, path);
  return file;
}

}  // namespace railpass::internal::measure
