// SPDX-License-Identifier: BSL-1.0
//
// MPICH's control variables and its selection of collectives by a decision tree. Read in the
// sources of 4.0.2 and 5.0.0: src/mpi/coll/cvars.txt, src/mpi/coll/src/csel.c.
#include "lib/libraries/library.hpp"
#include "railpass/base/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

namespace railpass::internal::libraries {
namespace {

using tree = nlohmann::ordered_json;

// The operator of the tree that compares sizes.
enum class size_by { average, total, nothing };

struct line {
  collective op;
  std::string_view name;
  size_by size;
  /// Why no rule can be right; empty if a rule can.
  std::string_view trouble = {};
};

constexpr std::string_view wrong_size = "MPICH compares rules with another size than the message's";
constexpr std::array lines{
    line{collective::broadcast, "bcast", size_by::average},
    line{collective::all_reduce, "allreduce", size_by::average},
    line{collective::reduce, "reduce", size_by::average},
    line{collective::reduce_scatter, "reduce_scatter", size_by::total},
    line{collective::reduce_scatter_block, "reduce_scatter_block", size_by::total},
    line{collective::all_gather, "allgather", size_by::total},
    line{collective::all_gatherv, "allgatherv", size_by::total},
    line{collective::all_to_all, "alltoall", size_by::total},
    line{collective::barrier, "barrier", size_by::nothing},
    line{collective::gather, "gather", size_by::total, wrong_size},
    line{collective::scatter, "scatter", size_by::total, wrong_size},
    line{collective::all_to_allv, "alltoallv", size_by::total, wrong_size},
    line{collective::all_to_allw, "alltoallw", size_by::total, wrong_size},
    line{collective::scan, "scan", size_by::nothing, wrong_size},
    line{collective::exscan, "exscan", size_by::nothing, wrong_size},
};

const line* line_of(collective op) {
  const auto found = std::ranges::find(lines, op, &line::op);
  return found == lines.end() ? nullptr : &*found;
}

std::string algorithm_variable_of(collective op) {
  const line* const l = line_of(op);
  if (!l) return {};
  std::string name = "MPIR_CVAR_" + std::string(l->name) + "_INTRA_ALGORITHM";
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return char(std::toupper(c)); });
  return name;
}

