#include "axis/domain_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "axis/canonical.h"
#include "axis/linear.h"
#include "loop/parse.h"
#include "sym/simplify.h"
#include "sym/text.h"

namespace kerf::axis {

using sym::Expr;

namespace {

struct DomainText {
  Domain domain;
  CanonicalOptions options{.allow_guards = true, .max_pieces = kMaxPieces};
};

class Parser {
 public:
  Parser(std::string_view text, sym::Context& context) : lexer_(text), context_(context) {}

  DomainText run() {
    parse_ranges();
    if (lexer_.accept("given")) {
      for (const loop::Size& size : loop::parse_sizes(lexer_, context_)) {
        result_.domain.facts.set_range(size.symbol, size.range);
        result_.domain.facts.set_modulus(size.symbol, size.modulus);
      }
    }
    while (!lexer_.at_end()) parse_line();
    return std::move(result_);
  }

 private:
  void parse_ranges() {
    // Extents may mention sizes that are declared after them.
    sym::Resolver declare = [&](base::Lexer&, const std::string& name) {
      return context_.symbol(name, sym::SymbolKind::size);
    };
    lexer_.expect("domain");
    lexer_.expect("(");
    while (!lexer_.is(")")) {
      bool reduced = lexer_.accept("reduce");
      Expr symbol = context_.symbol(lexer_.expect_identifier("a range"), sym::SymbolKind::axis);
      lexer_.expect("<");
      Expr extent = sym::parse_expr(lexer_, context_, declare);
      result_.domain.axes.push_back({symbol, extent, reduced ? 1u : 0u, reduced});
      if (!lexer_.accept(",")) break;
    }
    lexer_.expect(")");
  }

  Expr expression() {
    return sym::parse_expr(lexer_, context_, [&](base::Lexer& at, const std::string& name) {
      std::optional<Expr> known = context_.find_symbol(name);
      if (!known) at.fail(fmt::format("'{}' is neither a range nor a size", name));
      return *known;
    });
  }

  void parse_line() {
    Domain& domain = result_.domain;
    if (lexer_.accept("load")) {
      domain.accesses.push_back({expression(), 1, false});
    } else if (lexer_.accept("store")) {
      domain.accesses.push_back({expression(), 1, true});
    } else if (lexer_.accept("mask")) {
      DomainMask mask;
      mask.value = expression();
      mask.relation = lexer_.accept("<")    ? Relation::less
                      : lexer_.accept(">=") ? Relation::at_least
                                            : Relation::equal;
      if (mask.relation == Relation::equal) lexer_.expect("==");
      mask.bound = expression();
      domain.masks.push_back(mask);
    } else if (lexer_.accept("cut")) {
      Expr axis = expression();
      lexer_.expect("at");
      domain.cuts.push_back({axis, expression()});
    } else if (lexer_.accept("never_derived")) {
      result_.options.avoid_derived = true;
    } else if (lexer_.accept("pieces_at_masks")) {
      result_.options.pieces_at_masks = true;
    } else {
      lexer_.fail("expected 'load', 'store', 'mask', 'cut' or an option");
    }
  }

  base::Lexer lexer_;
  sym::Context& context_;
  DomainText result_;
};

std::string mask_text(const MaskIn& mask, std::span<const sym::Substitution> names) {
  if (mask.constant) return *mask.constant ? "true" : "false";
  const char* relation = mask.mask.relation == Relation::less       ? "<"
                         : mask.mask.relation == Relation::at_least ? ">="
                                                                    : "==";
  return fmt::format("{} {} {}", sym::to_text(sym::substitute(mask.mask.value, names)), relation,
                     sym::to_text(mask.mask.bound));
}

// What is done in one piece, a line each.
std::string piece_text(const Domain& domain, const Canonical& canonical, const Piece& piece,
                       std::span<const sym::Substitution> names) {
  std::string result;
  std::string indent = piece.ranges.empty() ? "  " : "    ";
  for (size_t k = 0; k < piece.ranges.size(); ++k) {
    const PieceRange& range = piece.ranges[k];
    result += fmt::format("{}{} in [{}, {})", k ? ", " : "  piece ",
                          sym::to_text(sym::substitute(range.axis, names)), sym::to_text(range.begin),
                          sym::to_text(range.end));
  }
  if (!piece.ranges.empty()) result += "\n";
  std::vector<AxisInfo> axes;
  for (const DomainAxis& axis : canonical.axes) axes.push_back({axis.symbol, axis.extent});
  for (const DomainAccess& access : domain.accesses) {
    Expr index = index_in(canonical, piece, access.index);
    result +=
        fmt::format("{}{} {}{}\n", indent, access.is_store ? "store" : "load",
                    sym::to_text(sym::substitute(index, names)), linear_form(index, axes) ? "" : " derived");
  }
  for (const DomainMask& mask : canonical.masks)
    result += fmt::format("{}mask {}\n", indent, mask_text(mask_in(canonical, piece, mask), names));
  return result;
}

}  // namespace

std::string canonicalize_text(std::string_view text) {
  sym::Context context;
  DomainText input = Parser(text, context).run();
  uint32_t counter = 0;
  Canonical canonical = canonicalize(
      input.domain, [&] { return context.symbol(fmt::format("_{}", counter++), sym::SymbolKind::axis); },
      input.options);
  std::vector<sym::Substitution> names;
  std::string result = "axes (";
  for (size_t k = 0; k < canonical.axes.size(); ++k) {
    const DomainAxis& axis = canonical.axes[k];
    names.push_back({axis.symbol, context.symbol(fmt::format("a{}", k), sym::SymbolKind::axis)});
    result += fmt::format("{}{}a{} < {}", k ? ", " : "", axis.keep_unused ? "reduce " : "", k,
                          sym::to_text(axis.extent));
  }
  result += ")\n";
  if (canonical.conflict)
    result += fmt::format("  conflict {} at {}, {}\n", sym::to_text(canonical.conflict->first.axis),
                          sym::to_text(canonical.conflict->first.point),
                          sym::to_text(canonical.conflict->second.point));
  for (const Piece& piece : canonical.pieces) result += piece_text(input.domain, canonical, piece, names);
  for (const DomainGuard& guard : canonical.guards)
    result += fmt::format("  guard {} < {}\n", sym::to_text(sym::substitute(guard.value, names)),
                          sym::to_text(guard.bound));
  return result;
}

}  // namespace kerf::axis
