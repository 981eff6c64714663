#include "runtime/sealed.h"

#include <doctest/doctest.h>

#include "runtime/build_id.h"

using namespace kerf::runtime;

TEST_CASE("parts come back as they were, empty ones too") {
  std::string bytes = seal("head\n", {"one", "", std::string_view("t\0wo", 4)});
  auto parts = unseal("head\n", bytes);
  REQUIRE(parts);
  CHECK(*parts == std::vector<std::string_view>{"one", "", std::string_view("t\0wo", 4)});
  CHECK(unseal("head\n", seal("head\n", {}))->empty());
}

TEST_CASE("another header, damage and truncation are noticed") {
  std::string bytes = seal("head\n", {"one", "two"});
  CHECK_FALSE(unseal("tail\n", bytes));
  for (size_t size = 0; size < bytes.size(); ++size) CHECK_FALSE(unseal("head\n", bytes.substr(0, size)));
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    CHECK_FALSE(unseal("head\n", damaged));
  }
}

TEST_CASE("this program has a build ID") {
  CHECK(build_id().size() >= 16);
  CHECK(build_id().find_first_not_of("0123456789abcdef") == std::string::npos);
}
