#pragma once
// Several strings of bytes as one, under a header and a checksum: the form of everything that the disk cache keeps.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kerf::runtime {

// `header` says what it is and in which version of its layout; it is not part of the checksum.
std::string seal(std::string_view header, const std::vector<std::string_view>& parts);

// The parts, pointing into `bytes`; nullopt if these are damaged, cut off or of another header.
std::optional<std::vector<std::string_view>> unseal(std::string_view header, std::string_view bytes);

}  // namespace kerf::runtime
