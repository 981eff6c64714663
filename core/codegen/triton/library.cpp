#include "codegen/triton/library.h"

#include <array>

#include "base/check.h"

namespace kerf::codegen::triton {

namespace {

struct Row {
  std::string_view name;
  std::string_view needs;
  std::string_view text;
};

// log1p, expm1 by W. Kahan's correction: the rounding of 1 + x, or of exp(x), cancels in the quotient. The device's own forms
// (log(1 + x), exp(x) - 1) lose all digits near 0.
constexpr std::array kRows{
    Row{"kerf_log1p", "", R"(@triton.jit
def kerf_log1p(x):
    u = 1.0 + x
    d = u - 1.0
    y = tl.log(u) * (x / tl.where(d == 0.0, 1.0, d))
    y = tl.where(d == 0.0, x, y)
    return tl.where(u == float("inf"), u, y)
)"},
    Row{"kerf_expm1", "", R"(@triton.jit
def kerf_expm1(x):
    u = tl.exp(x)
    d = u - 1.0
    y = d * (x / tl.log(tl.where((u == 1.0) | (u == 0.0), 2.0, u)))
    y = tl.where(u == 1.0, x, y)
    y = tl.where(d == -1.0, -1.0, y)
    return tl.where(u == float("inf"), u, y)
)"},
    Row{"kerf_tanh", "kerf_expm1", R"(@triton.jit
def kerf_tanh(x):
    e = kerf_expm1(-2.0 * tl.abs(x))
    y = -e / (e + 2.0)
    return tl.where(x == 0.0, x, tl.where(x < 0.0, -y, y))
)"},
    Row{"kerf_logaddexp", "kerf_log1p", R"(@triton.jit
def kerf_logaddexp(a, b):
    top = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    low = tl.minimum(a, b)
    y = top + kerf_log1p(tl.exp(low - top))
    return tl.where(a == b, a + 0.6931472, tl.where(tl.abs(top) == float("inf"), top, y))
)"},
    Row{"kerf_remainder", "", R"(@triton.jit
def kerf_remainder(a, b):
    r = libdevice.fmod(a, b)
    return tl.where((r != 0.0) & ((r < 0.0) != (b < 0.0)), r + b, r)
)"},
    Row{"kerf_max", "", R"(@triton.jit
def kerf_max(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
)"},
    Row{"kerf_min", "", R"(@triton.jit
def kerf_min(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
)"},
    Row{"kerf_product", "", R"(@triton.jit
def kerf_product(a, b):
    return a * b
)"},
    // philox2x32-10, as ops/eval_index.cpp has it.
    Row{"kerf_random_uniform", "", R"(@triton.jit
def kerf_random_uniform(seed, counter):
    seed = seed.to(tl.uint64, bitcast=True)
    counter = counter.to(tl.uint64, bitcast=True)
    key = seed.to(tl.uint32) ^ ((seed >> 32).to(tl.uint32) * 0x85EBCA6B)
    first = counter.to(tl.uint32)
    second = (counter >> 32).to(tl.uint32)
    for _ in tl.static_range(10):
        high = tl.umulhi(first, tl.full((), 0xD256D193, tl.uint32))
        low = first * 0xD256D193
        first = high ^ key ^ second
        second = low
        key = key + 0x9E3779B9
    return (first >> 8).to(tl.int32).to(tl.float32) * 5.960464477539063e-08
)"},
    Row{"kerf_check_index", "", R"(@triton.jit
def kerf_check_index(index, bound):
    good = (index >= 0) & (index < bound)
    tl.device_assert(good, "index out of range")
    return tl.where(good, index, 0)
)"},
    Row{"kerf_wrap_index", "", R"(@triton.jit
def kerf_wrap_index(index, bound):
    index = tl.where(index < 0, index + bound, index)
    good = (index >= 0) & (index < bound)
    tl.device_assert(good, "index out of range")
    return tl.where(good, index, 0)
)"},
};

const Row& row(std::string_view name) {
  for (const Row& candidate : kRows)
    if (candidate.name == name) return candidate;
  UNREACHABLE("no library function {}", name);
}

}  // namespace

std::string_view library_function(std::string_view name) { return row(name).text; }

std::string_view library_needs(std::string_view name) { return row(name).needs; }

}  // namespace kerf::codegen::triton
