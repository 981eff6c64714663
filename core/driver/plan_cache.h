#pragma once
// Compiled graphs in the disk cache: the Plan with its object code, and of the report what a Plan does not say.
#include <optional>
#include <string>
#include <vector>

#include "driver/compile.h"

namespace kerf::driver {

// Everything but the graph that a compile depends on: the target, the options, the build of Kerf. Empty when the options
// or the build allow no caching.
std::string environment_key(const CompileOptions& options);

// The same with the graph: its text with source lines, which errors and reports name.
std::string compile_key(const std::string& graph_text, const CompileOptions& options);

// What was stored under `key`, with its code loaded; nullopt if nothing usable is there. `warnings`: see CompileReport.
std::optional<Compiled> load_compiled(const std::string& key, const CompileOptions& options,
                                      std::vector<std::string>& warnings);

// Appends to `compiled.report.warnings`.
void store_compiled(Compiled& compiled, const CompileOptions& options);

}  // namespace kerf::driver
