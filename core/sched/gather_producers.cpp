#include "sched/gather_producers.h"

#include <algorithm>
#include <map>
#include <optional>

#include "loop/renumber.h"
#include "loop/walk.h"
#include "ops/scalar_op.h"
#include "sched/nest.h"
#include "sched/profit.h"
#include "sched/traffic.h"
#include "sched/tuning.h"
#include "sym/simplify.h"

namespace kerf::sched {

using loop::Block;
using loop::BufferId;
using loop::Kernel;
using loop::Launch;
using loop::Stmt;
using loop::Value;
using loop::ValueId;
using loop::ValueKind;
using sym::Expr;
using target::BufferIndex;

namespace {

// A pointwise nest that makes one dense value out of stable ones.
struct Producer {
  const Launch* launch;
  Nest nest;
  std::vector<axis::Digit> digits;  // of its store
};

bool is_gather(const Value& value) {
  return value.kind == ValueKind::load && !loop::values_in(value.index).empty();
}

class Finder {
 public:
  explicit Finder(const loop::Program& program)
      : program_(program), traffic_(traffic_of(program)), facts_(loop::facts_of(program.sizes)) {}

  // The buffers to compute where they are read.
  std::vector<bool> find() {
    std::vector<bool> result = gathered();
    for (BufferIndex buffer = 0; buffer < result.size(); ++buffer)
      result[buffer] = result[buffer] && all_gather(buffer) &&
                       can_follow(buffer, elements(buffer), tuning::max_copied_members);
    return result;
  }

  // Whether a gather from a value of `whole` elements computes `buffer` too, rather than reading it.
  bool follows(BufferIndex buffer, int64_t whole) const {
    constexpr int64_t kSmall = 8;  // what is so much smaller is read from memory, however it was made
    const loop::ProgramBuffer& b = program_.buffers[buffer];
    return kSmall * elements(buffer) > whole && b.kind == loop::BufferKind::temp && !b.written_by_extern &&
           !b.realised && !traffic_.returned[buffer];
  }

  std::optional<Producer> producer(BufferIndex buffer) const {
    const std::vector<size_t>& writers = traffic_.writers[buffer];
    if (writers.size() != 1) return std::nullopt;
    const auto* launch = std::get_if<Launch>(&program_.steps[writers[0]]);
    std::optional<Nest> nest = launch ? take_apart(launch->kernel) : std::nullopt;
    if (!nest || nest->reduces() || nest->stores.size() != 1) return std::nullopt;
    const std::vector<BufferIndex>& reads = traffic_.steps[writers[0]].reads;
    if (!std::ranges::all_of(reads, [&](BufferIndex b) { return traffic_.is_stable(b, program_); }))
      return std::nullopt;
    auto digits = axis::dense_digits(nest->stores[0].index, nest->kept, loop::facts_of(*nest->kernel));
    if (!digits) return std::nullopt;
    return Producer{launch, std::move(*nest), std::move(*digits)};
  }

  int64_t elements(BufferIndex buffer) const { return hinted(program_.buffers[buffer].elements, facts_); }

 private:
  // What some nest gathers from: in most programs nothing, or inputs only.
  std::vector<bool> gathered() const {
    std::vector<bool> result(program_.buffers.size());
    for (const auto& step : program_.steps) {
      const auto* launch = std::get_if<Launch>(&step);
      if (!launch || std::ranges::none_of(launch->kernel.values, is_gather) || !take_apart(launch->kernel))
        continue;
      for (const Value& value : launch->kernel.values)
        if (is_gather(value)) result[launch->arguments[value.buffer.index]] = true;
    }
    return result;
  }

  bool all_gather(BufferIndex buffer) const {
    if (!follows(buffer, elements(buffer))) return false;
    return std::ranges::all_of(traffic_.readers[buffer], [&](size_t step) {
      const auto* launch = std::get_if<Launch>(&program_.steps[step]);
      std::optional<Nest> nest = launch ? take_apart(launch->kernel) : std::nullopt;
      if (!nest) return false;
      constexpr int64_t kFew = 8;
      int64_t points = hinted(axis::extent_product(*program_.context, nest->all_axes()), facts_);
      return kFew * points <= elements(buffer) && std::ranges::all_of(nest->loads, [&](const NestLoad& load) {
               return launch->arguments[load.buffer.index] != buffer ||
                      is_gather(nest->kernel->values[load.value]);
             });
    });
  }

