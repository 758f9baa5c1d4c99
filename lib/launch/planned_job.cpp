// SPDX-License-Identifier: BSL-1.0
#include "lib/launch/planned_job.hpp"

#include "lib/base/usage_error.hpp"
#include "lib/files/input.hpp"

#include <climits>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <sched.h>
#include <span>
#include <unistd.h>
#include <utility>

namespace railpass::internal::launch {
namespace {

// No job has more; a list that says so is not expanded.
constexpr std::size_t most_hosts = 1'000'000;
constexpr std::uint64_t largest_file_bytes = 64 << 20;

constexpr std::string_view blanks = " \t\r";

std::optional<int> parse_count(std::string_view word) {
  int count = 0;
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), count);
  if (failure != std::errc{} || end != word.data() + word.size() || count < 1) return std::nullopt;
  return count;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> words;
  for (std::size_t at = text.find_first_not_of(separators); at != text.npos;) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(separators, end);
  }
  return words;
}

// The words of each line that has some, without comments.
std::vector<std::vector<std::string_view>> lines_of(std::string_view text) {
  std::vector<std::vector<std::string_view>> lines;
  for (const std::string_view line : split(text, "\n"))
    if (auto words = split(line.substr(0, line.find('#')), blanks); !words.empty())
      lines.push_back(std::move(words));
  return lines;
}

// Hosts may be named several times, one after the other or by turns.
class named_hosts {
 public:
  void add(std::string_view name, int slots) {
    const auto [known, fresh] = index_of_name_.emplace(name, hosts.size());
    if (fresh) hosts.push_back({.name = std::string(name)});
    int& sum = hosts[known->second].slots;
    sum = slots < INT_MAX - sum ? sum + slots : INT_MAX;
  }
  std::vector<planned_host> hosts;

 private:
  std::map<std::string, std::size_t, std::less<>> index_of_name_;
};

std::optional<planned_job> of_hosts(std::vector<planned_host> hosts) {
  if (hosts.empty() || hosts.size() > most_hosts) return std::nullopt;
  return planned_job{std::move(hosts)};
}

// "host slots=4 max_slots=8" or "host:4"; a host alone has one. False if it is not understood.
bool add_host(named_hosts& to, const std::vector<std::string_view>& words) {
  const std::string_view first = words.front();
  const std::size_t colon = first.rfind(':');
  std::optional<int> slots = colon == first.npos ? 1 : parse_count(first.substr(colon + 1));
  for (const std::string_view word : std::span(words).subspan(1))
    if (slots && word.starts_with("slots=")) slots = parse_count(word.substr(6));
  if (slots) to.add(first.substr(0, colon), *slots);
  return slots.has_value();
}

std::optional<std::string> read_file(const std::optional<std::string>& path) {
  if (!path) return std::nullopt;
  try {
    return files::read_text(*path, largest_file_bytes);
  } catch (const error&) {  // the launcher says what is wrong with it
    return std::nullopt;
  }
}

template <class Parse>
planned_job job_of(const std::optional<std::string>& text, Parse parse) {
  return text ? parse(*text).value_or(planned_job{}) : planned_job{};
}

planned_job slurm_job(const lookup& variable) {
  const auto counts_of = [&](const char* name) {
    const auto text = variable(name);
    return text ? parse_node_counts(*text) : std::nullopt;
  };
  const auto tasks = counts_of("SLURM_TASKS_PER_NODE");
  const auto cores = counts_of("SLURM_JOB_CPUS_PER_NODE");
  planned_job job;
  if (!tasks) return job;
  for (std::size_t i = 0; i < tasks->size(); ++i) {
    job.hosts.push_back({.slots = (*tasks)[i]});
    if (cores && cores->size() == tasks->size()) job.hosts.back().cores = (*cores)[i];
  }
  return job;
}

// PBS says nothing of cores; a job of one host is on this one.
planned_job pbs_job(const lookup& variable, int cores_here) {
  planned_job job = job_of(read_file(variable("PBS_NODEFILE")), parse_node_file);
  if (job.hosts.size() == 1) job.hosts.front().cores = cores_here;
  return job;
}

struct batch_system {
  std::vector<const char*> marks;  // variables of which its jobs have some
  std::function<planned_job(const lookup& variable, int cores_here)> job;
};

