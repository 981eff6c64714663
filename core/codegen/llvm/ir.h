#pragma once
// LLVM IR as text: types, operands and a builder that writes one function.
//
// Contract: the builder names everything (readable hints, numbered only when taken), broadcasts scalars where the
// other operand is a vector, folds what index arithmetic needs folded (0 + x, 1 * x, two constants) and writes phis
// when the function is finished. Equal calls give equal text. It knows nothing about kernels and never includes LLVM.
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kerf::codegen {

enum class Prim : uint8_t { i1, i8, i16, i32, i64, half, f32, f64, ptr };

// lanes 0: a scalar; else a vector of so many.
struct Type {
  Prim prim = Prim::i64;
  int lanes = 0;
  bool is_vector() const { return lanes != 0; }
  friend bool operator==(const Type&, const Type&) = default;
};

std::string to_text(Type type);  // "<16 x float>"
std::string suffix(Type type);   // "v16f32", as in the names of intrinsics
int bit_width(Prim prim);        // not of ptr
bool is_float(Prim prim);

// What an instruction takes: a name or a literal. `literal` is set for scalar constants and for vector constants of
// equal elements, which still broadcast and fold.
struct Operand {
  std::string text;
  Type type;
  bool literal = false;
  bool valid() const { return !text.empty(); }
  bool is(std::string_view value) const { return literal && !type.is_vector() && text == value; }
};

Operand int_constant(Prim prim, int64_t value);
Operand real_constant(Prim prim, double value);
Operand zero_of(Type type);
Operand lane_numbers(Prim prim, int lanes);  // <0, 1, ... lanes-1>

// What one emitted module holds besides its main functions, each once.
struct Module {
  std::map<std::string, std::string> declarations;  // symbol -> line
  std::map<std::string, std::string> functions;     // symbol -> definition of a function of our own
  std::vector<std::string> mains;
  std::string to_text() const;
};

using Label = std::string;

class Builder {
 public:
  explicit Builder(Module& module) : module_(&module) {}

  std::string fresh(std::string_view hint);
  void comment(std::string_view text);
  void emit(std::string_view line);                                        // an instruction without result
  Operand define(Type type, std::string_view hint, std::string_view rhs);  // %hint = rhs

  // Blocks. `start` opens a block; the previous one must have been ended by a branch.
  Label new_label(std::string_view hint) { return fresh(hint); }
  void start(const Label& label);
  const Label& current() const { return current_; }
  void branch(const Label& to);
  void branch(const Operand& condition, const Label& then, const Label& otherwise, bool unlikely = false);
  Operand phi(Type type, std::string_view hint);
  void add_incoming(const Operand& phi, const Operand& value, const Label& from);

  Operand binary(std::string_view op, Operand a, Operand b, std::string_view hint = {});
  Operand compare(std::string_view op, Operand a, Operand b, std::string_view hint = {});  // "icmp slt"
  Operand select(Operand condition, Operand a, Operand b, std::string_view hint = {});
  Operand convert(std::string_view op, const Operand& a, Prim to, std::string_view hint = {});
  Operand unary(std::string_view op, const Operand& a, std::string_view hint = {});

  // llvm.<name>.<suffix of the first argument's type>; arguments are broadcast to the widest.
  Operand intrinsic(std::string_view name, std::vector<Operand> arguments, std::string_view hint = {});
  // Any function: declared when `module` has no definition of it.
  Operand call(Type result, std::string_view symbol, std::span<const Operand> arguments,
               std::string_view hint);
  void call_void(std::string_view symbol, std::span<const Operand> arguments);

  Operand broadcast(const Operand& a, int lanes);
  void unify(std::vector<Operand*> operands);  // broadcasts scalars among them if one is a vector
  Operand extract(const Operand& vector, const Operand& lane);
  Operand insert(const Operand& vector, const Operand& element, const Operand& lane);
  Operand shuffle(const Operand& a, std::span<const int> lanes, std::string_view hint = "shuffle");
  Operand shuffle(const Operand& a, const Operand& b, std::span<const int> lanes, std::string_view hint);
  Operand part(const Operand& vector, int first, int count);  // lanes first .. first+count-1
  Operand reverse(const Operand& vector);
  Operand find_lane(const Operand& mask, bool last);  // the first or last lane that is set; some lane must be

  Operand element(Prim type, const Operand& base, const Operand& index);  // address(es) of base[index]
  Operand load(Type type, const Operand& address, int align, std::string_view hint = "load");
  void store(const Operand& value, const Operand& address, int align, std::string_view metadata = {});
  Operand stack(std::string_view type, int64_t count, int align,
                std::string_view hint);  // in the entry block

  // Index arithmetic on i64 with folding.
  Operand add(const Operand& a, const Operand& b, std::string_view hint = "index");
  Operand mul(const Operand& a, const Operand& b, std::string_view hint = "index");

  // Declares symbol in the module: "declare <result> @symbol(<arguments>)".
  void declare(Type result, bool is_void, std::string_view symbol, std::span<const Operand> arguments);

  // The function's text: `head` up to the brace, then the entry block's stack slots, then the lines.
  std::string finish(std::string_view head);

  Module& module() { return *module_; }

 private:
  struct Phi {
    size_t line;
    Type type;
    std::vector<std::pair<std::string, Label>> incoming;
  };
  Module* module_;
  std::vector<std::string> stack_;
  std::vector<std::string> lines_;
  std::unordered_map<std::string, Phi> phis_;
  std::unordered_map<std::string, int> names_;
  Label current_ = "entry";
};

std::string global_name(std::string_view symbol);  // @name, quoted when it must be

}  // namespace kerf::codegen
