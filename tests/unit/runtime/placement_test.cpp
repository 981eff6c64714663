#include "runtime/placement.h"

#include <doctest/doctest.h>

#include <random>

using namespace kerf::runtime;

namespace {

bool meet(const PlacedBlock& a, const PlacedBlock& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

}  // namespace

TEST_CASE("what stays lies side by side in the order of its steps, temporaries where there is room") {
  std::vector<PlacedBlock> blocks = {{0, 30, 0, 1}, {0, 10, 1}, {0, 20, 2}, {0, 30, 2, 3}};
  CHECK(place(blocks, {}) == 60);
  CHECK(blocks[1].offset == 0);
  CHECK(blocks[2].offset == 10);
  CHECK(blocks[0].offset == 10);  // the third begins later
  CHECK(blocks[3].offset == 30);
}

TEST_CASE("a result lies where two inputs have ended side by side") {
  const std::vector<PlacedBlock> there = {{0, 40, 0, 3}, {40, 40, 0, 2}, {80, 40, 0, 1}};
  std::vector<PlacedBlock> blocks = {{0, 10, 2}, {0, 80, 3}};
  CHECK(place(blocks, there) == 130);  // as they are asked for: the first at 80, and the second behind it
  CHECK(blocks[1].offset == 40);
  CHECK(blocks[0].offset == 120);
}

TEST_CASE("blocks alive at once never overlap, nor do they what is there") {
  std::mt19937 random(1);
  auto number = [&](uint32_t end) { return static_cast<uint32_t>(random()) % end; };
  for (int round = 0; round < 200; ++round) {
    std::vector<PlacedBlock> there, blocks;
    int64_t end = 0;
    for (int i = 0; i < 10; ++i) {
      end += number(50);
      const uint32_t last = number(3) > 0 ? number(20) : kStays;
      there.push_back({end, 1 + number(50), 0, last});
      end += there.back().bytes;
    }
    for (int i = 0; i < 30; ++i) {
      const uint32_t first = number(20);
      const uint32_t last = number(3) > 0 ? first + number(6) : kStays;
      blocks.push_back({0, 1 + number(60), first, last});
    }
    const int64_t extent = place(blocks, there);
    for (size_t i = 0; i < blocks.size(); ++i) {
      CHECK(blocks[i].offset >= 0);
      CHECK(blocks[i].offset + blocks[i].bytes <= extent);
      for (size_t j = 0; j < i; ++j) CHECK(!meet(blocks[i], blocks[j]));
      for (const PlacedBlock& other : there) CHECK(!meet(blocks[i], other));
    }
  }
}
