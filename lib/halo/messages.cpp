// SPDX-License-Identifier: BSL-1.0
#include "lib/halo/messages.hpp"

namespace railpass::internal::halo {

messages::messages(const std::vector<shift>& shifts, std::int64_t packed_bytes, layout in)
    : shifts_(shifts), in_(in) {
  if (in_ == layout::derived) return;
  buffer_.resize(std::size_t(packed_bytes));
  for (const shift& s : shifts) {
    sent_types_.push_back(bytes_type(s.sent.bytes()));
    received_types_.push_back(bytes_type(s.received.bytes()));
  }
}

message messages::sent(std::size_t i) const {
  const shift& s = shifts_[i];
  if (in_ == layout::derived) return {.buffer = s.sent.address(), .type = s.sent.type()};
  return {.buffer = const_cast<std::byte*>(buffer_.data()) + s.sent_offset_bytes,
          .type = sent_types_[i]};
}

message messages::received(std::size_t i) const {
  const shift& s = shifts_[i];
  if (in_ == layout::derived) return {.buffer = s.received.address(), .type = s.received.type()};
  return {.buffer = const_cast<std::byte*>(buffer_.data()) + s.received_offset_bytes,
          .type = received_types_[i]};
}

void messages::pack(std::size_t i) {
  const shift& s = shifts_[i];
  if (in_ == layout::packed && s.to != MPI_PROC_NULL)
    s.sent.pack(buffer_.data() + s.sent_offset_bytes);
}

void messages::unpack(std::size_t i) {
  const shift& s = shifts_[i];
  if (in_ == layout::packed && s.from != MPI_PROC_NULL)
    s.received.unpack(buffer_.data() + s.received_offset_bytes);
}

}  // namespace railpass::internal::halo
