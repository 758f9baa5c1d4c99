// SPDX-License-Identifier: BSL-1.0
//
// As if each rank of MPI_COMM_WORLD might use only a core under the cache that TEST_CACHES has a
// digit for ("0011"), and caches were all there is between a core and its host; without it the
// machine is what it is. Include in one file of a program: it replaces the C library's answers.
#pragma once

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sched.h>
#include <string>

namespace railpass::test {

constexpr int cores_per_cache = 16;

/// The number of this rank's cache; -1: they are not faked.
inline int fake_cache() {
  int begun = 0, ended = 0, rank = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&ended);
  if (!begun || ended) return -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* const caches = std::getenv("TEST_CACHES");
  return caches && std::size_t(rank) < std::strlen(caches) ? caches[rank] - '0' : -1;
}

}  // namespace railpass::test

extern "C" int sched_getaffinity(pid_t process, std::size_t bytes, cpu_set_t* cores) noexcept {
  const int cache = railpass::test::fake_cache();
  if (cache < 0)
    return reinterpret_cast<decltype(&sched_getaffinity)>(dlsym(RTLD_NEXT, "sched_getaffinity"))(
        process, bytes, cores);
  CPU_ZERO_S(bytes, cores);
  CPU_SET_S(cache * railpass::test::cores_per_cache, bytes, cores);
  return 0;
}

extern "C" std::FILE* fopen(const char* path, const char* mode) {
  const auto real = reinterpret_cast<decltype(&fopen)>(dlsym(RTLD_NEXT, "fopen"));
  const std::string cores = "/sys/devices/system/", name = path;
  if (name.compare(0, cores.size(), cores) != 0) return real(path, mode);
  const int cache = railpass::test::fake_cache();
  if (cache < 0) return real(path, mode);
  const int first = cache * railpass::test::cores_per_cache;
  const std::string index = cores + "cpu/cpu" + std::to_string(first) + "/cache/index0/";
  static thread_local std::string text;
  text = name == index + "level" ? "3\n"
         : name == index + "shared_cpu_list"
             ? std::to_string(first) + "-" +
                   std::to_string(first + railpass::test::cores_per_cache - 1) + "\n"
             : "";
  return text.empty() ? nullptr : fmemopen(text.data(), text.size(), "r");
}
