#include "graph/import_call.h"

#include <cmath>
#include <numeric>

#include "sym/text.h"

namespace kerf::graph {

namespace {

template <class T>
const T& as(const ImportCall& call, size_t i, std::string_view what) {
  const auto* value = std::get_if<T>(&call.argument(i).value);
  CHECK(value, "{}: argument {} is not {}", call.call.op, i, what);
  return *value;
}

}  // namespace

const Argument& ImportCall::argument(size_t i) const {
  static const Argument kAbsent{};
  return i < call.arguments.size() ? call.arguments[i] : kAbsent;
}

Term ImportCall::tensor(size_t i) const { return {builder, as<ValueId>(*this, i, "a tensor")}; }

std::vector<Term> ImportCall::tensors(size_t i) const {
  std::vector<Term> terms;
  for (const Argument& item : as<ArgumentList>(*this, i, "a list")) {
    const auto* value = std::get_if<ValueId>(&item.value);
    CHECK(value, "{}: argument {} is not a list of tensors", call.op, i);
    terms.emplace_back(builder, *value);
  }
  return terms;
}

sym::Expr ImportCall::size(size_t i) const { return as<sym::Expr>(*this, i, "an integer"); }

std::vector<sym::Expr> ImportCall::sizes(size_t i) const {
  std::vector<sym::Expr> sizes;
  // A single integer stands for a list of one.
  if (const auto* single = std::get_if<sym::Expr>(&argument(i).value)) return {*single};
  for (const Argument& item : as<ArgumentList>(*this, i, "a list")) {
    const auto* value = std::get_if<sym::Expr>(&item.value);
    CHECK(value, "{}: argument {} is not a list of integers", call.op, i);
    sizes.push_back(*value);
  }
  return sizes;
}

int64_t known(sym::Expr number) {
  if (!number.is_constant()) throw SymbolicNumber();
  return number.constant();
}

int64_t ImportCall::integer(size_t i) const { return known(size(i)); }

bool ImportCall::boolean(size_t i) const {
  // FX passes some flags as 0 and 1.
  if (const auto* integer = std::get_if<sym::Expr>(&argument(i).value)) return known(*integer) != 0;
  return as<bool>(*this, i, "a bool");
}

bool ImportCall::boolean(size_t i, bool if_absent) const { return is_none(i) ? if_absent : boolean(i); }

std::vector<int64_t> ImportCall::mask(size_t i) const {
  std::vector<int64_t> flags;
  for (const Argument& item : as<ArgumentList>(*this, i, "a list"))
    flags.push_back(scalar_of(item, DType::i64).i);
  return flags;
}

ValueId ImportCall::zeros(size_t i) const {
  return builder.full(result(i).shape, Scalar::of(result(i).dtype, 0));
}

double ImportCall::number(size_t i) const { return scalar_of(argument(i), DType::f64).f; }

bool ImportCall::is_symbolic(size_t i) const {
  const auto* integer = std::get_if<sym::Expr>(&argument(i).value);
  return integer && !integer->is_constant();
}

const std::string& ImportCall::string(size_t i) const { return as<std::string>(*this, i, "a string"); }

Scalar scalar_of(const Argument& argument, DType dtype) {
  if (const auto* flag = std::get_if<bool>(&argument.value)) return Scalar::of_int(dtype, *flag);
  if (const auto* integer = std::get_if<sym::Expr>(&argument.value))
    return Scalar::of_int(dtype, known(*integer));
  const auto* number = std::get_if<double>(&argument.value);
  CHECK(number, "an argument is not a number");
  return convert(Scalar::of(DType::f64, *number), dtype);
}

bool fits(const Argument& argument, DType dtype) {
  const auto* integer = std::get_if<sym::Expr>(&argument.value);
  bool is_number = integer ? integer->is_constant() : std::holds_alternative<double>(argument.value);
  if (!is_number || dtype == DType::b1) return true;
  double number = scalar_of(argument, DType::f64).f;
  if (is_floating(dtype))
    return !std::isfinite(number) || std::isfinite(convert(Scalar::of(DType::f64, number), dtype).f);
  double half = std::exp2(8 * byte_size(dtype) - 1);
  double lowest = dtype != DType::u8 ? -half : integer ? 1 - 2 * half : 0;
  return number >= lowest && number <= (dtype == DType::u8 ? 2 * half - 1 : half - 1);
}

Term ImportCall::operand(size_t i, DType dtype) const {
  if (is_tensor(i)) return tensor(i).in(dtype);
  if (is_symbolic(i)) return Term(builder, builder.size_value(size(i))).in(dtype);
  return {builder, builder.constant(scalar_of(argument(i), dtype))};
}

Promoted ImportCall::promoted(size_t i) const {
  if (is_tensor(i)) {
    const TensorType& type = tensor(i).type();
    return {type.dtype, type.rank() ? Standing::tensor : Standing::zero_dim};
  }
  DType dtype = std::holds_alternative<bool>(argument(i).value)     ? DType::b1
                : std::holds_alternative<double>(argument(i).value) ? DType::f32
                                                                    : DType::i64;
  return {dtype, Standing::number};
}

int64_t ImportCall::dim(size_t i, size_t rank) const { return wrap_dim(integer(i), rank); }

std::vector<int64_t> ImportCall::dims(size_t i, size_t rank) const {
  std::vector<int64_t> dims;
  if (!is_none(i))
    for (sym::Expr dim : sizes(i)) dims.push_back(wrap_dim(known(dim), rank));
  // A 0-d tensor has no dimension to name, though torch accepts 0 and -1.
  if (rank == 0) return {};
  if (dims.empty()) {
    dims.resize(rank);
    std::iota(dims.begin(), dims.end(), 0);
  }
  return dims;
}

}  // namespace kerf::graph
