// SPDX-License-Identifier: BSL-1.0
//
// Memory of GPUs. Schedules run on host memory; a rank whose buffers are in GPU memory copies them.
// Other ranks do not notice, so nothing here chooses an arm.
#pragma once

#include "lib/buffers/call_buffers.hpp"

#include <cstddef>
#include <string_view>
#include <vector>

namespace railpass::internal {

/// Whether this process has loaded the driver of a GPU (CUDA, HIP or Level Zero), which recognises
/// memory of the GPU. Looked up at run time; nothing is linked. Without a driver, this only reads a
/// counter of the dynamic linker.
bool has_device_driver();
/// Whether this rank's buffers may be in GPU memory that nothing here copies. `gpu`: RAILPASS_GPU.
/// Level Zero's driver cannot recognise GPU memory without the preload library.
bool may_have_device_memory(std::string_view gpu);
/// Text of records about such memory.
inline constexpr std::string_view told_of_device_memory =
    "a rank may have memory of a GPU (RAILPASS_GPU=native, or Level Zero without railpass' preload "
    "library, which recognises that memory)";

/// Host copies of a call's data in GPU memory, in scratch memory of the thread.
class host_copies {
 public:
  /// Copies what the call reads. The call must live until finish(). Returns an MPI error code;
  /// throws std::bad_alloc.
  int prepare(const call& c, const calling_rank& at);
  /// The call with host copies in place of buffers in GPU memory; unchanged if there are none.
  const call& on_host() const { return on_host_; }
  /// Copies received data back, and gives back the copies. Returns an MPI error code. After a
  /// failed call, whose messages may still be under way, call nothing.
  int finish();

 private:
  struct copied_side {
    scratch_memory memory;
    std::vector<user_block> blocks;  // in the GPU's memory
    std::byte* begin = nullptr;      // in the GPU's memory; null: this side has no copy
  };
  int copy_side(copied_side& side, call_side& user, bool read);
  int copy_back();

  const call* user_ = nullptr;
  call on_host_{};
  calling_rank at_{};
  copied_side send_, receive_;
};

}  // namespace railpass::internal
