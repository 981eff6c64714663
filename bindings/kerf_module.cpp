// The module kerf._core: the graph builder, the cut of joint graphs, the compiler and compiled graphs, the verifier of
// kernel text. Nothing else in Kerf sees Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "call.h"
#include "disk_cache.h"
#include "driver/plan_cache.h"
#include "driver/text_pass.h"
#include "errors.h"
#include "graph/parse.h"
#include "graph_builder.h"
#include "kernel_text.h"
#include "partition.h"
#include "runtime/block_memory.h"
#include "target/library_ops.h"
#include "tiles.h"

namespace nb = nanobind;

namespace kerf::bindings {
namespace {

void bind_report(nb::module_& module) {
  using driver::CompileReport;
  nb::class_<driver::ExternRecord>(module, "ExternRecord", "One operator that is not compiled, and why.")
      .def_ro("op", &driver::ExternRecord::op)
      .def_ro("reason", &driver::ExternRecord::reason)
      .def_ro("source", &driver::ExternRecord::source)
      .def_ro("bytes", &driver::ExternRecord::bytes)
      .def_ro("is_library", &driver::ExternRecord::is_library);
  nb::class_<driver::KernelRecord>(module, "KernelRecord", "One kernel.")
      .def_ro("name", &driver::KernelRecord::name)
      .def_ro("sources", &driver::KernelRecord::sources)
      .def_prop_ro(
          "members",
          [](const driver::KernelRecord& record) {
            nb::list members;
            for (const loop::Merged& member : record.members)
              members.append(nb::make_tuple(member.name, member.why));
            return members;
          },
          "(name, why it is in this kernel) of what was fused.")
      .def_ro("bytes_read", &driver::KernelRecord::bytes_read)
      .def_ro("bytes_written", &driver::KernelRecord::bytes_written);
  nb::class_<target::RouteRecord>(module, "RouteRecord",
                                  "A kernel or a library call, and why, where both are.")
      .def_ro("op", &target::RouteRecord::op)
      .def_ro("choice", &target::RouteRecord::choice)
      .def_ro("reason", &target::RouteRecord::reason)
      .def_ro("condition", &target::RouteRecord::condition, "On sizes; empty: always.")
      .def_ro("source", &target::RouteRecord::source);
  nb::class_<CompileReport>(module, "CompileReport", "What a compile did.")
      .def_ro("target", &CompileReport::target)
      .def_ro("nodes", &CompileReport::nodes)
      .def_ro("kernels", &CompileReport::kernels)
      .def_ro("unique_kernels", &CompileReport::unique_kernels)
      .def_prop_ro("kernel_records", [](const CompileReport& report) { return report.steps.kernels; })
      .def_prop_ro("externs", [](const CompileReport& report) { return report.steps.externs; })
      .def_prop_ro("routes", [](const CompileReport& report) { return report.steps.routes; })
      .def_ro("seconds", &CompileReport::seconds)
      .def_ro("peak_bytes", &CompileReport::peak_bytes)
      .def_ro("cache_hit", &CompileReport::cache_hit)
      .def_ro("source_text", &CompileReport::source_text)
      .def_ro("graph_text", &CompileReport::graph_text)
      .def_ro("dump_problem", &CompileReport::dump_problem)
      .def_ro("warnings", &CompileReport::warnings);
}

void bind_options(nb::module_& module) {
  using driver::CompileOptions;
  nb::class_<CompileOptions>(module, "CompileOptions", "Options of one compile; see options.py.")
      .def(nb::init<>())
      .def_rw("opt_level", &CompileOptions::opt_level)
      .def_rw("keep_text", &CompileOptions::keep_text)
      .def_rw("dump_dir", &CompileOptions::dump_dir)
      .def_rw("cache_dir", &CompileOptions::cache_dir);
}

// The fields of a ResultSource for each result of a call.
using Results = std::vector<std::tuple<bool, uint32_t, bool>>;

CompiledGraph* wrap(driver::Compiled compiled, std::string name, std::vector<ArgumentKind> arguments,
                    std::vector<nb::object> constants, const Results& results,
                    const std::vector<nb::object>& functions) {
  std::vector<ResultSource> sources;
  for (const auto& [is_argument, index, is_alias] : results)
    sources.push_back({is_argument, index, is_alias});
  return new CompiledGraph(std::move(name), std::move(compiled), std::move(arguments), std::move(constants),
                           std::move(sources), functions);
}

CompiledGraph* compile(const GraphBuilder& builder, const driver::CompileOptions& options, std::string name,
                       std::vector<ArgumentKind> arguments, std::vector<nb::object> constants,
                       const Results& results, const std::vector<nb::object>& functions) {
  driver::Compiled compiled;
  driver::CompileOptions hinted = options;
  hinted.hints = builder.hints();
  {
    nb::gil_scoped_release release;
    compiled = driver::compile(builder.graph(), builder.context(), hinted);
  }
  return wrap(std::move(compiled), std::move(name), std::move(arguments), std::move(constants), results,
              functions);
}

// (The graph that was stored under `key`, or None; warnings.)
std::pair<nb::object, std::vector<std::string>> load(const std::string& key,
                                                     const driver::CompileOptions& options, std::string name,
                                                     std::vector<ArgumentKind> arguments,
                                                     std::vector<nb::object> constants,
                                                     const Results& results) {
  std::vector<std::string> warnings;
  std::optional<driver::Compiled> compiled;
  {
    nb::gil_scoped_release release;
    compiled = driver::load_compiled(key, options, warnings);
  }
  if (!compiled) return {nb::none(), warnings};
  CompiledGraph* graph =
      wrap(std::move(*compiled), std::move(name), std::move(arguments), std::move(constants), results, {});
  return {nb::cast(graph, nb::rv_policy::take_ownership), warnings};
}

void bind_compiled_graph(nb::module_& module) {
  nb::enum_<ArgumentKind>(module, "ArgumentKind", "How an argument of a call is passed on.")
      .value("tensor", ArgumentKind::tensor)
      .value("integer", ArgumentKind::integer)
      .value("resolved", ArgumentKind::resolved)
      .value("opaque", ArgumentKind::opaque)
      .value("ignored", ArgumentKind::ignored);
  nb::class_<CompiledGraph>(module, "CompiledGraph", nb::dynamic_attr(), nb::is_weak_referenceable(),
                            "A compiled graph. Call it with one list of arguments, which it empties.")
      .def("__call__", &CompiledGraph::call, nb::arg("arguments"))
      .def_prop_ro("name", &CompiledGraph::name)
      .def_prop_ro("key", &CompiledGraph::key, "Its name in the disk cache; empty: it is not there.")
      .def_prop_ro("report", &CompiledGraph::report, nb::rv_policy::reference_internal)
      .def_prop_ro("channels_last", &CompiledGraph::channels_last,
                   "Per result: whether its strides are channels last, whatever tracing saw.")
      .def("step_times", &CompiledGraph::step_times,
           "Per step: (is a library call, calls, nanoseconds), counted while timing was on.")
      .def("clear_step_times", &CompiledGraph::clear_step_times)
      .def_prop_ro("peak_bytes", &CompiledGraph::peak_bytes, "Bytes that the last call took at most.");
  module.def("compile", &compile, nb::arg("builder"), nb::arg("options"), nb::arg("name"),
             nb::arg("arguments"), nb::arg("constants"), nb::arg("results"), nb::arg("functions"),
             nb::rv_policy::take_ownership);
  module.def("set_step_timing", &runtime::set_step_timing, nb::arg("on"),
             "Whether calls count the time of their steps.");
  module.def(
      "release_memory", [] { runtime::block_memory().trim(); },
      "Gives the system what is kept for coming calls: memory of results and of large temporaries.");
  module.def(
      "kept_memory",
      [] { return std::pair(runtime::block_memory().held_bytes(), runtime::block_memory().used_bytes()); },
      "Bytes of memory for results and large temporaries: (kept, of those in use).");
  module.def("environment_key", &driver::environment_key, nb::arg("options"),
             "What a compile depends on besides its graph.");
  module.def("load", &load, nb::arg("key"), nb::arg("options"), nb::arg("name"), nb::arg("arguments"),
             nb::arg("constants"), nb::arg("results"));
}

// What kerf_opt does, and the text behind Compilation.source().
void bind_passes(nb::module_& module) {
  module.def(
      "run_passes",
      [](const std::string& names, const std::string& text) {
        nb::gil_scoped_release release;
        return driver::run_text_passes(names, text);
      },
      nb::arg("names"), nb::arg("text"), "Passes by name, `a,b`, over the text of an IR.");
  module.def("passes", [] {
    std::vector<std::pair<std::string, std::string>> passes;
    for (const driver::TextPass& pass : driver::text_passes()) passes.emplace_back(pass.name, pass.help);
    return passes;
  });
  module.def(
      "stages_of",
      [](const std::string& graph_text, driver::CompileOptions options) {
        nb::gil_scoped_release release;
        auto context = std::make_shared<sym::Context>();
        graph::Graph graph = graph::parse(graph_text, *context);
        options.keep_text = true;
        return driver::compile(graph, context, options).report.source_text;
      },
      nb::arg("graph_text"), nb::arg("options"), "The text of every stage of compiling a graph.");
  module.def("code_generator", &driver::code_generator,
             "\"llvm 19.1.7\", or \"interpreter\" in a build without LLVM.");
  module.def("is_library_call", [](const std::string& op) { return !target::library_reason(op).empty(); });
}

}  // namespace

NB_MODULE(_core, module) {
  // Compiled graphs that live until the interpreter ends (a compiled function at module level) are no leaks.
  nb::set_leak_warnings(false);
  runtime::block_memory();  // a process that forks while this is made would leave its child a lock
  register_errors();
  bind_graph_builder(module);
  bind_partition(module);
  bind_report(module);
  bind_options(module);
  bind_compiled_graph(module);
  bind_disk_cache(module);
  bind_passes(module);
  bind_tiles(module);
  bind_kernel_text(module);
}

}  // namespace kerf::bindings
