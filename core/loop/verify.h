#pragma once
// Checks a kernel. Each invariant has a name, which begins the message of its violation, and a golden test in
// tests/golden/loop/error_*.txt (those that no text can violate: tests/unit/loop/verify_test.cpp).
//
//   ids          ids are in range; expressions are set where the kind needs one, and of the kernel's context
//   names        kernel and buffer names are identifiers; buffer names are distinct
//   sizes        size symbols are distinct and of kind size; axis symbols are distinct and of kind axis
//   shapes       shapes mention sizes only; a local buffer's are constant
//   definition   a value is defined once at most, by a statement of its kind (a reduced one by a reduce)
//   scope        a value is used only after its definition, in that block or blocks inside it (uses in index
//                expressions count)
//   expressions  an expression mentions given sizes, axes open around it and, in loads and stores, values of
//                integer type
//   axes         an axis is opened once at most; its extent mentions sizes and axes open around it, no values
//   roles        lanes are a power of two on vector axes, at least 1 on tile axes and 0 on others; one vector axis at most on any path, and
//                no extent inside it mentions it (all lanes run nested loops together)
//   grid         grid loops are outermost and perfectly nested: the kernel's body is one chain of them, or
//                several with barriers between; a grid extent mentions sizes only; a reduce axis is never grid
//   barrier      barriers stand between grid loops, in the outermost block
//   types        operands and results follow the op's row; f16 and bf16 only in cast, where, load, store, const
//   constants    the literal is of the value's dtype and representable in it
//   masks        a masked load has a bool mask and an `other` of the buffer's dtype; a guard's condition is bool
//   stores       the value has the buffer's dtype, the buffer is not `in`; bool is not added
//   lanes        a store to a local buffer inside a vector loop is indexed by its axis: lanes run together, and each
//                needs elements of its own
//   unwritten    a load or add of an `out` or `local` buffer comes after a store to it, in program order
//   reduces      a part yields as many values as its op's row says: a number (bool for any and all), and an
//                i64 index; the result has the first yield's dtype, or i64 for an index
//   bounds       no unconditional access lies outside its buffer for every iteration
//
// Not checked: that grid iterations are independent (axis/), that every element loaded was stored, and
// accesses in bounds in general (the interpreter checks each).
#include <string>
#include <vector>

#include "loop/kernel.h"

namespace kerf::loop {

// One message per violation, `name: what, in: statement`; empty for a valid kernel.
std::vector<std::string> verify(const Kernel& kernel);

// CHECKs that `verify` finds nothing; `when` says where we are ("after renumber").
void check_valid(const Kernel& kernel, std::string_view when);

}  // namespace kerf::loop
