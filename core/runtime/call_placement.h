#pragma once
// Where in the region of block_memory.h the blocks of a call lie: results and temporaries, from what the plan and the sizes
// say about them, and from what lies in the region when the call begins. Of that, inputs that end within the call make room.
//
// A loop of calls finds the region as it was the last time, so that places are computed once. They are wishes: a block whose
// place another thread took, or where an input does not end because somebody else holds it, is placed like any other.
#include <span>
#include <vector>

#include "runtime/block_memory.h"
#include "runtime/executor.h"
#include "runtime/shape_record.h"

namespace kerf::runtime {

class CallPlacement {
 public:
  CallPlacement(const Plan& plan, const ShapeRecord& record);

  // For a call that begins now.
  void begin(BlockMemory& memory, std::span<const CallInput> inputs);
  // Null: anywhere.
  void* wanted(BufferIndex buffer) const { return wanted_.empty() ? nullptr : wanted_[buffer]; }

 private:
  struct Input {
    size_t index;
    uint32_t last_step;
  };
  struct Known {
    std::vector<PlacedBlock> there;
    std::vector<PlacedBlock> blocks;
    int64_t extent;
  };

  void find_ends(Region& region, std::span<const CallInput> inputs) const;
  const Known& placed(std::vector<PlacedBlock> there);

  std::vector<PlacedBlock> blocks_;   // of the call, without offsets
  std::vector<BufferIndex> buffers_;  // of each
  std::vector<Input> inputs_;         // that are large enough to be worth giving back
  std::vector<Known> known_;          // the last found first
  std::vector<void*> wanted_;         // by buffer; empty where no buffer is a block
};

}  // namespace kerf::runtime
