// SPDX-License-Identifier: BSL-1.0
//
// librailpass_preload.so: intercepts the MPI library of a program that does not know railpass. It
// answers MPI_x and PMPI_x (which Fortran and MPI-IO call) for all blocking collectives, and for
// calls with which MPI and communicators start and end. It is linked with no MPI library, and may
// be loaded into any process. It loads librailpass at the first of these calls, once the MPI
// library is known to fit. Calls that cannot or shall not be tuned pass through.
#include "lib/base/launchers.hpp"
#include "lib/preload/engine.hpp"
#include "lib/preload/mpi_of_build.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <mutex>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace railpass::internal::preload {
namespace {

// The functions that answer a name.
struct answers {
  functions mpi;
  functions pmpi;
};

// Written by one process of a job, because the user believes that the program is tuned. There is no
// log yet: settings belong to librailpass.
void tell(const std::string& sentence) {
  for (const char* const variable : rank_variables)
    if (const char* const rank = std::getenv(variable); rank && std::atoi(rank) != 0) return;
  const std::string line = "railpass: " + sentence + "\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
}

// The base address of the object that contains this address; null for no object.
const void* object_of(const void* address) {
  Dl_info found{};
  return address && dladdr(address, &found) ? found.dli_fbase : nullptr;
}

// Whether dlsym finds an MPI library with this handle, and not this library's own functions.
bool finds_mpi(void* handle) {
  const void* const barrier = dlsym(handle, "PMPI_Barrier");
  return barrier && object_of(barrier) != object_of(reinterpret_cast<const void*>(&finds_mpi));
}

// The handle of a loaded object with an MPI library; null if there is none.
void* handle_of_loaded(const char* path) {
  void* const handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (!handle || finds_mpi(handle)) return handle;
  dlclose(handle);
  return nullptr;
}

std::vector<std::string> loaded_objects() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        static_cast<std::vector<std::string>*>(result)->emplace_back(info->dlpi_name);
        return 0;
      },
      &paths);
  return paths;
}

// The handle with which dlsym finds the function that the caller would have called without us.
void* handle_of_mpi(const void* caller) {
  if (finds_mpi(RTLD_NEXT)) return RTLD_NEXT;
  // The MPI library of a plug-in: Python modules load MPI in this way.
  Dl_info found{};
  if (dladdr(caller, &found) && found.dli_fname)
    if (void* const handle = handle_of_loaded(found.dli_fname)) return handle;
  // A function that ends with the call jumps here, so `caller` is where that function was called.
  for (const std::string& path : loaded_objects())
    if (void* const handle = handle_of_loaded(path.c_str())) return handle;
  tell("a collective of MPI was called, but the caller has no MPI library");
  _exit(127);  // like the dynamic linker for a missing function
}

// Stands for a function that the MPI library lacks, although the MPI library of the build has it.
template <std::size_t... index>
int absent(detail::a_word<index>...) {
  return 1;
}
template <std::size_t... index>
word_function<sizeof...(index)> absent_function(std::index_sequence<index...>) {
  return &absent<index...>;
}

template <std::size_t count>
word_function<count> find_function(void* handle, const char* name) {
  const auto found = reinterpret_cast<word_function<count>>(dlsym(handle, name));
  return found ? found : absent_function(std::make_index_sequence<count>());
}

bool switched_off() {
  const char* const value = std::getenv("RAILPASS");
  const std::string_view text = value ? value : "";
  return text == "off" || text == "0" || text == "false" || text == "no";
}

// The MPI library's name and version, from the start of its version text.
std::string name_of_library(void* handle) {
  const auto get_version =
      reinterpret_cast<int (*)(char*, int*)>(dlsym(handle, "PMPI_Get_library_version"));
  char text[8192] = "";  // more than any MPI library's MPI_MAX_LIBRARY_VERSION_STRING
  int length = 0;
  if (!get_version || get_version(text, &length) != 0) return "an unknown MPI library";
  std::string name(text);
  name.resize(std::min(name.size(), name.find_first_of(",\n")));
  for (char& c : name)
    if (c == '\t') c = ' ';
  return name;
}

// Every MPI library with the ABI of MPI 5.0 has this name. Its constants and types differ from the
// same maker's other library.
bool has_standard_abi(void* handle) {
  Dl_info found{};
  if (!dladdr(dlsym(handle, "PMPI_Barrier"), &found) || !found.dli_fname) return false;
  const std::string_view path = found.dli_fname;
  return path.substr(path.rfind('/') + 1).starts_with("libmpi_abi.so");
}

