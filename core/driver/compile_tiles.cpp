#include "driver/compile_tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "axis/coordinates.h"
#include "axis/linear.h"
#include "codegen/triton/emit.h"
#include "base/error.h"
#include "driver/pipeline.h"
#include "driver/stage.h"
#include "driver/tile_file.h"
#include "loop/interp.h"
#include "loop/parse.h"
#include "loop/print.h"
#include "loop/renumber.h"
#include "loop/walk.h"
#include "sched/profit.h"
#include "sym/eval.h"
#include "sym/simplify.h"
#include "sym/text.h"

namespace kerf::driver {

using codegen::triton::KernelText;
using loop::BufferId;
using sym::Expr;

namespace {

struct Emitted {
  loop::Kernel kernel;  // with tiles
  KernelText text;
};

// Sizes of tiles to try, largest first.
constexpr int64_t kElements[] = {32768, 16384, 8192, 4096, 2048, 1024, 512};

class TileCompiler {
 public:
  TileCompiler(const TileTarget& target, const SizeHints& hints) : target_(target), hints_(hints) {}

  // The kernel at its first choice, or why there is none.
  Result<Emitted> emit(const loop::Kernel& kernel, bool outer_is_parallel, int64_t elements) const {
    sched::TileLimits limits = target_.limits;
    limits.elements = elements;
    sched::TiledKernel tiled = sched::tile_kernel(kernel, limits, outer_is_parallel);
    if (!tiled.fits) return Unsupported{fmt::format("its rows do not fit a tile of {} elements", elements)};
    Result<KernelText> text = codegen::triton::emit(tiled.kernel, target_.dialect);
    if (!text) return Unsupported{text.reason()};
    return Emitted{std::move(tiled.kernel), std::move(*text)};
  }

  bool accepts(const loop::Kernel& kernel) const {
    if (target_.most_reads) {
      int reads = 0;
      loop::walk(kernel.body, [&](const loop::Stmt& stmt, const loop::Path&) {
        const auto* define = std::get_if<loop::Define>(&stmt);
        reads += define && kernel.values[define->value].kind == loop::ValueKind::load;
      });
      if (reads > target_.most_reads) return false;
    }
    return bool(emit(kernel, true, target_.limits.elements));
  }

  Result<TileKernel> compile(const loop::Launch& launch, KernelRecord record) const {
    Result<Emitted> first = emit(launch.kernel, launch.outer_is_parallel, target_.limits.elements);
    if (!first) return Unsupported{first.reason()};
    TileKernel result;
    result.record = std::move(record);
    result.blocks = {blocks_of(first->text)};
    const std::string body = body_of(first->text);
    for (int64_t elements : kElements) {
      if (elements >= target_.limits.elements) continue;
      Result<Emitted> smaller = emit(launch.kernel, launch.outer_is_parallel, elements);
      if (!smaller || body_of(smaller->text) != body) continue;
      Blocks blocks = blocks_of(smaller->text);
      if (blocks != result.blocks.back()) result.blocks.push_back(std::move(blocks));
    }
    describe(*first, result);
    result.loop_text = loop::to_text(first->kernel);
    std::vector<std::pair<std::string, int64_t>> sizes;
    std::vector<int64_t> values = hinted_sizes(first->kernel.sizes, hints_);
    for (size_t i = 0; i < values.size(); ++i)
      sizes.emplace_back(first->kernel.sizes[i].symbol.symbol().name, values[i]);
    result.text = tile_file(first->text, result, target_, sizes);
    return result;
  }

 private:
  static Blocks blocks_of(const KernelText& text) {
    Blocks blocks;
    for (const codegen::triton::TileAxis& axis : text.tile) blocks.emplace_back(axis.block, axis.lanes);
    return blocks;
  }

  // What follows the signature: the same for every choice of blocks that the text is right for.
  static std::string body_of(const KernelText& text) {
    return text.function.substr(text.function.find("):\n"));
  }

  void describe(const Emitted& emitted, TileKernel& result) const {
    const loop::Kernel& kernel = emitted.kernel;
    axis::Coordinates coordinates = axis::coordinates_of(kernel);
    std::map<std::string, codegen::triton::TileAxis> tiles;
    for (const codegen::triton::TileAxis& axis : emitted.text.tile) tiles.emplace(axis.name, axis);
    std::vector<axis::AxisInfo> axes;
    for (size_t c = 0; c < coordinates.list.size(); ++c) {
      const axis::Coordinate& coordinate = coordinates.list[c];
      AxisRecord record{coordinate.name, sym::to_text(coordinate.extent), coordinate.folded};
      auto tile = tiles.find(coordinate.name);
      if (tile != tiles.end()) record.block = tile->second.lanes;
      record.parameter = emitted.text.parameters[c];
      if (coordinate.extent.is_constant())
        record.cut = record.parameter.empty() ? coordinate.extent.constant()
                                              : cut(coordinate.extent.constant(), std::max<int64_t>(record.block, 1));
      result.axes.push_back(std::move(record));
      axes.push_back({coordinates.symbol(kernel, c), coordinate.extent});
    }
    describe_accesses(kernel, coordinates, axes, result);
    describe_buffers(kernel, result);
  }

  static int64_t cut(int64_t extent, int64_t block) { return std::min(extent, 2 * block + extent % block); }

