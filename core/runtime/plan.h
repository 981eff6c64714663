#pragma once
// A Plan: what the executor runs. Data only: it can be printed, cached on disk, and run without Python or any
// IR.
//
//   * `sizes` are the size symbols; their values come from `size_sources` of the call's inputs. All other
//   sizes,
//     strides, element counts and grids are expressions over them, evaluated once per new set of values
//     (ShapeRecord).
//   * Buffers are numbered. Small temporaries lie in one arena at planned offsets, large ones in blocks of their own
//     (block_memory.h); outputs are allocated one by one for the caller (with the strides of their view); extern
//     results are adopted from the library.
//   * Steps run in order. Lifetimes: a step frees nothing by itself; adopted results and blocks are released after
//     their last use (frame.h).
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "sym/expr.h"
#include "sym/facts.h"
#include "target/artifact.h"
#include "target/extern_call.h"

namespace kerf::runtime {

using target::BufferIndex;

enum class Storage : uint8_t { input, arena, output, adopted };

struct PlanBuffer {
  std::string name;
  DType dtype = DType::f32;
  sym::Expr elements;
  Storage storage = Storage::arena;
  int input_index = -1;     // Storage::input
  int output_index = -1;    // Storage::output: position among Plan::outputs whose memory it is
  uint32_t first_step = 0;  // defined by this step
  uint32_t last_step = 0;   // last used by this step
};

struct PlanSize {
  sym::Expr symbol;
  sym::Range range;
  sym::Modulus modulus;
};

struct LaunchStep {
  uint32_t artifact = 0;             // into Plan::artifacts; kernels with equal text share one
  std::vector<BufferIndex> buffers;  // in the artifact's order
  std::vector<sym::Expr> sizes;      // values for the artifact's sizes, in its order
  sym::Expr grid;
  sym::Expr work;                    // elements touched, to decide whether threads pay
  std::string name;                  // for reports and errors
  std::vector<std::string> sources;  // user source lines, for reports and errors
};

struct PlanInput {
  DType dtype = DType::f32;
  std::vector<sym::Expr> shape;
  std::vector<sym::Expr> strides;
  bool is_integer = false;  // a SymInt argument
  bool is_used = true;      // false: may be anything
  bool is_opaque = false;   // a dtype of which only externs know: passed through
};

struct Plan {
  std::shared_ptr<sym::Context> context;
  std::vector<PlanSize> sizes;
  std::vector<target::SizeSource> size_sources;
  std::vector<PlanInput> inputs;
  std::vector<PlanBuffer> buffers;
  std::vector<target::CpuArtifact> artifacts;
  std::vector<std::variant<LaunchStep, target::ExternCall>> steps;
  std::vector<target::ProgramOutput> outputs;
};

}  // namespace kerf::runtime
