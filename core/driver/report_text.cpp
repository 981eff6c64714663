#include "driver/report_text.h"

#include <nlohmann/json.hpp>

namespace kerf::loop {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Merged, name, sources, why)

}  // namespace kerf::loop

namespace kerf::target {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RouteRecord, op, choice, reason, condition, source)

}  // namespace kerf::target

namespace kerf::driver {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KernelRecord, name, sources, members, bytes_read, bytes_written)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ExternRecord, op, reason, source, bytes, is_library)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepRecords, kernels, externs, routes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CompileReport, target, nodes, kernels, unique_kernels, steps, peak_bytes)

std::string report_text(const CompileReport& report) {
  // Source lines may hold any bytes.
  return nlohmann::json(report).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool read_report(std::string_view text, CompileReport& report) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return false;
  try {
    json.get_to(report);
  } catch (const nlohmann::json::exception&) {
    return false;
  }
  return true;
}

}  // namespace kerf::driver