  static void describe_accesses(const loop::Kernel& kernel, const axis::Coordinates& coordinates,
                                const std::vector<axis::AxisInfo>& axes, TileKernel& result) {
    sym::Facts facts = loop::facts_of(kernel);
    auto add = [&](BufferId buffer, Expr index, bool is_store) {
      if (kernel.buffers[buffer].mode == loop::BufferMode::local) return;
      Expr place = sym::simplify(sym::substitute(index, coordinates.to_symbols), facts);
      AccessRecord record{kernel.buffers[buffer].name, is_store, sym::to_text(place),
                          axis::linear_form(place, axes).has_value()};
      bool known = std::any_of(result.accesses.begin(), result.accesses.end(), [&](const AccessRecord& other) {
        return other.buffer == record.buffer && other.is_store == record.is_store && other.index == record.index;
      });
      if (!known) result.accesses.push_back(std::move(record));
    };
    loop::walk(kernel.body, [&](const loop::Stmt& stmt, const loop::Path&) {
      if (const auto* store = std::get_if<loop::Store>(&stmt)) add(store->buffer, store->index, true);
      const auto* define = std::get_if<loop::Define>(&stmt);
      if (define && kernel.values[define->value].kind == loop::ValueKind::load)
        add(kernel.values[define->value].buffer, kernel.values[define->value].index, false);
    });
  }

  void describe_buffers(const loop::Kernel& kernel, TileKernel& result) const {
    std::vector<int64_t> sizes = hinted_sizes(kernel.sizes, hints_);
    auto size = [&](const sym::Symbol& symbol) {
      for (size_t i = 0; i < kernel.sizes.size(); ++i)
        if (&kernel.sizes[i].symbol.symbol() == &symbol) return sizes[i];
      return int64_t{0};
    };
    std::map<BufferId, int64_t> below;
    for (const loop::Value& value : kernel.values) {
      if (value.kind != loop::ValueKind::apply || ops::info(value.op).types != ops::Typing::index_check) continue;
      const loop::Value &index = kernel.values[value.operands[0]], &bound = kernel.values[value.operands[1]];
      if (index.kind != loop::ValueKind::load || bound.kind != loop::ValueKind::index) continue;
      int64_t limit = sym::evaluate(bound.index, size).value_or(1);
      auto [found, fresh] = below.emplace(index.buffer, limit);
      if (!fresh) found->second = std::min(found->second, limit);
    }
    for (BufferId id(0); id < kernel.buffers.end_id(); ++id.index) {
      const loop::Buffer& buffer = kernel.buffers[id];
      if (buffer.mode == loop::BufferMode::local) continue;
      BufferRecord record{buffer.name, buffer.dtype, sym::evaluate(loop::element_count(kernel, id), size).value_or(0),
                          buffer.mode};
      if (auto found = below.find(id); found != below.end()) record.below = found->second;
      result.buffers.push_back(std::move(record));
    }
  }

  const TileTarget& target_;
  const SizeHints& hints_;
};

}  // namespace

TileCompilation compile_tiles(const graph::Graph& graph, const TileTarget& target, const SizeHints& hints) {
  auto start = std::chrono::steady_clock::now();
  Stages stages("", false);
  TileCompiler compiler(target, hints);
  graph::Graph optimized = optimize_graph(graph, stages);
  loop::Program program = make_program(
      optimized, stages, {}, [&](const loop::Kernel& kernel) { return compiler.accepts(kernel); });
  TileCompilation result;
  StepRecords records = describe_steps(program, hints);
  result.externs = std::move(records.externs);
  result.program_text = loop::to_text(program);
  std::map<std::string, size_t> first;
  size_t next = 0;
  stages.run("codegen", "emit", [&] {
    for (const auto& step : program.steps) {
      const auto* launch = std::get_if<loop::Launch>(&step);
      if (!launch) continue;
      Result<TileKernel> kernel = compiler.compile(*launch, std::move(records.kernels[next++]));
      if (!kernel) {
        result.refused.push_back({launch->kernel.sources, launch->kernel.name, kernel.reason()});
        continue;
      }
      size_t position = result.kernels.size();
      kernel->unique = first.emplace(loop::canonical_text(launch->kernel), position).first->second;
      result.kernels.push_back(std::move(*kernel));
    }
    return true;
  });
  stages.add_seconds("total", start);
  result.seconds = stages.seconds();
  return result;
}

void run_reference(const std::string& loop_text, const std::vector<int64_t>& extents, const std::vector<int64_t>& sizes,
                   const std::vector<void*>& buffers) {
  sym::Context context;
  loop::Kernel kernel = loop::parse_kernel(loop_text, context);
  axis::Coordinates coordinates = axis::coordinates_of(kernel);
  for (size_t c = 0; c < std::min(extents.size(), coordinates.list.size()); ++c) {
    if (extents[c] <= 0) continue;
    for (loop::AxisId axis : coordinates.list[c].axes) kernel.axes[axis].extent = context.constant(extents[c]);
  }
  target::KernelError error;
  loop::interpret(kernel, sizes, buffers, error);
  if (error.code != target::KernelError::kNone)
    throw UserError(fmt::format("kernel {} reports an error on this data", kernel.name));
}

}  // namespace kerf::driver