// "MPIR_Bcast_intra_", of which the library's file has one name for each algorithm.
std::array<std::string, 2> stems_of(const line& l) {
  std::string name(l.name);
  name.front() = char(std::toupper(static_cast<unsigned char>(name.front())));
  return {"MPIR_" + name + "_intra_", "MPIR_" + name + "_allcomm_"};
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The names in the library's file: {"binomial", "MPIR_Bcast_intra_binomial"}.
std::vector<std::pair<std::string, std::string>> names_in(std::string_view library, const line& l) {
  std::vector<std::pair<std::string, std::string>> names;
  for (const std::string& stem : stems_of(l)) {
    const std::string key = "algorithm=" + stem;
    for (std::size_t at = library.find(key); at != library.npos; at = library.find(key, at + 1)) {
      const std::size_t begin = at + key.size();
      std::size_t end = begin;
      while (end < library.size() && is_word(library[end])) ++end;
      std::string name(library.substr(begin, end - begin));
      if (!name.empty() &&
          std::ranges::find(names, name, &decltype(names)::value_type::first) == names.end())
        names.emplace_back(std::move(name), stem + std::string(library.substr(begin, end - begin)));
    }
  }
  return names;
}

// Algorithms that must not be forced. smp consists of calls on parts of the communicator, which the
// variable forces, too: MPICH 5.0.2 refuses these calls on some ranks, and others wait for ever.
// noncommutative ends the program with an assertion if blocks differ in length.
bool must_not_be_forced(std::string_view algorithm) {
  return algorithm == "smp" || algorithm == "noncommutative";
}

// The description lists the values: "NAME - what it is", the first of which is auto with number 0.
// Versions leave out the ends of lines, so that a name follows the last word of the line before.
std::vector<own_algorithm> algorithms(collective op, const algorithm_variable& variable,
                                      std::string_view library) {
  std::vector<own_algorithm> found;
  const line* const l = line_of(op);
  if (!l) return found;
  const auto names = names_in(library, *l);
  const std::string_view text = variable.description;
  std::int64_t number = 0;
  for (std::size_t dash = text.find(" - "); dash != text.npos; dash = text.find(" - ", dash + 1)) {
    const std::size_t end = text.find_last_not_of(' ', dash);
    if (end == text.npos) continue;
    const std::string_view before = text.substr(0, end + 1);
    std::string_view longest;
    for (const auto& [name, full] : names)
      if (before.ends_with(name) && name.size() > longest.size()) longest = name;
    if (!longest.empty() && !must_not_be_forced(longest) && number > 0)
      found.push_back({std::string(railpass::name_of(op)), std::string(longest), number});
    ++number;
  }
  return found;
}

// Algorithms whose parameters stand in the tree: without them MPICH would take zeros.
bool has_parameters(std::string_view algorithm) {
  constexpr std::string_view parts[] = {"tree", "recexch", "multiplying", "ccl", "circ"};
  return algorithm.starts_with("k_") || std::ranges::any_of(parts, [&](std::string_view part) {
           return algorithm.find(part) != algorithm.npos;
         });
}

std::string why_not(collective op, const own_algorithm& algorithm, const bench_results& bench,
                    bool) {
  const line* const l = line_of(op);
  if (!l) return "MPICH's selection has no rules for it";
  if (!l->trouble.empty()) return std::string(l->trouble);
  if (bench.machine_id.num_hosts > 1 && bench.ranks_per_node > 1)
    return "MPICH splits a call over nodes with several ranks each into calls on parts of the "
           "communicator, which rules do not distinguish from other calls";
  if (has_parameters(algorithm.name)) return "railpass does not know the algorithm's parameters";
  return {};
}

// The tree that the library has built in: of its trees, the one that names algorithms of MPIR.
tree built_in(std::string_view library) {
  constexpr std::string_view begin = R"({"collective=)";
  for (std::size_t at = library.find(begin); at != library.npos; at = library.find(begin, at + 1)) {
    const std::string_view text = library.substr(at, library.find('\0', at) - at);
    if (text.find("algorithm=MPIR_") == text.npos) continue;
    tree found = tree::parse(text, nullptr, false);
    if (found.is_object()) return found;
  }
  throw error(
      "the MPI library's file holds no selection of collectives; name MPICH's with --library");
}

// A choice: conditions in the order in which MPICH looks at them.
tree choice(std::initializer_list<std::pair<std::string, tree>> branches) {
  tree made = tree::object();
  for (const auto& [condition, branch] : branches) made[condition] = branch;
  return made;
}

// The branch of a rule, under the conditions for which the algorithm is right. Bench calls reduce
// by a built-in operation, and are not in place.
tree guarded(const line& l, const rule& r, tree leaf, const tree& otherwise) {
  switch (l.op) {
    case collective::all_reduce:
    case collective::reduce:
      if (r.algorithm.name.starts_with("reduce_scatter")) {
        leaf = choice({{"count<pow2", otherwise}, {"count=any", std::move(leaf)}});
        leaf = choice({{"is_op_built_in=yes", std::move(leaf)}, {"is_op_built_in=no", otherwise}});
      }
      [[fallthrough]];
    case collective::reduce_scatter:
    case collective::reduce_scatter_block:
      return choice({{"is_commutative=yes", std::move(leaf)}, {"is_commutative=no", otherwise}});
    case collective::all_to_all:
      return choice(
          {{"is_sendbuf_inplace=yes", otherwise}, {"is_sendbuf_inplace=no", std::move(leaf)}});
    default:
      return leaf;
  }
}

tree by_size(const line& l, const std::vector<rule>& rules, const tree& otherwise,
             const std::function<tree(const rule&)>& leaf_of) {
  constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();  // MPICH reads an int
  if (l.size == size_by::nothing) return leaf_of(rules.front());
  const std::string key = l.size == size_by::average ? "avg_msg_size" : "total_msg_size";
  tree made = tree::object();
  std::int64_t done = -1;  // sizes up to this one have a branch
  for (const rule& r : rules) {
    if (r.from_bytes > largest) break;
    if (r.from_bytes > done + 1) made[key + "<=" + std::to_string(r.from_bytes - 1)] = otherwise;
    done = std::min(largest, r.to_bytes);
    made[key + "<=" + std::to_string(done)] = guarded(l, r, leaf_of(r), otherwise);
  }
  made[key + "=any"] = otherwise;
  return made;
}

