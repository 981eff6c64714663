#include "runtime/sealed.h"

#include <cstdint>

#include "runtime/content_hash.h"

namespace kerf::runtime {

namespace {

constexpr size_t kHashDigits = 32;
constexpr size_t kLengthBytes = 8;

void put(std::string& out, std::string_view part) {
  for (size_t i = 0; i < kLengthBytes; ++i)
    out += static_cast<char>(static_cast<uint64_t>(part.size()) >> (8 * i));
  out += part;
}

// Takes `count` bytes off the front of `rest`; nullopt if there are fewer.
std::optional<std::string_view> take(std::string_view& rest, size_t count) {
  if (count > rest.size()) return std::nullopt;
  std::string_view taken = rest.substr(0, count);
  rest.remove_prefix(count);
  return taken;
}

std::optional<std::string_view> take_part(std::string_view& rest) {
  std::optional<std::string_view> length = take(rest, kLengthBytes);
  if (!length) return std::nullopt;
  uint64_t value = 0;
  for (size_t i = 0; i < kLengthBytes; ++i)
    value |= uint64_t{static_cast<unsigned char>((*length)[i])} << (8 * i);
  return take(rest, value);
}

}  // namespace

std::string seal(std::string_view header, const std::vector<std::string_view>& parts) {
  std::string body;
  for (std::string_view part : parts) put(body, part);
  return std::string(header) + content_hash({body}) + body;
}

std::optional<std::vector<std::string_view>> unseal(std::string_view header, std::string_view bytes) {
  if (!bytes.starts_with(header)) return std::nullopt;
  bytes.remove_prefix(header.size());
  std::optional<std::string_view> hash = take(bytes, kHashDigits);
  if (!hash || *hash != content_hash({bytes})) return std::nullopt;
  std::vector<std::string_view> parts;
  while (!bytes.empty()) {
    std::optional<std::string_view> part = take_part(bytes);
    if (!part) return std::nullopt;
    parts.push_back(*part);
  }
  return parts;
}

}  // namespace kerf::runtime
