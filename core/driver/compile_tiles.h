#pragma once
// compile_tiles: Graph -> kernel texts for a target that computes in tiles, without building or running anything.
//
// A merged kernel that the target has no code for falls apart into its members. A member without code is returned as
// refused, with the user's calls it comes from: the caller imports the graph again with those as library calls, until nothing is
// refused (a library call changes what is computed around it, so that deciding here would be guessing).
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "driver/report.h"
#include "driver/tile_target.h"
#include "graph/graph.h"

namespace kerf::driver {

struct AxisRecord {
  std::string name;
  std::string extent;
  bool folded = false;
  int64_t block = 0;      // of the first choice; 0: walked one index at a time
  std::string parameter;  // of the constant extent; empty where the text has none
  int64_t cut = 0;        // of a constant extent: two blocks and a tail, for checks
};

struct AccessRecord {
  std::string buffer;
  bool is_store = false;
  std::string index;  // over the axes
  bool is_affine = true;
};

struct BufferRecord {
  std::string name;
  DType dtype = DType::f32;
  int64_t elements = 0;
  int64_t cut_elements = 0;  // that are reached at cut extents
  loop::BufferMode mode = loop::BufferMode::in;
  std::optional<int64_t> below;  // of integers that are looked up with: they are in [0, below)
};

using Blocks = std::vector<std::pair<std::string, int64_t>>;  // parameter and size

// A kernel on a box of its domain, as the interpreter runs it.
struct TilePart {
  std::string loop_text;
  std::vector<AxisRecord> axes;
};

struct TileKernel {
  KernelRecord record;           // its name, sources and members
  std::vector<AxisRecord> axes;  // of the whole domain, canonical
  std::vector<TilePart> parts;   // one after another; mostly one
  std::vector<AccessRecord> accesses;
  std::vector<BufferRecord> buffers;  // that are not local, in the order of parameters
  std::vector<Blocks> blocks;         // choices, in decreasing size
  std::string text;                   // the file, without the part that checks it
};

struct Refused {
  std::vector<std::string> sources;  // calls
  std::string kernel;
  std::string reason;
};

struct TileCompilation {
  std::vector<TileKernel> kernels;  // in program order
  std::vector<ExternRecord> externs;
  std::vector<target::RouteRecord> routes;  // of operators that might have been the other
  std::vector<Refused> refused;
  std::vector<std::pair<std::string, double>> seconds;
};

// How a kernel is tiled: the sizes that its tiles were chosen with, and for each choice the blocks in the order of the text.
struct Tiling {
  sched::TileSizes sizes;
  std::vector<std::vector<int64_t>> blocks;
};

// By target and the kernel's text without names; nothing where there is no text. Whoever compiles several graphs for one model keeps
// them, so that kernels that differ in names are tried once.
using KnownTilings = std::unordered_map<std::string, std::optional<Tiling>>;

// router: of the target's device.
TileCompilation compile_tiles(const graph::Graph& graph, const TileTarget& target, const SizeHints& hints,
                              target::Router router, KnownTilings& known);

// Runs a kernel's text in the interpreter. `extents`: per axis (AxisRecord) another one, or 0. `buffers`: data of the kernel's
// buffers that are not local, in order. `bounds`: loop::interpret's.
void run_reference(const std::string& loop_text, const std::vector<int64_t>& extents,
                   const std::vector<int64_t>& sizes, const std::vector<void*>& buffers,
                   const std::vector<double*>& bounds);

}  // namespace kerf::driver
