#include "random_kernel.h"

#include <algorithm>
#include <random>

#include "loop/build.h"

namespace kerf::testing {

namespace {

using loop::AxisId;
using loop::BufferId;
using loop::BufferMode;
using loop::Role;
using loop::ValueId;
using ops::ReduceOp;
using ops::ScalarOp;
using ops::Typing;
using sym::Expr;

constexpr DType kDTypes[] = {DType::f32, DType::f32, DType::f32, DType::f64, DType::bf16, DType::f16,
                             DType::i64, DType::i32, DType::i16, DType::i8,  DType::u8,   DType::b1};
constexpr int64_t kExtents[] = {1, 2, 3, 5, 7, 8, 16, 17};
constexpr int kLanes[] = {2, 4, 8, 16};
constexpr int64_t kMostIterations = 3000;
constexpr size_t kMostBuffers = 14;

// A coordinate: 0 <= expr < extent wherever it is in scope; `most` bounds the extent.
struct Dim {
  Expr expr;
  Expr extent;
  int64_t most = 1;
  bool is_vector = false;
};

struct Extent {
  Expr expr;
  int64_t most = 1;
};

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }
bool is_computed_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

class Generator {
 public:
  Generator(sym::Context& context, uint64_t seed, const RandomKernelOptions& options)
      : options_(options), random_(seed), b_(context, "random") {}

  loop::Kernel generate() {
    add_sizes();
    int grid_loops = options_.roles && chance(80) ? 1 + below(2) : 0;
    for (int i = 0; i < grid_loops; ++i) open_plain(Role::grid, 0);
    block(options_.depth);
    store_out();
    for (int i = 0; i < grid_loops; ++i) b_.close_loop();
    return b_.finish();
  }

 private:
  // --- choices

