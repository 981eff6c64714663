// How bishengir lays tiles out, as seen in the plans that it made for kernels of this form (docs/kernel_text.md has the
// comparison). What is transferred has buffers of its own for the whole kernel, two each inside of loops; what is computed
// takes over the buffer of an operand that is not needed any more.
#include "codegen/triton/buffer_bytes.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/triton/tl_functions.h"

namespace kerf::triton {

namespace {

constexpr int64_t kAlignment = 32;
constexpr int64_t kSquare = 16;  // rows that are transposed at once
// A result that is stored so soon is not computed in the buffer of what was loaded.
constexpr int kFewSteps = 3;
constexpr int kFar = 1 << 20;

int64_t up_to(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }
int64_t aligned(int64_t bytes) { return up_to(bytes, kAlignment); }

struct Buffer {
  int64_t bytes = 0;
  bool is_transferred = false;  // by a load or a store: all the time
  bool is_squared = false;      // laid out for a transposition
  int copies = 1;
  size_t begin = 0;
  size_t end = 0;
};

class BufferPlan {
 public:
  explicit BufferPlan(const Trace& trace)
      : trace_(trace),
        is_data_(trace.values.size()),
        last_use_(trace.values.size()),
        steps_(trace.values.size(), kFar),
        squared_(trace.values.size()),
        buffer_of_(trace.values.size(), -1) {}

  int64_t peak() {
    pads_rows_ = std::ranges::any_of(trace_.accesses, [&](const Access& access) {
      const Value& pointer = at(access.pointer);
      int64_t row = row_of(pointer).elements;
      return row < elements_of(pointer) && row * byte_size(pointer.dtype) % kAlignment != 0;
    });
    spreads_ = std::ranges::any_of(trace_.accesses, [&](const Access& access) {
      return access.is_store && at(access.pointer).is_tile() && is_spread(at(access.pointer));
    });
    mark_data();
    for (size_t i = 0; i < trace_.values.size(); ++i) square(ValueId(i));
    for (size_t i = 0; i < trace_.values.size(); ++i) place(ValueId(i));
    return largest_sum();
  }

 private:
  const Value& at(ValueId id) const { return trace_.values[id]; }

  // What is computed for what is stored; offsets and masks are not tiles of the buffer.
  void mark_data() {
    mark_data_once();
    mark_data_once();  // what loops carry comes from further down
  }

  void mark_data_once() {
    for (size_t i = trace_.values.size(); i-- > 0;) {
      const Value& value = at(ValueId(i));
      if (value.operation == "store") use(value.operands[1], ValueId(i), 0);
      if (!is_data_[i] || value.operation == "load") continue;
      for (ValueId operand : value.operands) use(operand, ValueId(i), steps_[i]);
    }
  }

  void use(ValueId operand, ValueId user, int steps) {
    is_data_[operand.index] = true;
    if (is_apart(at(user))) steps = kFar;
    steps_[operand.index] = std::min(steps_[operand.index], steps + (is_view(at(user)) ? 0 : 1));
    last_use_[operand.index] = std::max(last_use_[operand.index], end_of_use(operand, user));
  }

  // A loop uses until its end what comes from outside.
  size_t end_of_use(ValueId operand, ValueId user) const {
    if (operand > user) return trace_.loops[at(user).loop].end.index;  // carried to the next iteration
    size_t end = user.index;
    for (LoopId loop = at(user).loop; loop.valid(); loop = trace_.loops[loop].parent) {
      if (operand >= trace_.loops[loop].begin && operand < trace_.loops[loop].end) break;
      end = std::max<size_t>(end, trace_.loops[loop].end.index);
    }
    return end;
  }

  // Never computed in the buffer of an operand.
  static bool is_apart(const Value& value) {
    static constexpr std::string_view kApart[] = {"load", "where",  "permute", "broadcast_to", "carried",
                                                  "dot",  "select", "split",   "join"};
    return value.folded >= 0 || std::ranges::find(kApart, value.operation) != std::end(kApart);
  }

  bool is_view(const Value& value) const {
    if (value.operation == "[]" || value.operation == "reshape") return true;
    return value.operation == "to" && at(value.operands[0]).dtype == value.dtype;
  }

