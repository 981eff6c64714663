#include "runtime/call_placement.h"

#include <algorithm>
#include <utility>

#include "runtime/lifetimes.h"

namespace kerf::runtime {

namespace {

// States of the region that are remembered: more than one where a loop holds results of the call before.
constexpr size_t kMaxKnown = 4;

// start: malloc gives the pages of larger blocks back (those of 32 MiB and more always), and they are new in each call. Where
// late results are much of what a call needs, as in inference, warm pages are worth more than a smaller region.
constexpr int64_t kMostLateBytes = int64_t{20} << 20;
constexpr int64_t kMostLateShare = 4;  // of the region, a quarter

// The step of the last library call; kStays if there is none.
uint32_t last_library_call(const Plan& plan) {
  uint32_t last = kStays;
  for (uint32_t step = 0; step < plan.steps.size(); ++step)
    if (std::holds_alternative<target::ExternCall>(plan.steps[step])) last = step;
  return last;
}

}  // namespace

CallPlacement::CallPlacement(const Plan& plan, const ShapeRecord& record) {
  struct Result {
    PlacedBlock block;
    BufferIndex buffer;
  };
  const uint32_t last_call = last_library_call(plan);
  std::vector<Result> late;
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
    const PlacedBlock block{0, arena_bytes(bytes), buffer.first_step, is_output ? kStays : buffer.last_step};
    if (is_output && buffer.first_step > last_call) {
      late.push_back({block, i});
    } else {
      blocks_.push_back(block);
      buffers_.push_back(i);
    }
  }
  early_ = blocks_.size();
  for (const Result& result : late) {
    blocks_.push_back(result.block);
    buffers_.push_back(result.buffer);
  }
  if (!blocks_.empty()) places_.resize(plan.buffers.size());
}

void CallPlacement::begin(BlockMemory& memory, std::span<const CallInput> inputs) {
  if (blocks_.empty()) return;
  Region region = memory.region();
  find_ends(region, inputs);
  const Known& known = placed(std::move(region.blocks));
  region = memory.reserve(known.extent);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const PlacedBlock& block = known.blocks[i];
    const bool is_kept = i < early_ || known.late_are_kept;
    const bool fits = is_kept && block.offset + block.bytes <= region.bytes;
    places_[buffers_[i]] = {is_kept, fits ? region.begin + block.offset : nullptr};
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

CallPlacement::Known CallPlacement::place_all(std::vector<PlacedBlock> there) const {
  Known all{std::move(there), blocks_, 0};
  all.extent = place(all.blocks, all.there);
  int64_t late_bytes = 0;
  for (size_t i = early_; i < blocks_.size(); ++i) late_bytes += blocks_[i].bytes;
  if (late_bytes == 0 || late_bytes > std::min(kMostLateBytes, all.extent / kMostLateShare)) return all;
  Known early = all;
  early.late_are_kept = false;
  early.blocks.resize(early_);
  early.extent = place(early.blocks, early.there);
  early.blocks.resize(blocks_.size());
  return all.extent - early.extent > late_bytes / 2 ? early : all;
}

const CallPlacement::Known& CallPlacement::placed(std::vector<PlacedBlock> there) {
  auto known = std::ranges::find(known_, there, &Known::there);
  if (known == known_.end()) {
    if (known_.size() == kMaxKnown) known_.pop_back();
    known = known_.insert(known_.end(), place_all(std::move(there)));
  }
  std::rotate(known_.begin(), known, known + 1);
  return known_.front();
}

}  // namespace kerf::runtime
