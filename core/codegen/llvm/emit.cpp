// The module of one kernel:
//
//   define internal void @name.body(ptr %x, ..., i64 %n, ..., i64 %begin, i64 %end, ptr %scratch, ptr %error)
//   define void @name(ptr %buffers, ptr %sizes, i64 %begin, i64 %end, ptr %scratch, ptr %error)
//
// The entry unpacks its arrays and calls the body, whose arguments carry noalias: buffers of a kernel do not overlap
// (two inputs may, but are only read), and LLVM believes it of arguments only.
#include "codegen/llvm/emit.h"

#include <fmt/format.h>

#include "codegen/llvm/emission.h"
#include "loop/walk.h"

namespace kerf::codegen {

namespace {

std::string clean(std::string_view name) {
  std::string result;
  for (char c : name) result += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' ? c : '_';
  return result;
}

// Binds buffers and sizes to the body's arguments and returns the argument list.
std::string bind_arguments(Emission& e) {
  std::string arguments;
  for (size_t i = 0; i < e.kernel.buffers.size(); ++i) {
    const loop::Buffer& buffer = e.kernel.buffers[loop::BufferId(i)];
    if (buffer.mode == loop::BufferMode::local) continue;
    std::string name = e.b.fresh(clean(buffer.name));
    arguments += fmt::format("ptr noalias nocapture{} %{}, ",
                             buffer.mode == loop::BufferMode::in ? " readonly" : "", name);
    e.buffers[loop::BufferId(i)] = {"%" + name, {Prim::ptr}, false};
  }
  for (const loop::Size& size : e.kernel.sizes) {
    std::string name = e.b.fresh(clean(size.symbol.symbol().name));
    arguments += fmt::format("i64 %{}, ", name);
    e.symbols[size.symbol.node()] = {"%" + name, {Prim::i64}, false};
  }
  return arguments + "i64 %begin, i64 %end, ptr noalias nocapture %scratch, ptr noalias nocapture %error";
}

void bind_locals(Emission& e) {
  for (const LocalPlace& place : e.locals.places) {
    const loop::Buffer& buffer = e.kernel.buffers[place.buffer];
    Prim prim = storage_prim(buffer.dtype);
    if (place.on_stack) {
      e.buffers[place.buffer] = e.b.stack(to_text(Type{prim}), place.elements, 64, clean(buffer.name));
    } else {
      Operand scratch = {"%scratch", {Prim::ptr}, false};
      Operand offset = int_constant(Prim::i64, place.offset);
      e.buffers[place.buffer] = e.b.element(Prim::i8, scratch, offset);
    }
  }
}

void emit_body(Emission& e) {
  for (std::string_view taken : {"begin", "end", "scratch", "error", "entry"}) e.b.fresh(taken);
  std::string arguments = bind_arguments(e);
  Operand begin = {"%begin", {Prim::i64}, false}, end = {"%end", {Prim::i64}, false};
  e.error = {"%error", {Prim::ptr}, false};
  std::vector<loop::AxisId> axes;
  const loop::Block* body = &e.kernel.body;
  if (!body->empty()) {
    for (const loop::Loop* loop : loop::grid_loops(e.kernel, body->front())) {
      axes.push_back(loop->axis);
      body = &loop->body;
    }
  }
  e.concurrent = !axes.empty();

  when(e, e.b.compare("icmp slt", begin, end, "any"), [&] {
    bind_locals(e);
    run_grid(e, axes, begin, end, [&] { emit_block(e, *body); });
    if (e.has_streamed) e.b.call_void("llvm.x86.sse.sfence", {});
  });
  e.b.emit("ret void");
  std::string head =
      fmt::format("define internal void {}({}) nounwind", global_name(e.kernel.name + ".body"), arguments);
  e.b.module().mains.push_back(e.b.finish(head));
}

void emit_entry(const loop::Kernel& kernel, Module& module) {
  Builder b(module);
  std::string arguments;
  auto load_item = [&](std::string_view array, Prim prim, int64_t position) {
    Operand base = {fmt::format("%{}", array), {Prim::ptr}, false};
    Operand item = b.load({prim}, b.element(prim, base, int_constant(Prim::i64, position)), 8, "item");
    arguments += fmt::format("{} {}, ", to_text(item.type), item.text);
  };
  int64_t position = 0;
  for (const loop::Buffer& buffer : kernel.buffers) {
    if (buffer.mode != loop::BufferMode::local) load_item("buffers", Prim::ptr, position++);
  }
  for (size_t i = 0; i < kernel.sizes.size(); ++i) load_item("sizes", Prim::i64, static_cast<int64_t>(i));
  b.emit(fmt::format("call void {}({}i64 %begin, i64 %end, ptr %scratch, ptr %error)",
                     global_name(kernel.name + ".body"), arguments));
  b.emit("ret void");
  module.mains.push_back(b.finish(fmt::format(
      "define void {}(ptr %buffers, ptr %sizes, i64 %begin, i64 %end, ptr %scratch, ptr %error) nounwind",
      global_name(kernel.name))));
}

}  // namespace

Result<Emitted> emit_kernel(const loop::Kernel& kernel, const target::CpuTarget& target, Module& module) {
  if (auto problem = check_supported(kernel)) return *problem;
  Emission e(kernel, target, module);
  e.facts = loop::facts_of(kernel);
  e.locals = place_locals(kernel);
  e.varying = varying_values(kernel);
  e.prefetches = worth_prefetching(kernel);
  emit_body(e);
  emit_entry(kernel, module);
  return Emitted{.grid = loop::grid_extent(kernel), .scratch_bytes = e.locals.scratch_bytes};
}

}  // namespace kerf::codegen
