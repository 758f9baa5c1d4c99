// SPDX-License-Identifier: BSL-1.0
#include "lib/buffers/device_memory.hpp"

#include "lib/call/own_errors.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <initializer_list>
#include <link.h>
#include <mutex>
#include <string_view>
#include <vector>

namespace railpass::internal {

namespace {

// The functions of a driver, as its headers declare them.
struct driver {
  virtual ~driver() = default;
  virtual bool owns(const void* memory) const = 0;
  virtual bool copy(void* to, const void* from, std::size_t bytes) const = 0;
};

template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

struct cuda_driver : driver {
  using device_pointer = unsigned long long;
  int (*attribute)(void*, int, device_pointer) = nullptr;
  int (*memcpy)(device_pointer, device_pointer, std::size_t) = nullptr;
  int (*synchronize)(void* stream) = nullptr;
  int (*push)(void* context) = nullptr;
  int (*pop)(void** context) = nullptr;

  bool load(void* library) {
    return find(library, "cuPointerGetAttribute", attribute) && find(library, "cuMemcpy", memcpy) &&
           find(library, "cuStreamSynchronize", synchronize) &&
           find(library, "cuCtxPushCurrent_v2", push) && find(library, "cuCtxPopCurrent_v2", pop);
  }
  static device_pointer address(const void* memory) {
    return reinterpret_cast<std::uintptr_t>(memory);
  }
  bool owns(const void* memory) const override {
    constexpr int memory_type = 2, is_managed = 8;  // CU_POINTER_ATTRIBUTE_...
    unsigned type = 0, managed = 0;
    if (attribute(&type, memory_type, address(memory)) != 0 || type != 2 /* device */) return false;
    return attribute(&managed, is_managed, address(memory)) != 0 || !managed;
  }
  bool copy(void* to, const void* from, std::size_t bytes) const override {
    // The thread may use another GPU, or none yet.
    constexpr int context_attribute = 1;
    void* context = nullptr;
    const void* const there = owns(to) ? to : from;
    if (attribute(&context, context_attribute, address(there)) != 0 || push(context) != 0)
      return false;
    const bool copied = memcpy(address(to), address(from), bytes) == 0 && synchronize(nullptr) == 0;
    return pop(&context) == 0 && copied;
  }
};

struct hip_driver : driver {
  // The beginning of hipPointerAttribute_t, with room for what newer versions may add. The numbers
  // of its memory types have changed from ROCm 5 to 6; what the pointers are has not.
  struct attributes {
    int type = 0;
    int device = 0;
    void* device_pointer = nullptr;
    void* host_pointer = nullptr;
    int is_managed = 0;
    unsigned flags = 0;
    std::byte more[64]{};
  };
  int (*get_attributes)(attributes*, const void*) = nullptr;
  int (*memcpy)(void*, const void*, std::size_t, int kind) = nullptr;
  int (*synchronize)(void* stream) = nullptr;

  bool load(void* library) {
    return find(library, "hipPointerGetAttributes", get_attributes) &&
           find(library, "hipMemcpy", memcpy) && find(library, "hipStreamSynchronize", synchronize);
  }
  bool owns(const void* memory) const override {
    attributes found;
    return get_attributes(&found, memory) == 0 && found.device_pointer && !found.host_pointer &&
           !found.is_managed;
  }
  bool copy(void* to, const void* from, std::size_t bytes) const override {
    constexpr int by_address = 4;  // hipMemcpyDefault
    return memcpy(to, from, bytes, by_address) == 0 && synchronize(nullptr) == 0;
  }
};

// Level Zero only knows memory by its context. The preload library notes those that there are: its
// name for them, in lib/preload/level_zero.cpp.
constexpr const char* name_of_contexts = "railpass_level_zero_contexts";

struct level_zero_driver : driver {
  struct allocation {
    int structure = 0x17;  // ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES
    void* next = nullptr;
    int type = 0;
    std::uint64_t id = 0, page_bytes = 0;
  };
  struct queue {
    int structure = 0xe;  // ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC
    void* next = nullptr;
    std::uint32_t ordinal = 0, index = 0, flags = 0;
    int mode = 1;  // ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS
    int priority = 0;
  };
  struct owner {
    void* context = nullptr;  // null: no memory of a GPU
    void* device = nullptr;
  };
  std::size_t (*contexts)(void** room, std::size_t most) = nullptr;
  int (*properties)(void* context, const void*, allocation*, void** device) = nullptr;
  int (*make_list)(void* context, void* device, const queue*, void** list) = nullptr;
  int (*append_copy)(void* list, void*, const void*, std::size_t, void* signal,
                     std::uint32_t num_events, void** events) = nullptr;
  int (*destroy_list)(void* list) = nullptr;

