#include "loop/kernel.h"

namespace kerf::loop {

sym::Facts facts_of(const Kernel& kernel) {
  sym::Facts facts;
  for (const Size& size : kernel.sizes) {
    facts.set_range(size.symbol, size.range);
    facts.set_modulus(size.symbol, size.modulus);
  }
  for (const Axis& axis : kernel.axes) facts.set_extent(axis.symbol, axis.extent);
  return facts;
}

sym::Expr element_count(const Kernel& kernel, BufferId buffer) {
  return sym::product(*kernel.context, kernel.buffers[buffer].shape);
}

}  // namespace kerf::loop
