#pragma once
// The CPU target: the host's name and features for LLVM, vector width and cache sizes for the scheduler.
#include <cstdint>
#include <string>

namespace kerf::target {

struct CpuTarget {
  std::string cpu = "generic";  // LLVM's name of the processor
  std::string features;         // LLVM feature string, "+avx2,+fma,..."
  int vector_bytes = 32;        // 64 with AVX-512, 32 with AVX2
  int64_t l1_bytes = 32 << 10;
  int64_t l2_bytes = 1 << 20;
  int64_t l3_bytes = 32 << 20;
};

}  // namespace kerf::target
