#pragma once
// What the importers share: one ATen call seen as typed arguments, and the table row it matched. Importers are
// free functions in import_<family>.cpp, one per kind of row in aten.def; they append nodes and return the
// call's results, or say why the call must stay external.
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/import_aten.h"
#include "graph/promote.h"
#include "graph/shape.h"
#include "graph/term.h"

namespace kerf::graph {

using Imported = Result<std::vector<ValueId>>;

constexpr unsigned bit_of(DType dtype) { return 1U << static_cast<unsigned>(dtype); }
constexpr unsigned kBool = bit_of(DType::b1);
constexpr unsigned kIntegers =
    bit_of(DType::u8) | bit_of(DType::i8) | bit_of(DType::i16) | bit_of(DType::i32) | bit_of(DType::i64);

// What a row says besides its importer.
struct RowFields {
  ops::ScalarOp scalar = ops::ScalarOp::add;
  ops::ReduceOp reduce = ops::ReduceOp::sum;
  Op op = Op::external;
  double number = 0;
  int flag = 0;
  unsigned converted = 0;  // bit i: argument i, a number, must fit into the result's dtype
  unsigned refused = 0;    // bit_of(dtype): eager has no kernel for results of that dtype
};

struct ImportCall {
  Builder& builder;
  const Call& call;
  RowFields row;

  // Arguments by schema position. Asking for what an argument is not is a bug of the row (CHECK).
  const Argument& argument(size_t i) const;
  bool is_none(size_t i) const { return std::holds_alternative<std::monostate>(argument(i).value); }
  bool is_tensor(size_t i) const { return std::holds_alternative<ValueId>(argument(i).value); }
  Term tensor(size_t i) const;
  std::vector<Term> tensors(size_t i) const;  // a list without None
  sym::Expr size(size_t i) const;
  std::vector<sym::Expr> sizes(size_t i) const;
  int64_t integer(size_t i) const;
  bool boolean(size_t i) const;
  bool boolean(size_t i, bool if_absent) const;
  std::vector<int64_t> mask(size_t i) const;  // a list of flags, as 0 and 1
  double number(size_t i) const;              // a Python number that is not symbolic
  bool is_symbolic(size_t i) const;
  const std::string& string(size_t i) const;

  // A tensor or Python number as a term of that dtype.
  Term operand(size_t i, DType dtype) const;
  Promoted promoted(size_t i) const;

  // dim argument of a tensor of that rank; an absent or empty list is every dimension.
  int64_t dim(size_t i, size_t rank) const;
  std::vector<int64_t> dims(size_t i, size_t rank) const;

  const TensorType& result(size_t i = 0) const { return call.results[i]; }
  ValueId zeros(size_t i) const;  // result `i`, which nobody looks at
  sym::Context& context() const { return builder.context(); }
  sym::Facts facts() const { return facts_of(builder.graph()); }
  sym::Expr constant(int64_t value) const { return context().constant(value); }
  Term term(ValueId value) const { return {builder, value}; }
};

// Thrown where an importer needs a number and the call has a symbolic one; the call then stays external.
struct SymbolicNumber {};
int64_t known(sym::Expr number);  // throws SymbolicNumber

Scalar scalar_of(const Argument& argument, DType dtype);  // of a Python number; throws SymbolicNumber

// Whether torch converts the argument to `dtype` rather than to raise "without overflow". True of what is no number or
// is symbolic. Infinities fit into floats, NaN does not into integers; u8 takes negative integers, modulo 256.
bool fits(const Argument& argument, DType dtype);

// The tensors among the entries of an index list, and where their common shape stands in the result.
struct Indices {
  std::vector<ValueId> tensors;  // i64
  std::vector<int64_t> dims;
  int64_t at = 0;
};
Result<Indices> read_indices(const ImportCall& call, size_t argument);

// A position counted from the end when negative, held inside [0, size].
sym::Expr clamped_position(const ImportCall& call, sym::Expr position, sym::Expr size);

using Importer = Imported (*)(const ImportCall& call);

struct AtenRow {
  std::string_view overload;  // "add.Tensor"; operators of other namespaces have it: "kerf.draw_seed.default"
  Importer importer;
  RowFields fields = {};
};

// One result. `rounded`: converted to the dtype the call promises.
inline Imported one(ValueId value) { return std::vector<ValueId>{value}; }
inline Imported rounded(const ImportCall& call, const Term& value) {
  return one(value.in(call.result().dtype));
}

// Tensor argument `i` in the dtype the result is computed in.
inline Term computing(const ImportCall& call, size_t i) {
  return call.tensor(i).in(call.result().dtype).computing();
}

template <class... Args>
Unsupported decline(fmt::format_string<Args...> format, Args&&... args) {
  return Unsupported{fmt::format(format, std::forward<Args>(args)...)};
}

// One declaration per importer; rows that share one repeat it.
#define ATEN(overload, importer, ...) Imported importer(const ImportCall& call);
#include "graph/aten.def"
#undef ATEN

}  // namespace kerf::graph