  bool can_follow(BufferIndex buffer, int64_t whole, int64_t most) const {
    std::optional<Producer> from = producer(buffer);
    if (!from || most == 0) return false;
    for (const NestLoad& load : from->nest.loads) {
      BufferIndex input = from->launch->arguments[load.buffer.index];
      if (is_gather(from->nest.kernel->values[load.value])) return false;
      if (follows(input, whole) && !can_follow(input, whole, most - 1)) return false;
    }
    return std::ranges::all_of(from->nest.point_values, [&](ValueId id) {
      const Value& value = from->nest.kernel->values[id];
      // An index as a value is of axes and sizes only.
      bool is_position = value.kind == ValueKind::index && axis::mentions_axis(value.index);
      return !loop::may_fail(value) && !is_position;
    });
  }

  const loop::Program& program_;
  Traffic traffic_;
  sym::Facts facts_;
};

// One launch whose gathers of `followed` buffers are computed in their place.
class Rewriter {
 public:
  Rewriter(const Finder& finder, const std::vector<bool>& followed, const Launch& launch)
      : finder_(finder), followed_(followed), launch_(launch), kernel_(launch_.kernel) {
    learn_facts();
  }

  Launch run() {
    IdVector<ValueId, ValueId> map;
    for (ValueId id(0); id.index < kernel_.values.size(); ++id.index) map.push_back(id);
    kernel_.body = loop::rewrite_block(std::move(kernel_.body), [&](Stmt stmt, Block& out) {
      const auto* define = std::get_if<loop::Define>(&stmt);
      const Value* value = define ? &kernel_.values[define->value] : nullptr;
      if (value && value->kind == ValueKind::load && followed_[launch_.arguments[value->buffer.index]]) {
        map[define->value] = computed(Value(*value), out);
      } else {
        out.push_back(std::move(stmt));
      }
    });
    for (ValueId id(map.size()); id.index < kernel_.values.size(); ++id.index) map.push_back(id);
    loop::replace_uses(kernel_, map);
    kernel_ = loop::renumber(kernel_);
    for (size_t i = launch_.arguments.size(); i-- > 0;) {
      if (!followed_[launch_.arguments[i]]) continue;
      launch_.arguments.erase(launch_.arguments.begin() + static_cast<std::ptrdiff_t>(i));
      loop::drop_buffer(kernel_, BufferId(i));
    }
    launch_.kernel = std::move(kernel_);
    return std::move(launch_);
  }

 private:
  // A checked index lies within its bound.
  void learn_bound(ValueId id) {
    const Value& value = kernel_.values[id];
    if (value.kind != ValueKind::apply ||
        (value.op != ops::ScalarOp::check_index && value.op != ops::ScalarOp::wrap_index))
      return;
    const Value& bound = kernel_.values[value.operands[1]];
    if (bound.kind == ValueKind::index)
      facts_.set_extent(kernel_.context->value_symbol(id.index), bound.index);
  }

  // What a load of a followed buffer gives.
  ValueId computed(const Value& load, Block& out) {
    BufferIndex buffer = launch_.arguments[load.buffer.index];
    std::optional<ValueId> mask;
    if (!load.operands.empty()) mask = load.operands[0];
    known_.clear();
    ValueId made = value_at(buffer, load.index, mask, finder_.elements(buffer), out);
    return mask ? select(*mask, made, load.operands[1], out) : made;
  }

  // The element of `buffer` at `position`, with everything it is made of, at the end of `out`.
  ValueId value_at(BufferIndex buffer, Expr position, std::optional<ValueId> mask, int64_t whole,
                   Block& out) {
    auto [known, is_new] = known_.try_emplace({buffer, position.node()});
    if (!is_new) return known->second;
    Producer from = *finder_.producer(buffer);
    know_sizes(from.nest.kernel->sizes);
    std::vector<sym::Substitution> map = axis::invert(from.digits, from.nest.kept, position, facts_);
    for (const axis::AxisInfo& a : from.nest.kept) {
      bool solved = std::ranges::any_of(map, [&](const sym::Substitution& s) { return s.from == a.symbol; });
      if (!solved) map.push_back({a.symbol, kernel_.context->constant(0)});  // of extent 1
    }
    std::map<ValueId, ValueId> copied;
    for (ValueId id : from.nest.point_values) {
      const Value& value = from.nest.kernel->values[id];
      auto place = [&](Expr index) { return sym::simplify(sym::substitute(index, map), facts_); };
      BufferIndex input =
          value.kind == ValueKind::load ? from.launch->arguments[value.buffer.index] : target::kNoBuffer;
      if (value.kind == ValueKind::load && finder_.follows(input, whole)) {
        ValueId inner = value_at(input, place(value.index), mask, whole, out);
        copied[id] = value.operands.empty()
                         ? inner
                         : select(copied.at(value.operands[0]), inner, copied.at(value.operands[1]), out);
        continue;
      }
      Value copy = value;
      for (ValueId& operand : copy.operands) operand = copied.at(operand);
      if (copy.index.valid()) copy.index = place(copy.index);
      if (copy.kind == ValueKind::load) {
        copy.buffer = declare(input, from.nest.kernel->buffers[value.buffer]);
        if (mask) mask_load(copy, *mask, out);
      }
      copied[id] = define(std::move(copy), out);
    }
    return known->second = copied.at(from.nest.stores[0].value);
  }

