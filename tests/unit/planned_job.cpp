// SPDX-License-Identifier: BSL-1.0
//
// The job as batch systems describe it, ranks that exceed cores, and malformed descriptions, which
// are ignored.
#include "lib/launch/planned_job.hpp"

#include "railpass/base/error.hpp"
#include "support/catch.hpp"

#include <cstdio>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

using namespace railpass;
using namespace railpass::internal;
using namespace railpass::internal::launch;

namespace {

lookup of(std::map<std::string, std::string> variables) {
  return [variables](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

class temporary_file {
 public:
  explicit temporary_file(const std::string& text) { std::ofstream(path_) << text; }
  ~temporary_file() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "planned_job." + std::to_string(getpid());
};

bool lacks_cores(const std::map<std::string, std::string>& variables, int ranks) {
  return find_planned_job(of(variables), 2).crowd_of(ranks).has_value();
}

}  // namespace

TEST_CASE("without a batch system all ranks are on this host") {
  CHECK_FALSE(lacks_cores({}, 2));
  CHECK(lacks_cores({}, 3));
}

TEST_CASE("Slurm's nodes have the ranks and cores that it says") {
  std::map<std::string, std::string> two{{"SLURM_JOB_ID", "7"},
                                         {"SLURM_TASKS_PER_NODE", "64(x2)"},
                                         {"SLURM_JOB_CPUS_PER_NODE", "64(x2)"}};
  CHECK_FALSE(lacks_cores(two, 128));
  CHECK_FALSE(lacks_cores(two, 3));
  CHECK(lacks_cores(two, 129));
  CHECK(reserved_ranks(of(two)) == 128);
  two["SLURM_JOB_CPUS_PER_NODE"] = "64,32";
  const auto crowded = find_planned_job(of(two), 2).crowd_of(128);
  REQUIRE(crowded.has_value());
  CHECK((crowded->ranks == 64 && crowded->cores == 32));
  CHECK_FALSE(lacks_cores(two, 96));
  for (const char* unknown : {"64", "64(x", "", "64(x2),", "-1(x2)", "64(x99999999)"}) {
    two["SLURM_JOB_CPUS_PER_NODE"] = unknown;
    CHECK_FALSE(lacks_cores(two, 1000));
  }
  CHECK_FALSE(lacks_cores({{"SLURM_NTASKS", "128"}}, 128));
  CHECK_THROWS_AS(reserved_ranks(of({{"SLURM_NTASKS", "many"}})), error);
}

TEST_CASE("LSF, Grid Engine and PBS say the hosts of a job") {
  CHECK_FALSE(lacks_cores({{"LSB_MCPU_HOSTS", "a 4 b 4"}}, 8));
  CHECK(lacks_cores({{"LSB_MCPU_HOSTS", "a 4 b 4"}}, 9));
  CHECK_FALSE(lacks_cores({{"LSB_MCPU_HOSTS", "a 4 b"}}, 9));

  const temporary_file pe("a 4 all.q@a UNDEFINED\nb 2 all.q@b UNDEFINED\n");
  CHECK_FALSE(lacks_cores({{"PE_HOSTFILE", pe.path()}}, 6));
  CHECK(lacks_cores({{"PE_HOSTFILE", pe.path()}}, 7));
  CHECK(reserved_ranks(of({{"PE_HOSTFILE", pe.path()}})) == 6);
}

TEST_CASE("PBS lists a host for each rank, without cores but for this host") {
  {
    const temporary_file nodes("a\nb\na\nb\n");
    CHECK(reserved_ranks(of({{"PBS_NODEFILE", nodes.path()}})) == 4);
    CHECK_FALSE(lacks_cores({{"PBS_NODEFILE", nodes.path()}}, 1000));
  }
  const temporary_file alone("a\na\n");
  CHECK_FALSE(lacks_cores({{"PBS_NODEFILE", alone.path()}}, 2));
  CHECK(lacks_cores({{"PBS_NODEFILE", alone.path()}}, 3));
  CHECK_FALSE(lacks_cores({{"PBS_NODEFILE", "/dev/zero"}}, 1000));
  CHECK_FALSE(lacks_cores({{"PBS_NODEFILE", "/none"}}, 1000));
}

TEST_CASE("a launcher's host file says hosts, of which no cores are known") {
  const temporary_file hosts("# two\na slots=64\nb:64\n\nc # one\n");
  const lookup variable = of({{"HYDRA_HOST_FILE", hosts.path()}});
  CHECK(find_planned_job(variable, 2).slots() == 129);
  CHECK_FALSE(find_planned_job(variable, 2).crowd_of(1000).has_value());
  CHECK_FALSE(parse_host_file("a slots=x\n"));
  CHECK_FALSE(parse_host_file("a:0\n"));
}

TEST_CASE("nothing is known of the jobs of other batch systems") {
  CHECK_FALSE(lacks_cores({{"FLUX_JOB_ID", "f1"}}, 1000));
  CHECK_FALSE(lacks_cores({{"PMIX_NAMESPACE", "prterun-host-1@1"}, {"PMIX_RANK", "0"}}, 1000));
}

TEST_CASE("a launcher's own words name ranks and hosts") {
  const auto crowded = [](const std::vector<std::string>& words,
                          const std::map<std::string, std::string>& variables = {}) {
    const auto said = parse_launcher_words(words);
    return said && said->ranks &&
           find_planned_job(of(variables), 2, *said).crowd_of(*said->ranks).has_value();
  };
  for (const char* n : {"-n", "-np", "--np"}) {
    CHECK(crowded({n, "3", "program", "-n", "1"}));
    CHECK_FALSE(crowded({n, "2", "program", "-n", "9"}));
  }
  CHECK(crowded({"-x", "NAME", "--mca", "btl", "self", "-genv", "A", "b", "-n", "3"}));
  // The cores of other hosts are unknown, and never too few; this host has two.
  CHECK_FALSE(crowded({"--host", "elsewhere:64", "-n", "65"}));
  CHECK(crowded({"-host", "localhost", "-n", "3"}));
  CHECK(crowded({"-H", "localhost:2,elsewhere:64,localhost:1", "-n", "67"}));
  CHECK_FALSE(crowded({"-H", "localhost:2,elsewhere:64", "-n", "66"}));
  CHECK_FALSE(crowded({"-hosts", "localhost:64,elsewhere:64", "-ppn", "2", "-n", "4"}));
  CHECK(crowded({"-H", "localhost:2,elsewhere:2", "--map-by", "ppr:3:node", "-n", "4"}));
  const temporary_file hosts("elsewhere slots=64\nlocalhost slots=64\n");
  CHECK(crowded({"--hostfile", hosts.path(), "-n", "128"}));
  CHECK_FALSE(crowded({"-f", hosts.path(), "-n", "64"}));
  // Options take precedence over the batch system.
  const std::map<std::string, std::string> slurm{{"SLURM_TASKS_PER_NODE", "2(x2)"},
                                                 {"SLURM_JOB_CPUS_PER_NODE", "2(x2)"},
                                                 {"SLURM_JOB_ID", "7"}};
  CHECK(crowded({"-n", "5"}, slurm));
  CHECK_FALSE(crowded({"-n", "5", "-host", "elsewhere:64"}, slurm));
  CHECK(crowded({"-n", "3", "-npernode", "3"}, slurm));
  CHECK(crowded(
      {"-n", "3"},
      {{"SLURM_TASKS_PER_NODE", "8"}, {"SLURM_JOB_CPUS_PER_NODE", "2"}, {"SLURM_JOB_ID", "7"}}));
}

TEST_CASE("mapping policies of PRRTE and Open MPI say ranks per host") {
  std::map<std::string, std::string> variables{{"SLURM_JOB_ID", "7"},
                                               {"SLURM_TASKS_PER_NODE", "8(x2)"},
                                               {"SLURM_JOB_CPUS_PER_NODE", "4(x2)"}};
  CHECK(lacks_cores(variables, 8));
  for (const char* name :
       {"OMPI_MCA_rmaps_base_mapping_policy", "PRTE_MCA_rmaps_default_mapping_policy"}) {
    auto mapped = variables;
    mapped[name] = "ppr:4:node";
    CHECK_FALSE(lacks_cores(mapped, 8));
    mapped[name] = ":oversubscribe";
    CHECK(lacks_cores(mapped, 8));
  }
}

TEST_CASE("words of a launcher that are not known say nothing at all") {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--bind-to", "core", "-n", "3"},
                                             {"-n"},
                                             {"-n", "many"},
                                             {"-n", "0"},
                                             {"-host", "a:x", "-n", "3"},
                                             {"--hostfile", "/none", "-n", "3"},
                                             {"--map-by", "slot:PE=4", "-n", "3"},
                                             {"-n", "3", "program", ":", "-n", "2", "other"}})
    CHECK_FALSE(parse_launcher_words(words));
}

