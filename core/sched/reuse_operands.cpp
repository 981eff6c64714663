#include "sched/reuse_operands.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "loop/walk.h"
#include "sched/traffic.h"
#include "sym/simplify.h"

namespace kerf::sched {

using loop::BufferId;
using loop::BufferMode;
using sym::Expr;
using target::BufferIndex;

namespace {

// How a kernel accesses one of its buffers.
struct Access {
  Expr index;
  const loop::Stmt* around = nullptr;  // the innermost statement around it
  Expr iterations;                     // of the loops around it; absent where something else is around it
};

struct BufferUse {
  std::optional<Access> first;
  int loads = 0, stores = 0;
};

Access access_of(const loop::Kernel& kernel, Expr index, const loop::Path& path) {
  Access access{index, path.empty() ? nullptr : path.back(), kernel.context->constant(1)};
  for (const loop::Stmt* stmt : path) {
    const auto* loop = std::get_if<loop::Loop>(stmt);
    if (!loop) return {index, path.back(), {}};
    access.iterations = access.iterations * kernel.axes[loop->axis].extent;
  }
  return access;
}

// Masked loads and stores that add count twice: they take no part.
IdVector<BufferId, BufferUse> uses_of_buffers(const loop::Kernel& kernel) {
  IdVector<BufferId, BufferUse> uses(kernel.buffers.size());
  loop::walk(kernel.body, [&](const loop::Stmt& stmt, const loop::Path& path) {
    auto enter = [&](BufferId buffer, Expr index, int BufferUse::* count, bool is_plain) {
      BufferUse& use = uses[buffer];
      use.*count += is_plain ? 1 : 2;
      if (!use.first) use.first = access_of(kernel, index, path);
    };
    if (const auto* store = std::get_if<loop::Store>(&stmt)) {
      enter(store->buffer, store->index, &BufferUse::stores, store->mode == loop::StoreMode::assign);
    } else if (const auto* define = std::get_if<loop::Define>(&stmt)) {
      const loop::Value& value = kernel.values[define->value];
      if (value.kind == loop::ValueKind::load)
        enter(value.buffer, value.index, &BufferUse::loads, value.operands.empty());
    }
  });
  return uses;
}

// The kernel's buffer of each argument.
std::vector<BufferId> parameters_of(const loop::Kernel& kernel) {
  std::vector<BufferId> parameters;
  for (BufferId id(0); id.index < kernel.buffers.size(); ++id.index)
    if (kernel.buffers[id].mode != BufferMode::local) parameters.push_back(id);
  return parameters;
}

// Whether a load of `in` comes before the store to `out` of its block: a load that is not is not the store's operand.
bool loads_first(const loop::Kernel& kernel, BufferId in, BufferId out) {
  bool loaded = false, stored_before = false;
  loop::for_each_access(kernel, [&](BufferId buffer, Expr, const loop::Path&, bool is_store) {
    if (buffer == in) loaded = true;
    if (buffer == out && is_store && !loaded) stored_before = true;
  });
  return loaded && !stored_before;
}

class Reuser {
 public:
  explicit Reuser(const loop::Program& program)
      : result_(program), traffic_(traffic_of(program)), stands_for_(program.buffers.size()) {
    std::iota(stands_for_.begin(), stands_for_.end(), BufferIndex{0});
    first_.assign(program.buffers.size(), program.steps.size());
    last_.assign(program.buffers.size(), 0);
    for (size_t step = 0; step < traffic_.steps.size(); ++step)
      for (const auto* list : {&traffic_.steps[step].reads, &traffic_.steps[step].writes})
        for (BufferIndex buffer : *list) {
          first_[buffer] = std::min(first_[buffer], step);
          last_[buffer] = step;
        }
  }

  loop::Program run() && {
    for (step_ = 0; step_ < result_.steps.size(); ++step_)
      if (auto* launch = std::get_if<loop::Launch>(&result_.steps[step_])) join_buffers(*launch);
    // From the last joined on, so that chains end at what stays.
    for (size_t i = joined_.size(); i-- > 0;) stands_for_[joined_[i].first] = stands_for_[joined_[i].second];
    for (auto& step : result_.steps) std::visit([this](auto& one) { rename(one); }, step);
    return std::move(result_);
  }

 private:
  // A temporary whose memory is its own and that this step reads last.
  bool ends_here(BufferIndex buffer) const {
    const loop::ProgramBuffer& b = result_.buffers[buffer];
    return b.kind == loop::BufferKind::temp && b.pieces == 0 && !traffic_.returned[buffer] &&
           last_[buffer] == step_ &&
           std::ranges::all_of(traffic_.writers[buffer], [&](size_t step) { return shares_nothing(step); }) &&
           std::ranges::all_of(traffic_.readers[buffer], [&](size_t step) { return shares_nothing(step); });
  }

