#include "driver/compile_tiles.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <set>

#include "axis/coordinates.h"
#include "axis/linear.h"
#include "base/error.h"
#include "codegen/triton/check_text.h"
#include "codegen/triton/emit.h"
#include "driver/pipeline.h"
#include "driver/stage.h"
#include "driver/tile_file.h"
#include "loop/interp.h"
#include "loop/parse.h"
#include "loop/print.h"
#include "loop/walk.h"
#include "sched/outer.h"
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
  std::vector<loop::Kernel> parts;  // with tiles
  KernelText text;
};

// A kernel at the blocks that were chosen for it.
struct Chosen {
  TileKernel kernel;
  KernelText text;
  Tiling tiling;
};

// The kernel at other extents of its axes.
loop::Kernel cut_kernel(const loop::Kernel& kernel, std::span<const int64_t> extents) {
  loop::Kernel result = kernel;
  axis::Coordinates coordinates = axis::coordinates_of(kernel);
  for (size_t c = 0; c < std::min(extents.size(), coordinates.list.size()); ++c) {
    if (extents[c] <= 0) continue;
    for (loop::AxisId axis : coordinates.list[c].axes)
      result.axes[axis].extent = kernel.context->constant(extents[c]);
  }
  return result;
}

loop::Kernel cut_kernel(const loop::Kernel& kernel, const std::vector<AxisRecord>& axes) {
  std::vector<int64_t> extents;
  for (const AxisRecord& axis : axes) extents.push_back(axis.cut);
  return cut_kernel(kernel, extents);
}

// Sizes of tiles to try, largest first.
constexpr int64_t kElements[] = {32768, 16384, 8192, 4096, 2048, 1024, 512};

class TileCompiler {
 public:
  TileCompiler(const TileTarget& target, const SizeHints& hints, KnownTilings& known)
      : target_(target), hints_(hints), known_(known) {}

  // Of merged kernels: their outer loops are parallel.
  bool accepts(const loop::Kernel& kernel) {
    if (target_.most_reads) {
      int reads = 0;
      loop::for_each_access(kernel,
                            [&](BufferId, Expr, const loop::Path&, bool is_store) { reads += !is_store; });
      if (reads > target_.most_reads) return false;
    }
    return tiling(kernel, /*outer_is_parallel=*/true).has_value();
  }

  Result<TileKernel> compile(const loop::Launch& launch, KernelRecord record) {
    const std::optional<Tiling>& found = tiling(launch.kernel, launch.outer_is_parallel);
    auto made = chosen_.find(exact_key(launch.kernel, launch.outer_is_parallel));
    bool is_made = made != chosen_.end();
    if (!found)
      return Unsupported{is_made ? made->second.reason()
                                 : choose(launch.kernel, launch.outer_is_parallel).reason()};
    Chosen chosen = is_made ? *made->second : as(launch.kernel, *found, launch.outer_is_parallel);
    TileKernel result = std::move(chosen.kernel);
    result.record = std::move(record);
    result.text = file(result, chosen.text, launch.kernel);
    return result;
  }

 private:
  // What is the same for kernels that differ in names only.
  const std::optional<Tiling>& tiling(const loop::Kernel& kernel, bool outer_is_parallel) {
    std::string key =
        fmt::format("{} {} {}\n{}", target_.name, outer_is_parallel,
                    fmt::join(hinted_sizes(kernel.sizes, hints_), " "), loop::canonical_text(kernel));
    auto [known, is_new] = known_.try_emplace(std::move(key));
    if (!is_new) return known->second;
    Result<Chosen> chosen = choose(kernel, outer_is_parallel);
    if (chosen) known->second = (*chosen).tiling;
    chosen_.emplace(exact_key(kernel, outer_is_parallel), std::move(chosen));
    return known->second;
  }

  static std::string exact_key(const loop::Kernel& kernel, bool outer_is_parallel) {
    return (outer_is_parallel ? "parallel " : "") + loop::to_text(kernel);
  }

