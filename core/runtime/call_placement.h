#pragma once
// Where in the region of block_memory.h the blocks of a call lie: results and temporaries, from what the plan and the sizes
// say about them, and from what lies in the region when the call begins. Of that, inputs that end within the call make room.
//
// Late results, which begin after the call's last library call, come from the host's own memory where the region is the
// smaller for it: what the library needs while it runs would lie beside memory that is kept for them, and comes from where
// they come from.
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
  Place of(BufferIndex buffer) const { return places_.empty() ? Place{} : places_[buffer]; }

 private:
  struct Input {
    size_t index;
    uint32_t last_step;
  };
  struct Known {
    std::vector<PlacedBlock> there;
    std::vector<PlacedBlock> blocks;
    int64_t extent;
    bool late_are_kept = true;
  };

  void find_ends(Region& region, std::span<const CallInput> inputs) const;
  Known place_all(std::vector<PlacedBlock> there) const;
  const Known& placed(std::vector<PlacedBlock> there);

  std::vector<PlacedBlock> blocks_;   // of the call, without offsets; late results last
  std::vector<BufferIndex> buffers_;  // of each
  size_t early_ = 0;                  // blocks that are no late results
  std::vector<Input> inputs_;         // that are large enough to be worth giving back
  std::vector<Known> known_;          // the last found first
  std::vector<Place> places_;         // by buffer; empty where no buffer is a block
};

}  // namespace kerf::runtime
