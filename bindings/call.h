#pragma once
// CompiledGraph: what a compile gives to Python, called once per call of the graph. This is the hot path: it views the
// arguments, runs the executor without the GIL, and makes the result tuple; it allocates nothing of its own but small
// vectors.
#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "driver/compile.h"
#include "host.h"

namespace kerf::bindings {

// How one argument of a call is passed on.
enum class ArgumentKind : uint8_t {
  tensor,
  integer,   // a SymInt
  resolved,  // a tensor that may carry conj or neg bits: they are made real first
  opaque,    // a tensor of a dtype that only externs know
  ignored,   // nothing reads it
};

// Where a result comes from: output `index` of the Plan, or argument `index` itself.
struct ResultSource {
  bool is_argument = false;
  uint32_t index = 0;
  bool is_alias = false;  // a tensor object of its own over that tensor's memory
};

class CompiledGraph {
 public:
  // `constants` are tensors passed as further arguments after those of the caller.
  CompiledGraph(std::string name, driver::Compiled compiled, std::vector<ArgumentKind> arguments,
                std::vector<nanobind::object> constants, std::vector<ResultSource> results,
                const std::vector<nanobind::object>& functions);

  // The boxed convention: takes the objects out of `arguments` and leaves the list empty.
  nanobind::object call(nanobind::list arguments) const;

  const std::string& name() const { return name_; }
  const std::string& key() const { return compiled_.key; }
  const driver::CompileReport& report() const { return compiled_.report; }
  // Per result: whether its strides are channels last, whatever tracing saw.
  std::vector<bool> channels_last() const;
  // Per step: (is a library call, calls, nanoseconds), counted while timing was on.
  std::vector<std::tuple<bool, int64_t, int64_t>> step_times() const;
  void clear_step_times() const { compiled_.executor->clear_step_times(); }
  int64_t peak_bytes() const { return compiled_.executor->peak_bytes(); }

 private:
  runtime::CallInput input_of(size_t position, nanobind::object& argument) const;

  std::string name_;
  driver::Compiled compiled_;
  std::vector<ArgumentKind> arguments_;
  std::vector<bool> may_drop_;  // by argument: whether the call may let go of it after its last use
  std::vector<nanobind::object> constants_;
  std::vector<ResultSource> results_;
  ExternTable externs_;
};

}  // namespace kerf::bindings
