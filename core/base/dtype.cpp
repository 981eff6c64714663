#include "base/dtype.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace kerf {

namespace {

constexpr DTypeInfo kInfo[] = {
#define DTYPE(name, text, bytes, kind, torch_name, code, bits) \
  {text, bytes, DTypeKind::kind, torch_name, code, bits},
#include "base/dtype.def"
#undef DTYPE
};

int64_t wrap(DType dtype, int64_t v) {
  switch (dtype) {
    case DType::b1: return v != 0;
    case DType::u8: return static_cast<uint8_t>(v);
    case DType::i8: return static_cast<int8_t>(v);
    case DType::i16: return static_cast<int16_t>(v);
    case DType::i32: return static_cast<int32_t>(v);
    default: return v;
  }
}

int64_t truncate_to_int64(double v) {
  if (!(v >= -9223372036854775808.0 && v < 9223372036854775808.0)) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(v);
}

}  // namespace

const DTypeInfo& info(DType dtype) { return kInfo[static_cast<int>(dtype)]; }

std::optional<DType> dtype_from_text(std::string_view text) {
  for (size_t i = 0; i < std::size(kInfo); ++i)
    if (kInfo[i].text == text) return static_cast<DType>(i);
  return std::nullopt;
}

std::optional<DType> dtype_from_torch(std::string_view torch_name) {
  for (size_t i = 0; i < std::size(kInfo); ++i)
    if (kInfo[i].torch_name == torch_name) return static_cast<DType>(i);
  return std::nullopt;
}

DType compute_dtype(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype; }

uint16_t bf16_bits(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float round_to_bf16(float value) {
  return std::bit_cast<float>(static_cast<uint32_t>(bf16_bits(value)) << 16);
}

uint16_t f16_bits(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = (bits >> 16) & 0x8000;
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | ((magnitude >> 13) & 0x1ff));
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // rounds beyond 65504
  if (magnitude < 0x38800000) {
    // Subnormal result: adding 0.5 puts the 10 kept bits at the end of the mantissa, rounded to even.
    float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000));
  }
  uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

float f16_value(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 0x1f;
  uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000 | (mantissa << 13));
  if (exponent == 0) {
    float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

float round_to_f16(float value) { return f16_value(f16_bits(value)); }

Scalar Scalar::of(DType dtype, double value) {
  Scalar s;
  s.dtype = dtype;
  switch (dtype) {
    case DType::f64: s.f = value; break;
    case DType::f32: s.f = static_cast<float>(value); break;
    case DType::f16: s.f = round_to_f16(static_cast<float>(value)); break;
    case DType::bf16: s.f = round_to_bf16(static_cast<float>(value)); break;
    case DType::b1: s.i = value != 0.0; break;
    default: s.i = wrap(dtype, truncate_to_int64(value)); break;
  }
  return s;
}

Scalar Scalar::of_int(DType dtype, int64_t value) {
  if (is_floating(dtype)) {
    // f16 and bf16 go through f32, as torch's conversion of an int64 does.
    if (dtype == DType::f64) return of(dtype, static_cast<double>(value));
    return of(dtype, static_cast<float>(value));
  }
  Scalar s;
  s.dtype = dtype;
  s.i = wrap(dtype, value);
  return s;
}

Scalar convert(const Scalar& value, DType to) {
  if (!is_floating(value.dtype)) return Scalar::of_int(to, value.i);
  if (to == DType::i8 || to == DType::i16 || to == DType::u8) {
    // x86 converts to 32 bits first: out of range gives the 32-bit minimum, whose low bits are zero.
    double v = value.f;
    int64_t wide =
        v > -2147483649.0 && v < 2147483648.0 ? static_cast<int64_t>(v) : std::numeric_limits<int32_t>::min();
    return Scalar::of_int(to, wide);
  }
  if (to == DType::i32) {
    double v = value.f;
    return Scalar::of_int(to, v > -2147483649.0 && v < 2147483648.0 ? static_cast<int64_t>(v)
                                                                    : std::numeric_limits<int32_t>::min());
  }
  return Scalar::of(to, value.f);
}

Scalar load_scalar(const void* base, int64_t element, DType dtype) {
  const char* p = static_cast<const char*>(base) + element * byte_size(dtype);
  auto read = [p]<class T>(T) {
    T v;
    std::memcpy(&v, p, sizeof v);
    return v;
  };
  Scalar s;
  s.dtype = dtype;
  switch (dtype) {
    case DType::f64: s.f = read(double{}); break;
    case DType::f32: s.f = read(float{}); break;
    case DType::f16: s.f = f16_value(read(uint16_t{})); break;
    case DType::bf16: s.f = std::bit_cast<float>(static_cast<uint32_t>(read(uint16_t{})) << 16); break;
    case DType::i64: s.i = read(int64_t{}); break;
    case DType::i32: s.i = read(int32_t{}); break;
    case DType::i16: s.i = read(int16_t{}); break;
    case DType::i8: s.i = read(int8_t{}); break;
    case DType::u8: s.i = read(uint8_t{}); break;
    case DType::b1: s.i = read(uint8_t{}) != 0; break;
  }
  return s;
}

void store_scalar(void* base, int64_t element, const Scalar& value) {
  char* p = static_cast<char*>(base) + element * byte_size(value.dtype);
  auto write = [p](auto v) { std::memcpy(p, &v, sizeof v); };
  switch (value.dtype) {
    case DType::f64: write(value.f); break;
    case DType::f32: write(static_cast<float>(value.f)); break;
    case DType::f16: write(f16_bits(static_cast<float>(value.f))); break;
    case DType::bf16: write(bf16_bits(static_cast<float>(value.f))); break;
    case DType::i64: write(value.i); break;
    case DType::i32: write(static_cast<int32_t>(value.i)); break;
    case DType::i16: write(static_cast<int16_t>(value.i)); break;
    case DType::i8: write(static_cast<int8_t>(value.i)); break;
    case DType::u8: write(static_cast<uint8_t>(value.i)); break;
    case DType::b1: write(static_cast<uint8_t>(value.i != 0)); break;
  }
}

}  // namespace kerf
