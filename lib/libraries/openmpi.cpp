// SPDX-License-Identifier: BSL-1.0
//
// Open MPI's component tuned: https://docs.open-mpi.org, "Tuning collectives". Read in the sources
// of 4.1.4, 5.0.9 and the main branch of August 2026.
#include "lib/libraries/library.hpp"
#include "railpass/base/printable.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <sstream>

namespace railpass::internal::libraries {
namespace {

struct line {
  collective op;
  std::string_view name;
  int number;  // in files of rules
  // Why a rule would be wrong; empty if a rule may be right.
  std::string_view trouble = {};
  // Algorithms that keep the order of the operands: Open MPI follows a rule whatever the operation
  // is. Sources: coll_base_<collective>.c; tests/mpi/measure.cpp.
  std::array<std::string_view, 4> in_order{};
};

constexpr std::string_view no_size = "a rule would hold for all sizes";
constexpr std::string_view other_size =
    "Open MPI compares rules with another size than the message's";
constexpr std::string_view ranks_differ =
    "ranks may read different sizes from their arguments, and would follow different rules";
constexpr std::array lines{
    line{collective::all_gather, "allgather", 0},
    line{collective::all_gatherv, "allgatherv", 1, other_size},
    line{collective::all_reduce,
         "allreduce",
         2,
         {},
         {"basic_linear", "nonoverlapping", "recursive_doubling", "rabenseifner"}},
    line{collective::all_to_all, "alltoall", 3},
    line{collective::all_to_allv, "alltoallv", 4, no_size},
    line{collective::barrier, "barrier", 6},
    line{collective::broadcast, "bcast", 7},
    line{collective::exscan, "exscan", 8, other_size},
    line{collective::gather, "gather", 9, ranks_differ},
    line{collective::reduce, "reduce", 11, {}, {"linear", "in-order_binary", "rabenseifner"}},
    line{collective::reduce_scatter, "reduce_scatter", 12, {}, {"non-overlapping", "butterfly"}},
    line{collective::reduce_scatter_block, "reduce_scatter_block", 13, {}, {"basic_linear"}},
    line{collective::scan, "scan", 14, other_size},
    line{collective::scatter, "scatter", 15, ranks_differ},
};

const line* line_of(collective op) {
  const auto found = std::ranges::find(lines, op, &line::op);
  return found == lines.end() ? nullptr : &*found;
}

std::string algorithm_variable_of(collective op) {
  const line* const l = line_of(op);
  return l ? "coll_tuned_" + std::string(l->name) + "_algorithm" : "";
}

std::string segment_variable_of(collective op) {
  const std::string variable = algorithm_variable_of(op);
  return variable.empty() ? "" : variable + "_segmentsize";
}

std::vector<own_algorithm> algorithms(collective op, const algorithm_variable& variable,
                                      std::string_view) {
  std::vector<own_algorithm> found;
  for (const auto& [number, name] : variable.values)
    if (number > 0)  // 0: none is forced
      found.push_back({std::string(railpass::name_of(op)), name, number});
  return found;
}

std::string why_not(collective op, const own_algorithm& algorithm, const bench_results&,
                    bool commutative) {
  const line* const l = line_of(op);
  if (!l) return "the component tuned has no rules for it";
  if (!l->trouble.empty()) return std::string(l->trouble);
  if (traits_of(op).reduces && !commutative &&
      std::ranges::find(l->in_order, algorithm.name) == l->in_order.end())
    return "Open MPI would take it also for operations that are not commutative (see "
           "--commutative)";
  return {};
}

// A later row replaces the earlier one from its size on.
struct row {
  std::int64_t from_bytes;
  const rule* what;  // null: the default
};

std::vector<row> rows_of(collective op, const std::vector<rule>& rules) {
  constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();
  std::vector<row> rows;
  if (op == collective::barrier) return {{0, &rules.front()}};
  for (const rule& r : rules) {
    if (r.from_bytes > largest) break;
    if (rows.empty() && r.from_bytes > 0) rows.push_back({0, nullptr});
    if (!rows.empty() && rows.back().from_bytes == r.from_bytes) rows.pop_back();
    rows.push_back({r.from_bytes, &r});
    rows.push_back({std::min(largest, r.to_bytes) + 1, nullptr});
  }
  return rows;
}

// Bench forces these algorithms with Open MPI's default fan-out (coll_tuned_init_chain_fanout,
// coll_tuned_init_tree_fanout); in a rule, 0 stands for another one, and Open MPI 6 builds the tree
// of knomial for ever. All other algorithms have no fan-out.
int fan_out_of(const own_algorithm& algorithm) {
  constexpr int by_default = 4;
  constexpr std::array with_fan_out{"chain", "bruck-k-fanout", "knomial"};
  return std::ranges::find(with_fan_out, algorithm.name) != with_fan_out.end() ? by_default : 0;
}

void write_row(std::ostream& text, const row& r) {
  text << r.from_bytes;
  if (r.what)
    text << ' ' << r.what->algorithm.number << ' ' << fan_out_of(r.what->algorithm) << ' '
         << r.what->segment_bytes << "  # " << r.what->algorithm.name << '\n';
  else
    text << " 0 0 0  # the default\n";
}

struct block {
  int num_ranks;
  const std::vector<rule>* rules;  // null: the default
};

// Up to Open MPI 5, communicators follow the last block whose number of ranks is not above theirs,
// or else the first block. From Open MPI 6 on, they follow the first block whose number is above
// theirs, or else the last block. Both find the rules of exactly these numbers of ranks here.
std::vector<block> blocks_of(const std::vector<rules_of_ranks>& ranks) {
  std::vector<block> blocks;
  for (const rules_of_ranks& here : ranks) {
    const int n = here.num_ranks;
    blocks.insert(blocks.end(),
                  {{n, nullptr}, {n, &here.rules}, {n + 1, &here.rules}, {n + 1, nullptr}});
  }
  return blocks;
}

// The first version of the format, which all versions of Open MPI read. The second version adds
// numbers of requests, which bench does not force.
void write_collective(std::ostream& text, const rules_of_collective& of) {
  const line& l = *line_of(of.op);
  const std::vector<block> blocks = blocks_of(of.ranks);
  text << '\n' << l.number << "  # " << l.name << '\n' << blocks.size() << "  # numbers of ranks\n";
  for (const block& b : blocks) {
    const std::vector<row> rows =
        b.rules ? rows_of(of.op, *b.rules) : std::vector<row>{{0, nullptr}};
    text << b.num_ranks << "  # ranks\n" << rows.size() << "  # sizes\n";
    for (const row& r : rows) write_row(text, r);
  }
}

rules_file write(const rule_set& rules, std::string_view) {
  rules_file file;
  file.settings = {"OMPI_MCA_coll_tuned_use_dynamic_rules=1",
                   "OMPI_MCA_coll_tuned_dynamic_rules_filename={file}"};
  file.limits = {
      "Placement: the rules hold for each communicator of these numbers of ranks, however its "
      "ranks "
      "are placed on nodes.",
      "Datatypes: Open MPI splits messages into segments and blocks by elements. Programs whose "
      "ranks "
      "describe one message by different datatypes may get wrong data by such algorithms.",
      "In place: of an all_gather and an all_to_all in place, Open MPI takes the size from the "
      "arguments of the send buffer, which MPI ignores. These arguments must be equal on all "
      "ranks.",
      "Nonblocking collectives are not affected.", "Messages above 2 GiB take the default."};
  if (rules.largest_num_hosts > 1) {
    file.settings.push_back("OMPI_MCA_coll_han_priority=0");
    file.limits.push_back(
        "HAN: from Open MPI 5 on the component han takes the calls of communicators on several "
        "nodes before tuned does. coll_han_priority=0 gives all these calls to tuned, also where "
        "this file has no rule. Compare both settings with your program.");
  }
  std::ostringstream text;
  text << "# Rules of Open MPI's component tuned, by railpass export.\n# "
       << printable(rules.mpi_library) << '\n';
  for (const std::string& source : rules.sources) text << "# " << printable(source) << '\n';
  text << "# Settings:\n";
  for (const std::string& setting : file.settings)
    text << "#   " << setting.substr(0, setting.find("{file}"))
         << (setting.ends_with("{file}") ? "(this file)" : "") << '\n';
  for (const std::string& limit : file.limits) text << "# " << limit << '\n';
  text << '\n' << rules.collectives.size() << "  # collectives\n";
  for (const rules_of_collective& of : rules.collectives) write_collective(text, of);
  file.text = std::move(text).str();
  return file;
}

constexpr std::pair<const char*, const char*> environment[] = {
    {"OMPI_MCA_coll_tuned_use_dynamic_rules", "1"}};

}  // namespace

const mpi_library openmpi_library{
    .name = "openmpi",
    .full = "Open MPI",
    .is = [](std::string_view mark) { return mark.starts_with("Open MPI"); },
    .environment = environment,
    .read = variables_read::with_communicator,
    // Before han (from Open MPI 5 on), which has no such variables.
    .communicator_info = {"ompi_comm_coll_preference", "tuned"},
    .algorithm_variable_of = algorithm_variable_of,
    .segment_variable_of = segment_variable_of,
    .setting_of = nullptr,
    .reads_file = false,
    .algorithms = algorithms,
    .no_rules = {},
    .why_not = why_not,
    .write = write};

}  // namespace railpass::internal::libraries
