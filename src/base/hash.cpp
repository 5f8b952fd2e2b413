// SPDX-License-Identifier: Apache-2.0
// xxHash: the header with run-time dispatch. Debian's shared library is the SSE2 build, about half as fast.
#include "base/hash.hpp"

#include <openssl/evp.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/check.hpp"

namespace hfd::base {

struct Sha256::State {
  EVP_MD_CTX* context = nullptr;
  State() : context(EVP_MD_CTX_new()) {
    HFD_CHECK(context != nullptr && EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1);
  }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(ByteView bytes) {
  HFD_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::array<std::byte, 32> Sha256::finish() {
  std::array<std::byte, 32> digest{};
  unsigned size = 0;
  HFD_CHECK(EVP_DigestFinal_ex(state_->context, reinterpret_cast<unsigned char*>(digest.data()), &size) == 1);
  HFD_CHECK(size == digest.size());
  return digest;
}

std::array<std::byte, 32> sha256(ByteView bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

Xxh128 xxh3_128(ByteView bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  Xxh128 out{};
  std::memcpy(out.data(), canonical.digest, out.size());
  return out;
}

}  // namespace hfd::base
