#pragma once
// Everything about a Plan that depends on sizes but not on addresses, evaluated once per set of size values: what
// inputs must look like, launch grids, extern arguments, arena offsets, output geometry. Immutable; shared by
// concurrent calls.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <variant>
#include <vector>

#include "runtime/memory.h"
#include "runtime/plan.h"
#include "runtime/tensor.h"
#include "sym/eval.h"

namespace kerf::runtime {

struct Geometry {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements
};

int64_t element_count(std::span<const int64_t> shape);

// Elements from the first to the last that the geometry reaches.
int64_t span_elements(std::span<const int64_t> shape, std::span<const int64_t> strides);

// Whether a tensor of this geometry lies where the expected one would: strides of dimensions of size 1, and all
// strides of a tensor without elements, are free.
bool same_layout(const Geometry& expected, std::span<const int64_t> shape, std::span<const int64_t> strides);

struct InputShape {
  Geometry geometry;
  int64_t bytes = 0;  // of its elements
};

struct LaunchShape {
  int64_t grid = 0;
  int64_t work = 0;
  std::vector<int64_t> sizes;
};

struct ExternShape {
  CallValueList arguments;  // tensors without addresses
  std::vector<Geometry> results;
};

struct OutputShape {
  Geometry geometry;
  int64_t offset = 0;
  int64_t integer = 0;
  bool takes_owner = false;  // the caller gets the buffer's own host tensor, not a view of it
};

struct ShapeRecord {
  std::vector<int64_t> sizes;  // the key: values of Plan::sizes
  std::vector<InputShape> inputs;
  std::vector<std::variant<LaunchShape, ExternShape>> steps;
  std::vector<OutputShape> outputs;
  // By buffer: geometry of the host tensor that owns an output or adopted buffer. An output buffer is allocated as
  // the output that it becomes, or flat when that output does not cover it.
  std::vector<Geometry> owners;
  ArenaLayout arena;  // offsets by buffer
  // By buffer: the bytes of a temporary that has a block of its own (block_memory.h), 0 for all others.
  std::vector<int64_t> blocks;
  int64_t peak_bytes = 0;  // the arena, and the most that lives outside it at one step
};

// Compiles the expressions of a Plan once. `evaluate` may be called from several threads.
class ShapeEvaluator {
 public:
  explicit ShapeEvaluator(const Plan& plan);

  // `sizes`: a value for each of Plan::sizes. Throws UserError for a value outside the range or divisibility that
  // the Plan was compiled for.
  std::shared_ptr<const ShapeRecord> evaluate(std::span<const int64_t> sizes) const;

 private:
  class Values;

  void check_sizes(std::span<const int64_t> sizes) const;
  CallValueList arguments(const target::ExternArgumentList& list, const Values& values) const;
  void evaluate_steps(const Values& values, ShapeRecord& record) const;
  void evaluate_outputs(const Values& values, ShapeRecord& record) const;
  void plan_memory(const Values& values, ShapeRecord& record) const;

  const Plan& plan_;
  std::unordered_map<const sym::Node*, uint32_t> slots_;
  sym::EvalProgram program_;
};

}  // namespace kerf::runtime
