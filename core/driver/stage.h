#pragma once
// What happens around every pass: its result is dumped under a number and its name, all of it is timed, and an exception on
// the way out says which pass it was.
//
// Results are verified, too: after every pass where the variable KERF_VERIFY is 1 (tests set it) or texts are kept, else
// once at the end of a part of the pipeline, as verifying all takes a fifth of the time to the code generator.
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
  // dump_dir: numbered files go there; empty: none. keep_text: all texts are collected for `text`.
  Stages(std::string dump_dir, bool keep_text);

  // Runs `pass`, a callable, as the stage `name`; its time counts under `phase`. A Graph or Program that it returns is
  // recorded. Whatever is no error of ours (map::at, say) is a fault of ours and becomes an InternalError.
  template <class Pass>
  auto run(const char* phase, const char* name, Pass&& pass) {
    auto start = std::chrono::steady_clock::now();
    try {
      auto result = pass();
      if constexpr (requires { record(name, result); }) record(name, result);
      add_seconds(phase, start);
      return result;
    } catch (...) {
      rethrow_from(name);
    }
  }

  void add_seconds(const std::string& phase, std::chrono::steady_clock::time_point start);
  void add_seconds(const std::string& phase, double seconds);
  const std::vector<std::pair<std::string, double>>& seconds() const { return seconds_; }
  const std::string& text() const { return text_; }
  bool wants_text() const { return keep_text_ || !dump_dir_.empty(); }
  // Why a dump could not be written (the first time); empty if all were.
  const std::string& problem() const { return problem_; }

  // Verifies, if every pass is, and keeps the text.
  void record(const char* name, const graph::Graph& graph);
  void record(const char* name, const loop::Program& program);
  // Verifies in any case what the pass `name` was the last to change.
  static void verify(const char* name, const graph::Graph& graph);
  static void verify(const char* name, const loop::Program& program);
  void keep(const char* name, const std::string& text);

 private:
  // Throws the current exception with the pass in its message.
  [[noreturn]] static void rethrow_from(const char* name);
  void write(const std::string& title, const std::string& text);

  std::string dump_dir_;
  bool keep_text_;
  bool verifies_every_pass_;
  int number_ = 0;
  std::string last_;
  std::string text_;
  std::string problem_;
  std::vector<std::pair<std::string, double>> seconds_;
};

}  // namespace kerf::driver
