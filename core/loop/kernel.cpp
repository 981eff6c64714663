#include "loop/kernel.h"

namespace kerf::loop {

sym::Facts facts_of(const std::vector<Size>& sizes) {
  sym::Facts facts;
  for (const Size& size : sizes) {
    facts.set_range(size.symbol, size.range);
    facts.set_modulus(size.symbol, size.modulus);
  }
  return facts;
}

sym::Facts facts_of(const Kernel& kernel) {
  sym::Facts facts = facts_of(kernel.sizes);
  for (const Axis& axis : kernel.axes) facts.set_extent(axis.symbol, axis.extent);
  return facts;
}

sym::Expr element_count(const Kernel& kernel, BufferId buffer) {
  return sym::product(*kernel.context, kernel.buffers[buffer].shape);
}

}  // namespace kerf::loop
