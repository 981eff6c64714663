#pragma once
// Arguments of as_strided and its scatter: where in a storage elements are.
#include "graph/import_call.h"

namespace kerf::graph {

struct Strided {
  Shape shape, strides;
  sym::Expr offset;
};

// size, stride and storage_offset from argument `first` on. They address the tensor's storage, which is known here only if the
// tensor is contiguous and starts it (a value computed here), or if no offset is given; and they must stay inside it.
Result<Strided> read_strided(const ImportCall& call, const Term& tensor, size_t first);

}  // namespace kerf::graph
