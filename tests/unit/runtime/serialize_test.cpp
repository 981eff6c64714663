#include "runtime/serialize.h"

#include <doctest/doctest.h>

#include <random>

#include "runtime/content_hash.h"
#include "runtime/plan_text.h"
#include "sample_plan.h"

using namespace kerf;
using namespace kerf::runtime;
using namespace kerf::runtime::testing;

namespace {

constexpr size_t kHeader = 12 + 32;

// The bytes with the checksum that their body has now, as if they had been written so.
std::string resealed(const std::string& bytes) {
  return bytes.substr(0, 12) + content_hash({std::string_view(bytes).substr(kHeader)}) +
         bytes.substr(kHeader);
}

}  // namespace

TEST_CASE("a plan as bytes and back") {
  Plan plan = sample_plan();
  std::optional<Plan> back = deserialize(serialize(plan));
  REQUIRE(back);
  CHECK(to_text(*back) == to_text(plan));
  CHECK(back->artifacts[0].object == plan.artifacts[0].object);
  CHECK(serialize(*back) == serialize(plan));
}

TEST_CASE("every single damaged bit is noticed") {
  std::string bytes = serialize(sample_plan());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    CHECK_FALSE(deserialize(damaged));
  }
}

TEST_CASE("every truncation and an extension are noticed") {
  std::string bytes = serialize(sample_plan());
  for (size_t size = 0; size < bytes.size(); ++size) CHECK_FALSE(deserialize(bytes.substr(0, size)));
  CHECK_FALSE(deserialize(bytes + '\0'));
  CHECK_FALSE(deserialize(resealed(bytes + '\0')));
}

TEST_CASE("damage under a right checksum gives a valid plan or none") {
  std::string bytes = serialize(sample_plan());
  std::mt19937 random(7);
  int valid = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = bytes;
    for (uint32_t flips = 1 + random() % 3; flips > 0; --flips) {
      size_t at = kHeader + random() % (bytes.size() - kHeader);
      damaged[at] = static_cast<char>(random() % 2 ? damaged[at] ^ (1 << random() % 8) : random() % 256);
    }
    if (std::optional<Plan> plan = deserialize(resealed(damaged))) {
      ++valid;
      CHECK(deserialize(serialize(*plan)));
    }
  }
  CHECK(valid > 0);  // damage inside names and numbers: the parser itself was reached
  CHECK(valid < 20000);
}
