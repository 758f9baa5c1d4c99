// SPDX-License-Identifier: BSL-1.0
#include "lib/call/announced_call.hpp"

namespace railpass::internal {

namespace {

std::int32_t low(std::int64_t number) { return std::int32_t(std::uint32_t(number)); }
std::int32_t high(std::int64_t number) { return low(number >> 32); }
std::int64_t joined(std::int32_t low, std::int32_t high) {
  return std::int64_t{high} << 32 | std::uint32_t(low);
}

}  // namespace

told_call::words told_call::packed() const {
  return {low(number), high(number), low(bytes), high(bytes), root, std::int32_t(op)};
}

std::optional<told_call> told_call::of(const words& from) {
  if (from[5] < 0 || from[5] >= std::int32_t(num_collectives)) return std::nullopt;
  return told_call{.number = joined(from[0], from[1]),
                   .bytes = joined(from[2], from[3]),
                   .root = from[4],
                   .op = collective(from[5])};
}

std::string told_call::text() const {
  std::string text(name_of(op));
  if (bytes > 0 && describe(op).what != promise::all_arrive)
    text += " of " + std::to_string(bytes) + " bytes";
  if (traits_of(op).rooted) text += " with root " + std::to_string(root);
  return text;
}

std::string told_calls::difference(std::int32_t from, const told_call& theirs) const {
  const told_call* const ours = find(theirs.number);
  if (!ours || *ours == theirs) return {};
  return "rank " + std::to_string(from) + " waits in call " + std::to_string(theirs.number) +
         ", which is " + theirs.text() + " there and " + ours->text() + " here";
}

}  // namespace railpass::internal
