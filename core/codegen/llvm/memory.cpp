#include <algorithm>
#include <numeric>

#include "codegen/llvm/emission.h"
#include "sym/text.h"

// Loads and stores. Which form an access takes depends on how its index moves from lane to lane: not at all, by 1,
// by -1, or anyhow. Addresses are only sure to be aligned to the element.

namespace kerf::codegen {

namespace {

enum class Pattern : uint8_t { uniform, forward, backward, scattered };

struct Access {
  Pattern pattern = Pattern::uniform;
  Operand address;  // scalar: of lane 0, backward: of the last lane; scattered: of each
};

Operand bool_to_byte(Emission& e, const Operand& v) { return e.b.convert("zext", v, Prim::i8, "byte"); }

Operand to_storage(Emission& e, const Operand& v) { return v.type.prim == Prim::i1 ? bool_to_byte(e, v) : v; }

Access access(Emission& e, loop::BufferId buffer, sym::Expr index) {
  Prim prim = storage_prim(e.kernel.buffers[buffer].dtype);
  const Operand& base = e.buffers[buffer];
  auto stride = lane_stride(e, index);
  if (!stride) return {Pattern::scattered, e.b.element(prim, base, lane_index(e, index))};
  Operand first = address_of(e, prim, base, index);
  if (stride->is_constant(0)) return {Pattern::uniform, first};
  if (stride->is_constant(1)) return {Pattern::forward, first};
  if (stride->is_constant(-1)) {
    return {Pattern::backward, e.b.element(prim, first, int_constant(Prim::i64, 1 - e.lanes))};
  }
  Operand steps = e.b.binary("mul", lane_numbers(Prim::i64, e.lanes), scalar_index(e, *stride), "steps");
  return {Pattern::scattered, e.b.element(prim, first, steps)};
}

Operand both(Emission& e, const Operand& a, const Operand& c) {
  if (!a.valid()) return c;
  if (!c.valid()) return a;
  return e.b.binary("and", a, c, "mask");
}

std::string typed(const Operand& v) { return to_text(v.type) + " " + v.text; }

Operand all_lanes(Emission& e) { return e.b.broadcast(int_constant(Prim::i1, 1), e.lanes); }

Operand load_scalar_where(Emission& e, const Access& at, Type type, int align, const Operand& mask) {
  if (!mask.valid()) return e.b.load(type, at.address, align);
  return when(e, any_lane(e, mask), zero_of(type), [&] { return e.b.load(type, at.address, align); });
}

Operand load_run(Emission& e, const Access& at, Type type, int align, Operand mask) {
  Operand result;
  bool backward = at.pattern == Pattern::backward;
  if (!mask.valid()) {
    result = e.b.load(type, at.address, align);
  } else {
    mask = e.b.broadcast(mask, e.lanes);
    if (backward) mask = e.b.reverse(mask);
    Operand arguments[] = {at.address, int_constant(Prim::i32, align), mask, zero_of(type)};
    result = e.b.call(type, "llvm.masked.load." + suffix(type) + ".p0", arguments, "load");
  }
  return backward ? e.b.reverse(result) : result;
}

Operand gather(Emission& e, const Access& at, Type type, int align, const Operand& mask) {
  Operand active = mask.valid() ? e.b.broadcast(mask, e.lanes) : all_lanes(e);
  Operand arguments[] = {at.address, int_constant(Prim::i32, align), active, zero_of(type)};
  return e.b.call(type, "llvm.masked.gather." + suffix(type) + "." + suffix(at.address.type), arguments,
                  "gather");
}

// Of stores to one place, in order, the last active lane's value stays.
Operand last_active(Emission& e, const Operand& vector) {
  Operand lane = e.mask.valid() ? e.b.find_lane(e.mask, true) : int_constant(Prim::i64, e.lanes - 1);
  return e.b.extract(vector, lane);
}

// Streams past the cache when the address allows; `align` bytes is what the hardware's stores of this width need.
void store_streaming(Emission& e, const Operand& value, const Operand& address, int element_bytes) {
  Builder& b = e.b;
  int align = std::min(e.target.vector_bytes, element_bytes * value.type.lanes);
  Operand low = b.binary("and", b.convert("ptrtoint", address, Prim::i64, "bits"),
                         int_constant(Prim::i64, align - 1), "misaligned");
  Operand aligned = b.compare("icmp eq", low, int_constant(Prim::i64, 0), "aligned");
  Label stream = b.new_label("stream"), plain = b.new_label("plain"), join = b.new_label("join");
  b.branch(aligned, stream, plain);
  b.start(stream);
  b.store(value, address, align, ", !nontemporal !{i32 1}");
  b.branch(join);
  b.start(plain);
  b.store(value, address, element_bytes);
  b.branch(join);
  b.start(join);
  e.has_streamed = true;
}

// Whether the stores of a vector loop fill each cache line at once, or one after the other: what leaves a line in part
// costs more past the cache than in it (bf16 tiles of 16 lanes: 2.7 times).
bool fills_lines(const Emission& e, int element_bytes) {
  constexpr int kLeast = 16;
  int bytes = element_bytes * e.lanes;
  return bytes >= kCacheLine || (bytes >= kLeast && e.preloaded.empty() && e.nest.back() == e.lane_axis);
}

void store_run(Emission& e, const loop::Buffer& buffer, const Access& at, Operand value) {
  Operand mask = e.mask;
  int align = byte_size(buffer.dtype);
  if (at.pattern == Pattern::backward) {
    value = e.b.reverse(value);
    if (mask.valid()) mask = e.b.reverse(mask);
  }
  if (mask.valid()) {
    Operand arguments[] = {value, at.address, int_constant(Prim::i32, align), mask};
    e.b.call_void("llvm.masked.store." + suffix(value.type) + ".p0", arguments);
  } else if (buffer.non_temporal && fills_lines(e, align)) {
    store_streaming(e, value, at.address, align);
  } else {
    e.b.store(value, at.address, align);
  }
}

void assign(Emission& e, const loop::Buffer& buffer, const Access& at, Operand value) {
  int align = byte_size(buffer.dtype);
  if (at.pattern == Pattern::uniform) {
    // Under a mask some lane is active, so there is something to store.
    e.b.store(value.type.is_vector() ? last_active(e, value) : value, at.address, align);
    return;
  }
  value = e.b.broadcast(value, e.lanes);
  if (at.pattern != Pattern::scattered) return store_run(e, buffer, at, value);
  Operand active = e.mask.valid() ? e.mask : all_lanes(e);
  Operand arguments[] = {value, at.address, int_constant(Prim::i32, align), active};
  e.b.call_void("llvm.masked.scatter." + suffix(value.type) + "." + suffix(at.address.type), arguments);
}

// f16 and bf16 add in f32 and round.
Operand sum_of(Emission& e, DType dtype, const Operand& a, const Operand& c) {
  if (is_narrow(dtype)) return narrow(e, dtype, e.b.binary("fadd", widen(e, dtype, a), widen(e, dtype, c)));
  return e.b.binary(is_floating(dtype) ? "fadd" : "add", a, c);
}

// There is no atomic addition of narrow floats: try until nobody came between.
void add_narrow_atomically(Emission& e, DType dtype, const Operand& value, const Operand& address) {
  Builder& b = e.b;
  Operand first = b.load(value.type, address, byte_size(dtype));
  Label loop = b.new_label("try"), done = b.new_label("added"), before = b.current();
  b.branch(loop);
  b.start(loop);
  Operand old = b.phi(value.type, "old");
  Operand sum = sum_of(e, dtype, old, value);
  Operand pair = b.define(value.type, "exchange",
                          "cmpxchg ptr " + address.text + ", " + typed(old) + ", " + typed(sum) +
                              " monotonic monotonic, align " + std::to_string(byte_size(dtype)));
  Operand seen = b.define(value.type, "seen", "extractvalue { i16, i1 } " + pair.text + ", 0");
  Operand won = b.define({Prim::i1}, "won", "extractvalue { i16, i1 } " + pair.text + ", 1");
  b.add_incoming(old, first, before);
  b.add_incoming(old, seen, b.current());
  b.branch(won, done, loop);
  b.start(done);
}

void add_one(Emission& e, DType dtype, const Operand& value, const Operand& address, bool atomic) {
  int align = byte_size(dtype);
  if (!atomic) {
    e.b.store(sum_of(e, dtype, e.b.load(value.type, address, align), value), address, align);
  } else if (is_narrow(dtype)) {
    add_narrow_atomically(e, dtype, value, address);
  } else {
    std::string op = is_floating(dtype) ? "fadd" : "add";
    e.b.define(value.type, "old",
               "atomicrmw " + op + " ptr " + address.text + ", " + typed(value) + " monotonic, align " +
                   std::to_string(align));
  }
}

// Lanes may meet in one place, and a sum depends on its order: one lane after the other.
void add_by_lane(Emission& e, DType dtype, const Operand& value, const Access& at, bool atomic) {
  Builder& b = e.b;
  Label loop = b.new_label("lanes"), done = b.new_label("lanes.done"), before = b.current();
  b.branch(loop);
  b.start(loop);
  Operand lane = b.phi({Prim::i64}, "lane");
  b.add_incoming(lane, int_constant(Prim::i64, 0), before);
  auto body = [&] {
    Operand address = at.address.type.is_vector() ? b.extract(at.address, lane) : at.address;
    add_one(e, dtype, b.extract(value, lane), address, atomic);
  };
  if (e.mask.valid()) {
    when(e, b.extract(e.mask, lane), body);
  } else {
    body();
  }
  Operand next = b.binary("add", lane, int_constant(Prim::i64, 1), "lane.next");
  b.add_incoming(lane, next, b.current());
  b.branch(b.compare("icmp ult", next, int_constant(Prim::i64, e.lanes), "more"), loop, done);
  b.start(done);
}

void accumulate(Emission& e, const loop::Buffer& buffer, Access at, Operand value) {
  int align = byte_size(buffer.dtype);
  bool atomic = e.concurrent && buffer.mode != loop::BufferMode::local;
  if (e.lanes == 0) return add_one(e, buffer.dtype, value, at.address, atomic);
  value = e.b.broadcast(value, e.lanes);
  if (at.pattern == Pattern::forward && !atomic) {
    Operand old = load_run(e, at, value.type, align, e.mask);
    return store_run(e, buffer, at, sum_of(e, buffer.dtype, old, value));
  }
  if (at.pattern == Pattern::forward || at.pattern == Pattern::backward) {
    Prim prim = value.type.prim;
    if (at.pattern == Pattern::backward)
      at.address = e.b.element(prim, at.address, int_constant(Prim::i64, e.lanes - 1));
    Operand lanes = lane_numbers(Prim::i64, e.lanes);
    if (at.pattern == Pattern::backward) lanes = e.b.binary("sub", zero_of(lanes.type), lanes, "steps");
    at = {Pattern::scattered, e.b.element(prim, at.address, lanes)};
  }
  add_by_lane(e, buffer.dtype, value, at, atomic);
}

}  // namespace

Operand from_storage(Emission& e, DType dtype, const Operand& raw, std::string_view name) {
  return dtype == DType::b1 ? e.b.compare("icmp ne", raw, zero_of(raw.type), name) : raw;
}

Operand emit_load(Emission& e, const loop::Value& value, std::string_view name) {
  Operand own_mask = value.operands.empty() ? Operand{} : e.value(value.operands[0]);
  int align = byte_size(value.dtype);
  Access at = access(e, value.buffer, value.index);
  Type type = {storage_prim(value.dtype), at.pattern == Pattern::uniform ? 0 : e.lanes};
  Operand raw;
  if (at.pattern == Pattern::uniform) {
    // The mask around needs no test: some lane is active, and all lanes read this element.
    Operand mask = own_mask.valid() && own_mask.type.is_vector() ? both(e, e.mask, own_mask) : own_mask;
    raw = load_scalar_where(e, at, type, align, mask);
  } else if (at.pattern == Pattern::scattered) {
    raw = gather(e, at, type, align, both(e, e.mask, own_mask));
  } else {
    Operand mask = both(e, e.mask, own_mask);
    if (at.pattern == Pattern::forward && !mask.valid()) prefetch_ahead(e, value, at.address);
    raw = load_run(e, at, type, align, mask);
  }
  Operand loaded = from_storage(e, value.dtype, raw, name);
  return own_mask.valid() ? e.b.select(own_mask, loaded, e.value(value.operands[1]), name) : loaded;
}

void emit_store(Emission& e, const loop::Store& store) {
  const loop::Buffer& buffer = e.kernel.buffers[store.buffer];
  Operand value = to_storage(e, e.value(store.value));
  Access at = access(e, store.buffer, store.index);
  if (store.mode == loop::StoreMode::add) {
    accumulate(e, buffer, at, value);
  } else {
    assign(e, buffer, at, value);
  }
}

}  // namespace kerf::codegen
