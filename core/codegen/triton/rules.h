#pragma once
// The rules of check_text.h over traces. Each function adds what it finds.
#include <vector>

#include "codegen/triton/trace.h"
#include "target/npu.h"

namespace kerf::triton {

using Violations = std::vector<Violation>;

// rules_common.cpp: every target
void check_bounds(const Trace& trace, Violations& violations);
void check_overflow(const Trace& trace, Violations& violations);
void check_unused(const Trace& trace, Violations& violations);
void check_order(const Trace& trace, Violations& violations);
void check_arange(const Trace& trace, Violations& violations);  // cuda

// rules_access.cpp: loads and stores of Ascend kernels
void check_npu_accesses(const Trace& trace, const target::NpuTarget& target, Violations& violations);

// rules_npu.cpp: everything else of Ascend kernels
void check_npu_grid(const Trace& trace, const KernelFile& file, Violations& violations);
void check_npu_values(const Trace& trace, const target::NpuTarget& target, Violations& violations);

}  // namespace kerf::triton
