#pragma once
// compile: Graph -> Compiled, the whole pipeline for the CPU target. pipeline.cpp is the list of its stages.
//
// Thread-safe: any number of compiles may run at the same time, each with its own sym::Context.
// Errors: InternalError and RuntimeError (LLVM says no) name the pass; the graph's text and `kerf_opt --passes=compile`
// replay them. What cannot be compiled becomes an extern step listed in the report.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "driver/report.h"
#include "graph/graph.h"
#include "runtime/executor.h"
#include "runtime/plan.h"

namespace kerf::driver {

struct CompileOptions {
  bool fallback_random = false;  // random values and generator state as eager's; not carried out yet
  bool use_cache = true;         // disk cache of plans and kernels; not carried out yet
  int opt_level = 2;             // 0 or 2: LLVM code generation
  bool keep_text = false;        // keep the text of every stage in the report
  std::string dump_dir;          // numbered dumps of every stage; empty: none
  SizeHints hints;               // for the numbers of the report; they change no code
};

struct CompileReport {
  std::string target;
  int64_t nodes = 0;
  int64_t kernels = 0;
  int64_t unique_kernels = 0;
  StepRecords steps;
  // Elapsed seconds by phase, in order: graph, lower, schedule, codegen, build (with the plan), total.
  std::vector<std::pair<std::string, double>> seconds;
  int64_t peak_bytes = 0;  // that a call with the hinted sizes takes at most; 0 if they do not fit the plan
  bool cache_hit = false;
  std::string source_text;   // of every stage, LLVM IR and plan included, when keep_text
  std::string dump_problem;  // why a dump could not be written; empty if all were
};

struct Compiled {
  std::shared_ptr<const runtime::Plan> plan;
  std::shared_ptr<runtime::Executor> executor;
  CompileReport report;
};

Compiled compile(const graph::Graph& graph, std::shared_ptr<sym::Context> context,
                 const CompileOptions& options);

// "llvm 19.1.7", or "interpreter" in a build without LLVM.
std::string code_generator();

}  // namespace kerf::driver
