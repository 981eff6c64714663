#include "driver/plan_cache.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>

#include "codegen/compile.h"
#include "graph/print.h"
#include "runtime/build_id.h"
#include "runtime/cache.h"
#include "runtime/content_hash.h"
#include "runtime/cpu/aoti.h"
#include "runtime/sealed.h"
#include "runtime/serialize.h"

namespace kerf::driver {

namespace {

constexpr std::string_view kHeader = "kerf compiled 1\n";

runtime::DiskCache cache_at(const std::string& directory, std::vector<std::string>& warnings) {
  return {directory, [&warnings](const std::string& message) { warnings.push_back(message); }};
}

// The numbers of a report that its Plan does not hold: nodes, then bytes of each launch.
std::string numbers_of(const CompileReport& report) {
  std::string text = fmt::format("{}", report.nodes);
  for (const KernelRecord& kernel : report.kernel_records) text += fmt::format(" {}", kernel.bytes);
  return text;
}

std::vector<int64_t> parse_numbers(std::string_view text) {
  std::vector<int64_t> numbers;
  const char* end = text.data() + text.size();
  for (const char* at = text.data(); at < end; ++at) {
    int64_t number = 0;
    auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc()) break;
    numbers.push_back(number);
    at = next;
  }
  return numbers;
}

void describe_plan(const runtime::Plan& plan, const std::vector<int64_t>& numbers, CompileReport& report) {
  report.unique_kernels = static_cast<int64_t>(plan.artifacts.size());
  if (!numbers.empty()) report.nodes = numbers[0];
  for (const auto& step : plan.steps) {
    if (const auto* call = std::get_if<target::ExternCall>(&step)) {
      report.externs.push_back({call->op, call->reason, call->source});
      continue;
    }
    const auto& launch = std::get<runtime::LaunchStep>(step);
    size_t position = report.kernel_records.size() + 1;
    int64_t bytes = position < numbers.size() ? numbers[position] : 0;
    report.kernel_records.push_back({launch.name, launch.sources, {}, bytes});
  }
  report.kernels = static_cast<int64_t>(report.kernel_records.size());
}

// nullopt for bytes that are damaged or of another layout; throws Error for code that cannot be loaded.
std::optional<Compiled> read(std::string_view bytes) {
  std::optional<std::vector<std::string_view>> parts = runtime::unseal(kHeader, bytes);
  if (!parts || parts->size() != 2) return std::nullopt;
  std::optional<runtime::Plan> plan = runtime::deserialize((*parts)[1]);
  if (!plan) return std::nullopt;
  for (target::CpuArtifact& artifact : plan->artifacts) codegen::load(artifact);
  Compiled result;
  describe_plan(*plan, parse_numbers((*parts)[0]), result.report);
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
  std::string chosen = fmt::format("level {} fallback_random {}", options.opt_level, options.fallback_random);
  return runtime::content_hash({machine, chosen, build});
}

std::string compile_key(const graph::Graph& graph, const CompileOptions& options) {
  std::string environment = environment_key(options);
  if (environment.empty()) return "";
  return runtime::content_hash({graph::to_text(graph, graph::Sources::shown), environment});
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
  std::string numbers = numbers_of(compiled.report);
  std::string plan = runtime::serialize(*compiled.plan);
  cache.store(compiled.key, runtime::seal(kHeader, {numbers, plan}));
}

}  // namespace kerf::driver
