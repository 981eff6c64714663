#include "target/routing.h"

#include <fmt/format.h>

#include <algorithm>

#include "sym/text.h"

namespace kerf::target {

namespace {

constexpr Route kRoutes[] = {
#define ROUTE(words, where, what, why, ...) \
  {.ops = words, .devices = where, .choice = Choice::what, .reason = why __VA_OPT__(, ) __VA_ARGS__},
#include "target/routing.def"
#undef ROUTE
};

bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

std::optional<int64_t> bound_of(const Route& route, const RoutingOptions& options) {
  if (route.bound && options.*route.bound) return options.*route.bound;
  return route.wider_than;
}

enum class Holds : uint8_t { no, sometimes, yes };

Holds holds(const Route& route, const RouteQuery& query, Device device, const RoutingOptions& options) {
  if (!has_word(route.ops, query.op) || !has_word(route.devices, to_text(device)) ||
      (route.dtype && *route.dtype != query.dtype) || (route.reads_library && !query.reads_library))
    return Holds::no;
  const std::optional<int64_t> bound = bound_of(route, options);
  if (!bound) return Holds::yes;
  const bool is_off = route.bound && *bound == 0;
  if (is_off || !query.width || (query.widths.hi && *query.widths.hi <= *bound)) return Holds::no;
  const bool always = query.widths.lo && *query.widths.lo > *bound;
  return always || !route.at_run_time ? Holds::yes : Holds::sometimes;
}

}  // namespace

std::string_view to_text(Device device) {
  constexpr std::string_view kNames[] = {"cpu", "cuda", "npu"};
  return kNames[static_cast<size_t>(device)];
}

std::string_view to_text(Choice choice) { return choice == Choice::fused ? "kernel" : "library"; }

Decision Router::decide(const RouteQuery& query) {
  std::string condition;
  for (const Route& route : kRoutes) {
    const Holds found = holds(route, query, device_, options_);
    if (found == Holds::no) continue;
    const std::optional<int64_t> bound = bound_of(route, options_);
    const std::string width = bound ? sym::to_text(*query.width) : "";
    if (found == Holds::sometimes) {
      const bool taken = route.choice == unknown_;
      condition = fmt::format("{} {} {}", width, taken ? ">" : "<=", *bound);
      if (!taken) continue;
    }
    std::string reason(route.reason);
    if (bound) reason = fmt::format("{} elements, more than {}: {}", width, *bound, route.reason);
    records_.push_back({std::string(query.op), std::string(to_text(route.choice)), reason,
                        std::move(condition), query.source});
    return {route.choice, std::move(reason)};
  }
  return {};
}

}  // namespace kerf::target
