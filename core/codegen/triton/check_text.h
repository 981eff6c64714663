#pragma once
// The verifier of kernel text: what every target needs, and for Ascend NPUs the rules without which a kernel compiles but is
// wrong, slow or too large there. docs/kernel_text.md says why each rule is.
//
// Every target
//   syntax      the file is of the subset that parse_text reads
//   signature   every pointer is a buffer of KERNEL, every constexpr has a default
//   undefined   names have a value before they are used, on every way to the use
//   unknown     functions and attributes are those of tl_functions.def
//   shape       tiles fit each other; names keep their type from one iteration to the next
//   order       a dimension is the same axis in all that meets there, and in all loads and stores
//   loop        loops run, and have a body
//   branch      conditions of `if` are scalars
//   unused      every axis, loop and load matters to what is stored
//   bounds      loads and stores stay inside of their buffers
//   overflow    32-bit integers do not overflow
//   blocks      choices of blocks do not grow, and the first is that of the signature
//   arange      (cuda) extents are powers of two
// Ascend NPUs
//   grid        there is one program, or stores lie in `for t in range(tl.program_id(0), tiles, tl.num_programs(0))`;
//               programs <= cores
//   mask        a mask is a conjunction of `index < bound`, each of one axis, none always true
//   pointer     offsets are sums of axes times strides
//   division    no `//` and `%` of tiles
//   alignment   the last dimension of a load or store is a whole axis or a multiple of 32 bytes
//   tile        at most five dimensions and 1048576 elements
//   index       offsets of tiles have 32 bits
//   dtype       no fp64, no unsigned tiles, no arithmetic of int64 tiles
//   fold        no sum over the first of three dimensions, no fold of three values at once
//   atomic      no atomics
//   reload      what is stored is not loaded by the same program
//   argument    scalar arguments are fp32 or int32
//   numerics    functions that are inexact or slow there are written out
//   row         rows folded in one tile have at most 1024 (A5: 4096) elements
//   reads       at most 24 loads
//   buffer      the tiles that are alive at once take at most 90 % of the unified buffer (buffer_bytes.h)
#include <optional>
#include <string_view>
#include <vector>

#include "codegen/triton/syntax.h"
#include "codegen/triton/violation.h"
#include "target/npu.h"

namespace kerf::triton {

struct Checked {
  std::vector<Violation> violations;  // by line
  std::optional<KernelFile> file;     // if it can be parsed
};

// `target`: "npu:910B3", "910B3", "cuda"; empty: the one that the file names. UserError for a target that is
// not there; a text that cannot be parsed is a violation.
Checked check_text(std::string_view text, std::string_view target = {});

// The violation of `buffer`, with these blocks.
std::optional<Violation> check_buffer(const KernelFile& file, const NamedIntegers& blocks,
                                      std::string_view target);

}  // namespace kerf::triton
