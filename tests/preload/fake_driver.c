// SPDX-License-Identifier: BSL-1.0
//
// A GPU's driver without a GPU: its memory is the host's, made unreadable, and the driver's own
// copies reach it. With HIP defined it is AMD's driver, with LEVEL_ZERO Intel's, else NVIDIA's.
// What else reaches for the memory is let through and counted.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { most = 16 };
static struct {
  char* begin;
  size_t bytes;
} ranges[most];
static int num_ranges, touches;

static int range_of(const void* memory) {
  for (int i = 0; i < num_ranges; ++i)
    if ((const char*)memory >= ranges[i].begin &&
        (const char*)memory < ranges[i].begin + ranges[i].bytes)
      return i;
  return -1;
}

#ifdef LEVEL_ZERO
enum { contexts = 34 };
static char made_contexts[contexts];
static void* known_context;  // of all memory
int zeContextCreate(void* driver, const void* description, void** context) {
  static int made;
  (void)driver, (void)description;
  *context = &made_contexts[made++];
  return 0;
}
int zeContextDestroy(void* context) { return context != &made_contexts[0]; }
#endif

static void protect(int i, int rights) { mprotect(ranges[i].begin, ranges[i].bytes, rights); }

static void on_fault(int signal_number, siginfo_t* info, void* context) {
  (void)context;
  const int i = range_of(info->si_addr);
  if (i < 0) {
    signal(signal_number, SIG_DFL);
    return;
  }
  ++touches;
  protect(i, PROT_READ | PROT_WRITE);
}

__attribute__((visibility("default"))) void* fake_allocate(size_t bytes) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, NULL);
  if (num_ranges == most) abort();
#ifdef LEVEL_ZERO
  // As a program does; the first context is destroyed again.
  if (!known_context) {
    void* gone = NULL;
    if (zeContextCreate(NULL, NULL, &gone) != 0) abort();
    for (int i = 1; i < contexts; ++i)
      if (zeContextCreate(NULL, NULL, &known_context) != 0) abort();
    if (zeContextDestroy(gone) != 0) abort();
  }
#endif
  void* const memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  ranges[num_ranges].begin = memory;
  ranges[num_ranges++].bytes = bytes;
  return memory;
}

__attribute__((visibility("default"))) int fake_touches(void) { return touches; }

__attribute__((visibility("default"))) void fake_copy(void* to, const void* from, size_t bytes) {
  const int target = range_of(to), source = range_of(from);
  if (target >= 0) protect(target, PROT_READ | PROT_WRITE);
  if (source >= 0) protect(source, PROT_READ | PROT_WRITE);
  memcpy(to, from, bytes);
  if (target >= 0) protect(target, PROT_NONE);
  if (source >= 0) protect(source, PROT_NONE);
}

#if defined(LEVEL_ZERO)
struct allocation {
  int structure;
  void* next;
  int type;
  uint64_t id, page_bytes;
};
int zeMemGetAllocProperties(void* context, const void* memory, struct allocation* result,
                            void** device) {
  if (context == &made_contexts[0] || result->structure != 0x17) abort();
  result->type = context != known_context || range_of(memory) < 0 ? 0 : 2;
  *device = &ranges;
  return 0;
}
int zeCommandListCreateImmediate(void* context, void* device, const void* queue, void** list) {
  (void)queue;
  *list = &num_ranges;
  return context != known_context || device != &ranges;
}
int zeCommandListAppendMemoryCopy(void* list, void* to, const void* from, size_t bytes,
                                  void* signal, uint32_t num_events, void** events) {
  if (list != &num_ranges || signal || num_events > 0 || events) return 1;
  fake_copy(to, from, bytes);
  return 0;
}
int zeCommandListDestroy(void* list) { return list != &num_ranges; }
#elif defined(HIP)
struct attributes {
  int type, device;
  void *device_pointer, *host_pointer;
  int is_managed;
  unsigned flags;
};
int hipPointerGetAttributes(struct attributes* result, const void* memory) {
  memset(result, 0, sizeof *result);
  if (range_of(memory) < 0) return 1;
  result->device_pointer = (void*)(uintptr_t)memory;
  return 0;
}
int hipMemcpy(void* to, const void* from, size_t bytes, int kind) {
  if (kind != 4) return 1;
  fake_copy(to, from, bytes);
  return 0;
}
int hipStreamSynchronize(void* stream) { return stream != NULL; }
#else
static int the_context, pushed;
int cuPointerGetAttribute(void* result, int attribute, unsigned long long memory) {
  if (range_of((void*)(uintptr_t)memory) < 0) return 1;
  if (attribute == 1) *(void**)result = &the_context;
  if (attribute == 2) *(unsigned*)result = 2;
  if (attribute == 8) *(unsigned*)result = 0;
  return attribute != 1 && attribute != 2 && attribute != 8;
}
int cuMemcpy(unsigned long long to, unsigned long long from, size_t bytes) {
  if (!pushed) return 201;
  fake_copy((void*)(uintptr_t)to, (void*)(uintptr_t)from, bytes);
  return 0;
}
int cuStreamSynchronize(void* stream) { return stream != NULL; }
int cuCtxPushCurrent_v2(void* context) { return context == &the_context ? (pushed = 1, 0) : 201; }
int cuCtxPopCurrent_v2(void** context) {
  *context = &the_context;
  pushed = 0;
  return 0;
}
#endif