const std::vector<batch_system>& batch_systems() {
  static const std::vector<batch_system> all{
      {{"SLURM_JOB_ID", "SLURM_JOBID", "SLURM_NTASKS"},
       [](const lookup& v, int) { return slurm_job(v); }},
      {{"PBS_JOBID", "PBS_NODEFILE", "PBS_NP"}, pbs_job},
      {{"LSB_JOBID", "LSB_MCPU_HOSTS"},
       [](const lookup& v, int) { return job_of(v("LSB_MCPU_HOSTS"), parse_host_pairs); }},
      {{"PE_HOSTFILE"},
       [](const lookup& v, int) { return job_of(read_file(v("PE_HOSTFILE")), parse_pe_hostfile); }},
      // Nothing here reads what these say. A server of PMIx has hosts of its own, which those whom
      // it has started are not told.
      {{"COBALT_JOBID", "FLUX_JOB_ID", "LOADL_STEP_ID", "PMIX_NAMESPACE", "PMIX_RANK"},
       [](const lookup&, int) { return planned_job{}; }},
  };
  return all;
}

std::optional<planned_job> batch_job(const lookup& variable, int cores_here) {
  for (const batch_system& system : batch_systems())
    if (std::ranges::any_of(system.marks, [&](const char* mark) { return !!variable(mark); }))
      return system.job(variable, cores_here);
  return std::nullopt;
}

// Where launchers look for hosts if neither their options nor a batch system name any.
constexpr const char* host_file_variables[] = {"OMPI_MCA_orte_default_hostfile",
                                               "PRTE_MCA_prte_default_hostfile", "HYDRA_HOST_FILE",
                                               "I_MPI_HYDRA_HOST_FILE"};
// How they map ranks if their options do not say it.
constexpr const char* mapping_variables[] = {"OMPI_MCA_rmaps_base_mapping_policy",
                                             "PRTE_MCA_rmaps_default_mapping_policy"};

// "ppr:4:node"
std::optional<int> parse_mapping(std::string_view text) {
  constexpr std::string_view begin = "ppr:", end = ":node";
  if (!text.starts_with(begin) || !text.ends_with(end)) return std::nullopt;
  return parse_count(text.substr(begin.size(), text.size() - begin.size() - end.size()));
}

bool take(std::vector<planned_host>& hosts, std::optional<planned_job> job) {
  if (job) hosts = std::move(job->hosts);
  return job.has_value();
}

struct launcher_option {
  std::vector<std::string_view> names;  // behind one or two dashes
  std::size_t values;                   // words that follow it
  // False: not understood.
  std::function<bool(launcher_words& said, const std::string& value)> read;
};

const std::vector<launcher_option>& launcher_options() {
  using said_words = launcher_words;
  static const std::vector<launcher_option> all{
      {{"n", "np"}, 1, [](said_words& said, auto& v) { return !!(said.ranks = parse_count(v)); }},
      {{"N", "npernode", "ppn", "perhost"},
       1,
       [](said_words& said, auto& v) { return !!(said.ranks_per_host = parse_count(v)); }},
      {{"map-by"},
       1,
       [](said_words& said, auto& v) { return !!(said.ranks_per_host = parse_mapping(v)); }},
      {{"H", "host", "hosts"},
       1,
       [](said_words& said, auto& v) { return take(said.hosts, parse_host_list(v)); }},
      {{"f", "hostfile", "machinefile", "default-hostfile"},
       1,
       [](said_words& said, auto& v) {
         const auto text = read_file(v);
         return text && take(said.hosts, parse_host_file(*text));
       }},
      // Nothing of hosts.
      {{"x"}, 1, [](said_words&, auto&) { return true; }},
      {{"mca", "env", "genv"}, 2, [](said_words&, auto&) { return true; }},
  };
  return all;
}

const launcher_option* find_launcher_option(std::string_view word) {
  word.remove_prefix(word.starts_with("--") ? 2 : 1);
  for (const launcher_option& option : launcher_options())
    if (std::ranges::find(option.names, word) != option.names.end()) return &option;
  return nullptr;
}

bool is_this_host(std::string_view name) {
  char here[256] = "";
  if (gethostname(here, sizeof here - 1) != 0) return false;
  const std::string_view full = here;
  return name == "localhost" || name == "127.0.0.1" || (!name.empty() && name == full) ||
         (!name.empty() && name == full.substr(0, full.find('.')));
}

planned_job job_of_variables(const lookup& variable, int cores_here) {
  if (const auto job = batch_job(variable, cores_here)) return *job;
  for (const char* const name : host_file_variables)
    if (variable(name)) return job_of(read_file(variable(name)), parse_host_file);
  return {{{.slots = cores_here, .cores = cores_here}}};
}

}  // namespace

std::optional<int> planned_job::slots() const {
  std::int64_t sum = 0;
  for (const planned_host& host : hosts) sum += host.slots;
  if (hosts.empty() || sum > INT_MAX) return std::nullopt;
  return int(sum);
}

