// Statements, and the function around them.
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "codegen/triton/emission.h"
#include "loop/walk.h"
#include "sym/simplify.h"
#include "sym/text.h"

namespace kerf::codegen::triton {

using loop::Role;
using loop::ValueKind;

namespace {

void emit_define(Emission& e, loop::ValueId id) {
  const loop::Value& value = e.kernel.values[id];
  if (belongs_to_column(e, value)) return;
  switch (value.kind) {
    case ValueKind::constant: e.values[id] = {literal_text(value.literal), 0, value.literal}; return;
    case ValueKind::index: {
      sym::Expr index = over_coordinates(e, value.index);
      if (index.is_constant()) {
        e.values[id] = {fmt::format("{}", index.constant()), 0, Scalar::of_int(DType::i64, index.constant())};
        return;
      }
      Tile tile = index_text(e, index);
      if (e.dialect == Dialect::nvidia) tile.text = fmt::format("({}).to(tl.int64)", tile.text);
      e.values[id] = {e.define("index", tile.text), tile.dims, {}, e.dialect == Dialect::ascend};
      return;
    }
    case ValueKind::load: emit_load(e, id); return;
    case ValueKind::apply: e.values[id] = emit_apply(e, value); return;
    case ValueKind::reduced: UNREACHABLE("value %{} of a reduce has a definition", id.index);
  }
}

void emit_loop(Emission& e, const loop::Loop& loop) {
  bool rows = e.coordinates.list[e.coordinates.of[loop.axis]].kind == axis::CoordinateKind::row;
  std::vector<const loop::Store*> columns;
  if (rows) columns = columns_of(e, loop);
  for (const loop::Store* column : columns) open_column(e, *column);
  run_axes(e, std::span(&loop.axis, 1), [&] { emit_block(e, loop.body); });
  for (const loop::Store* column : columns) close_column(e, *column);
}

void emit_statement(Emission& e, const loop::Stmt& stmt) {
  if (const auto* define = std::get_if<loop::Define>(&stmt)) {
    emit_define(e, define->value);
  } else if (const auto* store = std::get_if<loop::Store>(&stmt)) {
    emit_store(e, *store);
  } else if (const auto* loop = std::get_if<loop::Loop>(&stmt)) {
    emit_loop(e, *loop);
  } else if (const auto* reduce = std::get_if<loop::Reduce>(&stmt)) {
    emit_reduce(e, *reduce);
  } else if (std::holds_alternative<loop::Guard>(stmt)) {
    e.refuse("statements under a condition");
  } else {
    e.refuse("a barrier between grids");
  }
}

// How many tiles there are along a coordinate of the grid; empty for one.
std::string tile_count(const Emission& e, size_t coordinate) {
  if (auto dim = e.dim_of[coordinate]) {
    const TileAxis& axis = e.dims[*dim].axis;
    return axis.whole ? "" : fmt::format("tl.cdiv({}, {})", axis.extent, axis.block);
  }
  return e.coordinates.list[coordinate].extent.is_constant(1) ? "" : e.extents[coordinate];
}

void define_whole(Emission& e) {
  for (size_t d = 0; d < e.dims.size(); ++d)
    if (e.dims[d].axis.whole) e.define_range(d, "");
}

// The coordinates of one tile of the grid from its number.
void define_grid(Emission& e, const std::vector<size_t>& grid) {
  std::vector<size_t> walked;
  for (size_t c : grid) {
    if (!tile_count(e, c).empty()) {
      walked.push_back(c);
    } else if (!e.dim_of[c]) {
      e.line(e.coordinates.list[c].name + " = 0");
    }
  }
  for (size_t i = 0; i < walked.size(); ++i) {
    std::vector<std::string> after;
    for (size_t k = i + 1; k < walked.size(); ++k) after.push_back(tile_count(e, walked[k]));
    std::string at = "tile";
    if (!after.empty())
      at += after.size() == 1 ? " // " + after[0] : fmt::format(" // ({})", fmt::join(after, " * "));
    if (i > 0) at += " % " + tile_count(e, walked[i]);
    const std::string& name = e.coordinates.list[walked[i]].name;
    if (auto dim = e.dim_of[walked[i]]) {
      at = at == "tile" ? at : "(" + at + ")";
      e.define_range(*dim, fmt::format("{} * {}", at, e.dims[*dim].axis.block));
    } else {
      e.line(name + " = " + at);
    }
  }
}

void emit_body(Emission& e, std::vector<std::pair<std::string, std::string>>& grid_sizes) {
  std::vector<size_t> grid;
  const loop::Block* block = &e.kernel.body;
  while (block->size() == 1 && std::holds_alternative<loop::Loop>(block->front())) {
    const auto& loop = std::get<loop::Loop>(block->front());
    size_t coordinate = e.coordinates.of[loop.axis];
    Role role = e.kernel.axes[loop.axis].role;
    if (role != Role::grid && role != Role::tile) break;
    grid.push_back(coordinate);
    block = &loop.body;
  }
  std::vector<std::string> counts;
  for (size_t c : grid) {
    std::string count = tile_count(e, c);
    if (count.empty()) continue;
    counts.push_back(count);
    grid_sizes.emplace_back(e.extents[c], e.dim_of[c] ? e.dims[*e.dim_of[c]].axis.block : "");
  }
  define_whole(e);
  if (e.dialect == Dialect::ascend && (!counts.empty() || e.always_loops)) {
    std::string tiles = counts.empty() ? "1" : fmt::format("{}", fmt::join(counts, " * "));
    e.line(fmt::format("for tile in range(tl.program_id(0), {}, tl.num_programs(0)):", tiles));
    ++e.indent;
  } else if (!counts.empty()) {
    e.line(e.wide ? "tile = tl.program_id(0).to(tl.int64)" : "tile = tl.program_id(0)");
  }
  define_grid(e, grid);
  emit_block(e, *block);
}

bool mentions(const std::string& text, const std::string& name) {
  auto is_word = [&](size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_');
  };
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1))
    if ((at == 0 || !is_word(at - 1)) && !is_word(at + name.size())) return true;
  return false;
}

