// The estimate beside what bishengir 1.2.0 plans for an Ascend910B3.
#include "codegen/triton/buffer_bytes.h"

#include <doctest/doctest.h>

#include <string>

#include "codegen/triton/parse_text.h"
#include "kernel_file.h"

using namespace kerf;
using kerf::testing::kernel_file;

namespace {

// In tiles of 4096 fp32; `body` stores with offsets `i`.
double tiles(const std::string& body, const std::string& dtype = "f32") {
  std::string text =
      "    for t in range(tl.program_id(0), 10, tl.num_programs(0)):\n"
      "        i = t * 4096 + tl.arange(0, 4096)\n"
      "        x = tl.load(x_ptr + i)\n"
      "        y = tl.load(y_ptr + i)\n";
  auto file = triton::parse_text(kernel_file(text + body, "", "npu:910B3", dtype));
  return static_cast<double>(triton::buffer_bytes(file, {})) / (4096 * 4);
}

double rows(const std::string& body) {
  std::string text =
      "    for t in range(tl.program_id(0), 10, tl.num_programs(0)):\n"
      "        i = (t * 4 + tl.arange(0, 4))[:, None]\n"
      "        r = tl.arange(0, 1024)[None, :]\n"
      "        x = tl.load(x_ptr + (1024 * i + r))\n";
  return static_cast<double>(triton::buffer_bytes(triton::parse_text(kernel_file(text + body)), {})) /
         (4096 * 4);
}

}  // namespace

TEST_CASE("elementwise kernels take what is transferred twice, and their temporaries") {
  CHECK(tiles("        tl.store(z_ptr + i, tl.exp(x + y))\n") == 6);  // planned: 6
  CHECK(tiles("        tl.store(z_ptr + i, tl.exp(x))\n") == 4);      // planned: 4
  CHECK(tiles("        tl.store(z_ptr + i, x / (1.0 + tl.exp(-x)))\n") == 4);
  CHECK(tiles("        tl.store(z_ptr + i, tl.where(x > 0.0, x, y))\n") ==
        doctest::Approx(7.03).epsilon(0.01));
  CHECK(tiles("        tl.store(z_ptr + i, (x.to(tl.float32) + y.to(tl.float32)).to(tl.bfloat16))\n",
              "bf16") == 5);
}

TEST_CASE("a result that is stored later is computed in the buffer of what was loaded") {
  CHECK(tiles("        e = tl.exp(2.0 * x)\n        tl.store(z_ptr + i, (e - 1.0) / (e + 1.0))\n") == 3);
}

TEST_CASE("folds take room beside their tile") {
  // Planned: 3.04, 2.50, 7.52.
  CHECK(rows("        v = tl.exp(x - tl.max(x, axis=1)[:, None])\n"
             "        tl.store(z_ptr + (1024 * i + r), v / tl.sum(v, axis=1)[:, None])\n") ==
        doctest::Approx(3).epsilon(0.02));
  CHECK(rows("        tl.store(z_ptr + i, tl.sum(x, axis=1)[:, None])\n") ==
        doctest::Approx(2.5).epsilon(0.02));
  CHECK(rows("        y = tl.load(y_ptr + (1024 * i + r))\n"
             "        tl.store(z_ptr + (1024 * i + r), x * (y - tl.sum(x * y, axis=1)[:, None]))\n") ==
        doctest::Approx(7.5).epsilon(0.02));
}

TEST_CASE("single elements take a row each") {
  // Planned: 65536 bytes of load and 2 * 4096 of store for 1024 elements, 6 tiles of 4096 bytes for every second one.
  auto bytes = [](const std::string& stride) {
    std::string text =
        "    for t in range(tl.program_id(0), 10, tl.num_programs(0)):\n"
        "        i = t * 1024 + tl.arange(0, 1024)\n"
        "        tl.store(z_ptr + i, tl.load(x_ptr + " +
        stride + " * i) * 2.0)\n";
    return triton::buffer_bytes(triton::parse_text(kernel_file(text)), {});
  };
  CHECK(bytes("16") == doctest::Approx(73728).epsilon(0.1));
  CHECK(bytes("2") == doctest::Approx(24576).epsilon(0.2));
}
