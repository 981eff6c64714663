// Loads and stores of Ascend kernels. A mask that is no box becomes an unmasked transfer of the whole tile with a select (a
// store then rewrites memory past the end), an offset that is no sum a loop over single elements.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "codegen/triton/rules.h"

namespace kerf::triton {

namespace {

constexpr std::string_view kData = "a mask that depends on data: access all and select with tl.where";

class AccessRules {
 public:
  AccessRules(const Trace& trace, const target::NpuTarget& target, Violations& violations)
      : trace_(trace), target_(target), violations_(violations) {}

  void run() {
    for (const Access& access : trace_.accesses) {
      if (access.mask.valid()) check_mask(access.mask);
      check_pointer(access);
      check_alignment(access);
    }
    check_reloads();
    auto reads = std::ranges::count(trace_.accesses, false, &Access::is_store);
    if (reads > target_.most_reads)
      add(value(trace_.accesses.back().at), "reads",
          fmt::format("{} loads, at most {} in one kernel: split it", reads, target_.most_reads));
  }

 private:
  const Value& value(ValueId id) const { return trace_.values[id]; }
  void add(const Value& at, std::string_view rule, std::string_view message) {
    violations_.push_back({at.line, std::string(rule), std::string(message)});
  }

  void check_mask(ValueId id) {
    const Value& mask = value(id);
    if (mask.operation == "&") {
      for (ValueId part : mask.operands) check_mask(part);
    } else if (mask.operation == "[]" || mask.operation == "broadcast_to") {
      check_mask(mask.operands[0]);
    } else if (mask.operation == "<") {
      check_comparison(mask);
    } else if (mask.operation == "|" || mask.operation == "~") {
      add(mask, "mask",
          fmt::format("`{}` in a mask: split the range into loops of their own", mask.operation));
    } else if (is_comparison(mask.operation) && is_index(value(mask.operands[0])) &&
               is_index(value(mask.operands[1]))) {
      add(mask, "mask", fmt::format("`{}` in a mask: write `index < bound`", mask.operation));
    } else {
      add(mask, "mask", kData);
    }
  }

  static bool is_index(const Value& side) { return !is_floating(side.dtype) && side.form.is_affine; }

  static bool is_comparison(std::string_view operation) {
    return operation == ">" || operation == ">=" || operation == "<=" || operation == "==" ||
           operation == "!=";
  }

  void check_comparison(const Value& mask) {
    const Value& index = value(mask.operands[0]);
    const Value& bound = value(mask.operands[1]);
    if (bound.is_tile()) return add(mask, "mask", "the bound of a mask is a scalar: write `index < bound`");
    if (!index.is_tile()) return add(mask, "mask", "a mask without an axis: put the access under `if`");
    if (!is_index(index)) return add(mask, "mask", kData);
    int axes = 0;
    bool is_product = false;
    for (const Term& term : index.form.terms) {
      if (!trace_.symbols[term.symbol].axis.valid()) continue;
      ++axes;
      is_product |= term.is_symbolic || term.factor != 1;
    }
    if (axes > 1) return add(mask, "mask", "an index over several axes: compare each axis by itself");
    if (is_product || axes == 0) return add(mask, "mask", "a multiple of an index: compare the index itself");
    if (mask.range.is_point() && mask.range.low == 1)
      add(mask, "mask", "this mask is always true: leave it out");
    if (mask.range.is_point() && mask.range.low == 0)
      add(mask, "mask", "this mask is never true: leave the access out");
  }

  void check_pointer(const Access& access) {
    const Value& pointer = value(access.pointer);
    if (pointer.is_tile() && !pointer.form.is_affine)
      add(value(access.at), "pointer",
          "the offset is not a sum of axes times strides, which runs element by element: cut the axes, walk "
          "over rows "
          "with a scalar, or leave it to the library");
    for (const Term& term : pointer.form.terms)
      if (trace_.symbols[term.symbol].axis.valid() && !term.is_symbolic && term.factor < 0)
        add(value(access.at), "pointer",
            "the offset falls along an axis, which runs element by element: walk that axis with a scalar, or "
            "leave it to the library");
    for (ValueId operand : pointer.operands)
      if (value(operand).is_tile() && !value(operand).is_pointer && value(operand).dtype == DType::i64)
        add(value(access.at), "index",
            "a 64-bit offset tile: add the 64-bit part to the pointer as a scalar");
  }

  // A whole axis is one row, however long; of a row that is cut, pieces end where a transfer may begin.
  void check_alignment(const Access& access) {
    const Value& pointer = value(access.pointer);
    if (!pointer.is_tile()) return;
    const Dim& last = pointer.dims.back();
    int64_t bytes = last.extent * byte_size(pointer.dtype);
    bool is_cut = last.axis.valid() && trace_.axes[last.axis].is_walked;
    if (last.extent == 1 || !is_cut || bytes % target_.alignment == 0) return;
    add(value(access.at), "alignment",
        fmt::format("the last dimension has {} bytes of a longer axis: take a block of a multiple of {} "
                    "bytes and mask",
                    bytes, target_.alignment));
  }

  // A load of what the same program stores, before or in an earlier iteration. Reading an element and then writing that
  // same element is no such case.
  void check_reloads() {
    for (const Access& load : trace_.accesses) {
      if (load.is_store) continue;
      for (const Access& store : trace_.accesses) {
        if (!store.is_store || value(store.at).buffer != value(load.at).buffer) continue;
        bool is_later = load.at > store.at;
        bool is_again =
            have_common_loop(value(load.at).loop, value(store.at).loop) && !have_same_offset(load, store);
        if (!is_later && !is_again) continue;
        add(value(load.at), "reload",
            fmt::format("{} is stored in line {} and loaded here: keep the value, or make two kernels",
                        trace_.buffers[value(load.at).buffer].name, value(store.at).line));
        break;
      }
    }
  }

  bool have_common_loop(LoopId a, LoopId b) const {
    for (; a.valid(); a = trace_.loops[a].parent)
      for (LoopId other = b; other.valid(); other = trace_.loops[other].parent)
        if (a == other) return true;
    return false;
  }

  bool have_same_offset(const Access& a, const Access& b) const {
    IndexForm difference = triton::add(value(a.pointer).form, value(b.pointer).form, -1);
    return difference.is_affine && difference.constant == 0 && difference.terms.empty();
  }

  const Trace& trace_;
  const target::NpuTarget& target_;
  Violations& violations_;
};

}  // namespace

void check_npu_accesses(const Trace& trace, const target::NpuTarget& target, Violations& violations) {
  AccessRules(trace, target, violations).run();
}

}  // namespace kerf::triton
