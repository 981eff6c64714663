#pragma once
// The exceptions Kerf throws, with one base. What a compile cannot do but an extern step can is not an
// exception: it is a Result carrying Unsupported (result.h).
//
//   UserError      a bad option or a bad input, thrown at the edges only; says what to do
//   RuntimeError   the machine said no (LLVM, the loader, memory); carries the call and its text
//   IndexError     an index read from data is outside its range, as in eager
//   InternalError  a bug of ours, from CHECK; says what was expected
#include <stdexcept>
#include <string>

namespace kerf {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class UserError : public Error {
 public:
  using Error::Error;
};

class RuntimeError : public Error {
 public:
  using Error::Error;
};

class IndexError : public Error {
 public:
  using Error::Error;
};

class InternalError : public Error {
 public:
  using Error::Error;
};

// A text given to a parser does not follow its grammar. `line` and `column` count from 1.
class ParseError : public UserError {
 public:
  ParseError(const std::string& message, int at_line, int at_column)
      : UserError("line " + std::to_string(at_line) + ":" + std::to_string(at_column) + ": " + message),
        line(at_line),
        column(at_column) {}
  int line;
  int column;
};

}  // namespace kerf
