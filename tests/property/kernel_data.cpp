#include "kernel_data.h"

#include <cmath>
#include <limits>
#include <random>

#include "loop/interp.h"
#include "loop/print.h"
#include "loop/walk.h"
#include "sym/eval.h"

namespace kerf::testing {

namespace {

using Random = std::mt19937_64;

// std::uniform_int_distribution differs between libraries.
int64_t below(Random& random, int64_t count) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(count));
}

int64_t random_size(const loop::Size& size, Random& random, int64_t largest) {
  const auto& [modulus, remainder] = size.modulus;
  if (modulus == 0) return remainder;
  int64_t lo = std::max<int64_t>(size.range.lo.value_or(0), 0);
  int64_t hi = std::min(size.range.hi.value_or(lo + largest), std::max(lo + largest, lo + modulus - 1));
  std::vector<int64_t> allowed;
  for (int64_t n = lo; n <= hi; ++n)
    if ((n - remainder) % modulus == 0) allowed.push_back(n);
  CHECK(!allowed.empty(), "no size between {} and {} is allowed", lo, hi);
  return allowed[static_cast<size_t>(below(random, static_cast<int64_t>(allowed.size())))];
}

Scalar special_value(DType dtype, Random& random) {
  using Limits = std::numeric_limits<double>;
  constexpr double kFloats[] = {Limits::quiet_NaN(),
                                Limits::infinity(),
                                -Limits::infinity(),
                                -0.0,
                                1e-40,
                                -3e-42,
                                3e38,
                                65504.0,
                                1.0 / 3,
                                1e-3,
                                -88.5,
                                16777217.0};
  constexpr int64_t kIntegers[] = {-1,
                                   -2,
                                   127,
                                   128,
                                   -32768,
                                   2147483647,
                                   -2147483648,
                                   1LL << 53,
                                   std::numeric_limits<int64_t>::max(),
                                   std::numeric_limits<int64_t>::min()};
  if (is_floating(dtype)) return Scalar::of(dtype, kFloats[below(random, std::size(kFloats))]);
  return Scalar::of_int(dtype, kIntegers[below(random, std::size(kIntegers))]);
}

Scalar random_value(DType dtype, Random& random, Fill fill) {
  if (fill == Fill::special && below(random, 8) == 0) return special_value(dtype, random);
  if (dtype == DType::b1) return Scalar::of_int(dtype, below(random, 2));
  if (!is_floating(dtype)) return Scalar::of_int(dtype, below(random, 4));
  return Scalar::of(dtype, static_cast<double>(below(random, 33) - 16) / 4);
}

// The value of a size symbol.
std::function<int64_t(const sym::Symbol&)> value_in(const loop::Kernel& kernel, const KernelData& data) {
  return [&](const sym::Symbol& symbol) {
    for (size_t i = 0; i < kernel.sizes.size(); ++i)
      if (kernel.sizes[i].symbol.node()->symbol == &symbol) return data.sizes[i];
    UNREACHABLE("no size {}", symbol.name);
  };
}

int64_t elements_of(const KernelData& data, size_t buffer, DType dtype) {
  return static_cast<int64_t>(data.buffers[buffer].size()) / byte_size(dtype);
}

// The distance between neighbours of |x| in the type.
double ulp_of(double x, DType dtype) {
  int digits = dtype == DType::f64 ? 53 : dtype == DType::f32 ? 24 : dtype == DType::f16 ? 11 : 8;
  int smallest = dtype == DType::f64 ? -1074 : dtype == DType::f32 ? -149 : dtype == DType::f16 ? -24 : -133;
  if (x == 0) return std::ldexp(1.0, smallest);
  return std::ldexp(1.0, std::max(std::ilogb(x) - digits + 1, smallest));
}

}  // namespace

bool agree(const Scalar& a, const Scalar& b, double ulps) {
  if (!is_floating(a.dtype)) return a == b;
  if (std::isnan(a.f) || std::isnan(b.f)) return std::isnan(a.f) && std::isnan(b.f);
  if (a == b) return true;
  if (ulps == 0 || std::isinf(a.f) || std::isinf(b.f)) return false;
  return std::abs(a.f - b.f) <= ulps * ulp_of(std::max(std::abs(a.f), std::abs(b.f)), a.dtype);
}

std::vector<int64_t> random_sizes(const std::vector<loop::Size>& sizes, uint64_t seed, int64_t largest) {
  Random random(seed);
  std::vector<int64_t> values;
  for (const loop::Size& size : sizes) values.push_back(random_size(size, random, largest));
  return values;
}

