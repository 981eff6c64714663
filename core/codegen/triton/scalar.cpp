// Scalar operations on tiles.
#include <algorithm>

#include "codegen/triton/emission.h"

namespace kerf::codegen::triton {

using ops::ScalarOp;

namespace {

std::string filled(std::string_view form, std::span<const Tile> x) {
  std::string text(form);
  for (size_t i = 0; i < x.size(); ++i) {
    std::string place = "{" + std::to_string(i) + "}";
    for (size_t at = text.find(place); at != std::string::npos; at = text.find(place, at + x[i].text.size()))
      text.replace(at, place.size(), x[i].text);
  }
  return text;
}

// bishengir leaves out casts to an integer and back, and with them that the digits after the point are lost: they are cut
// off before.
std::string whole(Emission& e, const Tile& x, DType from) {
  std::string wide = from == DType::f32 ? x.text : e.define("wide", x.text + ".to(tl.float32)");
  return e.define("whole", fmt::format("tl.where({0} < 0.0, tl.ceil({0}), tl.floor({0}))", wide));
}

std::string cast(Emission& e, const Tile& x, DType from, DType to) {
  if (to == DType::b1) return fmt::format("{} != 0", x.text);
  if (e.dialect == Dialect::ascend && is_floating(from) && is_integer(to))
    return fmt::format("{}.to({})", whole(e, x, from), dtype_text(to));
  if (from == DType::u8 && is_floating(to))
    return fmt::format("{}.to(tl.int32).to({})", x.text, dtype_text(to));
  return fmt::format("{}.to({})", x.text, dtype_text(to));
}

std::string custom(Emission& e, const loop::Value& value, std::span<const Tile> x) {
  const DType operand = e.kernel.values[value.operands[0]].dtype;
  switch (value.op) {
    case ScalarOp::div:
      return e.dialect == Dialect::nvidia && value.dtype == DType::f32 ? filled("tl.div_rn({0}, {1})", x)
                                                                       : filled("{0} / {1}", x);
    case ScalarOp::where: {
      std::string text = filled("tl.where({0}, {1}, {2})", x);
      bool literals = x[1].literal && x[2].literal;
      return literals && value.dtype != DType::f32 ? text + ".to(" + dtype_text(value.dtype) + ")" : text;
    }
    case ScalarOp::cast: return cast(e, x[0], operand, value.dtype);
    case ScalarOp::bitcast: return fmt::format("{}.to({}, bitcast=True)", x[0].text, dtype_text(value.dtype));
    case ScalarOp::not_: return filled(value.dtype == DType::b1 ? "{0} == 0" : "~{0}", x);
    case ScalarOp::sign:
      return is_floating(value.dtype) ? filled("tl.where({0} > 0.0, 1.0, tl.where({0} < 0.0, -1.0, 0.0))", x)
                                      : filled("tl.where({0} > 0, 1, tl.where({0} < 0, -1, 0))", x) + ".to(" +
                                            dtype_text(value.dtype) + ")";
    case ScalarOp::signbit:
      return fmt::format("{}.to({}, bitcast=True) < 0", x[0].text,
                         operand == DType::f64 ? "tl.int64" : "tl.int32");
    default: UNREACHABLE("{} has no case", ops::to_text(value.op));
  }
}

// The functions `kerf_...` in a form.
void need_library(Emission& e, std::string_view form) {
  for (size_t at = form.find("kerf_"); at != std::string_view::npos; at = form.find("kerf_", at + 1))
    e.need(std::string(form.substr(at, form.find('(', at) - at)));
  if (form.find("libdevice.") != std::string_view::npos) e.uses_libdevice = true;
}

// Of bools, whose extrema Triton-Ascend has no functions for.
ScalarOp without_bool_extrema(const loop::Value& value) {
  if (value.dtype != DType::b1) return value.op;
  if (value.op == ScalarOp::minimum || value.op == ScalarOp::fmin) return ScalarOp::and_;
  if (value.op == ScalarOp::maximum || value.op == ScalarOp::fmax) return ScalarOp::or_;
  return value.op;
}

}  // namespace

Tile emit_apply(Emission& e, const loop::Value& applied) {
  loop::Value value = applied;
  value.op = without_bool_extrema(applied);
  std::vector<Tile> x;
  Dims dims = 0;
  for (loop::ValueId operand : value.operands) {
    x.push_back(e.values[operand]);
    dims |= x.back().dims;
  }
  bool literals = std::all_of(x.begin(), x.end(), [](const Tile& tile) { return tile.literal.has_value(); });
  if (literals) {
    std::vector<Scalar> operands;
    for (const Tile& tile : x) operands.push_back(*tile.literal);
    Scalar result = ops::evaluate(value.op, value.dtype, operands);
    return {literal_text(result), 0, result};
  }
  // Triton has no `True & tile`.
  if (value.dtype == DType::b1 && (value.op == ScalarOp::and_ || value.op == ScalarOp::or_))
    for (size_t i : {0, 1}) {
      if (!x[i].literal) continue;
      bool decides = (x[i].literal->i != 0) == (value.op == ScalarOp::or_);
      return decides ? x[i] : x[1 - i];
    }
  const ops::TritonRow& row = ops::info(value.op).triton;
  std::string_view form = e.dialect == Dialect::nvidia ? row.nvidia : row.ascend;
  if (form == ops::kUnsupported) {
    e.refuse(fmt::format("{} has no {} form", ops::to_text(value.op),
                         e.dialect == Dialect::nvidia ? "Triton" : "Triton-Ascend"));
    return {"0", dims};
  }
  Tile result{"", dims};
  if (e.dialect == Dialect::ascend) fit_integers(e, value, x, result);
  if (e.dialect == Dialect::ascend && ops::info(value.op).types == ops::Typing::index_check)
    return checked_index(e, value, x[0].text, x[1].text);
  need_library(e, form);
  std::string text = form == ops::kCustom ? custom(e, value, x) : filled(form, x);
  result.text = e.define(ops::to_text(value.op), text);
  return result;
}

}  // namespace kerf::codegen::triton
