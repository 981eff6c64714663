#pragma once
// Which operators are library calls by design (library_ops.def): matrix products, convolutions, attention. They are outside
// the measure of how much is compiled; every other extern step lacks a lowering.
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/dtype.h"

namespace kerf::target {

// The reason to report for an operator such as "aten.mm.default"; empty for one that is not the library's.
std::string_view library_reason(std::string_view op);

// Whether the library's attention is to replace two products and a softmax, by the number of keys (absent: unknown).
bool prefers_library_attention(DType dtype, std::optional<int64_t> keys);

}  // namespace kerf::target
