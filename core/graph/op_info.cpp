#include <algorithm>
#include <iterator>

#include "graph/graph.h"

namespace kerf::graph {

namespace {

constexpr OpInfo kOps[] = {
#define GRAPH_OP(name, ...) {__VA_ARGS__},
#include "graph/graph_ops.def"
#undef GRAPH_OP
};

struct AttrInfo {
  std::string_view text;
  AttrKind kind;
};

constexpr AttrInfo kAttributes[] = {
#define ATTRIBUTE(name, kind) {#name, AttrKind::kind},
#include "graph/attributes.def"
#undef ATTRIBUTE
};

}  // namespace

const OpInfo& info(Op op) { return kOps[static_cast<size_t>(op)]; }

std::optional<Op> op_from_text(std::string_view text) {
  auto found = std::ranges::find(kOps, text, &OpInfo::text);
  if (found == std::end(kOps)) return std::nullopt;
  return static_cast<Op>(found - kOps);
}

std::string_view to_text(Attr attr) { return kAttributes[static_cast<size_t>(attr)].text; }
AttrKind kind_of(Attr attr) { return kAttributes[static_cast<size_t>(attr)].kind; }

std::optional<Attr> attr_from_text(std::string_view text) {
  auto found = std::ranges::find(kAttributes, text, &AttrInfo::text);
  if (found == std::end(kAttributes)) return std::nullopt;
  return static_cast<Attr>(found - kAttributes);
}

}  // namespace kerf::graph