  void know_sizes(const std::vector<loop::Size>& sizes) {
    const size_t before = kernel_.sizes.size();
    for (const loop::Size& size : sizes)
      if (std::ranges::none_of(kernel_.sizes, [&](const loop::Size& s) { return s.symbol == size.symbol; }))
        kernel_.sizes.push_back(size);
    if (kernel_.sizes.size() > before) learn_facts();
  }

  void learn_facts() {
    facts_ = loop::facts_of(kernel_);
    for (size_t i = 0; i < kernel_.values.size(); ++i) learn_bound(ValueId(i));
  }

  // Where the gather's lane is off, its position means nothing.
  void mask_load(Value& load, ValueId mask, Block& out) {
    if (load.operands.empty()) {
      load.operands = {
          mask,
          define({.kind = ValueKind::constant, .dtype = load.dtype, .literal = Scalar::of(load.dtype, 0.0)},
                 out)};
    } else {
      load.operands[0] = define({.kind = ValueKind::apply,
                                 .dtype = DType::b1,
                                 .op = ops::ScalarOp::and_,
                                 .operands = {mask, load.operands[0]}},
                                out);
    }
  }

  ValueId select(ValueId condition, ValueId yes, ValueId no, Block& out) {
    return define({.kind = ValueKind::apply,
                   .dtype = kernel_.values[yes].dtype,
                   .op = ops::ScalarOp::where,
                   .operands = {condition, yes, no}},
                  out);
  }

  ValueId define(Value value, Block& out) {
    ValueId id = kernel_.values.push_back(std::move(value));
    out.push_back(loop::Define{id});
    return id;
  }

  BufferId declare(BufferIndex buffer, const loop::Buffer& like) {
    auto known = std::find(launch_.arguments.begin(), launch_.arguments.end(), buffer);
    if (known != launch_.arguments.end())
      return BufferId(static_cast<uint32_t>(known - launch_.arguments.begin()));
    launch_.arguments.push_back(buffer);
    loop::Buffer fresh{.name = like.name, .dtype = like.dtype, .shape = like.shape};
    auto taken = [&](const std::string& name) {
      return std::ranges::any_of(kernel_.buffers, [&](const loop::Buffer& b) { return b.name == name; });
    };
    while (taken(fresh.name)) fresh.name += "_";
    return kernel_.buffers.push_back(std::move(fresh));
  }

  const Finder& finder_;
  const std::vector<bool>& followed_;
  Launch launch_;
  Kernel kernel_;
  sym::Facts facts_;
  std::map<std::pair<BufferIndex, const sym::Node*>, ValueId> known_;  // by value_at, for one load
};

bool reads_any(const Launch& launch, const std::vector<bool>& buffers) {
  for (size_t i = 0; i < launch.arguments.size(); ++i)
    if (buffers[launch.arguments[i]] && launch.kernel.buffers[BufferId(i)].mode == loop::BufferMode::in)
      return true;
  return false;
}

// Kernels whose results nobody reads, last first.
void remove_unread(loop::Program& program) {
  const Traffic traffic = traffic_of(program);
  std::vector<bool> needed = traffic.returned;
  for (BufferIndex b = 0; b < needed.size(); ++b)
    if (program.buffers[b].kind != loop::BufferKind::temp) needed[b] = true;
  std::vector<std::variant<Launch, target::ExternCall>> kept;
  for (size_t step = program.steps.size(); step-- > 0;) {
    const StepTraffic& one = traffic.steps[step];
    bool unread = std::holds_alternative<Launch>(program.steps[step]) &&
                  std::ranges::none_of(one.writes, [&](BufferIndex b) { return needed[b]; });
    if (unread) continue;
    for (BufferIndex b : one.reads) needed[b] = true;
    kept.push_back(std::move(program.steps[step]));
  }
  std::reverse(kept.begin(), kept.end());
  program.steps = std::move(kept);
}

}  // namespace

loop::Program gather_producers(const loop::Program& program) {
  Finder finder(program);
  std::vector<bool> followed = finder.find();
  if (std::ranges::none_of(followed, [](bool b) { return b; })) return program;
  loop::Program result = program;
  for (auto& step : result.steps) {
    auto* launch = std::get_if<Launch>(&step);
    if (launch && reads_any(*launch, followed)) *launch = Rewriter(finder, followed, *launch).run();
  }
  remove_unread(result);
  return result;
}

}  // namespace kerf::sched
