#pragma once
// Kernels without masked reads and wrapped indices, for targets that have none. Where a mask compares an outer axis with a
// constant, or an index wraps along it, the domain falls into boxes, in each of which the mask is true or false all over and
// the wrap an offset.
//
//   for x0 < 3                       x0 = 0:   store y[..], 0
//     %1 = load x[..] if x0 == 1     x0 = 1:   store y[..], load x[..]
//       else 0                       x0 = 2:   store y[..], 0
//     store y[64*x0 + ..], %1
//
// Boxes are kernels over the same buffers; together they do what the kernel does. An axis of one index is gone. Two boxes of
// one shape that write x[2*i] and x[2*i + 1] are one, so that pairs can be written together.
#include <vector>

#include "loop/kernel.h"

namespace kerf::sched {

inline constexpr size_t kMostBoxes = 8;

// The kernel itself where it has neither, or where there would be more than kMostBoxes boxes.
std::vector<loop::Kernel> split_boxes(const loop::Kernel& kernel);

// Its last step (join_boxes.cpp).
std::vector<loop::Kernel> join_boxes(std::vector<loop::Kernel> boxes);

}  // namespace kerf::sched
