#include "codegen/triton/tl_functions.h"

#include <algorithm>

namespace kerf::triton {

namespace {

constexpr TlFunction kFunctions[] = {
#define TL_FUNCTION(name, form, scratch, advice) {name, CallForm::form, scratch, advice},
#include "codegen/triton/tl_functions.def"
#undef TL_FUNCTION
};

}  // namespace

const TlFunction* find_tl_function(std::string_view name) {
  auto found = std::ranges::find(kFunctions, name, &TlFunction::name);
  return found == std::end(kFunctions) ? nullptr : &*found;
}

}  // namespace kerf::triton
