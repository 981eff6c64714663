#pragma once
// What a compile tells about its program: kernels with the bytes they move and why their parts are together, library
// calls with their reasons. Numbers are for the sizes that tracing saw, or 64 where it said none.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "loop/program.h"
#include "target/routing.h"

namespace kerf::driver {

// Size symbol by name -> its value when the graph was traced.
using SizeHints = std::vector<std::pair<std::string, int64_t>>;

struct ExternRecord {
  std::string op;
  std::string reason;
  std::string source;
  int64_t bytes = 0;  // of arguments and results, or what is touched of them; foreign dtypes count 4 bytes
  bool is_library = false;  // a library call by design: matrix product, convolution, attention
};

struct KernelRecord {
  std::string name;
  std::vector<std::string> sources;   // the user's lines
  std::vector<loop::Merged> members;  // what was fused into it, and why
  int64_t bytes_read = 0;  // by one launch: at most the whole of each buffer, however often it is read
  int64_t bytes_written = 0;
};

struct StepRecords {
  std::vector<KernelRecord> kernels;
  std::vector<ExternRecord> externs;
  std::vector<target::RouteRecord> routes;  // of operators that might have been the other
};

// `program`: fused and not yet scheduled, so that loops have the extents of their domains.
StepRecords describe_steps(const loop::Program& program, const SizeHints& hints);

// The value of each size.
std::vector<int64_t> hinted_sizes(const std::vector<loop::Size>& sizes, const SizeHints& hints);

}  // namespace kerf::driver
