#include "target/npu.h"

#include <doctest/doctest.h>

#include "base/error.h"

using namespace kerf;

TEST_CASE("NPU targets are found by both spellings of their names") {
  CHECK(target::find_npu_target("npu:910B3").vector_cores == 40);
  CHECK(target::find_npu_target("910_9382").vector_cores == 48);
  CHECK(target::find_npu_target("950").is_a5);
  CHECK(target::find_npu_target("950").buffer_bytes == 248 * 1024);
}

TEST_CASE("an unknown NPU target lists those that there are") {
  CHECK_THROWS_WITH_AS(target::find_npu_target("npu:910"),
                       "no target 'npu:910'; there are npu:910B3, npu:910_9382, npu:950", UserError);
}
