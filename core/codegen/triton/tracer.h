#pragma once
// The execution behind trace_kernel (trace.h). What does not make sense becomes a violation and an unknown object, about
// which nothing more is said.
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/triton/tl_functions.h"
#include "codegen/triton/trace.h"

namespace kerf::triton {

// What a name or an expression stands for.
struct Object {
  enum class Kind : uint8_t { unknown, none, value, text, dtype, tuple, name };
  Kind kind = Kind::unknown;
  ValueId value;
  DType dtype = DType::f32;
  std::string text;  // of a string; of a name: "tl.load", or the name of a function of the file
  std::vector<Object> items;

  bool is_value() const { return kind == Kind::value; }
};

struct Arguments {
  std::vector<Object> items;
  std::vector<std::pair<std::string, Object>> keywords;

  const Object* find(size_t position, std::string_view keyword) const;  // null if it is not given, or None
};

class Tracer {
 public:
  Tracer(const KernelFile& file, const NamedIntegers& blocks);
  Trace run();

 private:
  using Names = std::map<std::string, Object, std::less<>>;

  // statements (trace.cpp)
  int64_t most_programs() const;
  void bind_parameter(const Parameter& parameter, const NamedIntegers& blocks);
  void execute(const std::vector<Statement>& statements);
  void assign(const Statement& statement);
  void name_axes(const std::string& name, const Object& object);
  void loop(const Statement& statement);
  Loop loop_of(const Statement& statement);
  std::vector<std::pair<std::string, ValueId>> begin_carrying(const Statement& statement);
  void end_carrying(const Statement& statement, const std::vector<std::pair<std::string, ValueId>>& carried);
  void branch(const Statement& statement);
  void merge(Names taken, const Names& other, int line);

  // expressions (trace_expression.cpp)
  Object evaluate(ExpressionId id);
  Object evaluate_name(const Expression& expression);
  Object evaluate_attribute(const Expression& expression);
  Object evaluate_subscript(const Expression& expression);
  Object evaluate_conditional(const Expression& expression);
  Object evaluate_call(const Expression& expression);
  Object call_helper(const Function& function, const Arguments& arguments, int line);

  // arithmetic (trace_arithmetic.cpp)
  // What an operation of two numbers gives, without its type; nothing after a violation.
  std::optional<Value> of_two(std::string_view operation, const Object& a, const Object& b, int line);
  Object binary(std::string_view operation, const Object& a, const Object& b, int line);
  Object compare(std::string_view operation, const Object& a, const Object& b, int line);
  Object unary(std::string_view operation, const Object& a, int line);
  Object cast(const Object& a, DType dtype, int line);
  void set_index(Value& result, std::string_view operation, const Value& a, const Value& b);
  bool broadcast(std::vector<Dim>& dims, const Value& value, int line);
  DType common_dtype(const Value& a, const Value& b) const;

  // calls (trace_calls.cpp)
  Object call(const std::string& name, const Arguments& arguments, int line);
  Object call_builtin(const std::string& name, const Arguments& arguments, int line);
  Object arange(const Arguments& arguments, int line);
  Object load(const Arguments& arguments, int line);
  Object store(const Arguments& arguments, int line);
  Object create(const std::string& name, const Arguments& arguments, int line);
  Object elementwise(const TlFunction& function, const Arguments& arguments, int line);
  Object where(const Arguments& arguments, int line);
  Object fold(const TlFunction& function, const Arguments& arguments, int line);
  Object fold_value(const TlFunction& function, const Arguments& arguments, ValueId id, int line);
  Object permute(const Arguments& arguments, int line);
  Object reshape(const std::string& name, const Arguments& arguments, int line);
  Object expand_dims(const Arguments& arguments, int line);
  Object split(const Arguments& arguments, int line);
  Object join(const Arguments& arguments, int line);
  Object dot(const Arguments& arguments, int line);
  void check_access(Access& access, const Arguments& arguments, size_t mask_position, int line);

  // pieces of these
  Object fail(int line, std::string_view rule, std::string message);  // the unknown object
  Object add(Value value);
  Object integer(int64_t value, int line);
  Object floating(double value, int line);
  Value derived(std::string_view operation, int line, std::initializer_list<ValueId> operands) const;
  SymbolId new_symbol(Range range, AxisId axis = {});
  void set_scalar(Value& value, Range range);  // a symbol of its own, or the constant
  const Value& at(const Object& object) const { return trace_.values[object.value]; }
  bool is_constant(const Object* object) const;
  int64_t constant(const Object& object) const { return at(object).range.low; }
  std::vector<int64_t> shape(const Object& object) const;  // empty unless all are constants

  const KernelFile& file_;
  Trace trace_;
  Names names_;
  std::set<std::string, std::less<>> lost_;  // names that only a loop or a branch defines
  Object returned_;
  LoopId loop_;
  int guards_ = 0;
  int calls_ = 0;  // depth of helpers
};

std::string describe_dims(const std::vector<Dim>& dims);  // "[8, 512]", "a scalar"

}  // namespace kerf::triton
