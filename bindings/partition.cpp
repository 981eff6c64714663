#include "partition.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "partition/cut.h"

namespace nb = nanobind;

namespace kerf::bindings {

namespace {

using partition::JointGraph;
using partition::JointNode;

// Appends a node; its number is the count of those before it.
void add(JointGraph& graph, partition::Source source, partition::Form form, std::string op,
         std::vector<uint32_t> operands, int64_t bytes, uint32_t flags, int64_t region) {
  for (uint32_t operand : operands)
    CHECK(operand < graph.nodes.size(), "node {} reads {}, which is not before it", graph.nodes.size(),
          operand);
  graph.nodes.push_back({source, form, std::move(op), std::move(operands), bytes, flags, region, {}});
}

void set_recipe(JointGraph& graph, uint32_t node, std::vector<uint32_t> recipe) {
  CHECK(node < graph.nodes.size(), "node {} of {}", node, graph.nodes.size());
  for (uint32_t operand : recipe)
    CHECK(operand < graph.nodes.size(), "recipe of node {} reads {} of {}", node, operand,
          graph.nodes.size());
  graph.nodes[node].recipe = std::move(recipe);
}

// The cut, or the reason why there is none.
nb::object cut(const JointGraph& graph) {
  Result<partition::Cut> found = [&] {
    nb::gil_scoped_release release;
    return partition::cut_joint_graph(graph);
  }();
  if (!found) return nb::cast(found.reason());
  return nb::cast(std::move(*found));
}

}  // namespace

void bind_partition(nb::module_& module) {
  nb::enum_<partition::Source>(module, "JointSource", "Where a node of a joint graph comes from.")
      .value("argument", partition::Source::argument)
      .value("tangent", partition::Source::tangent)
      .value("constant", partition::Source::constant)
      .value("call", partition::Source::call);
  nb::enum_<partition::Form>(module, "JointForm", "What a node of a joint graph is.")
      .value("tensor", partition::Form::tensor)
      .value("size", partition::Form::size)
      .value("other", partition::Form::other);
  nb::class_<partition::Cut>(module, "Cut", "What the forward pass keeps, and what both passes compute.")
      .def_ro("kept", &partition::Cut::kept)
      .def_ro("repeated", &partition::Cut::repeated)
      .def_ro("forward", &partition::Cut::forward)
      .def_ro("kept_bytes", &partition::Cut::kept_bytes);
  auto joint = nb::class_<JointGraph>(module, "JointGraph", "Nodes of a joint graph, operands first.")
                   .def(nb::init<>())
                   .def("add", &add)
                   .def("set_recipe", &set_recipe)
                   .def_rw("forward_outputs", &JointGraph::forward_outputs)
                   .def_rw("backward_outputs", &JointGraph::backward_outputs)
                   .def("cut", &cut, "A Cut, or the reason why there is none.");
#define FLAG(name, flag) joint.attr(name) = nb::int_(static_cast<int>(partition::flag))
  FLAG("STATIC", kStatic);
  FLAG("RANDOM", kRandom);
  FLAG("MUTATES", kMutates);
  FLAG("FORWARD_ONLY", kForwardOnly);
  FLAG("BACKWARD_ONLY", kBackwardOnly);
  FLAG("TRACED_BACKWARD", kTracedBackward);
  FLAG("MUST_KEEP", kMustKeep);
  FLAG("MUST_REPEAT", kMustRepeat);
  FLAG("BACKWARD_HOOK", kBackwardHook);
#undef FLAG
}

}  // namespace kerf::bindings
