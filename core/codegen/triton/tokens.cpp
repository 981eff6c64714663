#include "codegen/triton/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"

namespace kerf::triton {

namespace {

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool continues_name(char c) { return starts_name(c) || is_digit(c); }

// Longer ones first.
constexpr std::string_view kSymbols[] = {"//=", "**=", "<<=", ">>=", "...", "**", "//", "<<",
                                         ">>",  "<=",  ">=",  "==",  "!=",  "->", ":=", "+=",
                                         "-=",  "*=",  "/=",  "%=",  "&=",  "|=", "^=", "@="};

class Tokenizer {
 public:
  explicit Tokenizer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) {
      if (begins_line_ && depth_ == 0) {
        if (!begin_line()) continue;
      }
      read_token();
    }
    if (depth_ > 0) fail("a bracket is not closed");
    if (!begins_line_) add(TokenKind::newline, at_, 0);
    while (columns_.size() > 1) columns_.pop_back(), add(TokenKind::dedent, at_, 0);
    add(TokenKind::end, at_, 0);
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(std::string_view message) const {
    throw ParseError(std::string(message), line_, column(at_));
  }

  int column(size_t at) const { return static_cast<int>(at - line_start_) + 1; }

  void add(TokenKind kind, size_t begin, size_t length) {
    tokens_.push_back({kind, text_.substr(begin, length), line_, column(begin)});
  }

  void end_line() { ++line_, line_start_ = ++at_, begins_line_ = depth_ == 0; }

  // Indentation; false for a line without a statement.
  bool begin_line() {
    size_t start = at_;
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (at_ < text_.size() && text_[at_] == '\t') fail("a tab: indent by spaces");
    if (at_ < text_.size() && text_[at_] == '#') at_ = std::min(text_.find('\n', at_), text_.size());
    if (at_ >= text_.size()) return false;
    if (text_[at_] == '\r') ++at_;
    if (text_[at_] == '\n') return end_line(), false;
    size_t width = at_ - start;
    if (width > columns_.back()) {
      columns_.push_back(width);
      add(TokenKind::indent, at_, 0);
    }
    while (width < columns_.back()) columns_.pop_back(), add(TokenKind::dedent, at_, 0);
    if (width != columns_.back()) fail("this line is indented as none before it");
    begins_line_ = false;
    return true;
  }

  void read_token() {
    char c = text_[at_];
    if (c == '\n') {
      if (depth_ == 0) add(TokenKind::newline, at_, 0);
      return end_line();
    }
    if (c == ' ' || c == '\r' || c == '\t') return void(++at_);
    if (c == '#') return void(at_ = std::min(text_.find('\n', at_), text_.size()));
    if (starts_name(c)) return read_name();
    if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) return read_number();
    if (c == '"' || c == '\'') return read_string();
    read_symbol();
  }

  void read_name() {
    size_t begin = at_;
    while (at_ < text_.size() && continues_name(text_[at_])) ++at_;
    bool is_prefix = at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'') && at_ - begin <= 2;
    if (is_prefix) return read_string();  // f"...", r"..."
    add(TokenKind::name, begin, at_ - begin);
  }

  void read_number() {
    size_t begin = at_;
    bool is_hex = text_.substr(at_, 2) == "0x";
    if (is_hex) at_ += 2;
    bool is_floating = false;
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (!is_hex && (c == '.' || c == 'e' || c == 'E')) {
        is_floating = true;
        if (c != '.' && at_ + 1 < text_.size() && (text_[at_ + 1] == '-' || text_[at_ + 1] == '+')) ++at_;
      } else if (!is_digit(c) && c != '_' && !(is_hex && std::isxdigit(static_cast<unsigned char>(c)))) {
        break;
      }
    }
    add(is_floating ? TokenKind::floating : TokenKind::integer, begin, at_ - begin);
  }

  void read_string() {
    bool is_triple = text_.substr(at_, 3) == std::string(3, text_[at_]);
    std::string quote(is_triple ? 3 : 1, text_[at_]);
    size_t begin = at_ + quote.size();
    size_t end = begin;
    while (text_.substr(end, quote.size()) != quote) {
      if (end >= text_.size() || (!is_triple && text_[end] == '\n')) fail("a string without an end");
      end += text_[end] == '\\' ? 2 : 1;
      end = std::min(end, text_.size());
    }
    add(TokenKind::string, begin, end - begin);
    for (size_t i = begin; i < end; ++i)
      if (text_[i] == '\n') ++line_, line_start_ = i + 1;
    at_ = end + quote.size();
  }

  void read_symbol() {
    char c = text_[at_];
    size_t length = 1;
    bool may_be_longer = at_ + 1 < text_.size() && std::ispunct(static_cast<unsigned char>(text_[at_ + 1]));
    for (std::string_view symbol : kSymbols)
      if (may_be_longer && text_.substr(at_, symbol.size()) == symbol) {
        length = symbol.size();
        break;
      }
    if (!std::ispunct(static_cast<unsigned char>(c)))
      fail(fmt::format("unexpected character 0x{:02x}", static_cast<unsigned char>(c)));
    if (c == '(' || c == '[' || c == '{') ++depth_;
    if ((c == ')' || c == ']' || c == '}') && --depth_ < 0) fail("a bracket that was not opened");
    add(TokenKind::symbol, at_, length);
    at_ += length;
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
  int depth_ = 0;  // of brackets
  bool begins_line_ = true;
  std::vector<size_t> columns_ = {0};
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view text) { return Tokenizer(text).run(); }

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::newline: return "the end of the line";
    case TokenKind::indent: return "an indented line";
    case TokenKind::dedent: return "the end of the block";
    case TokenKind::end: return "the end of the file";
    case TokenKind::string: return fmt::format("\"{}\"", token.text);
    default: return fmt::format("'{}'", token.text);
  }
}

}  // namespace kerf::triton
