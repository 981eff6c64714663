#pragma once
// lower: Graph -> Program, one small unscheduled loop nest per value.
//
//   * Every node that computes gets one kernel: loops over the result's dimensions (serial, named i0, i1, ...;
//     extent-1 dimensions included as they are), then at most one Reduce (axes r0, r1, ...), then one store at the
//     row-major position of a fresh contiguous buffer. A cat is one kernel per piece, each writing its slice of the
//     buffer. Scatters are two kernels on one buffer: copy or fill, then the updates.
//   * Views never own memory: a view is an index map, composed into the accesses of its readers.
//   * Constants, iotas and expanded constants are values inside their readers.
//   * Graph inputs and extern results keep the strides they have; accesses use them.
//   * Extern operands and outputs are TensorViews of buffers; a value whose view no strides can express, or whose
//     strides must differ (an output with eager's strides), is copied by one more kernel.
//   * Scatter updates, extern calls and assigns happen in graph order. An input's old value is copied before an
//     assign if anything reads it later.
// The result is correct and slow: it is the reference that scheduled programs are compared with. All fusion
// is sched's.
#include "base/result.h"
#include "graph/graph.h"
#include "loop/program.h"

namespace kerf::lower {

struct Options {
  // Scatters are library calls that write in place, into what a kernel has copied or filled: for targets whose kernels do not
  // write at addresses from memory.
  bool library_updates = false;
};

// The graph has been through expand_composites. A node that cannot be lowered is an internal error here: what
// is not supported was made an extern before.
loop::Program lower(const graph::Graph& graph, const Options& options = {});

}  // namespace kerf::lower
