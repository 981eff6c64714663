#pragma once
// The scheduler's thresholds (tuning.def), as constants with their reasons.
#include <cstdint>

namespace kerf::sched::tuning {

#define TUNING(name, value, why) inline constexpr int64_t name = value;
#include "sched/tuning.def"
#undef TUNING

}  // namespace kerf::sched::tuning
