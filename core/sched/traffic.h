#pragma once
// Who reads and writes which program buffer, step by step: the dependences that any reordering must keep.
#include <cstdint>
#include <vector>

#include "loop/program.h"

namespace kerf::sched {

struct StepTraffic {
  std::vector<target::BufferIndex> reads;
  std::vector<target::BufferIndex> writes;
};

struct Traffic {
  std::vector<StepTraffic> steps;
  std::vector<std::vector<size_t>> writers;  // per buffer, steps in order
  std::vector<std::vector<size_t>> readers;
  std::vector<bool> returned;  // per buffer: the graph returns (a view of) it

  // The buffer has one writer, or writers of pieces, and is not a graph input that is written to: its readers always see
  // the same value.
  bool is_stable(target::BufferIndex buffer, const loop::Program& program) const;
};

Traffic traffic_of(const loop::Program& program);

}  // namespace kerf::sched