  // As a kernel that differs in names only.
  Chosen as(const loop::Kernel& of, const Tiling& tiling, bool outer_is_parallel) const {
    sched::Tilings tilings(of, limits_for(of), outer_is_parallel);
    std::vector<loop::Kernel> parts = tilings.at(tilings.blocks(tiling.sizes)).parts;
    Result<KernelText> text = codegen::triton::emit(parts, target_.dialect);
    CHECK(text, "{} has no text, but one that differs in names has: {}", of.name, text.reason());
    Emitted emitted{std::move(parts), std::move(*text)};
    Blocks names = blocks_of(emitted.text, emitted.parts);
    TileKernel kernel = describe(of, emitted, names);
    kernel.blocks.clear();
    for (const std::vector<int64_t>& choice : tiling.blocks) {
      for (size_t i = 0; i < names.size(); ++i) names[i].second = choice[i];
      kernel.blocks.push_back(names);
    }
    return Chosen{std::move(kernel), std::move(emitted.text), {}};
  }

  sched::TileLimits limits_for(const loop::Kernel& kernel) const {
    sched::TileLimits limits = target_.limits;
    limits.alignment = target_.alignment_bytes / smallest_bytes(kernel);
    return limits;
  }

  // At the largest tiles that fit, with smaller ones as further choices; or why there is no text.
  Result<Chosen> choose(const loop::Kernel& of, bool outer_is_parallel) const {
    sched::Tilings tilings(of, limits_for(of), outer_is_parallel);
    Attempts attempts;
    // Rows on chip, and where they do not fit, walked; several at a time, and where that has no code (labels that only a
    // scalar may be), one by one.
    for (auto [row, tile_rows] : {std::pair(target_.limits.sizes.persistent_row, true),
                                  {target_.limits.sizes.persistent_row, false},
                                  {int64_t{0}, true},
                                  {int64_t{0}, false}}) {
      std::optional<Chosen> first;
      for (int64_t elements : kElements) {
        if (elements > target_.limits.sizes.elements) continue;
        const sched::TileSizes limit{elements, row, tile_rows};
        sched::Tilings::Blocks sizes = tilings.blocks(limit);
        if (!sizes.fits) {
          attempts.refuse(fmt::format("its rows do not fit a tile of {} elements", elements));
          continue;
        }
        if (!attempts.tried.insert(sizes.sizes).second) continue;
        std::vector<loop::Kernel> parts = tilings.at(sizes).parts;
        if (first)
          add_choice(*first, attempts, parts);
        else
          first = attempt(of, std::move(parts), limit, attempts);
      }
      if (!first) continue;
      for (const Blocks& choice : first->kernel.blocks) {
        std::vector<int64_t>& blocks = first->tiling.blocks.emplace_back();
        for (const auto& [name, size] : choice) blocks.push_back(size);
      }
      return std::move(*first);
    }
    return Unsupported{attempts.reason};
  }

  // What is known of the texts of one kernel, by codegen::triton::form_of.
  struct Form {
    Result<KernelText> text;
    std::optional<triton::KernelFile> too_large;  // with larger blocks, but for which it keeps all rules
  };
  struct Attempts {
    std::set<std::vector<std::vector<int64_t>>> tried;  // sizes of blocks
    std::map<std::vector<int64_t>, Form> forms;
    std::string reason;  // of the last text that broke a rule, else of the first that there is none for

    void refuse(std::string why) {
      if (reason.empty()) reason = std::move(why);
    }
  };

