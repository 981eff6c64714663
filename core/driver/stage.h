#pragma once
// What happens around every pass: it is timed, its result is verified, dumped under a number and its name, and an
// exception on the way out says which pass it was.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "graph/graph.h"
#include "loop/program.h"

namespace kerf::driver {

class Stages {
 public:
  // dump_dir: numbered files go there; empty: none. keep_text: all texts are collected for the report.
  Stages(std::string dump_dir, bool keep_text) : dump_dir_(std::move(dump_dir)), keep_text_(keep_text) {}

  // Runs `pass` (a callable returning a Graph or Program) as the stage `name`; its time counts under `phase`.
  template <class Pass>
  auto run(const char* phase, const char* name, Pass&& pass) {
    auto start = std::chrono::steady_clock::now();
    auto result = [&] {
      try {
        return pass();
      } catch (const InternalError& e) {
        throw InternalError(std::string("in pass ") + name + ": " + e.what());
      }
    }();
    add_seconds(phase, start);
    record(name, result);
    return result;
  }

  void add_seconds(const std::string& phase, std::chrono::steady_clock::time_point start);
  const std::vector<std::pair<std::string, double>>& seconds() const { return seconds_; }
  const std::string& text() const { return text_; }

  void record(const char* name, const graph::Graph& graph);
  void record(const char* name, const loop::Program& program);

 private:
  void keep(const char* name, const std::string& text);
  bool wants_text() const { return keep_text_ || !dump_dir_.empty(); }

  std::string dump_dir_;
  bool keep_text_;
  int number_ = 0;
  std::string last_;
  std::string text_;
  std::vector<std::pair<std::string, double>> seconds_;
};

}  // namespace kerf::driver
