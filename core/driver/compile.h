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
#include "target/cpu.h"

namespace kerf::driver {

struct CompileOptions {
  int opt_level = 2;       // 0 or 2: LLVM code generation
  bool keep_text = false;  // keep the text of every stage in the report
  std::string dump_dir;    // numbered dumps of every stage; empty: none
  std::string cache_dir;   // disk cache of plans and kernels; empty: none
  SizeHints hints;         // for the numbers of the report; they change no code
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
  std::string graph_text;             // the graph as it was given
  std::string source_text;            // of every stage, LLVM IR and plan included, when keep_text
  std::string dump_problem;           // why a dump could not be written; empty if all were
  std::vector<std::string> warnings;  // the disk cache does not work, an entry is damaged
};

struct Compiled {
  std::shared_ptr<const runtime::Plan> plan;
  std::shared_ptr<runtime::Executor> executor;
  CompileReport report;
  std::string key;  // its name in the disk cache; empty: it is not kept there
};

// With a cache directory: loads what an equal compile has stored there, or compiles and stores. Options that ask for
// texts always compile.
Compiled compile(const graph::Graph& graph, std::shared_ptr<sym::Context> context,
                 const CompileOptions& options);

// How reports name a target.
std::string target_name(const target::CpuTarget& target);
// "llvm 19.1.7", or "interpreter" in a build without LLVM.
std::string code_generator();

}  // namespace kerf::driver
