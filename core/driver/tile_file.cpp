#include "driver/tile_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "codegen/triton/library.h"

namespace kerf::driver {

using codegen::triton::Dialect;
using Json = nlohmann::ordered_json;

namespace {

std::string mode_text(loop::BufferMode mode) {
  switch (mode) {
    case loop::BufferMode::in: return "in";
    case loop::BufferMode::out: return "out";
    case loop::BufferMode::inout: return "inout";
    case loop::BufferMode::local: break;
  }
  UNREACHABLE("a local buffer is no parameter");
}

// The largest difference from the interpreter's numbers, as a part of an output's largest: what rounding once gives in the
// narrowest type written, or the order of summation in f32.
double tolerance(const TileKernel& kernel) {
  double widest = 1e-5;
  for (const BufferRecord& buffer : kernel.buffers) {
    if (buffer.mode == loop::BufferMode::in) continue;
    if (buffer.dtype == DType::bf16) widest = std::max(widest, 0x1p-7);
    if (buffer.dtype == DType::f16) widest = std::max(widest, 0x1p-10);
  }
  return widest;
}

// With dynamic extents counted once.
int64_t tile_count(const codegen::triton::PartText& part, const codegen::triton::KernelText& text) {
  int64_t count = 1;
  for (const auto& [extent, block] : part.grid) {
    int64_t n = 1, b = 1;
    for (const auto& [name, value] : text.extents)
      if (name == extent) n = value;
    for (const codegen::triton::TileAxis& axis : part.tile)
      if (axis.block == block) b = axis.lanes;
    count *= (n + b - 1) / b;
  }
  return count;
}

Json pairs(const Blocks& list) {
  Json json = Json::object();
  for (const auto& [name, value] : list) json[name] = value;
  return json;
}

std::string dictionary(const codegen::triton::KernelText& text, const TileKernel& kernel,
                       const TileTarget& target, const std::vector<std::pair<std::string, int64_t>>& sizes) {
  Json json;
  json["name"] = kernel.record.name;
  json["target"] = target.name;
  json["buffers"] = Json::array();
  for (const BufferRecord& buffer : kernel.buffers) {
    Json one{{"name", buffer.name},
             {"dtype", to_text(buffer.dtype)},
             {"elements", buffer.elements},
             {"cut_elements", buffer.cut_elements},
             {"mode", mode_text(buffer.mode)}};
    if (buffer.below) one["below"] = *buffer.below;
    json["buffers"].push_back(std::move(one));
  }
  json["sizes"] = pairs(sizes);
  json["extents"] = pairs(text.extents);
  Blocks cut;
  for (const TilePart& part : kernel.parts)
    for (const AxisRecord& axis : part.axes)
      if (!axis.parameter.empty()) cut.emplace_back(axis.parameter, axis.cut);
  json["cut"] = pairs(cut);
  json["blocks"] = Json::array();
  for (const Blocks& choice : kernel.blocks) json["blocks"].push_back(pairs(choice));
  // Programs do their share of every part: as many as the largest part has tiles.
  const auto& largest = *std::max_element(
      text.parts.begin(), text.parts.end(),
      [&](const auto& a, const auto& b) { return tile_count(a, text) < tile_count(b, text); });
  json["grid"] = Json::array();
  for (const auto& [extent, block] : largest.grid)
    json["grid"].push_back(Json::array({extent, block.empty() ? Json(1) : Json(block)}));
  if (target.cores) json["cores"] = target.cores;
  json["tolerance"] = tolerance(kernel);
  std::string result = "KERNEL = {\n";
  for (const auto& [key, value] : json.items()) {
    if (key != "buffers") {
      result += fmt::format("    \"{}\": {},\n", key, value.dump());
      continue;
    }
    result += "    \"buffers\": [\n";
    for (const Json& buffer : value) result += fmt::format("        {},\n", buffer.dump());
    result.erase(result.size() - 2, 1);
    result += "    ],\n";
  }
  result.erase(result.size() - 2, 1);
  return result + "}\n";
}

}  // namespace

std::string tile_file(const codegen::triton::KernelText& text, const TileKernel& kernel,
                      const TileTarget& target, const std::vector<std::pair<std::string, int64_t>>& sizes) {
  std::string head = fmt::format("\"\"\"{}: kernel for {}.\n\n", kernel.record.name, target.name);
  for (const std::string& source : kernel.record.sources) {
    std::string line = source;
    for (size_t at = line.find("\"\"\""); at != std::string::npos; at = line.find("\"\"\""))
      line.replace(at, 3, "'''");
    for (size_t at = line.find('\\'); at != std::string::npos; at = line.find('\\')) line.replace(at, 1, "/");
    head += "  " + line + "\n";
  }
  std::vector<std::string> axes;
  for (const AxisRecord& axis : kernel.axes)
    axes.push_back(fmt::format("{} < {}{}", axis.name, axis.extent, axis.folded ? " folded" : ""));
  head +=
      fmt::format("axes  {}\n\"\"\"\nimport triton\nimport triton.language as tl\n", fmt::join(axes, ", "));
  if (text.uses_libdevice)
    head += target.dialect == Dialect::nvidia ? "from triton.language.extra import libdevice\n"
                                              : "from triton.language.extra.ascend import libdevice\n";
  for (const std::string& name : text.library)
    head += "\n\n" + std::string(codegen::triton::library_function(name));
  return head + "\n\n" + text.function + "\n\n" + dictionary(text, kernel, target, sizes);
}

}  // namespace kerf::driver
