#include "loop/verify_program.h"

#include <algorithm>
#include <set>

#include "loop/verify.h"
#include "sym/text.h"

namespace kerf::loop {

namespace {

using target::BufferIndex;

// Steps in order, with what they have written so far.
class ProgramVerifier {
 public:
  explicit ProgramVerifier(const Program& program)
      : program_(program), written_(program.buffers.size(), false) {}

  std::vector<std::string> run() {
    CHECK(program_.context, "the program has no context");
    check_sizes();
    check_buffers();
    for (const auto& step : program_.steps) {
      ++step_;
      std::visit([this](const auto& s) { check(s); }, step);
    }
    place_ = "an output";
    for (const target::ProgramOutput& output : program_.outputs) check(output);
    return std::move(errors_);
  }

 private:
  template <class... Args>
  void error(std::string_view invariant, fmt::format_string<Args...> format, Args&&... args) {
    std::string message = fmt::format(format, std::forward<Args>(args)...);
    errors_.push_back(fmt::format("{}: {}{}{}", invariant, message, place_.empty() ? "" : ", in ", place_));
  }

  void check_sizes() {
    for (const Size& size : program_.sizes)
      if (!sizes_.insert(size.symbol.node()).second)
        error("sizes", "{} is declared twice", sym::to_text(size.symbol));
    facts_ = facts_of(program_.sizes);
    for (const target::SizeSource& source : program_.size_sources) check_expression(source.symbol);
  }

  void check_expression(sym::Expr expr) {
    if (!expr.valid()) return;
    std::vector<sym::Expr> symbols;
    sym::collect_symbols(expr, symbols);
    for (sym::Expr symbol : symbols)
      if (!sizes_.contains(symbol.node()))
        error("sizes", "{} is not a size of the program", sym::to_text(symbol));
  }

  void check_buffers() {
    for (BufferIndex i = 0; i < program_.buffers.size(); ++i) {
      const ProgramBuffer& buffer = program_.buffers[i];
      check_expression(buffer.elements);
      written_[i] = buffer.elements.is_constant(0);
      if (buffer.kind != BufferKind::input) continue;
      written_[i] = true;
      if (buffer.input_index < 0) error("buffers", "%{} does not say which input it is", i);
    }
  }

  bool exists(BufferIndex buffer) {
    if (buffer < program_.buffers.size()) return true;
    error("ids", "there is no buffer {}", static_cast<int64_t>(buffer));
    return false;
  }

  void read(BufferIndex buffer) {
    if (exists(buffer) && !written_[buffer]) error("order", "%{} is read before it is written", buffer);
  }

  void check(const Launch& launch) {
    place_ = fmt::format("step {}, kernel {}", step_, launch.kernel.name);
    std::vector<std::string> errors = verify(launch.kernel);
    for (const std::string& message : errors) error("kernels", "{}", message);
    if (!errors.empty()) return;
    for (const Size& size : launch.kernel.sizes) check_expression(size.symbol);
    std::vector<BufferId> parameters;
    for (BufferId id(0); id.index < launch.kernel.buffers.size(); ++id.index)
      if (launch.kernel.buffers[id].mode != BufferMode::local) parameters.push_back(id);
    if (parameters.size() != launch.arguments.size())
      return error("arguments", "{} arguments for {} buffers", launch.arguments.size(), parameters.size());
    if (!std::ranges::all_of(launch.arguments, [this](BufferIndex b) { return exists(b); })) return;
    for (size_t i = 0; i < parameters.size(); ++i) check_argument(launch, parameters[i], launch.arguments[i]);
    for (size_t i = 0; i < parameters.size(); ++i)
      if (launch.kernel.buffers[parameters[i]].mode != BufferMode::in) written_[launch.arguments[i]] = true;
  }

  void check_argument(const Launch& launch, BufferId parameter, BufferIndex argument) {
    const Buffer& buffer = launch.kernel.buffers[parameter];
    const ProgramBuffer& given = program_.buffers[argument];
    if (buffer.dtype != given.dtype)
      error("arguments", "{} of {} is %{} of {}", buffer.name, to_text(buffer.dtype), argument,
            to_text(given.dtype));
    sym::Expr needed = element_count(launch.kernel, parameter);
    if (sym::provably_less(given.elements, needed, facts_))
      error("arguments", "{} has {} elements, %{} only {}", buffer.name, sym::to_text(needed), argument,
            sym::to_text(given.elements));
    if (buffer.mode != BufferMode::in && std::ranges::count(launch.arguments, argument) > 1)
      error("arguments", "%{} is written as {} and given twice", argument, buffer.name);
    if (buffer.mode != BufferMode::out) read(argument);
  }

  void check(const target::ExternCall& call) {
    place_ = fmt::format("step {}, {}", step_, call.op);
    check(call.arguments);
    for (const target::ExternResult& result : call.results) {
      for (sym::Expr expr : result.shape) check_expression(expr);
      for (sym::Expr expr : result.strides) check_expression(expr);
      if (result.buffer != target::kNoBuffer && exists(result.buffer)) written_[result.buffer] = true;
    }
  }

  void check(const target::ExternArgumentList& arguments) {
    for (const target::ExternArgument& argument : arguments) {
      if (const auto* view = std::get_if<target::TensorView>(&argument.value)) check(*view);
      if (const auto* expr = std::get_if<sym::Expr>(&argument.value)) check_expression(*expr);
      if (const auto* list = std::get_if<target::ExternArgumentList>(&argument.value)) check(*list);
    }
  }

  void check(const target::TensorView& view) {
    read(view.buffer);
    for (sym::Expr expr : view.shape) check_expression(expr);
    for (sym::Expr expr : view.strides) check_expression(expr);
    check_expression(view.offset);
  }

  void check(const target::ProgramOutput& output) {
    if (output.kind == target::ProgramOutput::Kind::tensor) check(output.view);
    if (output.kind == target::ProgramOutput::Kind::integer) check_expression(output.integer);
  }

  const Program& program_;
  sym::Facts facts_;
  std::set<const sym::Node*> sizes_;
  std::vector<bool> written_;
  int step_ = -1;
  std::string place_;  // for messages
  std::vector<std::string> errors_;
};

}  // namespace

std::vector<std::string> verify(const Program& program) { return ProgramVerifier(program).run(); }

void check_valid(const Program& program, std::string_view when) {
  std::vector<std::string> errors = verify(program);
  CHECK(errors.empty(), "the program is not valid {}: {}", when, errors[0]);
}

}  // namespace kerf::loop
