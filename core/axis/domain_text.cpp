#include "axis/domain_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "axis/canonical.h"
#include "loop/parse.h"
#include "sym/simplify.h"
#include "sym/text.h"

namespace kerf::axis {

using sym::Expr;

namespace {

constexpr uint32_t kKept = 0, kReduced = 1;

struct DomainText {
  std::vector<DomainAxis> axes;
  std::vector<DomainAccess> accesses;
  sym::Facts facts;
};

DomainText parse_domain(std::string_view text, sym::Context& context) {
  base::Lexer lexer(text);
  DomainText domain;
  sym::Resolver resolve = [&](base::Lexer& at, const std::string& name) {
    std::optional<Expr> known = context.find_symbol(name);
    if (!known) at.fail(fmt::format("'{}' is neither a range nor a size", name));
    return *known;
  };
  // Extents may mention sizes that are declared after them.
  sym::Resolver declare = [&](base::Lexer&, const std::string& name) {
    return context.symbol(name, sym::SymbolKind::size);
  };
  lexer.expect("domain");
  lexer.expect("(");
  while (!lexer.is(")")) {
    bool reduced = lexer.accept("reduce");
    Expr symbol = context.symbol(lexer.expect_identifier("a range"), sym::SymbolKind::axis);
    lexer.expect("<");
    Expr extent = sym::parse_expr(lexer, context, declare);
    domain.axes.push_back({symbol, extent, reduced ? kReduced : kKept, reduced});
    if (!lexer.accept(",")) break;
  }
  lexer.expect(")");
  if (lexer.accept("given")) {
    for (const loop::Size& size : loop::parse_sizes(lexer, context)) {
      domain.facts.set_range(size.symbol, size.range);
      domain.facts.set_modulus(size.symbol, size.modulus);
    }
  }
  while (!lexer.at_end()) {
    bool is_store = lexer.is("store");
    if (!is_store && !lexer.is("load")) lexer.fail("expected 'load' or 'store'");
    lexer.next();
    domain.accesses.push_back({sym::parse_expr(lexer, context, resolve), 1, is_store});
  }
  return domain;
}

}  // namespace

std::string canonicalize_text(std::string_view text) {
  sym::Context context;
  DomainText domain = parse_domain(text, context);
  uint32_t counter = 0;
  Canonical canonical =
      canonicalize(domain.axes, domain.accesses, domain.facts,
                   [&] { return context.symbol(fmt::format("_{}", counter++), sym::SymbolKind::axis); },
                   {.allow_guards = true});
  std::vector<sym::Substitution> names;
  std::string result = "axes (";
  for (size_t k = 0; k < canonical.axes.size(); ++k) {
    const DomainAxis& axis = canonical.axes[k];
    Expr name = context.symbol(fmt::format("a{}", k), sym::SymbolKind::axis);
    names.push_back({axis.symbol, name});
    domain.facts.set_extent(axis.symbol, axis.extent);
    result += fmt::format("{}{}a{} < {}", k ? ", " : "", axis.binding == kReduced ? "reduce " : "", k,
                          sym::to_text(axis.extent));
  }
  result += ")\n";
  for (size_t k = 0; k < domain.accesses.size(); ++k) {
    Expr index = sym::simplify(sym::substitute(domain.accesses[k].index, canonical.map), domain.facts);
    bool derived = std::ranges::find(canonical.derived, k) != canonical.derived.end();
    result += fmt::format("  {} {}{}\n", domain.accesses[k].is_store ? "store" : "load",
                          sym::to_text(sym::substitute(index, names)), derived ? " derived" : "");
  }
  for (const DomainGuard& guard : canonical.guards)
    result += fmt::format("  guard {} < {}\n", sym::to_text(sym::substitute(guard.value, names)),
                          sym::to_text(guard.bound));
  return result;
}

}  // namespace kerf::axis
