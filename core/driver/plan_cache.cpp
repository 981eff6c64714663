#include "driver/plan_cache.h"

#include <fmt/format.h>

#include <chrono>

#include "codegen/compile.h"
#include "driver/report_text.h"
#include "runtime/build_id.h"
#include "runtime/cache.h"
#include "runtime/content_hash.h"
#include "runtime/cpu/aoti.h"
#include "runtime/sealed.h"
#include "runtime/serialize.h"

namespace kerf::driver {

namespace {

constexpr std::string_view kHeader = "kerf compiled 2\n";

runtime::DiskCache cache_at(const std::string& directory, std::vector<std::string>& warnings) {
  return {directory, [&warnings](const std::string& message) { warnings.push_back(message); }};
}

// nullopt for bytes that are damaged or of another layout; throws Error for code that cannot be loaded.
std::optional<Compiled> read(std::string_view bytes) {
  std::optional<std::vector<std::string_view>> parts = runtime::unseal(kHeader, bytes);
  if (!parts || parts->size() != 3) return std::nullopt;
  std::optional<runtime::Plan> plan = runtime::deserialize((*parts)[2]);
  if (!plan) return std::nullopt;
  codegen::load(plan->artifacts);
  Compiled result;
  if (!read_report((*parts)[0], result.report)) return std::nullopt;
  result.report.graph_text = (*parts)[1];
  result.plan = std::make_shared<const runtime::Plan>(std::move(*plan));
  result.executor = std::make_shared<runtime::Executor>(result.plan);
  return result;
}

std::optional<Compiled> read_or_discard(std::string_view bytes, runtime::DiskCache& cache,
                                        const std::string& key) {
  try {
    if (std::optional<Compiled> result = read(bytes)) return result;
    cache.discard(key, "damaged");
  } catch (const Error& error) {
    cache.discard(key, fmt::format("unusable ({})", error.what()));
  }
  return std::nullopt;
}

}  // namespace

std::string environment_key(const CompileOptions& options) {
  std::string build = runtime::build_id();
  if (options.cache_dir.empty() || build.empty()) return "";
  target::CpuTarget target = codegen::host_target();
  std::string machine =
      fmt::format("{} cpu {} features {} vector {} caches {} {} {} direct {}", codegen::name(), target.cpu,
                  target.features, target.vector_bytes, target.l1_bytes, target.l2_bytes, target.l3_bytes,
                  runtime::cpu::has_direct_entry("aten.mm.default"));
  std::string chosen = fmt::format("level {}", options.opt_level);
  return runtime::content_hash({machine, chosen, build});
}

std::string compile_key(const std::string& graph_text, const CompileOptions& options) {
  std::string environment = environment_key(options);
  if (environment.empty()) return "";
  return runtime::content_hash({graph_text, environment});
}

std::optional<Compiled> load_compiled(const std::string& key, const CompileOptions& options,
                                      std::vector<std::string>& warnings) {
  if (key.empty()) return std::nullopt;
  auto start = std::chrono::steady_clock::now();
  runtime::DiskCache cache = cache_at(options.cache_dir, warnings);
  std::optional<std::string> bytes = cache.load(key);
  if (!bytes) return std::nullopt;
  std::optional<Compiled> result = read_or_discard(*bytes, cache, key);
  if (!result) return std::nullopt;
  result->key = key;
  result->report.target = target_name(codegen::host_target());
  result->report.cache_hit = true;
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result->report.seconds = {{"load", seconds}, {"total", seconds}};
  return result;
}

void store_compiled(Compiled& compiled, const CompileOptions& options) {
  if (compiled.key.empty()) return;
  runtime::DiskCache cache = cache_at(options.cache_dir, compiled.report.warnings);
  std::string report = report_text(compiled.report);
  std::string plan = runtime::serialize(*compiled.plan);
  cache.store(compiled.key, runtime::seal(kHeader, {report, compiled.report.graph_text, plan}));
}

}  // namespace kerf::driver
