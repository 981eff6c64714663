#pragma once
// The verifier of kernel text for tools and Python; codegen/triton/check_text.h has the rules.
#include <string>
#include <string_view>
#include <vector>

#include "codegen/triton/violation.h"

namespace kerf::driver {

// `target` may be empty: that of the file. UserError for one that is not there.
std::vector<triton::Violation> check_kernel_text(std::string_view text, std::string_view target = {});

// A line a violation, `PLACE:line: rule: message`.
std::string to_text(const std::vector<triton::Violation>& violations, std::string_view place);

// One line about a kernel that keeps the rules; UserError that lists what is wrong with one that does not.
std::string describe_kernel(std::string_view text);

}  // namespace kerf::driver
