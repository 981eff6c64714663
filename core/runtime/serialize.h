#pragma once
// A Plan as bytes, for the disk cache: a header with version, length and checksum, then the text (plan_text.h) and
// the object files of the artifacts. Code is loaded by the code generator afterwards.
//
// Reading never fails loudly: bytes that are damaged, cut off, of another version or not a valid plan give nullopt.
#include <optional>
#include <string>
#include <string_view>

#include "runtime/plan.h"

namespace kerf::runtime {

std::string serialize(const Plan& plan);

// The plan is verified (lifetimes.h), in a new context; artifacts have objects but no entry.
std::optional<Plan> deserialize(std::string_view bytes);

}  // namespace kerf::runtime