  bool load(void* library) {
    return find(RTLD_DEFAULT, name_of_contexts, contexts) &&
           find(library, "zeMemGetAllocProperties", properties) &&
           find(library, "zeCommandListCreateImmediate", make_list) &&
           find(library, "zeCommandListAppendMemoryCopy", append_copy) &&
           find(library, "zeCommandListDestroy", destroy_list);
  }
  std::vector<void*> known_contexts() const {
    std::vector<void*> known(8);
    std::size_t count = contexts(known.data(), known.size());
    while (count > known.size()) {
      known.resize(count);
      count = contexts(known.data(), known.size());
    }
    known.resize(count);
    return known;
  }
  owner owner_of(const void* memory) const {
    constexpr int of_device = 2;  // ZE_MEMORY_TYPE_DEVICE
    for (void* const context : known_contexts()) {
      allocation found;
      void* device = nullptr;
      if (properties(context, memory, &found, &device) == 0 && found.type == of_device)
        return {context, device};
    }
    return {};
  }
  bool owns(const void* memory) const override { return owner_of(memory).context != nullptr; }
  bool copy(void* to, const void* from, std::size_t bytes) const override {
    const owner receives = owner_of(to), there = receives.context ? receives : owner_of(from);
    const queue waits;
    void* list = nullptr;
    if (make_list(there.context, there.device, &waits, &list) != 0) return false;
    const bool copied = append_copy(list, to, from, bytes, nullptr, 0, nullptr) == 0;
    return destroy_list(list) == 0 && copied;
  }
};

std::atomic<const driver*> loaded{nullptr};
std::atomic<bool> is_unknown{false};  // one is loaded that cannot be asked

// Only what the process has loaded: a driver that only we know has nothing of the user's.
template <class Driver>
const driver* find_driver(std::initializer_list<const char*> names) {
  static Driver& found = *new Driver;  // never destroyed: there are calls in atexit handlers
  for (const char* const name : names)
    if (void* const library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD))
      if (found.load(library)) return &found;
  return nullptr;
}

unsigned long long loaded_so_far() {
  unsigned long long count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        *static_cast<unsigned long long*>(result) = info->dlpi_adds;
        return 1;
      },
      &count);
  return count;
}

constexpr std::string_view level_zero = "libze_loader.so";

// Asked before find_driver(): dlopen() tries all directories of the search path, on every rank, for
// a library that is not loaded.
bool is_loaded(std::string_view beginning_of_name) {
  return dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* beginning) {
        const std::string_view path = info->dlpi_name;
        const std::string_view name = path.substr(path.rfind('/') + 1);
        return int(name.starts_with(*static_cast<const std::string_view*>(beginning)));
      },
      &beginning_of_name);
}

}  // namespace

