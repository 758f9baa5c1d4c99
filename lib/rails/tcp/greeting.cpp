// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/tcp/greeting.hpp"

#include "railpass/base/error.hpp"
#include "railpass/transport/wire.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string>
#include <string_view>
#include <sys/random.h>
#include <vector>

namespace railpass::internal::tcp {

namespace {

constexpr std::string_view magic = "railpass";
constexpr std::uint32_t version = 2;

template <class T>
void store(packed_introduction& to, std::size_t at, T value) {
  transport::detail::store(reinterpret_cast<std::byte*>(to.data() + at), value);
}

}  // namespace

word random_word() {
  word w{};
  if (getrandom(w.data(), w.size(), 0) != ssize_t(w.size()))
    throw error("no random numbers from the system: " + std::string(std::strerror(errno)));
  return w;
}

packed_introduction pack(const introduction& i) {
  packed_introduction to{};
  std::ranges::copy(magic, to.begin());
  store(to, 8, version);
  store(to, 12, i.rank);
  store(to, 16, i.rail);
  store(to, 24, i.epoch);
  std::ranges::copy(i.nonce, to.begin() + 32);
  return to;
}

std::optional<introduction> parse_introduction(
    std::span<const unsigned char, introduction_bytes> from) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(from.data());
  introduction i;
  i.rank = transport::detail::load<std::uint32_t>(bytes + 12);
  i.rail = transport::detail::load<std::uint32_t>(bytes + 16);
  i.epoch = transport::detail::load<std::uint64_t>(bytes + 24);
  std::copy_n(from.begin() + 32, i.nonce.size(), i.nonce.begin());
  if (!std::ranges::equal(pack(i), from)) return std::nullopt;
  return i;
}

word proof(const secret& s, end whose, const introduction& caller, const introduction& listener) {
  std::vector<unsigned char> text{static_cast<unsigned char>(whose)};
  for (const introduction& i : {caller, listener}) {
    const packed_introduction packed = pack(i);
    text.insert(text.end(), packed.begin(), packed.end());
  }
  word result{};
  unsigned length = 0;
  if (!HMAC(EVP_sha256(), s.key.data(), int(s.key.size()), text.data(), text.size(), result.data(),
            &length) ||
      length != result.size())
    throw error("OpenSSL makes no HMAC with SHA-256");
  return result;
}

bool equal(const word& a, const word& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace railpass::internal::tcp
