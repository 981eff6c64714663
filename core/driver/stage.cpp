#include "driver/stage.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <new>

#include "base/environment.h"
#include "graph/print.h"
#include "graph/verify.h"
#include "loop/print.h"
#include "loop/verify_program.h"

namespace kerf::driver {

Stages::Stages(std::string dump_dir, bool keep_text)
    : dump_dir_(std::move(dump_dir)),
      keep_text_(keep_text),
      verifies_every_pass_(wants_text() || environment("KERF_VERIFY") == "1") {}

void Stages::add_seconds(const std::string& phase, std::chrono::steady_clock::time_point start) {
  add_seconds(phase, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

void Stages::add_seconds(const std::string& phase, double seconds) {
  for (auto& [name, total] : seconds_) {
    if (name == phase) {
      total += seconds;
      return;
    }
  }
  seconds_.emplace_back(phase, seconds);
}

void Stages::rethrow_from(const char* name) {
  auto message = [&](const std::exception& e) { return fmt::format("in pass {}: {}", name, e.what()); };
  try {
    throw;
  } catch (const InternalError& e) {
    throw InternalError(message(e));
  } catch (const RuntimeError& e) {
    throw RuntimeError(message(e));
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    throw InternalError(message(e));
  }
}

void Stages::record(const char* name, const graph::Graph& graph) {
  if (verifies_every_pass_) verify(name, graph);
  if (wants_text()) keep(name, graph::to_text(graph, graph::Sources::shown));
}

void Stages::record(const char* name, const loop::Program& program) {
  if (verifies_every_pass_) verify(name, program);
  if (wants_text()) keep(name, loop::to_text(program));
}

void Stages::verify(const char* name, const graph::Graph& graph) { graph::check_valid(graph, name); }

void Stages::verify(const char* name, const loop::Program& program) { loop::check_valid(program, name); }

void Stages::keep(const char* name, const std::string& text) {
  std::string title = fmt::format("{:02}-{}", number_++, name);
  const char* note = text == last_ ? "# unchanged\n" : "";
  if (keep_text_) text_ += fmt::format("# {}\n{}\n", title, *note ? note : text);
  if (!dump_dir_.empty()) write(title, note + text);
  last_ = text;
}

void Stages::write(const std::string& title, const std::string& text) {
  if (!problem_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(dump_dir_, error);
  const std::filesystem::path path = std::filesystem::path(dump_dir_) / (title + ".txt");
  std::ofstream out(path);
  out << text;
  out.close();
  if (error || !out) problem_ = fmt::format("cannot write {}", path.string());
}

}  // namespace kerf::driver
