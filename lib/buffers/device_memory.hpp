// SPDX-License-Identifier: BSL-1.0
//
// Memory of GPUs. Schedules run on the host's memory; a rank whose buffers lie elsewhere copies
// them. Others do not notice, so nothing here chooses an arm.
#pragma once

#include "lib/buffers/call_buffers.hpp"

#include <cstddef>
#include <string_view>
#include <vector>

namespace railpass::internal {

/// Whether this process has loaded the driver of a GPU, CUDA's, HIP's or Level Zero's, which tells
/// memory of one. Looked up at run time, nothing is linked; without a driver this looks at a
/// counter of the dynamic linker.
bool has_device_driver();
/// Whether this rank's buffers may lie in memory of a GPU that nothing here copies: `gpu` is
/// RAILPASS_GPU, and Level Zero's driver cannot tell without the preload library.
bool may_have_device_memory(std::string_view gpu);
/// What records say then.
inline constexpr std::string_view told_of_device_memory =
    "a rank may have memory of a GPU (RAILPASS_GPU=native, or Level Zero without railpass' preload "
    "library, which recognises that memory)";

/// Copies in the host's memory of what a call has in a GPU's. Keeps its memory from call to call.
class host_copies {
 public:
  /// Copies what the call reads. The call must live until finish(). Returns an MPI error code;
  /// throws std::bad_alloc.
  int prepare(const call& c, const call_place& at);
  /// The call with the copies in place of the buffers that need one: as given if none does.
  const call& on_host() const { return on_host_; }
  /// Copies back what was received. Returns an MPI error code.
  int finish();

 private:
  struct copied_side {
    std::vector<std::byte> memory;
    std::vector<user_block> blocks;  // in the GPU's memory
    std::byte* begin = nullptr;      // there; null: this side has no copy
  };
  int copy_side(copied_side& side, call_side& user, bool read);

  const call* user_ = nullptr;
  call on_host_{};
  call_place at_{};
  copied_side send_, receive_;
};

}  // namespace railpass::internal
