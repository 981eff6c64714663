#pragma once
// Inputs of a call against the Plan. Kernels address inputs with the sizes and strides that the Plan promises, so
// everything they rely on is compared at every call; a mismatch is a UserError that names the input, what was
// expected and what came.
#include <span>
#include <vector>

#include "runtime/executor.h"
#include "runtime/shape_record.h"

namespace kerf::runtime {

// For each of Plan::sizes the first of Plan::size_sources that gives it. (Others are checked as part of the shapes.)
std::vector<target::SizeSource> first_sources(const Plan& plan);

// The values of Plan::sizes, read from the shapes and integers of the call. Also checks the number of inputs and
// the rank of those it reads. `sources`: of first_sources.
void read_sizes(const Plan& plan, std::span<const target::SizeSource> sources,
                std::span<const CallInput> inputs, std::span<int64_t> sizes);

void check_inputs(const Plan& plan, const ShapeRecord& record, std::span<const CallInput> inputs);

}  // namespace kerf::runtime
