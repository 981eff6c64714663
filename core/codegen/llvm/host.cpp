// The machine this process runs on, as LLVM names it.
#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "codegen/compile.h"

namespace kerf::codegen {

namespace {

int64_t cache_bytes(int name, int64_t otherwise) {
  long bytes = sysconf(name);
  return bytes > 0 ? bytes : otherwise;
}

std::string feature_string(const llvm::StringMap<bool>& features) {
  std::vector<std::string> names;
  for (const auto& feature : features) {
    names.push_back((feature.second ? "+" : "-") + feature.first().str());
  }
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& feature : names) text += (text.empty() ? "" : ",") + feature;
  return text;
}

}  // namespace

// KERF_CPU=avx2 leaves AVX-512 out, to test and measure the narrow code on a wide machine.
target::CpuTarget host_target() {
  target::CpuTarget target;
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  const std::string wanted = environment("KERF_CPU");
  if (!wanted.empty() && wanted != "avx2" && wanted != "native")
    throw UserError("KERF_CPU=" + wanted + ": use avx2 or native");
  if (wanted == "avx2") {
    target.cpu = "x86-64-v3";
    target.features = "+avx2,+fma,+f16c";
    target.vector_bytes = 32;
  } else {
    target.cpu = llvm::sys::getHostCPUName().str();
    target.features = feature_string(features);
    bool wide = features["avx512f"] && features["avx512vl"] && features["avx512bw"] && features["avx512dq"];
    target.vector_bytes = wide ? 64 : features["avx2"] ? 32 : 16;
  }
  target.l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, target.l1_bytes);
  target.l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, target.l2_bytes);
  target.l3_bytes = cache_bytes(_SC_LEVEL3_CACHE_SIZE, target.l3_bytes);
  return target;
}

}  // namespace kerf::codegen
