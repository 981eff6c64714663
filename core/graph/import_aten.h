#pragma once
// From an ATen call to graph nodes. aten.def has one row per overload that Kerf compiles; every other call,
// and every call that its row's importer declines, becomes an `external` node with the reason. Type
// promotion, alpha and beta factors, keepdims, negative dims, defaults of optional arguments: all is made
// explicit here, so that the graph says just one thing one way.
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/build.h"

namespace kerf::graph {

struct Argument;
using ArgumentList = std::vector<Argument>;

// An argument as FX passes it. monostate is None; sym::Expr an int or SymInt; ValueId a tensor.
struct Argument {
  std::variant<std::monostate, bool, sym::Expr, double, std::string, target::TorchConstant, ValueId,
               ArgumentList>
      value;
};

struct Call {
  std::string op;          // "aten.add.Tensor"
  ArgumentList arguments;  // all schema arguments in schema order, defaults filled in by the caller
  std::vector<std::string>
      keyword_only;                 // names of the last arguments when they are keyword-only in the schema
  std::vector<TensorType> results;  // as traced; opaque types allowed
  std::string source;
  std::string obstacle = {};  // why it must stay external, whatever the importers could do
};

// Appends the nodes. The result count equals call.results.size().
std::vector<ValueId> import_call(Builder& builder, const Call& call);

// What a call comes to, known by its overload alone: the family of most of its work, and about how many vector
// instructions an element costs.
struct OverloadFacts {
  Family family;
  int cost;
};
std::optional<OverloadFacts> facts_of_overload(std::string_view op);  // none: no row

// The overloads with a row, for the computed decomposition table and the docs.
std::vector<std::string> imported_overloads();

}  // namespace kerf::graph
