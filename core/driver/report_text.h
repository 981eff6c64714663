#pragma once
// A compile's report as text, so that a compiled graph found in the disk cache tells the same as when it was built. JSON, of
// what belongs to the graph: counts, steps, peak; not of what belongs to one compile: times, warnings, texts.
#include <string>
#include <string_view>

#include "driver/compile.h"

namespace kerf::driver {

std::string report_text(const CompileReport& report);

// False for a text that report_text did not write.
bool read_report(std::string_view text, CompileReport& report);

}  // namespace kerf::driver
