// SPDX-License-Identifier: BSL-1.0
//
// The preload library's functions for Level Zero, the driver of Intel's GPUs. They record contexts,
// because the driver identifies memory only by its context. Loads nothing.
#include <algorithm>
#include <cstddef>
#include <dlfcn.h>
#include <mutex>
#include <new>
#include <vector>

namespace {

constexpr int uninitialized = 0x78000001;       // ZE_RESULT_ERROR_UNINITIALIZED
constexpr int out_of_host_memory = 0x70000002;  // ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY

std::mutex noting;
// Exists before constructors run and after destructors have run, because programs make calls then.
std::vector<void*>& contexts() {
  static std::vector<void*>& all = *new std::vector<void*>;
  return all;
}

// The driver's own function, also where only a plug-in has loaded it.
template <class Function>
Function* drivers(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (!found)
    if (void* const library = dlopen("libze_loader.so.1", RTLD_LAZY | RTLD_NOLOAD))
      found = dlsym(library, name);
  return reinterpret_cast<Function*>(found);
}

// Notes the context if it was created. Memory of a context that is not noted would count as the
// host's, so there is no such context.
int noted(int code, void* const* context) {
  if (code != 0) return code;
  try {
    const std::lock_guard lock(noting);
    contexts().push_back(*context);
    return 0;
  } catch (const std::bad_alloc&) {
    if (const auto destroy = drivers<int(void*)>("zeContextDestroy")) destroy(*context);
    return out_of_host_memory;
  }
}
void forget(void* context) {
  const std::lock_guard lock(noting);
  std::erase(contexts(), context);
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] int zeContextCreate(void* driver, const void* description,
                                                   void** context) {
  const auto create = drivers<int(void*, const void*, void**)>("zeContextCreate");
  return noted(create ? create(driver, description, context) : uninitialized, context);
}

[[gnu::visibility("default")]] int zeContextCreateEx(void* driver, const void* description,
                                                     unsigned num_devices, void** devices,
                                                     void** context) {
  const auto create =
      drivers<int(void*, const void*, unsigned, void**, void**)>("zeContextCreateEx");
  return noted(create ? create(driver, description, num_devices, devices, context) : uninitialized,
               context);
}

[[gnu::visibility("default")]] int zeContextDestroy(void* context) {
  const auto destroy = drivers<int(void*)>("zeContextDestroy");
  forget(context);
  return destroy ? destroy(context) : uninitialized;
}

/// For librailpass: copies at most `most` contexts to `room`. Returns the number of all contexts.
[[gnu::visibility("default")]] std::size_t railpass_level_zero_contexts(void** room,
                                                                        std::size_t most) {
  const std::lock_guard lock(noting);
  std::copy_n(contexts().begin(), std::min(contexts().size(), most), room);
  return contexts().size();
}
}