  std::optional<Chosen> attempt(const loop::Kernel& of, std::vector<loop::Kernel> parts,
                                const sched::TileSizes& sizes, Attempts& attempts) const {
    auto [known, is_new] =
        attempts.forms.try_emplace(codegen::triton::form_of(parts), Form{Unsupported{}, {}});
    Form& form = known->second;
    if (!is_new && !form.text) return std::nullopt;
    if (form.too_large) {
      auto violation = triton::check_buffer(*form.too_large, blocks_of(*form.text, parts), target_.name);
      if (violation) return attempts.reason = describe(*violation), std::nullopt;
    }
    form.text = codegen::triton::emit(parts, target_.dialect);
    if (!form.text) return attempts.refuse(form.text.reason()), std::nullopt;
    Emitted emitted{std::move(parts), *form.text};
    TileKernel kernel = describe(of, emitted, blocks_of(emitted.text, emitted.parts));
    if (target_.dialect == codegen::triton::Dialect::ascend) {
      triton::Checked checked = triton::check_text(kernel.text, target_.name);
      if (!checked.violations.empty()) {
        const triton::Violation& broken = checked.violations.front();
        attempts.reason = describe(broken);
        if (checked.violations.size() == 1 && broken.rule == "buffer")
          form.too_large = std::move(checked.file);
        return std::nullopt;
      }
    }
    return Chosen{std::move(kernel), std::move(emitted.text), {sizes, {}}};
  }

  // Smaller blocks for the same text.
  void add_choice(Chosen& chosen, Attempts& attempts, const std::vector<loop::Kernel>& parts) const {
    auto [known, is_new] =
        attempts.forms.try_emplace(codegen::triton::form_of(parts), Form{Unsupported{}, {}});
    if (is_new) known->second.text = codegen::triton::emit(parts, target_.dialect);
    const Result<KernelText>& text = known->second.text;
    if (!text || (*text).body != chosen.text.body) return;
    Blocks blocks = blocks_of(*text, parts);
    if (is_smaller(blocks, chosen.kernel.blocks.back())) chosen.kernel.blocks.push_back(std::move(blocks));
  }

  // The rule that a text breaks, that of the buffer among them: what cannot be said within the rules is no kernel.
  static std::string describe(const triton::Violation& violation) {
    return fmt::format("{}: {}", violation.rule, violation.message);
  }

  static int64_t smallest_bytes(const loop::Kernel& kernel) {
    int64_t smallest = byte_size(DType::f32);
    for (const loop::Buffer& buffer : kernel.buffers)
      smallest = std::min<int64_t>(smallest, byte_size(buffer.dtype));
    return smallest;
  }

  static bool is_smaller(const Blocks& blocks, const Blocks& than) {
    if (blocks.size() != than.size() || blocks == than) return false;
    for (size_t i = 0; i < blocks.size(); ++i)
      if (blocks[i].second > than[i].second) return false;
    return true;
  }

  std::string file(const TileKernel& kernel, const KernelText& text, const loop::Kernel& of) const {
    std::vector<std::pair<std::string, int64_t>> sizes;
    std::vector<int64_t> values = hinted_sizes(of.sizes, hints_);
    for (size_t i = 0; i < values.size(); ++i)
      sizes.emplace_back(of.sizes[i].symbol.symbol().name, values[i]);
    return tile_file(text, kernel, target_, sizes);
  }

  // Without its record but for the name.
  TileKernel describe(const loop::Kernel& kernel, const Emitted& emitted, Blocks blocks) const {
    TileKernel result;
    result.record.name = kernel.name;
    result.blocks.push_back(std::move(blocks));
    result.axes = describe_axes(kernel, nullptr);
    for (size_t i = 0; i < emitted.parts.size(); ++i) {
      result.parts.push_back(
          {loop::to_text(emitted.parts[i]), describe_axes(emitted.parts[i], &emitted.text.parts[i])});
      describe_accesses(emitted.parts[i], result);
    }
    describe_buffers(kernel, emitted.parts, result);
    result.text = file(result, emitted.text, kernel);
    return result;
  }

  // Of kernels with this text.
  static Blocks blocks_of(const KernelText& text, const std::vector<loop::Kernel>& parts) {
    Blocks blocks;
    for (size_t i = 0; i < parts.size(); ++i)
      for (const codegen::triton::TileAxis& axis : text.parts[i].tile)
        blocks.emplace_back(axis.block, parts[i].axes[axis.axis].lanes);
    return blocks;
  }

