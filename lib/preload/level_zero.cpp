// SPDX-License-Identifier: BSL-1.0
//
// The preload library's functions for Level Zero, the driver of Intel's GPUs. They record contexts,
// because the driver identifies memory only by its context. Loads nothing.
#include <algorithm>
#include <array>
#include <cstddef>
#include <dlfcn.h>
#include <mutex>

namespace {

constexpr int uninitialized = 0x78000001;  // ZE_RESULT_ERROR_UNINITIALIZED

std::mutex noting;
std::array<void*, 32> contexts;  // memory of further ones is not recognised
std::size_t num_contexts = 0;

void note(void* context) {
  const std::lock_guard lock(noting);
  if (num_contexts < contexts.size()) contexts[num_contexts++] = context;
}
void forget(void* context) {
  const std::lock_guard lock(noting);
  const auto end = contexts.begin() + std::ptrdiff_t(num_contexts);
  num_contexts = std::size_t(std::remove(contexts.begin(), end, context) - contexts.begin());
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

}  // namespace

extern "C" {

[[gnu::visibility("default")]] int zeContextCreate(void* driver, const void* description,
                                                   void** context) {
  const auto create = drivers<int(void*, const void*, void**)>("zeContextCreate");
  const int code = create ? create(driver, description, context) : uninitialized;
  if (code == 0) note(*context);
  return code;
}

[[gnu::visibility("default")]] int zeContextCreateEx(void* driver, const void* description,
                                                     unsigned num_devices, void** devices,
                                                     void** context) {
  const auto create =
      drivers<int(void*, const void*, unsigned, void**, void**)>("zeContextCreateEx");
  const int code =
      create ? create(driver, description, num_devices, devices, context) : uninitialized;
  if (code == 0) note(*context);
  return code;
}

[[gnu::visibility("default")]] int zeContextDestroy(void* context) {
  const auto destroy = drivers<int(void*)>("zeContextDestroy");
  forget(context);
  return destroy ? destroy(context) : uninitialized;
}

/// For librailpass: the contexts that there are; returns how many.
[[gnu::visibility("default")]] std::size_t railpass_level_zero_contexts(void** room,
                                                                        std::size_t most) {
  const std::lock_guard lock(noting);
  const std::size_t count = std::min(num_contexts, most);
  std::copy_n(contexts.begin(), count, room);
  return count;
}
}