  int below(int count) { return static_cast<int>(random_() % static_cast<uint64_t>(count)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class Items>
  const auto& pick(const Items& items) {
    return items[static_cast<size_t>(below(static_cast<int>(std::size(items))))];
  }
  std::string fresh(std::string_view letter) { return fmt::format("{}{}", letter, names_++); }

  // --- sizes and loops

  void add_sizes() {
    if (chance(60)) sizes_.push_back({b_.add_size("n", {1, 12}), 12});
    if (chance(40)) sizes_.push_back({b_.add_size("m", {0, 9}), 9});
    if (chance(30)) sizes_.push_back({b_.add_size("q", {4, 16}, {4, 0}), 16});
  }

  Extent extent() {
    if (!sizes_.empty() && chance(40)) return pick(sizes_);
    int64_t value = pick(kExtents);
    return {b_.integer(value), value};
  }

  bool is_affordable(int64_t most) const { return iterations_ * most <= kMostIterations; }

  void open(AxisId axis, Dim dim) {
    dim.is_vector = b_.kernel().axes[axis].role == Role::vector;
    dims_.push_back(dim);
    iterations_ *= std::max<int64_t>(dim.most, 1);
  }

  void open_plain(Role role, int lanes) {
    Extent e = extent();
    if (!is_affordable(e.most)) e = {b_.integer(1), 1};
    AxisId axis = b_.add_axis(fresh("i"), e.expr, role, lanes);
    b_.open_loop(axis);
    open(axis, {b_.symbol(axis), e.expr, e.most});
  }

  bool in_vector() const { return std::ranges::any_of(dims_, &Dim::is_vector); }

  // A role that fits here, with its lanes.
  std::pair<Role, int> role(bool is_short) {
    if (!options_.roles) return {Role::serial, 0};
    if (!in_vector() && chance(40)) return {Role::vector, pick(kLanes)};
    if (is_short && chance(15)) return {Role::unrolled, 0};
    return {Role::serial, 0};
  }

  // An axis whose extent depends on one around it, which must not differ between lanes.
  const Dim* triangle_base() {
    std::vector<const Dim*> bases;
    for (const Dim& dim : dims_)
      if (!dim.is_vector && is_affordable(dim.most)) bases.push_back(&dim);
    return bases.empty() ? nullptr : pick(bases);
  }

  // Adds an axis (not opened) and its coordinate.
  std::pair<AxisId, Dim> new_axis() {
    const Dim* base = chance(15) ? triangle_base() : nullptr;
    Extent e = extent();
    if (!is_affordable(e.most)) e = {b_.integer(2), 2};
    if (base) e = {base->expr + 1, base->most};
    auto [chosen, lanes] = role(e.expr.is_constant());
    AxisId axis = b_.add_axis(fresh("j"), e.expr, chosen, lanes);
    return {axis, {b_.symbol(axis), base ? base->extent : e.expr, e.most}};
  }

  // Everything the scope brings is forgotten when it ends.
  template <class Body>
  void scoped(Body body) {
    auto dims = dims_;
    auto values = values_;
    auto iterations = iterations_;
    body();
    dims_ = dims;
    values_ = values;
    iterations_ = iterations;
  }

  void loop_statement(int depth) {
    scoped([&] {
      if (chance(25)) {
        split_loop(depth);
        return;
      }
      auto [axis, dim] = new_axis();
      b_.open_loop(axis);
      open(axis, dim);
      block(depth - 1);
      b_.close_loop();
    });
  }

  // for o < ceil(e / c), for i < min(c, e - c*o): together the coordinate c*o + i of extent e.
  void split_loop(int depth) {
    Extent e = extent();
    if (!is_affordable(e.most)) e = {b_.integer(3), 3};
    int64_t step = 1 << below(4);
    AxisId outer = b_.add_axis(fresh("o"), sym::ceil_div(e.expr, b_.integer(step)));
    b_.open_loop(outer);
    Expr first = b_.symbol(outer) * step;
    auto [chosen, lanes] = role(false);
    AxisId inner = b_.add_axis(fresh("i"), sym::min(b_.integer(step), e.expr - first), chosen, lanes);
    b_.open_loop(inner);
    open(inner, {first + b_.symbol(inner), e.expr, e.most});
    block(depth - 1);
    b_.close_loop();
    b_.close_loop();
  }

  // --- statements

  void block(int depth) {
    int count = 1 + below(options_.statements);
    for (int i = 0; i < count; ++i) {
      int kind = below(10);
      if (kind < 3 && depth > 0) {
        loop_statement(depth);
      } else if (kind < 4 && depth > 0) {
        ValueId condition = value(DType::b1, 2);
        scoped([&] { b_.guard(condition, [&] { block(depth - 1); }); });
      } else if (kind < 5 && !in_vector()) {
        local_statement();
      } else if (kind < 6) {
        update_statement();
      } else if (kind < 7 && options_.atomics) {
        add_statement();
      } else {
        store_out();
      }
    }
  }

  // Row-major over all coordinates in scope in a random order: another element in each iteration.
  std::pair<std::vector<Expr>, Expr> own_element() {
    std::vector<Dim> dims = dims_;
    for (size_t i = dims.size(); i > 1; --i)
      std::swap(dims[i - 1], dims[static_cast<size_t>(below(static_cast<int>(i)))]);
    return row_major(dims);
  }

  std::pair<std::vector<Expr>, Expr> row_major(const std::vector<Dim>& dims) {
    std::vector<Expr> shape;
    Expr index = b_.integer(0);
    for (const Dim& dim : dims) {
      shape.push_back(dim.extent);
      index = index * dim.extent + dim.expr;
    }
    return {shape, index};
  }

  bool has_room() const { return b_.kernel().buffers.size() < kMostBuffers; }

  void store_out() {
    if (!has_room()) return;
    DType dtype = pick(kDTypes);
    ValueId stored = value(dtype, 4);
    auto [shape, index] = own_element();
    BufferId buffer = b_.add_buffer(fresh("y"), dtype, shape, BufferMode::out);
    b_.store(buffer, index, stored);
    if (chance(15)) values_.push_back(b_.load(buffer, index));
  }

  // Reads and overwrites this iteration's element.
  void update_statement() {
    if (!has_room()) return;
    DType dtype = pick(kDTypes);
    auto [shape, index] = own_element();
    BufferId buffer = b_.add_buffer(fresh("z"), dtype, shape, BufferMode::inout);
    values_.push_back(b_.load(buffer, index));
    b_.store(buffer, index, value(dtype, 3));
  }

  void add_statement() {
    DType dtype = pick(kDTypes);
    if (!has_room() || dtype == DType::b1 || (is_floating(dtype) && !options_.rounding)) return;
    ValueId added = value(dtype, 3);
    auto [shape, index] = row_major(some_dims());
    b_.store(b_.add_buffer(fresh("z"), dtype, shape, BufferMode::inout), index, added, loop::StoreMode::add);
  }

  // Fills a local buffer, then reads it in another order.
  void local_statement() {
    int64_t size = pick(kExtents);
    if (!has_room() || !is_affordable(size)) return;
    DType dtype = pick(kDTypes);
    BufferId buffer = b_.add_buffer(fresh("t"), dtype, {b_.integer(size)}, BufferMode::local);
    for (bool is_filling : {true, false}) {
      scoped([&] {
        auto [chosen, lanes] = role(true);
        AxisId axis = b_.add_axis(fresh("l"), b_.integer(size), chosen, lanes);
        b_.open_loop(axis);
        open(axis, {b_.symbol(axis), b_.integer(size), size});
        if (is_filling) {
          b_.store(buffer, b_.symbol(axis), value(dtype, 3));
        } else {
          Expr last = b_.integer(size - 1);
          values_.push_back(b_.load(buffer, chance(50) ? b_.symbol(axis) : last - b_.symbol(axis)));
          store_out();
        }
        b_.close_loop();
      });
    }
  }

  // --- values

  // A value of the dtype, new or in scope. New values stay in scope for others to use.
  ValueId value(DType dtype, int depth) {
    std::vector<ValueId> known;
    for (ValueId candidate : values_)
      if (b_.dtype(candidate) == dtype) known.push_back(candidate);
    if (!known.empty() && chance(depth > 0 ? 30 : 70)) return pick(known);
    ValueId result = new_value(dtype, depth);
    values_.push_back(result);
    return result;
  }

  ValueId new_value(DType dtype, int depth) {
    if (depth <= 0) return chance(70) && has_room() ? load(dtype, 0) : constant(dtype);
    int kind = below(100);
    if (kind < 25 && has_room()) return load(dtype, depth - 1);
    if (kind < 30) return constant(dtype);
    if (kind < 45 && !is_half(dtype)) return reduce(dtype, depth - 1);
    if (kind < 55 && dtype == DType::i64 && !dims_.empty()) return b_.index(pick(dims_).expr);
    return apply(dtype, depth - 1);
  }

  ValueId constant(DType dtype) {
    constexpr double kConstants[] = {0, 1, 2, 0.5, -1, 3, -0.0, 0.1};
    return b_.constant(dtype, pick(kConstants));
  }

  // An operand whose NaNs, should the operation show their sign or bits, are replaced.
  ValueId not_nan(ValueId operand) {
    DType dtype = b_.dtype(operand);
    if (!is_floating(dtype)) return operand;
    ValueId is_nan = b_.apply(ScalarOp::isnan, {operand});
    return b_.apply(ScalarOp::where, {is_nan, b_.constant(dtype, 1), operand});
  }

  DType any_dtype(bool (*allowed)(DType)) {
    DType dtype = pick(kDTypes);
    while (!allowed(dtype)) dtype = pick(kDTypes);
    return dtype;
  }

  // The operand dtypes with which `op` can give `result`; empty if it cannot.
  std::vector<DType> operand_dtypes(ScalarOp op, DType result) {
    const ops::OpInfo& row = ops::info(op);
    auto alike = [&](bool allowed, DType dtype) {
      return allowed ? std::vector<DType>(static_cast<size_t>(row.arity), dtype) : std::vector<DType>();
    };
    switch (row.types) {
      case Typing::same_float: return alike(is_computed_float(result), result);
      case Typing::same_number: return alike(is_computed_float(result) || is_integer(result), result);
      case Typing::same_integer: return alike(!is_floating(result), result);
      case Typing::same_any: return alike(!is_half(result), result);
      case Typing::comparison:
        return alike(result == DType::b1, any_dtype([](DType dtype) { return !is_half(dtype); }));
      case Typing::predicate: return alike(result == DType::b1, any_dtype(is_computed_float));
      case Typing::select: return {DType::b1, result, result};
      case Typing::conversion:
        if (op == ScalarOp::cast) return {pick(kDTypes)};
        if (result == DType::i32) return {DType::f32};
        if (result == DType::i64) return {DType::f64};
        return alike(result == DType::u8, DType::i8);
      case Typing::index_check: return alike(result == DType::i64, DType::i64);
      case Typing::random: return alike(result == DType::f32, DType::i64);
    }
    UNREACHABLE("typing of {}", row.text);
  }

  bool is_wanted(ScalarOp op) const {
    const ops::OpInfo& row = ops::info(op);
    return (options_.rounding || row.ulp <= 0.5) && (options_.failures || !(row.flags & ops::kMayFail));
  }

  ValueId apply(DType result, int depth) {
    constexpr int kOps = static_cast<int>(ScalarOp::random_uniform) + 1;
    ScalarOp op;
    std::vector<DType> dtypes;
    do {
      op = static_cast<ScalarOp>(below(kOps));
      dtypes = operand_dtypes(op, result);
    } while (dtypes.empty() || !is_wanted(op));
    std::vector<ValueId> operands;
    bool shows_nan = op == ScalarOp::bitcast || op == ScalarOp::copysign || op == ScalarOp::signbit;
    for (DType dtype : dtypes) {
      ValueId operand = value(dtype, depth);
      operands.push_back(shows_nan ? not_nan(operand) : operand);
    }
    if (op == ScalarOp::cast) return b_.cast(operands[0], result);
    if (op == ScalarOp::bitcast) return b_.bitcast(operands[0], result);
    return b_.apply(op, operands);
  }

  // --- loads

  // Up to three coordinates in scope, some of them changed.
  std::vector<Dim> some_dims() {
    std::vector<Dim> dims;
    for (const Dim& dim : dims_)
      if (dims.size() < 3 && chance(70)) dims.push_back(changed(dim));
    for (size_t i = dims.size(); i > 1; --i)
      std::swap(dims[i - 1], dims[static_cast<size_t>(below(static_cast<int>(i)))]);
    return dims;
  }

  Dim changed(const Dim& dim) {
    int64_t step = 2 + below(3);
    switch (below(8)) {
      case 0: return {dim.extent - dim.expr - 1, dim.extent, dim.most};
      case 1: return {sym::floor_div(dim.expr, step), sym::ceil_div(dim.extent, b_.integer(step)), dim.most};
      case 2: return {sym::mod(dim.expr, step), b_.integer(step), step};
      default: return dim;
    }
  }

  // An index read from data: any integer, brought into range.
  Dim gathered(int depth) {
    int64_t bound = pick(kExtents);
    if (options_.failures && chance(50)) {
      ScalarOp check = chance(50) ? ScalarOp::check_index : ScalarOp::wrap_index;
      ValueId index =
          b_.apply(check, {value(DType::i64, depth), b_.constant(DType::i64, static_cast<double>(bound))});
      return {b_.as_expr(index), b_.integer(bound), bound};
    }
    DType dtype = chance(50) ? DType::i64 : DType::i32;
    ValueId divisor = b_.constant(dtype, static_cast<double>(bound));
    ValueId index = b_.apply(ScalarOp::rem, {value(dtype, depth), divisor});
    return {b_.as_expr(index), b_.integer(bound), bound};
  }

  BufferId input(DType dtype, const std::vector<Expr>& shape) {
    std::vector<BufferId> fitting;
    for (BufferId id(0); id.index < b_.kernel().buffers.size(); ++id.index) {
      const loop::Buffer& buffer = b_.kernel().buffers[id];
      if (buffer.mode == BufferMode::in && buffer.dtype == dtype && buffer.shape == shape)
        fitting.push_back(id);
    }
    if (!fitting.empty() && chance(50)) return pick(fitting);
    return b_.add_buffer(fresh("x"), dtype, shape);
  }

  ValueId load(DType dtype, int depth) {
    std::vector<Dim> dims = some_dims();
    if (depth > 0 && chance(25)) dims.push_back(gathered(depth - 1));
    if (!dims.empty() && chance(15)) return shifted_load(dtype, dims);
    if (depth > 0 && chance(15)) {
      ValueId mask = value(DType::b1, depth - 1);
      ValueId other = value(dtype, depth - 1);
      auto [shape, index] = row_major(dims);
      return b_.load(input(dtype, shape), index, mask, other);
    }
    auto [shape, index] = row_major(dims);
    return b_.load(input(dtype, shape), index);
  }

  // Reads some elements before this one, and a constant at the beginning.
  ValueId shifted_load(DType dtype, std::vector<Dim> dims) {
    int64_t shift = 1 + below(3);
    ValueId position = b_.index(b_.integer(0));
    if (std::optional<Expr> plain = without_values(dims.back().expr)) {
      position = b_.index(*plain);
      dims.back().expr = *plain - shift;
    } else {
      shift = 0;
    }
    ValueId first = b_.constant(DType::i64, static_cast<double>(shift));
    ValueId mask = b_.apply(ScalarOp::ge, {position, first});
    ValueId other = constant(dtype);
    auto [shape, index] = row_major(dims);
    return b_.load(input(dtype, shape), index, mask, other);
  }

  // Index values may mention axes and sizes only.
  static std::optional<Expr> without_values(Expr expr) {
    std::vector<Expr> symbols;
    sym::collect_symbols(expr, symbols);
    for (Expr symbol : symbols)
      if (symbol.symbol().kind == sym::SymbolKind::value) return std::nullopt;
    return expr;
  }

  // --- reductions

  ReduceOp reduction(DType dtype) {
    if (dtype == DType::b1) return chance(50) ? ReduceOp::any : ReduceOp::all;
    bool has_sums = options_.rounding || !is_floating(dtype);
    if (has_sums && chance(50)) return chance(80) ? ReduceOp::sum : ReduceOp::prod;
    return chance(50) ? ReduceOp::min : ReduceOp::max;
  }

  ValueId reduce(DType dtype, int depth) {
    std::vector<ValueId> results;
    scoped([&] {
      auto [axis, dim] = new_axis();
      std::vector<AxisId> axes{axis};
      open(axis, dim);
      if (chance(25)) {
        auto [second, second_dim] = new_axis();
        axes.push_back(second);
        open(second, second_dim);
      }
      b_.open_reduce(axes);
      std::vector<loop::KernelBuilder::Part> parts{{reduction(dtype), {value(dtype, depth)}}};
      if (dtype == DType::i64 && chance(30)) parts[0] = arg_part(depth);
      if (chance(25)) {
        DType other = any_dtype([](DType candidate) { return !is_half(candidate); });
        parts.push_back({reduction(other), {value(other, depth)}});
      }
      if (chance(15)) parts.push_back(arg_part(depth));
      if (parts.back().yields.size() == 2 && chance(60)) {
        ReduceOp op = chance(50) ? ReduceOp::first_min : ReduceOp::first_max;
        parts.push_back({op, parts.back().yields});
      }
      results = b_.close_reduce(parts);
    });
    values_.insert(values_.end(), results.begin(), results.end());
    return results[0];
  }

  // The position among all coordinates of the reduce and around it: the first extremum is well defined.
  loop::KernelBuilder::Part arg_part(int depth) {
    DType dtype = any_dtype([](DType candidate) { return !is_half(candidate); });
    ValueId element = value(dtype, depth);
    Expr coordinate = row_major(dims_).second;
    ValueId position = b_.index(chance(30) ? coordinate * -1 : coordinate);
    static constexpr ReduceOp kOps[] = {ReduceOp::argmin, ReduceOp::argmax, ReduceOp::argmax_last_nan};
    return {pick(kOps), {element, position}};
  }

  RandomKernelOptions options_;
  std::mt19937_64 random_;
  loop::KernelBuilder b_;
  std::vector<Extent> sizes_;
  std::vector<Dim> dims_;        // in scope, outermost first
  std::vector<ValueId> values_;  // in scope
  int64_t iterations_ = 1;       // of the innermost block, at most
  int names_ = 0;
};

}  // namespace

loop::Kernel random_kernel(sym::Context& context, uint64_t seed, const RandomKernelOptions& options) {
  return Generator(context, seed, options).generate();
}

}  // namespace kerf::testing
