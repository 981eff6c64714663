#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("KERF_VERIFY", "1", /*overwrite=*/0);  // every pass
  return doctest::Context(argc, argv).run();
}