  static std::vector<Dim> long_dims(const Value& value) {
    std::vector<Dim> dims;
    std::ranges::copy_if(value.dims, std::back_inserter(dims), [](const Dim& dim) { return dim.extent > 1; });
    return dims;
  }

  // A permutation that gives a tile another last dimension transposes squares of 16 rows by 32 bytes, of bytes 32 by 32: the
  // tile is padded to them before and after.
  void square(ValueId id) {
    const Value& value = at(id);
    if (value.operation != "permute" || !is_data_[id.index]) return;
    const std::vector<Dim> before = long_dims(at(value.operands[0])), after = long_dims(value);
    if (before.size() < 2 || same_dim(before.back(), after.back())) return;
    int64_t size = byte_size(value.dtype);
    int64_t row = kAlignment / size;
    int64_t to = up_to(after.back().extent, row);
    int64_t from = up_to(before.back().extent, to % kSquare == 0 ? row : std::max(row, kSquare));
    int64_t bytes = elements_of(value) / (before.back().extent * after.back().extent) * to * from * size;
    for (ValueId padded : {id, value.operands[0]})
      squared_[padded.index] = std::max(squared_[padded.index], bytes);
  }

  bool same_dim(const Dim& a, const Dim& b) const {
    return a.extent == b.extent && a.axis.valid() && b.axis.valid() && trace_.same_axis(a.axis, b.axis);
  }

  int64_t bytes_of(ValueId id) const { return std::max(squared_[id.index], packed_bytes(id)); }

  int64_t packed_bytes(ValueId id) const {
    const Value& value = at(id);
    int64_t elements = elements_of(value);
    if (spreads_ && elements > 1) return elements * kAlignment;
    bool is_load = value.operation == "load";
    if (value.dtype == DType::b1 && !is_load) return aligned((elements + 7) / 8);
    if (is_load) return bytes_of_transfer(at(value.operands[0]), false);
    int64_t row = value.dims.back().extent;
    if (row == 1 || !pads_rows_) return aligned(elements * byte_size(value.dtype));
    return elements / row * aligned(row * byte_size(value.dtype));
  }

  struct Row {
    int64_t elements = 1;  // that lie one after the other in memory
    int64_t stride = 1;    // from one element to the next, else; 0: not known
  };

  Row row_of(const Value& pointer) const {
    Row row;
    for (size_t i = pointer.dims.size(); i-- > 0;) {
      const Dim& dim = pointer.dims[i];
      if (dim.extent == 1) continue;
      int64_t stride = dim.axis.valid() ? pointer.form.factor(trace_.axes[dim.axis].symbol) : 0;
      if (stride != row.elements) {
        if (row.elements == 1) row.stride = stride;
        break;
      }
      row.elements *= dim.extent;
    }
    return row;
  }

  // What a load or store takes in the buffer: rows are padded. Single elements are rows too, but every second one is
  // loaded with its neighbour.
  int64_t bytes_of_transfer(const Value& pointer, bool is_store) const {
    int64_t elements = elements_of(pointer);
    int64_t size = byte_size(pointer.dtype);
    Row row = row_of(pointer);
    if (row.stride == 2 && !is_store) return aligned(2 * elements * size);
    return elements / row.elements * aligned(row.elements * size);
  }

  bool is_spread(const Value& pointer) const {
    return row_of(pointer).elements == 1 && elements_of(pointer) > 1;
  }

  void place(ValueId id) {
    const Value& value = at(id);
    if (value.operation == "store") place_store(id);
    if (!is_data_[id.index] || !value.is_tile()) return;
    int& buffer = buffer_of_[id.index];
    if (is_view(value) && buffer_of_[value.operands[0].index] >= 0)
      buffer = buffer_of_[value.operands[0].index];
    else
      buffer = taken_over(id).value_or(-1);
    if (value.operation == "zeros" || value.operation == "full") return fill(id);
    if (buffer < 0) {
      buffer = static_cast<int>(buffers_.size());
      bool is_load = value.operation == "load";
      int copies = is_load && value.loop.valid() ? 2 : 1;
      buffers_.push_back({bytes_of(id), is_load, squared_[id.index] > 0, copies, id.index, id.index});
      if (is_load && is_spread(at(value.operands[0]))) spread(id, buffer);
    }
    Buffer& placed = buffers_[static_cast<size_t>(buffer)];
    placed.end = std::max(placed.end, last_use_[id.index]);
    add_scratch(id);
  }

