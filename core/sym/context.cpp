// The arena, the intern table and the symbols behind a Context.
#include <charconv>
#include <cstring>
#include <deque>
#include <new>
#include <unordered_map>

#include "sym/expr.h"
#include "sym/products.h"

namespace kerf::sym {

namespace {

// Nodes and operand arrays are trivially destructible and live as long as the context.
class Arena {
 public:
  void* allocate(size_t bytes) {
    bytes = (bytes + alignof(std::max_align_t) - 1) & ~(alignof(std::max_align_t) - 1);
    if (bytes > left_) refill(bytes);
    std::byte* at = next_;
    next_ += bytes;
    left_ -= bytes;
    return at;
  }

 private:
  static constexpr size_t kChunk = size_t{64} << 10;
  void refill(size_t bytes) {
    left_ = bytes > kChunk ? bytes : kChunk;
    chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(left_));
    next_ = chunks_.back().get();
  }

  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::byte* next_ = nullptr;
  size_t left_ = 0;
};

// The finaliser of splitmix64: every input bit reaches every output bit.
uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t combine(uint64_t seed, uint64_t value) { return mix(seed + 0x9e3779b97f4a7c15u + value); }

uint64_t hash_name(std::string_view name) {  // FNV-1a: the same in every run and library
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return mix(hash);
}

// Finds or makes room by structural hash; `same` decides equality of candidates. The hash is kept beside the
// pointer: probing then touches no node but the one that matches.
class InternTable {
 public:
  template <class Same>
  const Node*& slot_for(uint64_t hash, const Same& same) {
    if (4 * (count_ + 1) > 3 * slots_.size()) grow();
    size_t i = hash & (slots_.size() - 1);
    while (slots_[i].node && !(slots_[i].hash == hash && same(*slots_[i].node)))
      i = (i + 1) & (slots_.size() - 1);
    slots_[i].hash = hash;
    return slots_[i].node;
  }
  void added() { ++count_; }

 private:
  struct Slot {
    uint64_t hash = 0;
    const Node* node = nullptr;
  };
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 1024 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (!slot.node) continue;
      size_t i = slot.hash & (slots_.size() - 1);
      while (slots_[i].node) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace

struct Context::State {
  Arena arena;
  InternTable table;
  std::deque<Symbol> symbols;  // stable addresses
  std::unordered_map<std::string_view, const Node*> by_name;

  Node* new_node() { return new (arena.allocate(sizeof(Node))) Node; }
  const Node* new_symbol(Context& context, std::string_view name, SymbolKind kind, uint32_t value);
};

const Node* Context::State::new_symbol(Context& context, std::string_view name, SymbolKind kind,
                                       uint32_t value) {
  CHECK(!name.empty(), "a symbol needs a name");
  auto id = static_cast<uint32_t>(symbols.size());
  const Symbol& symbol = symbols.emplace_back(Symbol{std::string(name), kind, id, value});
  Node* node = new_node();
  node->kind = Kind::symbol;
  node->symbol = &symbol;
  node->lead = &symbol;
  node->symbol_mask = uint64_t{1} << (id % 64);
  node->hash = combine(static_cast<uint64_t>(Kind::symbol), hash_name(name));
  node->context = &context;
  by_name.emplace(symbol.name, node);
  return node;
}

Context::Context() : state_(std::make_unique<State>()) {}
Context::~Context() = default;

Expr Context::constant(int64_t value) {
  uint64_t hash = combine(static_cast<uint64_t>(Kind::constant), static_cast<uint64_t>(value));
  const Node*& slot = state_->table.slot_for(
      hash, [&](const Node& node) { return node.kind == Kind::constant && node.constant == value; });
  if (!slot) {
    Node* node = state_->new_node();
    node->kind = Kind::constant;
    node->constant = value;
    node->hash = hash;
    node->context = this;
    slot = node;
    state_->table.added();
  }
  return Expr(slot);
}

Expr Context::symbol(std::string_view name, SymbolKind kind) {
  if (std::optional<Expr> known = find_symbol(name)) {
    CHECK(known->symbol().kind == kind, "symbol '{}' was made with another kind", name);
    return *known;
  }
  CHECK(kind != SymbolKind::value, "value symbols are made by value_symbol, not by the name '{}'", name);
  return Expr(state_->new_symbol(*this, name, kind, 0));
}

Expr Context::value_symbol(uint32_t value_id) {
  char name[16] = {'%'};
  char* end = std::to_chars(name + 1, name + sizeof(name), value_id).ptr;
  std::string_view text(name, static_cast<size_t>(end - name));
  if (std::optional<Expr> known = find_symbol(text)) return *known;
  return Expr(state_->new_symbol(*this, text, SymbolKind::value, value_id));
}

std::optional<Expr> Context::find_symbol(std::string_view name) const {
  auto at = state_->by_name.find(name);
  if (at == state_->by_name.end()) return std::nullopt;
  return Expr(at->second);
}

Expr Context::intern(Kind kind, std::span<const Expr> operands) {
  uint64_t hash = static_cast<uint64_t>(kind);
  for (Expr operand : operands) {
    CHECK(operand.valid() && &operand.context() == this, "an operand of another context");
    hash = combine(hash, operand.hash());
  }
  const Node*& slot = state_->table.slot_for(hash, [&](const Node& node) {
    if (node.kind != kind || node.operand_count != operands.size()) return false;
    for (size_t i = 0; i < operands.size(); ++i)
      if (node.operands[i] != operands[i].node()) return false;
    return true;
  });
  if (slot) return Expr(slot);

  auto* copy = static_cast<const Node**>(state_->arena.allocate(operands.size() * sizeof(const Node*)));
  Node* node = state_->new_node();
  node->kind = kind;
  node->operands = copy;
  node->operand_count = static_cast<uint32_t>(operands.size());
  node->hash = hash;
  node->context = this;
  for (size_t i = 0; i < operands.size(); ++i) {
    copy[i] = operands[i].node();
    node->symbol_mask |= copy[i]->symbol_mask;
    if (!node->lead) node->lead = copy[i]->lead;
  }
  node->as_written = kind == Kind::mul && stays_as_written(operands);
  slot = node;
  state_->table.added();
  return Expr(node);
}

}  // namespace kerf::sym