// Where transfers have lanes of their own, the dimensions' may be of no use, and the other way round where a value is known;
// a fold of equal values needs the block only.
void drop_unused_ranges(Emission& e) {
  std::vector<std::string> names;
  for (const Dim& dim : e.dims) names.push_back(dim.axis.name);
  for (const Lanes& lanes : e.lanes) names.push_back(lanes.name);
  for (const std::string& name : names) {
    auto defines = [&](const std::string& line) {
      return line.substr(std::min(line.find_first_not_of(' '), line.size())).starts_with(name + " = ");
    };
    bool is_used = std::ranges::any_of(
        e.lines, [&](const std::string& line) { return !defines(line) && mentions(line, name); });
    if (!is_used) std::erase_if(e.lines, defines);
  }
}

// Names, wrapped under an opening bracket.
std::string wrapped(const std::string& head, const std::vector<std::string>& parameters) {
  constexpr size_t kWidth = 110;
  std::string one_line = fmt::format("{}({}):", head, fmt::join(parameters, ", "));
  if (one_line.size() <= kWidth) return one_line;
  std::string text = head + "(\n", line = "   ";
  for (const std::string& parameter : parameters) {
    if (line.size() + parameter.size() + 2 > kWidth) {
      text += line + "\n";
      line = "   ";
    }
    line += " " + parameter + ",";
  }
  return text + line + "\n):";
}

}  // namespace

void run_axes(Emission& e, std::span<const loop::AxisId> axes, const std::function<void()>& body) {
  const size_t before = e.indent;
  auto known = e.known;
  for (loop::AxisId id : axes) {
    size_t c = e.coordinates.of[id];
    const std::string& name = e.coordinates.list[c].name;
    if (!e.dim_of[c]) {
      e.line(fmt::format("for {} in range(0, {}):", name, e.extents[c]));
      ++e.indent;
      continue;
    }
    const TileAxis& axis = e.dims[*e.dim_of[c]].axis;
    if (axis.whole) continue;
    std::string at = name + "_at";
    e.line(fmt::format("for {} in range(0, {}, {}):", at, axis.extent, axis.block));
    ++e.indent;
    e.define_range(*e.dim_of[c], at);
  }
  size_t start = e.lines.size();
  body();
  if (e.indent == before) return;
  if (e.lines.size() == start) e.line("pass");
  e.indent = before;
  e.known = std::move(known);  // of one iteration
}

