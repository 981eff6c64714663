#pragma once
// Element types (dtype.def), their facts, and Scalar: one element of any of them, the value type of
// constants and of the interpreters. Complex and quantised types are not here: tensors of those types only
// pass through extern steps as `Opaque` graph values.
#include <cstdint>
#include <optional>
#include <string_view>

namespace kerf {

enum class DTypeKind : uint8_t { boolean, integer, floating };

enum class DType : uint8_t {
#define DTYPE(name, ...) name,
#include "base/dtype.def"
#undef DTYPE
};

struct DTypeInfo {
  std::string_view text;  // as printed in every IR: "f32", "bool"
  int bytes;
  DTypeKind kind;
  std::string_view torch_name;  // "float32"
  int dlpack_code;
  int dlpack_bits;
};

const DTypeInfo& info(DType dtype);
inline int byte_size(DType dtype) { return info(dtype).bytes; }
inline bool is_floating(DType dtype) { return info(dtype).kind == DTypeKind::floating; }
inline bool is_integer(DType dtype) { return info(dtype).kind == DTypeKind::integer; }
inline std::string_view to_text(DType dtype) { return info(dtype).text; }
std::optional<DType> dtype_from_text(std::string_view text);
std::optional<DType> dtype_from_torch(std::string_view torch_name);

// The type in which arithmetic on `dtype` is done: f32 for f16 and bf16, else itself.
DType compute_dtype(DType dtype);

// One element. Floating types live in `f` (already rounded to the type), integers and bool in `i`
// (already wrapped to the type's width; u8 in 0..255, bool 0 or 1).
struct Scalar {
  DType dtype = DType::f32;
  union {
    double f = 0.0;
    int64_t i;
  };
  static Scalar of(DType dtype, double value);  // rounds or wraps as a C cast to the type would
  static Scalar of_int(DType dtype, int64_t value);
  double as_double() const { return is_floating(dtype) ? f : static_cast<double>(i); }
  int64_t as_int() const { return is_floating(dtype) ? static_cast<int64_t>(f) : i; }
  // Bitwise equality: NaN equals the same NaN, -0.0 differs from 0.0.
  friend bool operator==(const Scalar& a, const Scalar& b) { return a.dtype == b.dtype && a.i == b.i; }
};

// Converts as torch does on the CPU: float to narrower float by round to nearest even; float to integer by
// truncation (out-of-range values saturate to the minimum as x86 does for 32 and 64 bits, then wrap);
// anything to bool is `!= 0`, NaN being true.
Scalar convert(const Scalar& value, DType to);

// Element access in raw memory.
Scalar load_scalar(const void* base, int64_t element, DType dtype);
void store_scalar(void* base, int64_t element, const Scalar& value);

// Rounding helpers, round to nearest even; NaN stays NaN.
float round_to_bf16(float value);
float round_to_f16(float value);
uint16_t bf16_bits(float value);
uint16_t f16_bits(float value);
float f16_value(uint16_t bits);

}  // namespace kerf
