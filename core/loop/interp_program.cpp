#include "loop/interp_program.h"

#include "loop/interp.h"
#include "sym/eval.h"
#include "sym/text.h"

namespace kerf::loop {

ProgramMemory::ProgramMemory(const Program& program, std::span<const int64_t> sizes)
    : program_(program), sizes_(sizes.begin(), sizes.end()) {
  CHECK(sizes.size() == program.sizes.size(), "{} sizes for a program of {}", sizes.size(),
        program.sizes.size());
  for (const ProgramBuffer& buffer : program.buffers) {
    int64_t bytes = evaluate(buffer.elements) * byte_size(buffer.dtype);
    CHECK(bytes >= 0, "buffer {} has {} bytes", buffer.name, bytes);
    buffers_.emplace_back(static_cast<size_t>(bytes), '\xff');
  }
}

int64_t ProgramMemory::evaluate(sym::Expr expr) const {
  std::optional<int64_t> value = sym::evaluate(expr, [&](const sym::Symbol& symbol) {
    for (size_t i = 0; i < sizes_.size(); ++i)
      if (program_.sizes[i].symbol.symbol().id == symbol.id) return sizes_[i];
    UNREACHABLE("{} is not a size of the program", symbol.name);
  });
  CHECK(value, "{} overflows or divides by zero", sym::to_text(expr));
  return *value;
}

int64_t ProgramMemory::elements(target::BufferIndex buffer) const {
  return static_cast<int64_t>(buffers_.at(buffer).size()) / byte_size(program_.buffers[buffer].dtype);
}

target::BufferIndex ProgramMemory::input(int input_index) const {
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    const ProgramBuffer& buffer = program_.buffers[i];
    if (buffer.kind == BufferKind::input && buffer.input_index == input_index)
      return static_cast<target::BufferIndex>(i);
  }
  return target::kNoBuffer;
}

std::vector<int64_t> ProgramMemory::addresses(const target::TensorView& view) const {
  CHECK(view.buffer < buffers_.size(), "a view of no buffer");
  CHECK(view.shape.size() == view.strides.size(), "{} strides for {} dimensions", view.strides.size(),
        view.shape.size());
  std::vector<int64_t> addresses = {evaluate(view.offset)};
  for (size_t d = 0; d < view.shape.size(); ++d) {
    int64_t extent = evaluate(view.shape[d]), stride = evaluate(view.strides[d]);
    std::vector<int64_t> outer = std::move(addresses);
    addresses.clear();
    for (int64_t base : outer)
      for (int64_t i = 0; i < extent; ++i) addresses.push_back(base + i * stride);
  }
  for (int64_t address : addresses)
    CHECK(address >= 0 && address < elements(view.buffer), "a view reaches element {} of the {} of {}",
          address, elements(view.buffer), program_.buffers[view.buffer].name);
  return addresses;
}

std::vector<Scalar> ProgramMemory::read(const target::TensorView& view) const {
  std::vector<Scalar> result;
  for (int64_t address : addresses(view))
    result.push_back(load_scalar(buffers_[view.buffer].data(), address, program_.buffers[view.buffer].dtype));
  return result;
}

void ProgramMemory::write(const target::TensorView& view, std::span<const Scalar> values) {
  std::vector<int64_t> places = addresses(view);
  CHECK(places.size() == values.size(), "{} elements for a view of {}", values.size(), places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    CHECK(values[i].dtype == program_.buffers[view.buffer].dtype, "an element of {} for {}",
          to_text(values[i].dtype), program_.buffers[view.buffer].name);
    store_scalar(buffers_[view.buffer].data(), places[i], values[i]);
  }
}

target::TensorView view_of(sym::Context& context, const target::ExternResult& result) {
  return {result.buffer, result.dtype, result.shape, result.strides, context.constant(0)};
}

namespace {

void run(const Launch& launch, ProgramMemory& memory, target::KernelError& error) {
  std::vector<int64_t> sizes;
  for (const Size& size : launch.kernel.sizes) sizes.push_back(memory.evaluate(size.symbol));
  std::vector<void*> buffers;
  for (BufferId id(0); id.index < launch.kernel.buffers.size(); ++id.index) {
    if (launch.kernel.buffers[id].mode == BufferMode::local) continue;
    CHECK(buffers.size() < launch.arguments.size(), "{} arguments for kernel {}", launch.arguments.size(),
          launch.kernel.name);
    target::BufferIndex argument = launch.arguments[buffers.size()];
    CHECK(memory.evaluate(element_count(launch.kernel, id)) <= memory.elements(argument),
          "buffer {} of kernel {} is larger than the program's", launch.kernel.buffers[id].name,
          launch.kernel.name);
    buffers.push_back(memory.data(argument));
  }
  interpret(launch.kernel, sizes, buffers, error);
}

}  // namespace

void interpret(const Program& program, ProgramMemory& memory, target::KernelError& error,
               const ExternFunction& call_extern) {
  for (const auto& step : program.steps) {
    if (const auto* launch = std::get_if<Launch>(&step)) {
      run(*launch, memory, error);
      if (error.code != target::KernelError::kNone) return;
    } else {
      const auto& call = std::get<target::ExternCall>(step);
      CHECK(call_extern, "no function for the extern call {}", call.op);
      call_extern(call, memory);
    }
  }
}

}  // namespace kerf::loop
