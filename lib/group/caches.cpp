// SPDX-License-Identifier: BSL-1.0
#include "lib/group/caches.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <map>
#include <memory>
#include <sched.h>
#include <string>
#include <utility>

namespace railpass::internal {

namespace {

struct file_closer {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using file = std::unique_ptr<std::FILE, file_closer>;
file opened(const std::string& path) { return file(std::fopen(path.c_str(), "re")); }

// "0-3,8-11", as far as it reads like that.
cpu_set_t read_list(const std::string& path) {
  cpu_set_t all;
  CPU_ZERO(&all);
  const file list = opened(path);
  int first = 0, last = 0, next = ',';
  while (list && next == ',' && std::fscanf(list.get(), "%d", &first) == 1) {
    last = first;
    next = std::fgetc(list.get());
    if (next == '-') {
      if (std::fscanf(list.get(), "%d", &last) != 1) break;
      next = std::fgetc(list.get());
    }
    for (int core = std::max(first, 0); core <= std::min(last, CPU_SETSIZE - 1); ++core)
      CPU_SET(core, &all);
  }
  return all;
}

int first_of(const cpu_set_t& cores) {
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &cores)) return core;
  return core_affinity::anywhere;
}

// A set around all these cores is named after its first core.
std::int32_t named_if_around(const cpu_set_t& around, const cpu_set_t& cores) {
  cpu_set_t both;
  CPU_AND(&both, &around, &cores);
  return CPU_EQUAL(&both, &cores) ? first_of(around) : core_affinity::anywhere;
}

cpu_set_t cores_of_last_cache(const std::string& core) {
  std::string last;
  for (int k = 0, last_level = 0;; ++k) {
    const std::string cache = core + "/cache/index" + std::to_string(k);
    const file about = opened(cache + "/level");
    int level = 0;
    if (!about || std::fscanf(about.get(), "%d", &level) != 1) break;
    if (level < last_level) continue;
    last_level = level;
    last = cache;
  }
  return read_list(last + "/shared_cpu_list");
}

cpu_set_t cores_of_numa_node(int core) {
  for (int k = 0;; ++k) {
    const cpu_set_t cores =
        read_list("/sys/devices/system/node/node" + std::to_string(k) + "/cpulist");
    if (CPU_COUNT(&cores) == 0 || CPU_ISSET(core, &cores)) return cores;
  }
}

constexpr int bits_of_core = 20;
constexpr std::int64_t most_core = (std::int64_t{1} << bits_of_core) - 1;

}  // namespace

std::int64_t core_affinity::packed() const {
  std::int64_t word = 0;
  for (const std::int32_t core : {cache, numa_node, socket})
    word = word << bits_of_core | (std::int64_t{core} + 1);
  return word;
}

core_affinity core_affinity::unpacked(std::int64_t word) {
  const auto core = [&](int index) {
    return std::int32_t(word >> (index * bits_of_core) & most_core) - 1;
  };
  return {core(2), core(1), core(0)};
}

core_affinity own_affinity() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0 || CPU_COUNT(&cores) == 0) return {};
  const int first = first_of(cores);
  const std::string about = "/sys/devices/system/cpu/cpu" + std::to_string(first);
  return {named_if_around(cores_of_last_cache(about), cores),
          named_if_around(cores_of_numa_node(first), cores),
          named_if_around(read_list(about + "/topology/core_siblings_list"), cores)};
}

std::vector<std::int32_t> find_caches(std::span<const std::int64_t> mark_of_rank,
                                      std::span<const std::int64_t> affinity_of_rank) {
  constexpr std::array kinds{&core_affinity::cache, &core_affinity::numa_node,
                             &core_affinity::socket};
  // By host: the closest kind that is known for all its ranks.
  std::map<std::int64_t, std::size_t> kind_of_host;
  for (std::size_t r = 0; r < mark_of_rank.size(); ++r) {
    std::size_t& kind = kind_of_host[mark_of_rank[r]];
    const core_affinity affinity = core_affinity::unpacked(affinity_of_rank[r]);
    while (kind < kinds.size() && affinity.*kinds[kind] == core_affinity::anywhere) ++kind;
  }
  std::map<std::pair<std::int64_t, std::int32_t>, std::int32_t> numbers;
  std::vector<std::int32_t> cache_of_rank;
  for (std::size_t r = 0; r < mark_of_rank.size(); ++r) {
    const std::size_t kind = kind_of_host[mark_of_rank[r]];
    const core_affinity affinity = core_affinity::unpacked(affinity_of_rank[r]);
    const std::int32_t core = kind < kinds.size() ? affinity.*kinds[kind] : core_affinity::anywhere;
    cache_of_rank.push_back(
        numbers.try_emplace({mark_of_rank[r], core}, std::int32_t(numbers.size())).first->second);
  }
  if (numbers.size() == kind_of_host.size()) cache_of_rank.clear();
  return cache_of_rank;
}

}  // namespace railpass::internal
