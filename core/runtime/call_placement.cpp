#include "runtime/call_placement.h"

#include <algorithm>
#include <utility>

#include "runtime/lifetimes.h"

namespace kerf::runtime {

namespace {

// States of the region that are remembered: more than one where a loop holds results of the call before.
constexpr size_t kMaxKnown = 4;

}  // namespace

CallPlacement::CallPlacement(const Plan& plan, const ShapeRecord& record) {
  for (BufferIndex i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& buffer = plan.buffers[i];
    if (!is_used(buffer)) continue;
    if (buffer.storage == Storage::input) {
      const auto index = static_cast<size_t>(buffer.input_index);
      if (record.inputs[index].bytes >= kBlockBytes) inputs_.push_back({index, buffer.last_step});
      continue;
    }
    const bool is_output = buffer.storage == Storage::output;
    const Geometry& owner = record.owners[i];
    const int64_t bytes =
        is_output ? span_elements(owner.shape, owner.strides) * byte_size(buffer.dtype) : record.blocks[i];
    if (bytes < kBlockBytes) continue;
    blocks_.push_back({0, arena_bytes(bytes), buffer.first_step, is_output ? kStays : buffer.last_step});
    buffers_.push_back(i);
  }
  if (!blocks_.empty()) wanted_.resize(plan.buffers.size());
}

void CallPlacement::begin(BlockMemory& memory, std::span<const CallInput> inputs) {
  if (blocks_.empty()) return;
  Region region = memory.region();
  find_ends(region, inputs);
  const Known& known = placed(std::move(region.blocks));
  region = memory.reserve(known.extent);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const PlacedBlock& block = known.blocks[i];
    const bool fits = block.offset + block.bytes <= region.bytes;
    wanted_[buffers_[i]] = fits ? region.begin + block.offset : nullptr;
  }
}

void CallPlacement::find_ends(Region& region, std::span<const CallInput> inputs) const {
  for (const Input& input : inputs_) {
    const CallInput& given = inputs[input.index];
    const int64_t offset = static_cast<const char*>(given.tensor.data) - region.begin;
    if (!given.may_drop || offset < 0 || offset >= region.bytes) continue;
    auto behind = std::ranges::upper_bound(region.blocks, offset, {}, &PlacedBlock::offset);
    if (behind == region.blocks.begin()) continue;
    PlacedBlock& block = *std::prev(behind);
    const bool was_found = block.last_step != kStays;
    block.last_step = was_found ? std::max(block.last_step, input.last_step) : input.last_step;
  }
}

const CallPlacement::Known& CallPlacement::placed(std::vector<PlacedBlock> there) {
  auto known = std::ranges::find(known_, there, &Known::there);
  if (known == known_.end()) {
    std::vector<PlacedBlock> blocks = blocks_;
    const int64_t extent = place(blocks, there);
    if (known_.size() == kMaxKnown) known_.pop_back();
    known = known_.insert(known_.end(), {std::move(there), std::move(blocks), extent});
  }
  std::rotate(known_.begin(), known, known + 1);
  return known_.front();
}

}  // namespace kerf::runtime
