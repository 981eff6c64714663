#pragma once
// GraphBuilder: what fx_import.py calls, one call per FX node. It turns Python values into graph arguments and types;
// all meaning is in graph/import_aten.h.
//
// Python side of the values:
//   tensor        Value (an id of this builder)
//   int, SymInt   int, or Size("s0*64"): the text of an index expression over declared sizes
//   torch enums   Constant("dtype", "float32"), also "layout", "memory_format", "device"
//   type          (torch dtype name, shape, strides), or None for an absent tensor
#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver/report.h"
#include "graph/build.h"
#include "graph/import_aten.h"
#include "graph/print.h"

namespace kerf::bindings {

struct Size {
  std::string text;
};

class GraphBuilder {
 public:
  GraphBuilder();

  // A size symbol, read from dimension `dim` of argument `input`, or from that integer argument (dim -1). `hint`: its
  // value while tracing, where known.
  void add_size(const std::string& name, std::optional<int64_t> low, std::optional<int64_t> high, int input,
                int dim, std::optional<int64_t> hint);
  // `strides` where the argument comes with others than eager's, which are those of the type.
  // `ends`: nobody but the call holds the tensor.
  graph::ValueId input(int position, nanobind::handle type, nanobind::handle strides, bool ends);
  // A call with an obstacle is not compiled, for that reason.
  std::vector<graph::ValueId> call(const std::string& op, nanobind::handle arguments,
                                   std::vector<std::string> keyword_only, nanobind::handle results,
                                   const std::string& source, const std::string& obstacle);
  // A node that calls a Python function with Values and sizes as its positional arguments.
  std::vector<graph::ValueId> call_python(size_t function, nanobind::handle arguments,
                                          nanobind::handle results, const std::string& reason,
                                          const std::string& source);
  // The write-back of `value`, cast and broadcast to the input's type; the input afterwards.
  graph::ValueId assign(graph::ValueId input, graph::ValueId value, const std::string& source);

  uint32_t output_tensor(graph::ValueId value, bool any_strides);
  uint32_t output_integer(nanobind::handle value);
  uint32_t output_none();

  const driver::SizeHints& hints() const { return hints_; }
  // The graph as kerf_opt reads it.
  std::string text() const { return graph::to_text(graph_, graph::Sources::shown); }
  const graph::Graph& graph() const { return graph_; }
  std::shared_ptr<sym::Context> context() const { return context_; }

 private:
  void set_source(const std::string& source);
  sym::Expr size(nanobind::handle value);
  std::vector<sym::Expr> sizes(nanobind::handle values);
  graph::TensorType type(nanobind::handle value);
  std::vector<graph::TensorType> types(nanobind::handle values);
  graph::Argument argument(nanobind::handle value);
  uint32_t output(graph::Output output);

  std::shared_ptr<sym::Context> context_;
  graph::Graph graph_;
  graph::Builder builder_;
  driver::SizeHints hints_;
  std::unordered_map<std::string, sym::Expr> parsed_;
};

void bind_graph_builder(nanobind::module_& module);

}  // namespace kerf::bindings