std::optional<crowd> planned_job::crowd_of(int ranks) const {
  std::int64_t left = ranks, cores = 0;
  bool all_known = !hosts.empty();
  std::optional<crowd> found;
  for (const planned_host& host : hosts) {
    const int here = int(std::min<std::int64_t>(left, host.slots));
    left -= here;
    if (!found && host.cores && here > *host.cores) found = {here, *host.cores};
    all_known = all_known && host.cores;
    cores += host.cores.value_or(0);
  }
  if (left == 0) return found;
  // Who starts more ranks than there are slots decides where; somewhere they are too many.
  if (all_known && ranks > cores) return crowd{ranks, int(cores)};
  return std::nullopt;
}

lookup environment() {
  return [](const char* variable) -> std::optional<std::string> {
    const char* const text = std::getenv(variable);
    return text ? std::optional<std::string>(text) : std::nullopt;
  };
}

std::optional<launcher_words> parse_launcher_words(std::span<const std::string> words) {
  if (std::ranges::find(words, ":") != words.end()) return std::nullopt;
  launcher_words said;
  while (!words.empty() && words.front().starts_with('-')) {
    const launcher_option* const option = find_launcher_option(words.front());
    if (!option || words.size() <= option->values || !option->read(said, words[1]))
      return std::nullopt;
    words = words.subspan(1 + option->values);
  }
  return said;
}

planned_job find_planned_job(const lookup& variable, int cores_here, const launcher_words& said) {
  planned_job job =
      said.hosts.empty() ? job_of_variables(variable, cores_here) : planned_job{said.hosts};
  std::optional<int> each = said.ranks_per_host;
  for (const char* const name : mapping_variables)
    if (const auto text = variable(name); text && !each) each = parse_mapping(*text);
  for (planned_host& host : job.hosts) {
    if (!host.cores && is_this_host(host.name)) host.cores = cores_here;
    host.slots = each.value_or(host.slots);
  }
  return job;
}

std::optional<int> reserved_ranks(const lookup& variable) {
  for (const char* const name : {"SLURM_NTASKS", "PBS_NP", "LSB_DJOB_NUMPROC"})
    if (const auto text = variable(name)) {
      const auto ranks = parse_count(*text);
      if (!ranks)
        throw usage_error(std::string(name) + "='" + *text +
                          "': expected how many ranks there are; -n N says it, too");
      return ranks;
    }
  return batch_job(variable, cores_of_this_host()).value_or(planned_job{}).slots();
}

int cores_of_this_host() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : INT_MAX;
}

std::optional<std::vector<int>> parse_node_counts(std::string_view text) {
  std::vector<int> counts;
  for (;;) {
    const std::size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    std::optional<int> times = 1;
    if (const std::size_t open = word.find("(x"); open != word.npos && word.ends_with(')')) {
      times = parse_count(word.substr(open + 2, word.size() - open - 3));
      word = word.substr(0, open);
    }
    const auto count = parse_count(word);
    if (!count || !times || counts.size() + std::size_t(*times) > most_hosts) return std::nullopt;
    counts.insert(counts.end(), std::size_t(*times), *count);
    if (comma == text.npos) return counts;
    text.remove_prefix(comma + 1);
  }
}

std::optional<planned_job> parse_host_pairs(std::string_view text) {
  const auto words = split(text, " \t\r\n");
  std::vector<planned_host> hosts;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const auto slots = i + 1 < words.size() ? parse_count(words[i + 1]) : std::nullopt;
    if (!slots) return std::nullopt;
    hosts.push_back({.slots = *slots, .cores = slots});
  }
  return of_hosts(std::move(hosts));
}

std::optional<planned_job> parse_pe_hostfile(std::string_view text) {
  std::vector<planned_host> hosts;
  for (const auto& words : lines_of(text)) {
    const auto slots = words.size() > 1 ? parse_count(words[1]) : std::nullopt;
    if (!slots) return std::nullopt;
    hosts.push_back({.slots = *slots, .cores = slots});
  }
  return of_hosts(std::move(hosts));
}

std::optional<planned_job> parse_node_file(std::string_view text) {
  named_hosts found;
  for (const auto& words : lines_of(text)) {
    if (words.size() != 1) return std::nullopt;
    found.add(words.front(), 1);
  }
  return of_hosts(std::move(found.hosts));
}

std::optional<planned_job> parse_host_list(std::string_view text) {
  named_hosts found;
  for (const std::string_view word : split(text, ","))
    if (!add_host(found, {word})) return std::nullopt;
  return of_hosts(std::move(found.hosts));
}

std::optional<planned_job> parse_host_file(std::string_view text) {
  named_hosts found;
  for (const auto& words : lines_of(text))
    if (!add_host(found, words)) return std::nullopt;
  return of_hosts(std::move(found.hosts));
}

}  // namespace railpass::internal::launch
