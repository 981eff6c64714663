#pragma once
// compile: Graph -> Compiled, the whole pipeline for the CPU target. pipeline.cpp is the list of its stages.
//
// Thread-safe: any number of compiles may run at the same time, each with its own sym::Context.
// Errors: InternalError names the pass and the file with the replay command; RuntimeError when LLVM says no. What cannot
// be compiled becomes an extern step listed in the report.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "runtime/executor.h"
#include "runtime/plan.h"
#include "target/cpu.h"

namespace kerf::driver {

struct CompileOptions {
  int opt_level = 2;             // 0 or 2: LLVM code generation
  bool keep_text = false;        // keep kernel texts in the report
  std::string dump_dir;          // numbered dumps of every stage; empty: none
  std::string cache_dir;         // disk cache of plans and kernels; empty: none
};

struct ExternRecord {
  std::string op;
  std::string reason;
  std::string source;
};

struct KernelRecord {
  std::string name;
  std::vector<std::string> sources;  // the user's lines
  std::string text;                  // loop IR
  int64_t bytes = 0;                 // read and written by one launch, for the hinted sizes
};

struct CompileReport {
  std::string target;
  int64_t nodes = 0;
  int64_t kernels = 0;
  int64_t unique_kernels = 0;
  std::vector<KernelRecord> kernel_records;
  std::vector<ExternRecord> externs;
  std::vector<std::pair<std::string, double>> seconds;  // stage, seconds, in order
  int64_t peak_bytes = 0;
  bool cache_hit = false;
  std::string source_text;  // texts of all IRs, when keep_text
  std::vector<std::string>
      warnings;  // for the user's eyes: the disk cache does not work, an entry is damaged
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

}  // namespace kerf::driver
