#pragma once
// What a kernel does, one value after another: the kernel's function executed once on descriptions instead of data, with
// its constexprs bound, each loop's body once, helper functions in line. The rules (rules.h) and the estimate of memory
// (buffer_bytes.h) are about this, not about the syntax.
#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/ids.h"
#include "codegen/triton/index_form.h"
#include "codegen/triton/syntax.h"
#include "codegen/triton/violation.h"

namespace kerf::triton {

using ValueId = Id<struct TraceValueTag>;
using AxisId = Id<struct TileAxisTag>;
using LoopId = Id<struct TraceLoopTag>;

// One dimension of a tile. `axis`: whose lanes lie along it; absent for a dimension of 1 and for constants.
struct Dim {
  int64_t extent = 1;
  AxisId axis;
};

struct Value {
  std::string operation;  // "+", "<", "[]", "to", "load", "sum", "argument", "constant", "carried", ...
  int line = 0;
  std::vector<ValueId> operands;
  DType dtype = DType::i32;
  bool is_nothing = false;   // a statement's: store, atomics, assertions
  bool is_constant = false;  // a number of the text
  double number = 0;         // that, if it is a float
  bool is_pointer = false;   // then dtype is that of the elements
  uint32_t buffer = 0;       // of a pointer
  std::vector<Dim> dims;     // empty: a scalar
  Range range;               // of an integer; of a pointer's offset in elements
  IndexForm form;            // likewise
  int64_t folded = -1;       // the dimension that a fold goes over
  bool keeps_nan = false;    // maximum and minimum with propagate_nan
  LoopId loop;               // the innermost one around it

  bool is_tile() const { return !dims.empty(); }
};

inline int64_t elements_of(const Value& value) {
  int64_t elements = 1;
  for (const Dim& dim : value.dims) elements *= dim.extent;
  return elements;
}

struct Symbol {
  Range range;
  AxisId axis;  // absent: a scalar
};

// The lanes of one `tl.arange`, named after what they are assigned to.
struct TileAxis {
  std::string name;
  int line = 0;
  SymbolId symbol;
  IndexForm start;         // what is added to the lanes, once there is a name
  bool is_walked = false;  // a scalar that varies is added: the tile is one of several along the axis
};

struct Loop {
  int line = 0;
  LoopId parent;
  bool is_static = false;  // tl.static_range
  bool carries = false;    // a value from one iteration to the next
  ValueId start, stop, step, variable;
  ValueId begin, end;  // values of its body
};

struct Access {
  ValueId at;  // the load's or store's own value
  bool is_store = false;
  bool is_guarded = false;  // under an `if`
  ValueId pointer, mask, other, value;
};

struct Trace {
  std::vector<FileBuffer> buffers;
  IdVector<ValueId, Value> values;
  IdVector<SymbolId, Symbol> symbols;
  IdVector<AxisId, TileAxis> axes;
  IdVector<LoopId, Loop> loops;
  std::vector<Access> accesses;
  std::vector<Violation> violations;  // what does not make sense on any target

  // Of one name, or of one with an ending (`x0`, `x0_across`) and the same lanes.
  bool same_axis(AxisId a, AxisId b) const;
};

// `blocks`: values for constexprs by name; the others have the defaults of the signature.
Trace trace_kernel(const KernelFile& file, const NamedIntegers& blocks = {});

}  // namespace kerf::triton
