#include "runtime/cpu/aoti.h"

#include <dlfcn.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <mutex>
#include <utility>

#include "base/check.h"

namespace kerf::runtime::cpu {

namespace {

// The C interface, as torch 2.11 and later export it. Every function that returns int32_t returns 0 on success.
using Tensor = struct TensorOpaque*;
using Product = int32_t (*)(Tensor out, Tensor a, Tensor b);
using AddedProduct = int32_t (*)(Tensor out, Tensor self, Tensor a, Tensor b, double beta, double alpha);

struct Torch {
  int32_t (*create_tensor_from_blob)(void* data, int64_t rank, const int64_t* shape, const int64_t* strides,
                                     int64_t offset, int32_t dtype, int32_t device_type, int32_t device_index,
                                     Tensor* result);
  int32_t (*delete_tensor_object)(Tensor tensor);
  int32_t (*device_type_cpu)();
  int32_t (*dtype_float32)();
  int32_t (*dtype_float64)();
  int32_t (*dtype_bfloat16)();
  bool (*grad_mode_is_enabled)();
  void (*grad_mode_set_enabled)(bool enabled);
  Product mm;
  Product bmm;
  AddedProduct addmm;
  AddedProduct baddbmm;
  const char* (*exception_text)();  // may be absent: torch before 2.12
};

const Torch* load_torch() {
  static Torch torch;
  // Python loads libtorch without making its symbols global, so the library is asked by name as well. Never loads it.
  void* library = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
  auto find = [library](auto& function, const char* name) {
    void* symbol = dlsym(RTLD_DEFAULT, name);
    if (!symbol && library) symbol = dlsym(library, name);
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
    return symbol != nullptr;
  };
  find(torch.exception_text, "torch_exception_get_what_without_backtrace");
  bool complete = find(torch.create_tensor_from_blob, "aoti_torch_create_tensor_from_blob") &&
                  find(torch.delete_tensor_object, "aoti_torch_delete_tensor_object") &&
                  find(torch.device_type_cpu, "aoti_torch_device_type_cpu") &&
                  find(torch.dtype_float32, "aoti_torch_dtype_float32") &&
                  find(torch.dtype_float64, "aoti_torch_dtype_float64") &&
                  find(torch.dtype_bfloat16, "aoti_torch_dtype_bfloat16") &&
                  find(torch.grad_mode_is_enabled, "aoti_torch_grad_mode_is_enabled") &&
                  find(torch.grad_mode_set_enabled, "aoti_torch_grad_mode_set_enabled") &&
                  find(torch.mm, "aoti_torch_cpu_mm_out") && find(torch.bmm, "aoti_torch_cpu_bmm_out") &&
                  find(torch.addmm, "aoti_torch_cpu_addmm_out") &&
                  find(torch.baddbmm, "aoti_torch_cpu_baddbmm_out");
  return complete ? &torch : nullptr;
}

// Null while libtorch is not loaded; then every query looks again.
const Torch* torch() {
  static std::atomic<const Torch*> found = nullptr;
  if (const Torch* known = found.load(std::memory_order_acquire)) return known;
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (!found.load(std::memory_order_relaxed)) found.store(load_torch(), std::memory_order_release);
  return found.load(std::memory_order_relaxed);
}

struct Entry {
  std::string_view op;
  size_t operands;
  Product Torch::* product;
  AddedProduct Torch::* added_product;
};

constexpr Entry kEntries[] = {
    {"aten.mm.default", 2, &Torch::mm, nullptr},
    {"aten.bmm.default", 2, &Torch::bmm, nullptr},
    {"aten.addmm.default", 3, nullptr, &Torch::addmm},
    {"aten.baddbmm.default", 3, nullptr, &Torch::baddbmm},
};

const Entry* find_entry(std::string_view op) {
  auto entry = std::ranges::find(kEntries, op, &Entry::op);
  return entry == std::end(kEntries) ? nullptr : entry;
}

bool has_dtype(DType dtype) { return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16; }

// `beta` and `alpha` of the added products; everything else positional is a tensor.
bool is_scale(const target::ExternArgument& argument) {
  bool number =
      std::holds_alternative<double>(argument.value) || std::holds_alternative<sym::Expr>(argument.value);
  return number && (argument.keyword == "beta" || argument.keyword == "alpha");
}

int32_t dtype_code(const Torch& torch, DType dtype) {
  switch (dtype) {
    case DType::f32: return torch.dtype_float32();
    case DType::f64: return torch.dtype_float64();
    case DType::bf16: return torch.dtype_bfloat16();
    case DType::b1:
    case DType::u8:
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
    case DType::f16: break;
  }
  UNREACHABLE("no direct call for {}", to_text(dtype));
}

double scale(const CallValueList& arguments, std::string_view keyword) {
  for (const CallValue& argument : arguments) {
    if (argument.keyword != keyword) continue;
    if (auto* integer = std::get_if<int64_t>(&argument.value)) return static_cast<double>(*integer);
    return std::get<double>(argument.value);
  }
  return 1.0;
}

// The entries call kernels below autograd, which record nothing; but kernels may call other operators, and with
// gradients enabled those would at least be slower.
class NoGrad {
 public:
  explicit NoGrad(const Torch& torch) : torch_(torch), was_enabled_(torch.grad_mode_is_enabled()) {
    if (was_enabled_) torch_.grad_mode_set_enabled(false);
  }
  ~NoGrad() {
    if (was_enabled_) torch_.grad_mode_set_enabled(true);
  }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  const Torch& torch_;
  bool was_enabled_;
};

// torch's tensor object over memory of ours. Made anew only when the address has changed.
class Operand {
 public:
  Operand(const Torch& torch, const CallTensor& tensor) : torch_(torch), tensor_(tensor) {}
  ~Operand() { reset(); }
  Operand(const Operand&) = delete;
  Operand& operator=(const Operand&) = delete;