  // Single elements are packed after a load.
  void spread(ValueId id, int buffer) {
    Buffer& packed = buffers_[static_cast<size_t>(buffer)];
    Buffer padded = packed;
    packed.bytes = aligned(elements_of(at(id)) * byte_size(at(id).dtype));
    packed.is_transferred = false;
    packed.copies = 1;
    buffers_.push_back(padded);
  }

  // Tiles of one number are made once, before the loops, and shared.
  void fill(ValueId id) {
    const Value& value = at(id);
    bool has_number = !value.operands.empty() && at(value.operands[0]).is_constant;
    fill(has_number ? at(value.operands[0]) : value, bytes_of(id));
  }

  void fill(const Value& number, int64_t bytes) {
    double value = is_floating(number.dtype) ? number.number : static_cast<double>(number.range.low);
    for (auto& [other, size] : filled_)
      if (other == value || (other != other && value != value)) return void(size = std::max(size, bytes));
    filled_.emplace_back(value, bytes);
  }

  void place_store(ValueId id) {
    const Value& store = at(id);
    const Value& stored = at(store.operands[1]);
    int buffer = buffer_of_[store.operands[1].index];
    const Value& pointer = at(store.operands[0]);
    int copies = store.loop.valid() ? 2 : 1;
    if (elements_of(stored) < elements_of(pointer)) {  // repeated for the store
      buffers_.push_back({bytes_of_transfer(pointer, true), true, false, copies, id.index, id.index});
      return;
    }
    if (buffer < 0) return;
    Buffer& placed = buffers_[static_cast<size_t>(buffer)];
    placed.is_transferred = true;
    placed.copies = std::max(placed.copies, copies);
    if (stored.dtype == DType::b1) placed.bytes = std::max(placed.bytes, elements_of(stored));
    if (stored.dtype == DType::b1) scratch(id, 2 * elements_of(stored));
  }

  // The buffer of an operand that ends here and is as large.
  std::optional<int> taken_over(ValueId id) const {
    const Value& value = at(id);
    if (is_apart(value)) return std::nullopt;
    std::optional<int> found;
    for (ValueId operand : value.operands) {
      int candidate = buffer_of_[operand.index];
      if (is_carried_as(operand, id)) return candidate;
      if (candidate < 0 || last_use_[operand.index] > id.index) continue;
      const Buffer& buffer = buffers_[static_cast<size_t>(candidate)];
      bool is_as_large = buffer.is_squared ? buffer.bytes >= bytes_of(id) : buffer.bytes == bytes_of(id);
      bool is_free = buffer.end <= id.index && is_as_large && at(operand).dtype == value.dtype;
      bool is_soon = at(operand).operation == "load" && steps_[id.index] < kFewSteps;
      if (!is_free || is_soon) continue;
      if (!found || buffer.is_transferred) found = candidate;
    }
    return found;
  }

  // Sums of loops are computed in place.
  bool is_carried_as(ValueId before, ValueId after) const {
    const Value& value = at(before);
    return value.operation == "carried" && value.operands.back() == after;
  }

  void scratch(ValueId id, int64_t bytes, bool until_end = false) {
    size_t end = id.index;
    if (until_end && at(id).loop.valid()) end = trace_.loops[at(id).loop].end.index;
    if (bytes > 0) buffers_.push_back({aligned(bytes), false, false, 1, id.index, end});
  }