void emit_block(Emission& e, const loop::Block& block) {
  std::vector<const loop::Store*> columns;
  for (const loop::Stmt& stmt : block) {
    const auto* loop = std::get_if<loop::Loop>(&stmt);
    if (!loop || e.coordinates.list[e.coordinates.of[loop->axis]].kind != axis::CoordinateKind::row) continue;
    for (const loop::Store* store : columns_of(e, *loop)) columns.push_back(store);
  }
  for (const loop::Stmt& stmt : block)
    if (!clears_columns(e, stmt, columns)) emit_statement(e, stmt);
}

Result<KernelText> emit(std::span<const loop::Kernel> parts, Dialect dialect) {
  CHECK(!parts.empty() && (parts.size() == 1 || dialect == Dialect::ascend), "{} parts of a kernel",
        parts.size());
  const loop::Kernel& kernel = parts[0];
  Names names;
  std::vector<std::string> parameters;
  for (const loop::Buffer& buffer : kernel.buffers) {
    if (buffer.mode == loop::BufferMode::local) continue;
    if (dialect == Dialect::ascend && (buffer.dtype == DType::f64 || buffer.dtype == DType::u8))
      return Unsupported{
          fmt::format("{} is {}: the vector unit has none", buffer.name, to_text(buffer.dtype))};
    parameters.push_back(names.give(buffer.name + "_ptr"));
  }
  for (const loop::Size& size : kernel.sizes) parameters.push_back(names.give(size.symbol.symbol().name));
  KernelText result;
  std::vector<std::string> blocks;
  for (const loop::Kernel& part : parts) {
    Emission e(part, dialect, std::move(names));
    PartText text;
    e.always_loops = parts.size() > 1;
    if (auto carried = carried_buffer(part, e.coordinates))
      e.refuse(fmt::format("{} carries values from one iteration to the next", *carried));
    plan_transfers(e);
    emit_body(e, text.grid);
    drop_unused_ranges(e);
    if (e.refusal) return std::move(*e.refusal);
    std::string body = fmt::format("{}\n", fmt::join(e.lines, "\n"));
    for (size_t c = 0; c < e.coordinates.list.size(); ++c) {
      sym::Expr extent = e.coordinates.list[c].extent;
      // An extent that only a whole tile has is no parameter: it stands neither in the text nor in the grid.
      bool in_grid = std::any_of(text.grid.begin(), text.grid.end(),
                                 [&](const auto& axis) { return axis.first == e.extents[c]; });
      bool stands = extent.is_constant() && (in_grid || mentions(body, e.extents[c]));
      text.parameters.push_back(stands ? e.extents[c] : "");
      if (!stands) continue;
      parameters.push_back(fmt::format("{}: tl.constexpr = {}", e.extents[c], extent.constant()));
      result.extents.emplace_back(e.extents[c], extent.constant());
    }
    for (const Dim& dim : e.dims) {
      blocks.push_back(fmt::format("{}: tl.constexpr = {}", dim.axis.block, dim.axis.lanes));
      text.tile.push_back(dim.axis);
    }
    result.body += body;
    for (const std::string& function : e.library)
      if (std::find(result.library.begin(), result.library.end(), function) == result.library.end())
        result.library.push_back(function);
    result.uses_libdevice = result.uses_libdevice || e.uses_libdevice;
    result.parts.push_back(std::move(text));
    names = std::move(e.names);
  }
  parameters.insert(parameters.end(), blocks.begin(), blocks.end());
  result.function = "@triton.jit\n" + wrapped("def " + kernel.name, parameters) + "\n" + result.body;
  return result;
}

}  // namespace kerf::codegen::triton