  Tensor get() {
    if (handle_ && data_ == tensor_.data) return handle_;
    reset();
    data_ = tensor_.data;
    int32_t failed = torch_.create_tensor_from_blob(
        data_, static_cast<int64_t>(tensor_.shape.size()), tensor_.shape.data(), tensor_.strides.data(), 0,
        dtype_code(torch_, tensor_.dtype), torch_.device_type_cpu(), 0, &handle_);
    if (failed) {
      handle_ = nullptr;
      throw RuntimeError(fmt::format("torch cannot view memory as {}", text()));
    }
    return handle_;
  }

  std::string text() const {
    return fmt::format("{}[{}]", to_text(tensor_.dtype), fmt::join(tensor_.shape, ", "));
  }

 private:
  void reset() {
    if (handle_) torch_.delete_tensor_object(std::exchange(handle_, nullptr));
  }

  const Torch& torch_;
  const CallTensor& tensor_;
  void* data_ = nullptr;
  Tensor handle_ = nullptr;
};

}  // namespace

bool has_direct_entry(std::string_view op) { return find_entry(op) && torch(); }

bool has_direct_entry(const target::ExternCall& call) {
  const Entry* entry = find_entry(call.op);
  if (!entry || call.results.size() != 1 || call.results[0].is_opaque || !has_dtype(call.results[0].dtype))
    return false;
  size_t operands = 0;
  for (const target::ExternArgument& argument : call.arguments) {
    if (auto* view = std::get_if<target::TensorView>(&argument.value)) {
      if (!argument.keyword.empty() || view->dtype != call.results[0].dtype) return false;
      ++operands;
    } else if (!is_scale(argument)) {
      return false;
    }
  }
  return operands == entry->operands && torch();
}

struct DirectCall::State {
  const Torch& torch;
  const Entry& entry;
  std::string op;
  Operand result;
  std::array<std::unique_ptr<Operand>, 3> operands;
  double beta;
  double alpha;

  int32_t call() {
    NoGrad guard(torch);
    Tensor out = result.get();
    Tensor a = operands[0]->get();
    Tensor b = operands[1]->get();
    if (entry.product) return (torch.*entry.product)(out, a, b);
    return (torch.*entry.added_product)(out, a, b, operands[2]->get(), beta, alpha);
  }
};

DirectCall::DirectCall(std::string_view op, const CallValueList& arguments, const CallTensor& result) {
  const Entry* entry = find_entry(op);
  CHECK(entry && torch(), "{} has no direct entry", op);
  state_.reset(new State{*torch(),
                         *entry,
                         std::string(op),
                         {*torch(), result},
                         {},
                         scale(arguments, "beta"),
                         scale(arguments, "alpha")});
  size_t count = 0;
  for (const CallValue& argument : arguments)
    if (auto* tensor = std::get_if<CallTensor>(&argument.value))
      state_->operands[count++] = std::make_unique<Operand>(state_->torch, *tensor);
  CHECK(count == entry->operands, "{} has {} operands, not {}", op, count, entry->operands);
}

DirectCall::~DirectCall() = default;

void DirectCall::run() {
  if (state_->call() == 0) return;
  std::string operands;
  for (const auto& operand : state_->operands)
    if (operand) operands += (operands.empty() ? "" : ", ") + operand->text();
  const char* text =
      state_->torch.exception_text ? state_->torch.exception_text() : "torch reported an error";
  throw RuntimeError(fmt::format("{}({}) failed: {}", state_->op, operands, text));
}

}  // namespace kerf::runtime::cpu