  // The coordinates of a kernel; with what the text has of them, if it is a part of one.
  static std::vector<AxisRecord> describe_axes(const loop::Kernel& kernel,
                                               const codegen::triton::PartText* text) {
    axis::Coordinates coordinates = axis::coordinates_of(kernel);
    std::vector<AxisRecord> result;
    for (size_t c = 0; c < coordinates.list.size(); ++c) {
      const axis::Coordinate& coordinate = coordinates.list[c];
      AxisRecord record{coordinate.name, sym::to_text(coordinate.extent), coordinate.folded};
      const loop::Axis& axis = kernel.axes[coordinate.axes.front()];
      if (axis.role == loop::Role::tile) record.block = axis.lanes;
      if (text) record.parameter = text->parameters[c];
      if (coordinate.extent.is_constant())
        record.cut = record.parameter.empty()
                         ? coordinate.extent.constant()
                         : cut(coordinate.extent.constant(), std::max<int64_t>(record.block, 1));
      result.push_back(std::move(record));
    }
    return result;
  }

  static int64_t cut(int64_t extent, int64_t block) { return std::min(extent, 2 * block + extent % block); }

  static void describe_accesses(const loop::Kernel& kernel, TileKernel& result) {
    sym::Facts facts = loop::facts_of(kernel);
    axis::Coordinates coordinates = axis::coordinates_of(kernel);
    std::vector<axis::AxisInfo> axes;
    std::vector<sym::Substitution> named;
    for (size_t c = 0; c < coordinates.list.size(); ++c) {
      axes.push_back({coordinates.symbol(kernel, c), coordinates.list[c].extent});
      named.push_back(
          {axes.back().symbol, kernel.context->symbol(coordinates.list[c].name, sym::SymbolKind::axis)});
    }
    loop::for_each_access(kernel, [&](BufferId buffer, Expr index, const loop::Path&, bool is_store) {
      if (kernel.buffers[buffer].mode == loop::BufferMode::local) return;
      Expr place = sym::simplify(sym::substitute(index, coordinates.to_symbols), facts);
      AccessRecord record{kernel.buffers[buffer].name, is_store, sym::to_text(sym::substitute(place, named)),
                          axis::linear_form(place, axes).has_value()};
      bool known =
          std::any_of(result.accesses.begin(), result.accesses.end(), [&](const AccessRecord& other) {
            return other.buffer == record.buffer && other.is_store == record.is_store &&
                   other.index == record.index;
          });
      if (!known) result.accesses.push_back(std::move(record));
    });
  }

