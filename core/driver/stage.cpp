#include "driver/stage.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "graph/print.h"
#include "graph/verify.h"
#include "loop/print.h"
#include "loop/verify.h"

namespace kerf::driver {

void Stages::add_seconds(const std::string& phase, std::chrono::steady_clock::time_point start) {
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (auto& [name, total] : seconds_) {
    if (name == phase) {
      total += seconds;
      return;
    }
  }
  seconds_.emplace_back(phase, seconds);
}

void Stages::record(const char* name, const graph::Graph& graph) {
  graph::check_valid(graph, name);
  if (wants_text()) keep(name, graph::to_text(graph));
}

void Stages::record(const char* name, const loop::Program& program) {
  for (const auto& step : program.steps)
    if (const auto* launch = std::get_if<loop::Launch>(&step)) loop::check_valid(launch->kernel, name);
  if (wants_text()) keep(name, loop::to_text(program));
}

void Stages::keep(const char* name, const std::string& text) {
  std::string title = fmt::format("{:02}-{}", number_++, name);
  const std::string& shown = text == last_ ? "# unchanged\n" : text;
  if (keep_text_) text_ += fmt::format("# {}\n{}\n", title, shown);
  if (!dump_dir_.empty()) {
    std::filesystem::create_directories(dump_dir_);
    std::ofstream(std::filesystem::path(dump_dir_) / (title + ".txt")) << shown;
  }
  last_ = text;
}

}  // namespace kerf::driver
