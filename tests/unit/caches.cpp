// SPDX-License-Identifier: BSL-1.0
#include "lib/group/caches.hpp"

#include "support/catch.hpp"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <sched.h>
#include <string>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

namespace {

// The simulated kernel: the cores that this process may use, and files.
std::vector<int> allowed;
std::map<std::string, std::string> files_there;

// Two sockets, each with two NUMA nodes, each with two caches of four cores.
std::string cores(int first, int count) {
  return std::to_string(first) + "-" + std::to_string(first + count - 1) + "\n";
}
void make_machine() {
  files_there.clear();
  const std::string cpus = "/sys/devices/system/cpu/cpu", nodes = "/sys/devices/system/node/node";
  for (int core = 0; core < 32; ++core) {
    const std::string about = cpus + std::to_string(core);
    for (int k = 0; k < 4; ++k) {
      // Data, instructions, L2, L3.
      const std::string cache = about + "/cache/index" + std::to_string(k);
      files_there[cache + "/level"] = k < 2 ? "1\n" : std::to_string(k) + "\n";
      files_there[cache + "/shared_cpu_list"] =
          k < 3 ? std::to_string(core) + "\n" : cores(core / 4 * 4, 4);
    }
    files_there[about + "/topology/core_siblings_list"] = cores(core / 16 * 16, 16);
  }
  for (int node = 0; node < 4; ++node)
    files_there[nodes + std::to_string(node) + "/cpulist"] =
        cores(node * 8, 4).substr(0, cores(node * 8, 4).size() - 1) + "," + cores(node * 8 + 4, 4);
}

core_affinity affinity_on(std::vector<int> may_use) {
  allowed = std::move(may_use);
  return own_affinity();
}

std::vector<std::int32_t> caches_of(const std::vector<std::int64_t>& hosts,
                                    const std::vector<core_affinity>& affinities) {
  std::vector<std::int64_t> packed;
  for (const core_affinity& p : affinities) packed.push_back(p.packed());
  return find_caches(hosts, packed);
}

constexpr int anywhere = core_affinity::anywhere;

}  // namespace

extern "C" int sched_getaffinity(pid_t, std::size_t bytes, cpu_set_t* set) noexcept {
  if (allowed.empty()) return -1;
  CPU_ZERO_S(bytes, set);
  for (const int core : allowed) CPU_SET_S(std::size_t(core), bytes, set);
  return 0;
}

extern "C" std::FILE* fopen(const char* path, const char* mode) {
  const std::string name = path;
  if (name.rfind("/sys/", 0) != 0)
    return reinterpret_cast<decltype(&fopen)>(dlsym(RTLD_NEXT, "fopen"))(path, mode);
  const auto found = files_there.find(name);
  if (found == files_there.end()) return nullptr;
  return fmemopen(found->second.data(), found->second.size(), "r");
}

TEST_CASE("a process is where all the cores are that it may use") {
  make_machine();
  CHECK(affinity_on({5}) == core_affinity{4, 0, 0});
  CHECK(affinity_on({22, 23}) == core_affinity{20, 16, 16});
  CHECK(affinity_on({11, 12}) == core_affinity{anywhere, 8, 0});
  CHECK(affinity_on({16, 31}) == core_affinity{anywhere, anywhere, 16});
  CHECK(affinity_on({15, 16}) == core_affinity{});
  CHECK(affinity_on({}) == core_affinity{});
}

TEST_CASE("what the kernel does not tell, or not as expected, is not known") {
  make_machine();
  files_there["/sys/devices/system/cpu/cpu5/cache/index3/shared_cpu_list"] = "four to seven\n";
  files_there["/sys/devices/system/node/node0/cpulist"] = "0-3,4-";
  CHECK(affinity_on({5}) == core_affinity{anywhere, anywhere, 0});
  files_there["/sys/devices/system/cpu/cpu5/topology/core_siblings_list"] = "-4,99999999,5\n";
  CHECK(affinity_on({5}) == core_affinity{anywhere, anywhere, 5});
  files_there.clear();
  CHECK(affinity_on({5}) == core_affinity{});
}

TEST_CASE("a place in one word is the same place") {
  for (const core_affinity& p :
       {core_affinity{}, {0, 0, 0}, {1023, 512, 0}, {anywhere, 8, 0}, {7, anywhere, anywhere}}) {
    CHECK(p.packed() >= 0);
    CHECK(core_affinity::unpacked(p.packed()) == p);
  }
}

TEST_CASE("ranks of a host are told apart by the closest thing that all of them are in") {
  const core_affinity a{0, 0, 0}, b{4, 0, 0}, c{8, 8, 0}, far{16, 16, 16};
  const core_affinity in_node{anywhere, 0, 0}, in_socket{anywhere, anywhere, 16};
  using numbers = std::vector<std::int32_t>;
  CHECK(caches_of({1, 1, 1, 1}, {a, b, a, far}) == numbers{0, 1, 0, 2});
  // Hosts have caches of their own.
  CHECK(caches_of({1, 2, 1, 2}, {a, a, b, b}) == numbers{0, 1, 2, 3});
  // A rank that may use both caches of a NUMA node, then a rank that may use a whole socket.
  CHECK(caches_of({1, 1, 1, 1}, {in_node, b, c, far}) == numbers{0, 0, 1, 2});
  CHECK(caches_of({1, 1, 1, 1}, {a, b, in_node, in_socket}) == numbers{0, 0, 0, 1});
  CHECK(caches_of({1, 2, 1}, {a, {}, b}) == numbers{0, 1, 2});
  // All ranks under one cache, or the caches are unknown.
  CHECK(caches_of({1, 1, 2}, {a, a, b}).empty());
  CHECK(caches_of({1, 1, 1}, {a, far, {}}).empty());
  CHECK(caches_of({}, {}).empty());
}
