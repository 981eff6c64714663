#include "runtime/content_hash.h"

#include <fmt/format.h>

#include <array>
#include <memory>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/check.h"

namespace kerf::runtime {

std::string content_hash(std::initializer_list<std::string_view> parts) {
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  CHECK(state && XXH3_128bits_reset(state.get()) == XXH_OK, "cannot start a hash");
  for (std::string_view part : parts) {
    std::array<unsigned char, 8> length;
    for (size_t i = 0; i < length.size(); ++i) length[i] = static_cast<unsigned char>(part.size() >> (8 * i));
    XXH3_128bits_update(state.get(), length.data(), length.size());
    if (!part.empty()) XXH3_128bits_update(state.get(), part.data(), part.size());
  }
  XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace kerf::runtime