void fill_random(void* data, int64_t elements, DType dtype, uint64_t seed, Fill fill) {
  Random random(seed);
  for (int64_t i = 0; i < elements; ++i) store_scalar(data, i, random_value(dtype, random, fill));
}

std::vector<void*> KernelData::pointers() {
  std::vector<void*> result;
  for (auto& buffer : buffers) result.push_back(buffer.data());
  return result;
}

KernelData random_data(const loop::Kernel& kernel, uint64_t seed, Fill fill, int64_t largest_size) {
  KernelData data;
  data.sizes = random_sizes(kernel.sizes, seed, largest_size);
  for (loop::BufferId id(0); id.index < kernel.buffers.size(); ++id.index) {
    DType dtype = kernel.buffers[id].dtype;
    if (kernel.buffers[id].mode == loop::BufferMode::local) continue;
    int64_t elements = sym::evaluate(loop::element_count(kernel, id), value_in(kernel, data)).value();
    auto& bytes = data.buffers.emplace_back(static_cast<size_t>(elements * byte_size(dtype)));
    fill_random(bytes.data(), elements, dtype, seed * 1000 + id.index, fill);
  }
  return data;
}

KernelData interpreted(const loop::Kernel& kernel, KernelData data) {
  loop::interpret(kernel, data.sizes, data.pointers(), data.error);
  return data;
}

KernelData interpreted_in_parts(const loop::Kernel& kernel, KernelData data, int64_t parts) {
  int64_t grid = sym::evaluate(loop::grid_extent(kernel), value_in(kernel, data)).value();
  for (int64_t part = 0; part < parts; ++part) {
    loop::GridRange range{grid * part / parts, grid * (part + 1) / parts};
    loop::interpret(kernel, data.sizes, data.pointers(), data.error, range);
  }
  return data;
}

std::optional<std::string> difference(const loop::Kernel& kernel, const KernelData& a, const KernelData& b,
                                      double ulps) {
  if (a.error.code != b.error.code)
    return fmt::format("error codes {} and {}", static_cast<int64_t>(a.error.code),
                       static_cast<int64_t>(b.error.code));
  size_t index = 0;
  for (const loop::Buffer& buffer : kernel.buffers) {
    if (buffer.mode == loop::BufferMode::local) continue;
    for (int64_t i = 0; i < elements_of(a, index, buffer.dtype); ++i) {
      Scalar left = load_scalar(a.buffers[index].data(), i, buffer.dtype);
      Scalar right = load_scalar(b.buffers[index].data(), i, buffer.dtype);
      if (!agree(left, right, ulps))
        return fmt::format("{}[{}] is {} and {}", buffer.name, i, loop::to_text(left), loop::to_text(right));
    }
    ++index;
  }
  return std::nullopt;
}

std::optional<std::string> beyond_bounds(const loop::Kernel& kernel, KernelData data,
                                         const KernelData& actual) {
  std::vector<std::vector<double>> bounds;
  std::vector<double*> pointers;
  for (const loop::Buffer& buffer : kernel.buffers) {
    if (buffer.mode == loop::BufferMode::local) continue;
    bounds.emplace_back(static_cast<size_t>(elements_of(data, bounds.size(), buffer.dtype)), 0.0);
    pointers.push_back(bounds.back().data());
  }
  loop::interpret(kernel, data.sizes, data.pointers(), data.error, std::nullopt, pointers);
  size_t index = 0;
  for (const loop::Buffer& buffer : kernel.buffers) {
    if (buffer.mode == loop::BufferMode::local) continue;
    for (size_t i = 0; is_floating(buffer.dtype) && i < bounds[index].size(); ++i) {
      Scalar expected = load_scalar(data.buffers[index].data(), static_cast<int64_t>(i), buffer.dtype);
      Scalar found = load_scalar(actual.buffers[index].data(), static_cast<int64_t>(i), buffer.dtype);
      if (!std::isfinite(expected.f) || !std::isfinite(found.f)) continue;
      if (!(std::abs(expected.f - found.f) <= bounds[index][i]))
        return fmt::format("{}[{}] is {} and not {} with a bound of {}", buffer.name, i, loop::to_text(found),
                           loop::to_text(expected), bounds[index][i]);
    }
    ++index;
  }
  return std::nullopt;
}

}  // namespace kerf::testing
