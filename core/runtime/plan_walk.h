#pragma once
// Walks over the parts of a Plan that several files need: the tensor views among the arguments of an extern call,
// and every expression of a Plan. The order is fixed by the Plan, so two walks meet the same things in the same
// order; `extern_step` relies on it to pair views with evaluated arguments.
#include "runtime/plan.h"

namespace kerf::runtime {

template <class Visit>
void for_each_view(const target::ExternArgumentList& arguments, Visit&& visit) {
  for (const target::ExternArgument& argument : arguments) {
    if (auto* view = std::get_if<target::TensorView>(&argument.value)) visit(*view);
    if (auto* list = std::get_if<target::ExternArgumentList>(&argument.value)) for_each_view(*list, visit);
  }
}

template <class Visit>
void for_each_expr(const std::vector<sym::Expr>& list, Visit&& visit) {
  for (sym::Expr expr : list) visit(expr);
}

template <class Visit>
void for_each_expr(const target::TensorView& view, Visit&& visit) {
  for_each_expr(view.shape, visit);
  for_each_expr(view.strides, visit);
  visit(view.offset);
}

template <class Visit>
void for_each_expr(const target::ExternArgumentList& arguments, Visit&& visit) {
  for (const target::ExternArgument& argument : arguments) {
    if (auto* expr = std::get_if<sym::Expr>(&argument.value)) visit(*expr);
    if (auto* view = std::get_if<target::TensorView>(&argument.value)) for_each_expr(*view, visit);
    if (auto* list = std::get_if<target::ExternArgumentList>(&argument.value)) for_each_expr(*list, visit);
  }
}

template <class Visit>
void for_each_expr(const LaunchStep& launch, Visit&& visit) {
  for_each_expr(launch.sizes, visit);
  visit(launch.grid);
  visit(launch.work);
}

template <class Visit>
void for_each_expr(const target::ExternCall& call, Visit&& visit) {
  for_each_expr(call.arguments, visit);
  for (const target::ExternResult& result : call.results) {
    for_each_expr(result.shape, visit);
    for_each_expr(result.strides, visit);
  }
}

// Everything that is evaluated for a shape. The grids of artifacts are not: a LaunchStep carries its own.
template <class Visit>
void for_each_expr(const Plan& plan, Visit&& visit) {
  for (const PlanInput& input : plan.inputs) {
    for_each_expr(input.shape, visit);
    for_each_expr(input.strides, visit);
  }
  for (const PlanBuffer& buffer : plan.buffers) visit(buffer.elements);
  for (const auto& step : plan.steps) std::visit([&](const auto& s) { for_each_expr(s, visit); }, step);
  for (const target::ProgramOutput& output : plan.outputs) {
    if (output.kind == target::ProgramOutput::Kind::tensor) for_each_expr(output.view, visit);
    if (output.kind == target::ProgramOutput::Kind::integer) visit(output.integer);
  }
}

// Calls visit(buffer) for every use of a buffer by the step, results included; a buffer may come more than once.
template <class Visit>
void for_each_buffer(const LaunchStep& launch, Visit&& visit) {
  for (BufferIndex buffer : launch.buffers) visit(buffer);
}

template <class Visit>
void for_each_buffer(const target::ExternCall& call, Visit&& visit) {
  for_each_view(call.arguments, [&](const target::TensorView& view) { visit(view.buffer); });
  for (const target::ExternResult& result : call.results)
    if (result.buffer != target::kNoBuffer) visit(result.buffer);
}

}  // namespace kerf::runtime
