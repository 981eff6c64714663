#include "tiles.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "driver/compile_tiles.h"
#include "graph_builder.h"

namespace nb = nanobind;

namespace kerf::bindings {

void bind_tiles(nb::module_& module) {
  using namespace driver;
  nb::class_<AxisRecord>(module, "TileAxis", "An axis of a kernel.")
      .def_ro("name", &AxisRecord::name)
      .def_ro("extent", &AxisRecord::extent, "Its extent as text, a number or an expression over sizes.")
      .def_ro("folded", &AxisRecord::folded)
      .def_ro("block", &AxisRecord::block, "Of the tile; 0: walked one index at a time.")
      .def_ro("parameter", &AxisRecord::parameter)
      .def_ro("cut", &AxisRecord::cut, "Of a constant extent: two blocks and a tail, for checks.");
  nb::class_<AccessRecord>(module, "TileAccess", "A load or a store.")
      .def_ro("buffer", &AccessRecord::buffer)
      .def_ro("is_store", &AccessRecord::is_store)
      .def_ro("index", &AccessRecord::index)
      .def_ro("affine", &AccessRecord::is_affine);
  nb::class_<TilePart>(module, "TilePart", "A kernel on a box of its domain, for run_reference.")
      .def_ro("loop_text", &TilePart::loop_text)
      .def_ro("axes", &TilePart::axes);
  nb::class_<TileKernel>(module, "TileKernel", "A kernel as text.")
      .def_prop_ro("name", [](const TileKernel& k) { return k.record.name; })
      .def_prop_ro("sources", [](const TileKernel& k) { return k.record.sources; })
      .def_prop_ro("bytes", [](const TileKernel& k) { return k.record.bytes_read + k.record.bytes_written; })
      .def_ro("axes", &TileKernel::axes)
      .def_ro("accesses", &TileKernel::accesses)
      .def_ro("blocks", &TileKernel::blocks)
      .def_ro("text", &TileKernel::text)
      .def_ro("parts", &TileKernel::parts);
  nb::class_<Refused>(module, "RefusedKernel", "What the target has no code for.")
      .def_ro("sources", &Refused::sources)
      .def_ro("kernel", &Refused::kernel)
      .def_ro("reason", &Refused::reason);
  nb::class_<TileCompilation>(module, "TileCompilation", "The kernels and library calls of a graph.")
      .def_ro("kernels", &TileCompilation::kernels)
      .def_ro("externs", &TileCompilation::externs)
      .def_ro("routes", &TileCompilation::routes)
      .def_ro("refused", &TileCompilation::refused)
      .def_ro("seconds", &TileCompilation::seconds);
  nb::class_<KnownTilings>(module, "KnownTilings", "How kernels were tiled before.").def(nb::init<>());
  module.def(
      "compile_tiles",
      [](const GraphBuilder& builder, const std::string& target, KnownTilings& known,
         std::optional<int64_t> softmax_width, bool wide) {
        TileTarget found = find_tile_target(target);
        if (softmax_width.value_or(0) < 0)
          throw UserError(fmt::format("softmax_width must not be negative: {}", *softmax_width));
        target::Router router(found.device, {.softmax_width = softmax_width},
                              wide ? target::Choice::library : target::Choice::fused);
        nb::gil_scoped_release release;
        return compile_tiles(builder.graph(), found, builder.hints(), std::move(router), known);
      },
      nb::arg("builder"), nb::arg("target"), nb::arg("known"), nb::arg("softmax_width") = nb::none(),
      nb::arg("wide") = false,
      "The kernel texts of a graph for a target that computes in tiles. known: kept over graphs. "
      "softmax_width: the bound of its "
      "row, 0: none. wide: rows of unknown width are longer than their bound. Raises UserError for an "
      "unknown target.");
  module.def(
      "run_reference",
      [](const std::string& loop_text, const std::vector<int64_t>& extents, const std::vector<int64_t>& sizes,
         const std::vector<uintptr_t>& addresses, const std::vector<uintptr_t>& bounds) {
        std::vector<void*> buffers;
        std::vector<double*> all_bounds;
        for (uintptr_t address : addresses) buffers.push_back(reinterpret_cast<void*>(address));
        for (uintptr_t address : bounds) all_bounds.push_back(reinterpret_cast<double*>(address));
        nb::gil_scoped_release release;
        run_reference(loop_text, extents, sizes, buffers, all_bounds);
      },
      nb::arg("loop_text"), nb::arg("extents"), nb::arg("sizes"), nb::arg("addresses"), nb::arg("bounds"),
      "Runs a part of a kernel in the interpreter, with other extents of its axes where not 0, on "
      "buffers at these addresses. bounds: addresses of float64 buffers for how far a target's numbers may "
      "lie "
      "from these; 0 where they are exact.");
}

}  // namespace kerf::bindings