  void describe_buffers(const loop::Kernel& kernel, const std::vector<loop::Kernel>& parts,
                        TileKernel& result) const {
    std::vector<int64_t> sizes = hinted_sizes(kernel.sizes, hints_);
    auto size = [&](const sym::Symbol& symbol) {
      for (size_t i = 0; i < kernel.sizes.size(); ++i)
        if (&kernel.sizes[i].symbol.symbol() == &symbol) return sizes[i];
      return int64_t{0};
    };
    std::map<BufferId, int64_t> below;
    for (const loop::Value& value : kernel.values) {
      if (value.kind != loop::ValueKind::apply || ops::info(value.op).types != ops::Typing::index_check)
        continue;
      const loop::Value &index = kernel.values[value.operands[0]], &bound = kernel.values[value.operands[1]];
      if (index.kind != loop::ValueKind::load || bound.kind != loop::ValueKind::index) continue;
      int64_t limit = sym::evaluate(bound.index, size).value_or(1);
      auto [found, fresh] = below.emplace(index.buffer, limit);
      if (!fresh) found->second = std::min(found->second, limit);
    }
    // Elements up to the last that is reached at cut extents, or its neighbour, as pairs are read together; everything where
    // that is not known.
    IdVector<BufferId, int64_t> reached(kernel.buffers.size(), 0);
    for (size_t i = 0; i < parts.size(); ++i) {
      sym::Facts facts = loop::facts_of(cut_kernel(parts[i], result.parts[i].axes));
      loop::for_each_access(parts[i], [&](BufferId buffer, Expr index, const loop::Path&, bool is_store) {
        std::optional<int64_t> last = sym::range_of(index, facts).hi;
        bool is_half = !is_store && std::ranges::any_of(parts[i].axes, [&](const loop::Axis& axis) {
          auto stride = axis::stride_over(index, axis.symbol);
          return stride && stride->is_constant(2);
        });
        int64_t end = last ? *last + (is_half ? 2 : 1) : std::numeric_limits<int64_t>::max();
        reached[buffer] = std::max(reached[buffer], end);
      });
    }
    for (BufferId id(0); id < kernel.buffers.end_id(); ++id.index) {
      const loop::Buffer& buffer = kernel.buffers[id];
      if (buffer.mode == loop::BufferMode::local) continue;
      int64_t elements = sym::evaluate(loop::element_count(kernel, id), size).value_or(0);
      BufferRecord record{buffer.name, buffer.dtype, elements, std::min(reached[id], elements), buffer.mode,
                          {}};
      if (auto found = below.find(id); found != below.end()) record.below = found->second;
      result.buffers.push_back(std::move(record));
    }
  }

  const TileTarget& target_;
  const SizeHints& hints_;
  KnownTilings& known_;
  std::unordered_map<std::string, Result<Chosen>> chosen_;  // by text with names, which reasons have too
};

// Nothing is to be done: a grid of no programs is an error there.
bool is_empty(const loop::Kernel& kernel) {
  return std::ranges::any_of(sched::outer_chain(kernel),
                             [&](loop::AxisId axis) { return kernel.axes[axis].extent.is_constant(0); });
}

}  // namespace

TileCompilation compile_tiles(const graph::Graph& graph, const TileTarget& target, const SizeHints& hints,
                              target::Router router, KnownTilings& known) {
  auto start = std::chrono::steady_clock::now();
  Stages stages("", false);
  TileCompiler compiler(target, hints, known);
  graph::Graph optimized = optimize_graph(graph, stages, router);
  loop::Program program = make_program(
      optimized, stages, {.library_updates = true}, target.schedule,
      [&](const loop::Kernel& kernel) { return compiler.accepts(kernel); },
      target.device == target::Device::npu);
  TileCompilation result;
  StepRecords records = describe_steps(program, hints);
  result.externs = std::move(records.externs);
  result.routes = router.records();
  size_t next = 0;
  stages.run("codegen", "emit", [&] {
    for (const auto& step : program.steps) {
      const auto* launch = std::get_if<loop::Launch>(&step);
      if (!launch) continue;
      KernelRecord& record = records.kernels[next++];
      if (is_empty(launch->kernel)) continue;
      Result<TileKernel> kernel = compiler.compile(*launch, std::move(record));
      if (!kernel) {
        result.refused.push_back({launch->kernel.sources, launch->kernel.name, kernel.reason()});
        continue;
      }
      result.kernels.push_back(std::move(*kernel));
    }
    return true;
  });
  stages.add_seconds("total", start);
  result.seconds = stages.seconds();
  return result;
}

void run_reference(const std::string& loop_text, const std::vector<int64_t>& extents,
                   const std::vector<int64_t>& sizes, const std::vector<void*>& buffers,
                   const std::vector<double*>& bounds) {
  sym::Context context;
  loop::Kernel kernel = cut_kernel(loop::parse_kernel(loop_text, context), extents);
  target::KernelError error;
  loop::interpret(kernel, sizes, buffers, error, std::nullopt, bounds);
  if (error.code != target::KernelError::kNone)
    throw UserError(fmt::format("kernel {} reports an error on this data", kernel.name));
}

}  // namespace kerf::driver