  // Its result is no view of an operand, or of what the library keeps.
  bool shares_nothing(size_t step) const {
    const auto* call = std::get_if<target::ExternCall>(&result_.steps[step]);
    return !call || (call->is_matmul_like && call->results.size() == 1);
  }

  bool begins_here(BufferIndex buffer) const {
    const loop::ProgramBuffer& b = result_.buffers[buffer];
    return b.kind != loop::BufferKind::input && b.pieces == 0 && first_[buffer] == step_;
  }

  // The library chooses strides of dimensions of size 1, and of tensors without elements, and callers see them.
  bool shows_strides(BufferIndex buffer) const {
    const sym::Facts facts = loop::facts_of(result_.sizes);
    return std::ranges::any_of(result_.outputs, [&](const target::ProgramOutput& output) {
      return output.kind == target::ProgramOutput::Kind::tensor && output.view.buffer == buffer &&
             !std::ranges::all_of(output.view.shape, [&](Expr size) {
               return sym::provably_less(result_.context->constant(1), size, facts);
             });
    });
  }

  bool may_join(const loop::Launch& launch, const IdVector<BufferId, BufferUse>& uses,
                std::pair<BufferId, BufferIndex> in, std::pair<BufferId, BufferIndex> out) const {
    const loop::ProgramBuffer &read = result_.buffers[in.second], &written = result_.buffers[out.second];
    const BufferUse &loads = uses[in.first], &stores = uses[out.first];
    if (read.dtype != written.dtype || read.elements != written.elements) return false;
    if (read.written_by_extern && shows_strides(out.second)) return false;
    if (loads.loads != 1 || stores.stores != 1 || stores.loads != 0) return false;
    if (std::ranges::count(launch.arguments, in.second) != 1) return false;
    const Access &load = *loads.first, &store = *stores.first;
    return load.index == store.index && loop::values_in(store.index).empty() && load.around == store.around &&
           store.iterations.valid() &&
           sym::simplify(store.iterations, loop::facts_of(launch.kernel)) ==
               sym::simplify(written.elements, loop::facts_of(launch.kernel)) &&
           loads_first(launch.kernel, in.first, out.first);
  }

  void join_buffers(loop::Launch& launch) {
    if (std::ranges::none_of(launch.arguments, [&](BufferIndex buffer) { return ends_here(buffer); })) return;
    for (size_t o = 0; o < launch.arguments.size(); ++o) {
      const std::vector<BufferId> parameters = parameters_of(launch.kernel);
      if (launch.kernel.buffers[parameters[o]].mode != BufferMode::out || !begins_here(launch.arguments[o]))
        continue;
      const IdVector<BufferId, BufferUse> uses = uses_of_buffers(launch.kernel);
      for (size_t i = 0; i < launch.arguments.size(); ++i) {
        if (launch.kernel.buffers[parameters[i]].mode != BufferMode::in || !ends_here(launch.arguments[i]))
          continue;
        const std::pair in{parameters[i], launch.arguments[i]}, out{parameters[o], launch.arguments[o]};
        if (!may_join(launch, uses, in, out)) continue;
        join(launch, i, in, out);
        if (i < o) --o;
        break;
      }
    }
  }

  void join(loop::Launch& launch, size_t argument, std::pair<BufferId, BufferIndex> in,
            std::pair<BufferId, BufferIndex> out) {
    joined_.emplace_back(in.second, out.second);
    result_.buffers[out.second].written_by_extern |= result_.buffers[in.second].written_by_extern;
    launch.arguments.erase(launch.arguments.begin() + static_cast<std::ptrdiff_t>(argument));
    launch.kernel.buffers[out.first].mode = BufferMode::inout;
    loop::drop_buffer(launch.kernel, in.first, out.first);
  }

  void rename(loop::Launch& launch) const {
    for (BufferIndex& buffer : launch.arguments) buffer = stands_for_[buffer];
  }

  void rename(target::ExternCall& call) const {
    rename(call.arguments);
    for (target::ExternResult& one : call.results)
      if (one.buffer != target::kNoBuffer) one.buffer = stands_for_[one.buffer];
  }

  void rename(target::ExternArgumentList& arguments) const {
    for (target::ExternArgument& argument : arguments) {
      if (auto* view = std::get_if<target::TensorView>(&argument.value))
        view->buffer = stands_for_[view->buffer];
      if (auto* list = std::get_if<target::ExternArgumentList>(&argument.value)) rename(*list);
    }
  }

  loop::Program result_;
  Traffic traffic_;
  std::vector<size_t> first_, last_;                         // by buffer: steps
  std::vector<BufferIndex> stands_for_;                      // by buffer
  std::vector<std::pair<BufferIndex, BufferIndex>> joined_;  // what ended, and what lies there then
  size_t step_ = 0;
};

}  // namespace

loop::Program reuse_operands(const loop::Program& program) { return Reuser(program).run(); }

}  // namespace kerf::sched
