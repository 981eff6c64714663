#pragma once
// The state of one lowering, and the functions that lower one node each (a family per file). A family reads its
// operands through KernelDraft (draft.h), never by asking what they are, and sets the places of its results.
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "loop/program.h"
#include "lower/lower.h"
#include "lower/place.h"
#include "sym/facts.h"

namespace kerf::lower {

// Names given out: no two are equal.
class Names {
 public:
  // `name`, or with a number appended where it was given out before.
  std::string unique(const std::string& name);

 private:
  std::set<std::string> taken_;
};

struct Lowering {
  Lowering(const graph::Graph& graph, const Options& options);

  const graph::Graph& graph;
  const Options& options;
  sym::Context& context;
  sym::Facts facts;  // about sizes
  loop::Program program;
  std::vector<std::vector<sym::Expr>> buffer_shapes;  // of program.buffers, as kernels declare them
  IdVector<graph::ValueId, Place> places;
  IdVector<graph::ValueId, target::BufferIndex> input_buffers;  // of graph inputs
  IdVector<graph::ValueId, int> uses;                           // by nodes and outputs
  IdVector<graph::ValueId, std::vector<Strided>> copies;        // made by `materialize`
  Names kernel_names;
  Names buffer_names;
};

// What kernels and buffers of a node are called: "add_12".
std::string node_name(const graph::Graph& graph, graph::NodeId id);

// `shape` is what kernels declare; its product is the buffer's element count. The name is made unique.
target::BufferIndex add_buffer(Lowering& lowering, loop::ProgramBuffer buffer, std::vector<sym::Expr> shape);

// A fresh temporary for the value, in the order that layout.h chooses; the value's place is set to it.
const Strided& place_in_new_buffer(Lowering& lowering, graph::ValueId value);

// A copy of the value with these strides in a buffer of its own; an earlier copy with the same strides is reused.
Strided materialize(Lowering& lowering, graph::ValueId value, const std::vector<sym::Expr>& strides);

// --- one node each
void lower_pointwise(Lowering& lowering, graph::NodeId id);
void lower_reduce(Lowering& lowering, graph::NodeId id);
void lower_scan(Lowering& lowering, graph::NodeId id);
void lower_cat(Lowering& lowering, graph::NodeId id);
void lower_pad(Lowering& lowering, graph::NodeId id);
void lower_window(Lowering& lowering, graph::NodeId id);
void lower_index(Lowering& lowering, graph::NodeId id);
void lower_gather(Lowering& lowering, graph::NodeId id);
void lower_index_put(Lowering& lowering, graph::NodeId id);
void lower_scatter(Lowering& lowering, graph::NodeId id);

// library_update.cpp: the updates of an index_put or scatter, into the buffer of its result.
void update_in_library(Lowering& lowering, graph::NodeId id);

void lower_draw_seed(Lowering& lowering, graph::NodeId id);
void lower_random_uniform(Lowering& lowering, graph::NodeId id);
void lower_matmul(Lowering& lowering, graph::NodeId id);
void lower_external(Lowering& lowering, graph::NodeId id);
void lower_assign(Lowering& lowering, graph::NodeId id);

// Sources other than random draws: places only.
void lower_source(Lowering& lowering, graph::NodeId id);

void lower_outputs(Lowering& lowering);

}  // namespace kerf::lower
