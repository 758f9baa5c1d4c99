// SPDX-License-Identifier: BSL-1.0
#include "lib/launch/engine.hpp"

#include "lib/base/join.hpp"
#include "railpass/base/error.hpp"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <optional>

namespace railpass::internal::launch {
namespace {

constexpr const char* preload_name = "librailpass_preload.so";

// A folder of the installation that the program belongs to, by its path from the program's folder.
// A build folder has the same layout.
std::filesystem::path from_program(const char* folder) {
  return std::filesystem::weakly_canonical(this_program().parent_path() / folder);
}

// The folder of an engine's libraries or programs. The build's own engine has the folder `own`,
// each other engine a folder below it.
std::filesystem::path below(const std::filesystem::path& own, const char* others,
                            mpi_family family) {
  return family == family_of_build() ? own : own / others / name_of(family);
}

std::filesystem::path own_libraries_of(mpi_family family) {
  return below(from_program(RAILPASS_LIBDIR), "railpass", family);
}

bool is_installed(mpi_family family) {
  return std::filesystem::exists(own_libraries_of(family) / preload_name);
}

// Intel MPI has MPICH's binary interface.
mpi_family engine_for(mpi_family family) {
  const bool takes_mpich = family == mpi_family::intel && !is_installed(family);
  return takes_mpich && is_installed(mpi_family::mpich) ? mpi_family::mpich : family;
}

std::filesystem::path libraries_of(mpi_family family) {
  return own_libraries_of(engine_for(family));
}

// Debian calls MPICH's library libmpich.so.12. An engine for other machines, too, has a stand-in of
// MPICH's own name, which leads there. It must not hide a library that has this name.
void find_mpi_library(mpi_family family) {
  const auto folder = libraries_of(family);
  constexpr const char* name = "libmpi.so.12";
  if (!std::filesystem::exists(folder / name) || dlopen(name, RTLD_LAZY | RTLD_LOCAL)) return;
  const char* const before = std::getenv("LD_LIBRARY_PATH");
  setenv("LD_LIBRARY_PATH", ((before ? before + std::string(":") : "") + folder.string()).c_str(),
         1);
}

launcher_kind kind_of_this_job() {
  return std::getenv("OMPI_COMM_WORLD_RANK") ? launcher_kind::open_mpi
         : std::getenv("PMI_RANK")           ? launcher_kind::hydra
                                             : launcher_kind::unknown;
}

// The end of a sentence; nothing if the engine can be loaded.
std::optional<std::string> why_not(mpi_family family) {
  try {
    marks_of(family);
    return {};
  } catch (const error& problem) {
    return problem.what();
  }
}

}  // namespace

std::filesystem::path this_program() { return std::filesystem::canonical("/proc/self/exe"); }

std::string preload_library(mpi_family family) {
  const auto path = libraries_of(family) / preload_name;
  // The dynamic linker knows no way to quote them; Slurm separates variables by commas.
  if (path.string().find_first_of(" :,") != std::string::npos)
    throw error("the preload library's path '" + path.string() +
                "' has a blank, a colon or a comma, which LD_PRELOAD cannot contain; install "
                "railpass in another directory");
  if (std::filesystem::exists(path)) return path.string();
  throw error("no preload library for " + full_name(family) + " at '" + path.string() +
              "'; build railpass for that MPI and run `cmake --install BUILD --component preload "
              "--prefix PREFIX`");
}

std::string program_of(mpi_family family, const std::string& name) {
  find_mpi_library(family);
  return (below(from_program(RAILPASS_LIBEXEC), "", engine_for(family)) / name).string();
}

std::vector<mpi_family> installed_engines() {
  std::vector<mpi_family> found{family_of_build()};
  for (const mpi_family family :
       {mpi_family::open_mpi, mpi_family::mpich, mpi_family::intel, mpi_family::standard})
    if (family != family_of_build() && is_installed(family)) found.push_back(family);
  return found;
}

mpi_family engine_of_this_job(const std::string& launcher) {
  launcher_kind kind = kind_of_this_job();
  if (kind == launcher_kind::unknown && !launcher.empty())
    kind = kind_of_named_launcher(launcher.substr(0, launcher.find(' ')));
  std::vector<mpi_family> engines = installed_engines(), startable;
  std::ranges::copy_if(engines, std::back_inserter(startable),
                       [kind](mpi_family f) { return can_start(kind, f); });
  if (!startable.empty()) engines = startable;
  if (engines.size() == 1) return engines.front();
  std::vector<std::string> problems;
  for (const mpi_family family : engines) {
    const auto problem = why_not(family);
    if (!problem) return family;
    problems.push_back(*problem);
  }
  throw error("no MPI library can be loaded: " + join(problems, "; "));
}

mpi_marks marks_of(mpi_family family) {
  find_mpi_library(family);
  const auto path = libraries_of(family) / RAILPASS_ENGINE;
  void* const engine = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!engine) throw error(dlerror());
  const auto built_for =
      reinterpret_cast<const char* (*)()>(dlsym(engine, "railpass_engine_built_for"));
  const auto get_version =
      reinterpret_cast<int (*)(char*, int*)>(dlsym(engine, "MPI_Get_library_version"));
  std::string version(8192, '\0');  // more than any MPI library's MPI_MAX_LIBRARY_VERSION_STRING
  int length = 0;
  if (!built_for || !get_version || get_version(version.data(), &length) != 0)
    throw error("'" + path.string() + "' is not the librailpass of this railpass");
  version.resize(std::size_t(length));
  return {.built_for = built_for(), .library = version};
}

}  // namespace railpass::internal::launch
