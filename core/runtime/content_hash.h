#pragma once
// The hash of cache keys, checksums and object names: XXH3 with 128 bits. It is no defence against an adversary,
// and needs none: who can write the cache directory can write the code in it.
#include <initializer_list>
#include <string>
#include <string_view>

namespace kerf::runtime {

// 32 hexadecimal digits. The parts are hashed with their lengths: ("ab", "c") differs from ("a", "bc").
std::string content_hash(std::initializer_list<std::string_view> parts);

}  // namespace kerf::runtime
