#pragma once
// Which operators are library calls by design (library_ops.def): matrix products, convolutions, attention. They are outside
// the measure of how much is compiled; every other extern step lacks a lowering or was routed (routing.h).
#include <string_view>

namespace kerf::target {

// The reason to report for an operator such as "aten.mm.default"; empty for one that is not the library's.
std::string_view library_reason(std::string_view op);

}  // namespace kerf::target