bool has_device_driver() {
  if (loaded.load(std::memory_order_acquire)) return true;
  static std::atomic<unsigned long long> searched{0};
  const unsigned long long now = loaded_so_far();
  if (searched.load(std::memory_order_acquire) == now) return false;
  static std::mutex searching;
  const std::lock_guard lock(searching);
  const driver* found = nullptr;
  if (is_loaded("libcuda.so")) found = find_driver<cuda_driver>({"libcuda.so.1"});
  if (!found && is_loaded("libamdhip64.so"))
    found = find_driver<hip_driver>(
        {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"});
  if (!found && is_loaded(level_zero))
    found = find_driver<level_zero_driver>({"libze_loader.so.1"});
  is_unknown.store(!found && is_loaded(level_zero), std::memory_order_relaxed);
  loaded.store(found, std::memory_order_release);
  searched.store(now, std::memory_order_release);
  return found != nullptr;
}

bool may_have_device_memory(std::string_view gpu) {
  if (has_device_driver()) return gpu == "native";
  return is_unknown.load(std::memory_order_relaxed);
}

namespace {

// The first byte of a block's elements, and how many bytes they and what lies between them have.
std::byte* begin_of(const user_block& b) {
  const std::int64_t last = (b.count - 1) * b.layout.extent;
  return displaced(b.memory, b.layout.true_lower_bound + std::min<std::int64_t>(0, last));
}
std::size_t span_of(const user_block& b) {
  return std::size_t(std::abs((b.count - 1) * b.layout.extent) + b.layout.true_extent);
}

}  // namespace

int host_copies::copy_side(copied_side& side, call_side& user, bool read) {
  const driver& gpu = *loaded.load(std::memory_order_acquire);
  side.begin = nullptr;
  std::erase_if(side.blocks, [](const user_block& b) { return b.bytes() == 0; });
  if (side.blocks.empty()) return MPI_SUCCESS;
  std::byte *begin = begin_of(side.blocks[0]), *end = begin;
  for (const user_block& b : side.blocks) {
    begin = std::min(begin, begin_of(b));
    end = std::max(end, begin_of(b) + span_of(b));
  }
  if (!gpu.owns(begin)) return MPI_SUCCESS;
  side.begin = begin;
  side.memory.borrow(end - begin);
  // Copies block by block, because memory between blocks may belong to other code.
  for (const user_block& b : side.blocks)
    if (read || !b.layout.packed)
      if (!gpu.copy(side.memory.get() + (begin_of(b) - begin), begin_of(b), span_of(b)))
        return code_of(own_error::internal);
  user.memory =
      displaced(side.memory.get(), std::int64_t(reinterpret_cast<std::uintptr_t>(user.memory) -
                                                reinterpret_cast<std::uintptr_t>(begin)));
  return MPI_SUCCESS;
}

int host_copies::prepare(const call& c, const calling_rank& at) {
  user_ = &c;
  on_host_ = c;
  at_ = at;
  const bool in_place = c.send.in_place();
  const bool is_broadcast = describe(c.op).what == promise::root_to_all;
  send_.blocks.clear();
  if (!in_place && !is_broadcast)
    if (const int failure = sent_blocks(c, at, send_.blocks)) return failure;
  if (const int failure = copy_side(send_, on_host_.send, true)) return failure;

  if (const int failure = result_blocks(c, at, in_place, receive_.blocks)) return failure;
  // A rank without a result may still send what its result would overwrite.
  if (in_place && receive_.blocks.empty())
    if (const int failure = sent_blocks(c, at, receive_.blocks)) return failure;
  return copy_side(receive_, on_host_.receive, in_place || (is_broadcast && at.rank == c.root));
}

int host_copies::finish() {
  const int code = copy_back();
  for (copied_side* const side : {&send_, &receive_}) side->memory.give_back();
  return code;
}

int host_copies::copy_back() {
  if (!receive_.begin) return MPI_SUCCESS;
  const driver& gpu = *loaded.load(std::memory_order_acquire);
  if (const int failure = result_blocks(*user_, at_, false, receive_.blocks)) return failure;
  for (const user_block& b : receive_.blocks)
    if (b.bytes() > 0 &&
        !gpu.copy(begin_of(b), receive_.memory.get() + (begin_of(b) - receive_.begin), span_of(b)))
      return code_of(own_error::internal);
  return MPI_SUCCESS;
}

}  // namespace railpass::internal