  void add_scratch(ValueId id) {
    const Value& value = at(id);
    if (value.operands.empty()) return;
    const Value& first = at(value.operands[0]);
    int64_t elements = elements_of(value);
    if (value.folded >= 0) scratch(id, fold_scratch(value), true);
    const TlFunction* function = find_tl_function(value.operation);
    if (value.operation == "permute") return scratch(id, permute_scratch(value));
    if (function && !value.keeps_nan) scratch(id, 4 * elements * function->scratch);
    if (is_comparison(value)) {
      for (ValueId operand : value.operands)
        if (!at(operand).is_tile()) fill(at(operand), elements * byte_size(first.dtype));
      bool are_spread = std::ranges::all_of(value.operands, [&](ValueId operand) {
        return at(operand).is_tile() && elements_of(at(operand)) < elements;
      });
      if (are_spread)
        scratch(id, elements * byte_size(first.dtype), true);  // rows by columns: one is repeated
      if (byte_size(first.dtype) == 1) scratch(id, 6 * elements);
    } else if (value.operation == "where" && first.operation == "load") {
      scratch(id, 4 * elements);  // bytes to bits
    } else if (value.operation == "to" && byte_size(first.dtype) == 1) {
      scratch(id, 2 * elements);  // by way of halves
    } else if (value.operation == "/" && !first.is_tile()) {
      fill(first, 4 * elements);
    } else if (value.operation == "where" && elements_of(first) < elements) {
      scratch(id, 2 * elements);  // the condition is repeated as halves
    } else if (value.dtype == DType::i8 && value.operation != "load" && !is_view(value) &&
               value.operation != "to") {
      scratch(id, 20 * elements);  // by way of halves and floats
    }
  }

  // More than two dimensions that change places do so in two steps.
  int64_t permute_scratch(const Value& value) const {
    const std::vector<Dim> before = long_dims(at(value.operands[0])), after = long_dims(value);
    size_t moved = 0;
    for (size_t i = 0; i < after.size(); ++i) moved += !same_dim(before[i], after[i]);
    bool is_transposed = !after.empty() && !same_dim(before.back(), after.back());
    return moved > 2 && is_transposed ? 2 * elements_of(value) * byte_size(value.dtype) : 0;
  }

  int64_t fold_scratch(const Value& value) const {
    const std::vector<Dim>& dims = at(value.operands[0]).dims;
    int64_t bytes = 4;
    for (auto i = static_cast<size_t>(value.folded); i < dims.size(); ++i) bytes *= dims[i].extent;
    bool is_last = value.folded + 1 == static_cast<int64_t>(dims.size());
    if (!is_last) return bytes;
    bool is_position = value.operation == "argmax" || value.operation == "argmin";
    return 4 * elements_of(at(value.operands[0])) / (is_position ? 1 : 2);
  }

  static bool is_comparison(const Value& value) {
    static constexpr std::string_view kAll[] = {"<", "<=", ">", ">=", "==", "!="};
    return std::ranges::find(kAll, value.operation) != std::end(kAll);
  }

  int64_t largest_sum() const {
    int64_t always = 0;
    for (const auto& [number, bytes] : filled_) always += bytes;
    std::vector<int64_t> change(trace_.values.size() + 2);
    for (const Buffer& buffer : buffers_) {
      if (buffer.is_transferred) {
        always += buffer.bytes * buffer.copies;
        continue;
      }
      change[buffer.begin] += buffer.bytes;
      change[buffer.end + 1] -= buffer.bytes;
    }
    int64_t sum = 0;
    int64_t largest = 0;
    for (int64_t bytes : change) largest = std::max(largest, sum += bytes);
    return always + largest;
  }

  const Trace& trace_;
  std::vector<bool> is_data_;
  std::vector<size_t> last_use_;
  std::vector<int> steps_;        // operations to the nearest store, this one counted
  std::vector<int64_t> squared_;  // bytes of what is transposed
  std::vector<int> buffer_of_;    // -1: none
  std::vector<Buffer> buffers_;
  std::vector<std::pair<double, int64_t>> filled_;  // tiles of one number: the number, bytes
  bool pads_rows_ = false;
  bool spreads_ = false;  // a store of single elements: then all tiles are laid out so
};

}  // namespace

int64_t buffer_bytes(const Trace& trace) { return BufferPlan(trace).peak(); }

int64_t buffer_bytes(const KernelFile& file, const NamedIntegers& blocks) {
  return buffer_bytes(trace_kernel(file, blocks));
}

}  // namespace kerf::triton
