#include "call.h"

#include <algorithm>

#include "base/check.h"
#include "graph/strides.h"
#include "torch_abi.h"

namespace nb = nanobind;

namespace kerf::bindings {
namespace {

int64_t element_count(const DLTensor& tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor.ndim; ++i) count *= tensor.shape[i];
  return count;
}

// References that the executor handed out and nobody has taken yet.
class Outputs {
 public:
  explicit Outputs(std::vector<runtime::CallOutput> outputs) : outputs_(std::move(outputs)) {}
  ~Outputs() {
    for (const runtime::CallOutput& output : outputs_) Py_XDECREF(static_cast<PyObject*>(output.tensor));
  }
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;

  // A new reference; the same output may be asked for more than once.
  PyObject* object(uint32_t index) const {
    CHECK(index < outputs_.size(), "output {} of {}", index, outputs_.size());
    const runtime::CallOutput& output = outputs_[index];
    switch (output.kind) {
      case target::ProgramOutput::Kind::tensor: return Py_NewRef(static_cast<PyObject*>(output.tensor));
      case target::ProgramOutput::Kind::integer: return PyLong_FromLongLong(output.integer);
      case target::ProgramOutput::Kind::none: return Py_NewRef(Py_None);
    }
    UNREACHABLE("output kind");
  }

 private:
  std::vector<runtime::CallOutput> outputs_;
};

// Images of fixed sizes only; not if row-major as well.
bool is_channels_last(const target::TensorView& view) {
  bool fixed = std::ranges::all_of(view.shape, [](sym::Expr e) { return e.is_constant(); });
  return view.shape.size() == 4 && fixed && graph::is_channels_last(view.shape, view.strides, {});
}

}  // namespace

CompiledGraph::CompiledGraph(std::string name, driver::Compiled compiled, std::vector<ArgumentKind> arguments,
                             std::vector<nb::object> constants, std::vector<ResultSource> results,
                             const std::vector<nb::object>& functions)
    : name_(std::move(name)),
      compiled_(std::move(compiled)),
      arguments_(std::move(arguments)),
      constants_(std::move(constants)),
      results_(std::move(results)),
      externs_(*compiled_.plan, functions) {
  for (ArgumentKind kind : arguments_)
    may_drop_.push_back(kind == ArgumentKind::tensor || kind == ArgumentKind::resolved);
  for (const ResultSource& source : results_)
    if (source.is_argument) may_drop_.at(source.index) = false;
}

// May replace `argument` by a plain tensor of the same value, which then must outlive the call.
runtime::CallInput CompiledGraph::input_of(size_t position, nb::object& argument) const {
  runtime::CallInput input;
  const ArgumentKind kind = position < arguments_.size() ? arguments_[position] : ArgumentKind::tensor;
  if (kind == ArgumentKind::ignored) return input;
  if (kind == ArgumentKind::integer) {
    input.integer = PyLong_AsLongLong(argument.ptr());
    if (input.integer == -1 && PyErr_Occurred()) throw nb::python_error();
    return input;
  }
  if (kind == ArgumentKind::resolved && is_tensor(argument.ptr()))
    argument = nb::steal(without_lazy_bits(argument.ptr()));
  input.tensor.host = argument.ptr();

  DLTensor tensor;
  bool is_viewed = view_tensor(argument.ptr(), tensor);
  const bool is_opaque = kind == ArgumentKind::opaque ||
                         (kind == ArgumentKind::resolved && compiled_.plan->inputs[position].is_opaque);
  if (is_opaque && !is_viewed) return input;
  const bool is_plain = is_viewed && tensor.device.device_type == kDLCPU &&
                        (tensor.data || element_count(tensor) == 0) && (is_opaque || dtype_of(tensor.dtype));
  if (!is_plain) {
    argument = kerf_function("kerf.extern", "plain_tensor")(argument, position);
    input.tensor.host = argument.ptr();
    CHECK(view_tensor(argument.ptr(), tensor), "argument {} has no DLPack view", position);
  }
  input.tensor.data = tensor.data;
  input.tensor.shape = {tensor.shape, static_cast<size_t>(tensor.ndim)};
  input.tensor.strides = {tensor.strides, static_cast<size_t>(tensor.ndim)};
  if (!is_opaque) input.tensor.dtype = dtype_of(tensor.dtype).value();
  return input;
}

nb::object CompiledGraph::call(nb::list arguments) const {
  const size_t count = arguments_.size();
  if (nb::len(arguments) != count)
    throw UserError(fmt::format("{} takes {} arguments, {} given", name_, count, nb::len(arguments)));
  std::vector<nb::object> owners;
  owners.reserve(count + constants_.size());
  for (nb::handle argument : arguments) owners.push_back(nb::borrow(argument));
  if (PyList_SetSlice(arguments.ptr(), 0, PY_SSIZE_T_MAX, nullptr) != 0) throw nb::python_error();
  owners.insert(owners.end(), constants_.begin(), constants_.end());

  const size_t passed = compiled_.plan->inputs.size();
  CHECK(passed <= owners.size(), "the plan of {} has {} inputs, the call {}", name_, passed, owners.size());
  std::vector<runtime::CallInput> inputs;
  inputs.reserve(passed);
  // A result that is an argument is the caller's object, also when a plain tensor stands in for it.
  std::vector<nb::object> replaced;
  for (size_t i = 0; i < passed; ++i) {
    const bool may_drop = i < count && may_drop_[i] && Py_REFCNT(owners[i].ptr()) == 1;
    nb::object argument = owners[i];
    inputs.push_back(input_of(i, argument));
    if (argument.is(owners[i]))
      inputs.back().may_drop = may_drop;
    else
      replaced.push_back(std::move(argument));
  }

  PythonHost host(externs_, owners);
  std::vector<runtime::CallOutput> outputs_of_plan;
  {
    nb::gil_scoped_release release;
    outputs_of_plan = compiled_.executor->run(host, inputs);
  }
  Outputs outputs(std::move(outputs_of_plan));

  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(results_.size())));
  if (!tuple.is_valid()) throw nb::python_error();
  for (size_t i = 0; i < results_.size(); ++i) {
    const ResultSource& source = results_[i];
    PyObject* object =
        source.is_argument ? Py_NewRef(owners.at(source.index).ptr()) : outputs.object(source.index);
    if (!object) throw nb::python_error();
    if (source.is_alias) object = alias_of(nb::steal(object));
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), object);
  }
  return tuple;
}

std::vector<std::tuple<bool, int64_t, int64_t>> CompiledGraph::step_times() const {
  std::vector<std::tuple<bool, int64_t, int64_t>> times;
  for (const runtime::StepTime& time : compiled_.executor->step_times())
    times.emplace_back(time.is_extern, time.calls, time.nanoseconds);
  return times;
}

std::vector<bool> CompiledGraph::channels_last() const {
  std::vector<bool> result;
  for (const ResultSource& source : results_)
    result.push_back(!source.is_argument && is_channels_last(compiled_.plan->outputs.at(source.index).view));
  return result;
}

}  // namespace kerf::bindings