TEST_CASE("a list that is written out is read again") {
  std::mt19937 random(20261128);
  for (int round = 0; round < 2000; ++round) {
    std::vector<int> counts;
    std::string text;
    for (int part = 0, parts = 1 + int(random() % 5); part < parts; ++part) {
      const int count = 1 + int(random() % 300), times = 1 + int(random() % 4);
      counts.insert(counts.end(), std::size_t(times), count);
      text += (part ? "," : "") + std::to_string(count) +
              (times > 1 ? "(x" + std::to_string(times) + ")" : "");
    }
    CHECK(parse_node_counts(text) == counts);
  }
}

TEST_CASE("what is malformed is unknown or has hosts with ranks") {
  std::mt19937 random(55);
  static constexpr std::string_view letters = "0123456789(x),: \nab=slots#-\t";
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (std::size_t n = random() % 24; n > 0; --n) text += letters[random() % letters.size()];
    CAPTURE(text);
    if (const auto counts = parse_node_counts(text))
      for (const int count : *counts) REQUIRE(count > 0);
    for (const auto parse :
         {parse_host_pairs, parse_pe_hostfile, parse_node_file, parse_host_file, parse_host_list})
      if (const auto job = parse(text)) {
        REQUIRE_FALSE(job->hosts.empty());
        for (const planned_host& host : job->hosts) REQUIRE(host.slots > 0);
        job->crowd_of(int(random() % 1000));
      }
  }
}
