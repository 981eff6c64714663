#include "target/library_ops.h"

#include <doctest/doctest.h>

using kerf::target::library_reason;

TEST_CASE("operators are the library's by the words of their names") {
  for (auto op :
       {"aten.mm.default", "aten._scaled_mm.default", "aten.addmm.out", "aten.mkldnn_linear.default"})
    CHECK_EQ(library_reason(op), "matrix product: library call by design");
  for (auto op : {"aten.convolution_backward.default", "aten._slow_conv2d_forward.default"})
    CHECK_EQ(library_reason(op), "convolution: library call by design");
  CHECK_EQ(library_reason("aten._scaled_dot_product_flash_attention_for_cpu.default"),
           "attention: library call by design");
}

TEST_CASE("likeness of letters is not enough") {
  for (auto op : {"aten.lgamma.default", "aten.cummax.default", "aten.upsample_bilinear2d.vec",
                  "aten._convert_indices_from_coo_to_csr.default", "python:0", ""})
    CHECK(library_reason(op).empty());
}