// Loads librailpass, or finds it loaded, so that calls through librailpass and through this library
// meet. Null if librailpass cannot serve the MPI library behind the handle; `problem` says why.
decltype(&railpass_preload_attach) find_engine(void* handle, std::string& problem) {
  const bool is_standard = has_standard_abi(handle);
  const std::string running = name_of_library(handle) + (is_standard ? " (standard MPI ABI)" : "");
  const std::string_view needed = mpi_family_of_build();
  // Intel MPI has MPICH's binary interface.
  const bool has_interface =
      running.find(needed) != std::string::npos ||
      (needed == "MPICH" && running.find("Intel(R) MPI") != std::string::npos);
  if (!has_interface || is_standard != (needed == mpi_family_of_standard_abi)) {
    problem = "this program runs with " + running + ", this preload library is for " +
              mpi_of_build() + "; build railpass for " + running;
    return nullptr;
  }
  void* engine = dlopen(RAILPASS_ENGINE, RTLD_NOW | RTLD_NOLOAD);
  if (!engine) {
    Dl_info self{};
    dladdr(reinterpret_cast<const void*>(&find_engine), &self);
    const std::string_view path = self.dli_fname ? self.dli_fname : "";
    engine = dlopen((std::string(path.substr(0, path.rfind('/') + 1)) + RAILPASS_ENGINE).c_str(),
                    RTLD_NOW | RTLD_LOCAL);
  }
  void* const attach = engine ? dlsym(engine, "railpass_preload_attach") : nullptr;
  if (!attach) {
    const char* const why = dlerror();
    problem = std::string("librailpass cannot be loaded: ") + (why ? why : "unknown reason");
    return nullptr;
  }
  if (object_of(dlsym(engine, "PMPI_Barrier")) != object_of(dlsym(handle, "PMPI_Barrier"))) {
    problem = "this program runs with another installation of " + running +
              " than librailpass was linked with";
    return nullptr;
  }
  return reinterpret_cast<decltype(&railpass_preload_attach)>(attach);
}

const answers* find_answers(const void* caller) {
  static answers result;
  void* const handle = handle_of_mpi(caller);
  functions real, next;
#define RAILPASS_PRELOADED(name, tuned, count)             \
  real.name = find_function<count>(handle, "PMPI_" #name); \
  next.name = find_function<count>(handle, "MPI_" #name);
#include "lib/preload/functions.def"
#undef RAILPASS_PRELOADED
  result = {.mpi = real, .pmpi = real};
  if (!switched_off()) {
    std::string problem;
    if (const auto attach = find_engine(handle, problem)) {
      attach(real, result.pmpi);
      result.mpi = result.pmpi;
    } else {
      tell(problem + "; nothing is tuned");
    }
  }
  // A profiler behind this library sees the program's calls; its PMPI_x comes to this library.
#define RAILPASS_PRELOADED(name, tuned, count)               \
  if (object_of(reinterpret_cast<const void*>(next.name)) != \
      object_of(reinterpret_cast<const void*>(real.name)))   \
    result.mpi.name = next.name;
#include "lib/preload/functions.def"
#undef RAILPASS_PRELOADED
  return &result;
}

std::mutex finding;
std::atomic<const answers*> found{nullptr};

// Separate from the next function, which is part of every call.
[[gnu::noinline, gnu::cold]] const answers& first_answers_for(const void* caller) {
  const std::lock_guard lock(finding);
  if (!found.load(std::memory_order_relaxed))
    found.store(find_answers(caller), std::memory_order_release);
  return *found.load(std::memory_order_relaxed);
}
const answers& answers_for(const void* caller) {
  const answers* const known = found.load(std::memory_order_acquire);
  return known ? *known : first_answers_for(caller);
}

}  // namespace
}  // namespace railpass::internal::preload

// mpi.h declares these functions with the types of the MPI of the build. Here they have separate
// names for the compiler, and MPI's names for the linker.
#define RAILPASS_WORDS_0
#define RAILPASS_WORDS_1 word a
#define RAILPASS_WORDS_2 word a, word b
#define RAILPASS_WORDS_3 RAILPASS_WORDS_2, word c
#define RAILPASS_WORDS_4 RAILPASS_WORDS_3, word d
#define RAILPASS_WORDS_5 word a, word b, word c, word d, word e
#define RAILPASS_WORDS_6 RAILPASS_WORDS_5, word f
#define RAILPASS_WORDS_7 RAILPASS_WORDS_6, word g
#define RAILPASS_WORDS_8 RAILPASS_WORDS_7, word h
#define RAILPASS_WORDS_9 RAILPASS_WORDS_8, word i
#define RAILPASS_PASSED_0
#define RAILPASS_PASSED_1 a
#define RAILPASS_PASSED_2 a, b
#define RAILPASS_PASSED_3 RAILPASS_PASSED_2, c
#define RAILPASS_PASSED_4 RAILPASS_PASSED_3, d
#define RAILPASS_PASSED_5 a, b, c, d, e
#define RAILPASS_PASSED_6 RAILPASS_PASSED_5, f
#define RAILPASS_PASSED_7 RAILPASS_PASSED_6, g
#define RAILPASS_PASSED_8 RAILPASS_PASSED_7, h
#define RAILPASS_PASSED_9 RAILPASS_PASSED_8, i
#define RAILPASS_ANSWER(member, linker_name, name, count)                                          \
  [[gnu::visibility("default")]] int member##_##name(RAILPASS_WORDS_##count) __asm__(linker_name); \
  int member##_##name(RAILPASS_WORDS_##count) {                                                    \
    return answers_for(__builtin_return_address(0)).member.name(RAILPASS_PASSED_##count);          \
  }
#define RAILPASS_PRELOADED(name, tuned, count)    \
  RAILPASS_ANSWER(mpi, "MPI_" #name, name, count) \
  RAILPASS_ANSWER(pmpi, "PMPI_" #name, name, count)

namespace railpass::internal::preload {
#include "lib/preload/functions.def"
}  // namespace railpass::internal::preload
