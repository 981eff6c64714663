#pragma once
// Which build of Kerf this is: part of every cache key, so that no build reads what another has written.
#include <string>

namespace kerf::runtime {

// The hash that the linker put over the program or library that holds this code, in hexadecimal digits. Empty when it
// was linked without one.
std::string build_id();

}  // namespace kerf::runtime