// The library's own choice, for use below a condition on sizes. MPICH decides conditions on the
// communicator above all others when it makes the communicator, and "<" means "<" there. Below a
// size it decides them in calls, where "<" means "<=".
tree below_a_size(const tree& own) {
  constexpr std::array of_communicator{"comm_", "is_node_consecutive"};
  constexpr std::string_view less = "comm_size<";
  tree made = tree::object();
  for (const auto& [condition, branch] : own.items()) {
    if (std::ranges::none_of(of_communicator,
                             [&](const char* start) { return condition.starts_with(start); }))
      return own;
    const bool is_less = condition.starts_with(less) &&
                         std::isdigit(static_cast<unsigned char>(condition[less.size()]));
    const std::string same =
        is_less ? "comm_size<=" + std::to_string(std::stoll(condition.substr(less.size())) - 1)
                : condition;
    made[same] = below_a_size(branch);
  }
  return made;
}

tree by_ranks(const line& l, const rules_of_collective& of, const tree& otherwise,
              const std::function<tree(const rule&)>& leaf_of) {
  tree made = tree::object();
  int done = 0;
  for (const rules_of_ranks& here : of.ranks) {
    // Never "<": MPICH 4.0 takes that for "<=" in calls.
    if (here.num_ranks > done + 1)
      made["comm_size<=" + std::to_string(here.num_ranks - 1)] = otherwise;
    done = here.num_ranks;
    made["comm_size<=" + std::to_string(done)] = by_size(l, here.rules, otherwise, leaf_of);
  }
  made["comm_size=any"] = otherwise;
  return made;
}

rules_file write(const rule_set& rules, std::string_view library) {
  tree all = built_in(library);
  for (const rules_of_collective& of : rules.collectives) {
    const line& l = *line_of(of.op);
    const std::string name = "collective=" + std::string(l.name);
    if (!all.contains(name) || !all[name].contains("comm_type=intra"))
      throw error("the MPI library's own selection has no " + name + " for intra-communicators");
    const auto names = names_in(library, l);
    const auto leaf_of = [&](const rule& r) {
      const auto known =
          std::ranges::find(names, r.algorithm.name, &decltype(names)::value_type::first);
      if (known == names.end())
        throw error("the MPI library has no algorithm '" + r.algorithm.name + "' of " + name);
      return choice({{"algorithm=" + known->second, tree::object()}});
    };
    tree& intra = all[name]["comm_type=intra"];
    intra = by_ranks(l, of, below_a_size(intra), leaf_of);
  }
  rules_file file;
  file.text = all.dump(1) + '\n';
  // MPICH maps the file and reads up to a zero: one must follow in the last page.
  constexpr std::size_t page_bytes = 4096;
  if (file.text.size() % page_bytes == 0) file.text += '\n';
  file.settings = {"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE={file}"};
  file.limits = {
      ("Versions: the file holds the whole selection of the MPI library that it was written from. "
       "Another version of MPICH may stop with an assertion."),
      ("Placement: the rules hold for each communicator of these numbers of ranks, also for those "
       "that MPICH makes of parts of a communicator on several nodes."),
      ("Shared memory: MPICH takes some calls within a node to shared memory. The file has no "
       "effect on these calls (MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM and similar variables)."),
      "Nonblocking collectives are not affected.", "Messages above 2 GiB take the default."};
  return file;
}

constexpr std::pair<const char*, const char*> environment[] = {
    // An algorithm that cannot run is an error, not another algorithm.
    {"MPIR_CVAR_COLLECTIVE_FALLBACK", "error"}};

}  // namespace

const mpi_library mpich_library{
    .name = "mpich",
    .full = "MPICH",
    .is = [](std::string_view mark) { return mark.starts_with("MPICH"); },
    .environment = environment,
    .read = variables_read::in_calls,
    .communicator_info = {},
    .algorithm_variable_of = algorithm_variable_of,
    .segment_variable_of = [](collective) { return std::string(); },
    .setting_of = nullptr,
    .reads_file = true,
    .algorithms = algorithms,
    .no_rules = {},
    .why_not = why_not,
    .write = write};

}  // namespace railpass::internal::libraries
