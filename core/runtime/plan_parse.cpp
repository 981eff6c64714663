#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "runtime/plan_text.h"
#include "sym/text.h"
#include "target/text.h"

namespace kerf::runtime {

namespace {

class PlanParser {
 public:
  explicit PlanParser(std::string_view text)
      : lexer_(text), context_(std::make_shared<sym::Context>()), reader_(lexer_, *context_) {
    plan_.context = context_;
  }

  Plan parse() {
    lexer_.expect("plan");
    if (lexer_.accept("given")) sizes();
    while (!lexer_.at_end()) item();
    return std::move(plan_);
  }

  std::vector<std::string> take_hashes() { return std::move(hashes_); }

 private:
  void item() {
    if (!lexer_.peek().begins_line) lexer_.fail("expected the end of the line");
    if (lexer_.accept("size")) {
      plan_.size_sources.push_back(reader_.size_source());
    } else if (lexer_.accept("input")) {
      input();
    } else if (lexer_.accept("buffer")) {
      buffer();
    } else if (lexer_.accept("artifact")) {
      artifact();
    } else if (lexer_.accept("launch")) {
      launch();
    } else if (lexer_.accept("extern")) {
      plan_.steps.emplace_back(reader_.extern_call());
    } else if (lexer_.accept("return")) {
      plan_.outputs.push_back(reader_.output());
    } else {
      lexer_.fail("expected size, input, buffer, artifact, launch, extern or return");
    }
  }

  // Clauses about the same size follow each other or not; the first one places it.
  void sizes() {
    do {
      sym::Expr symbol = context_->symbol(lexer_.expect_identifier("a size"), sym::SymbolKind::size);
      auto size = std::ranges::find(plan_.sizes, symbol, &PlanSize::symbol);
      if (size == plan_.sizes.end()) {
        size = plan_.sizes.insert(size, PlanSize{symbol, {}, {}});
        reader_.add_size(symbol);
      }
      clause(*size);
    } while (lexer_.accept(","));
  }

  void clause(PlanSize& size) {
    if (lexer_.accept("in")) {
      lexer_.expect("[");
      size.range.lo = lexer_.expect_integer();
      lexer_.expect(",");
      size.range.hi = lexer_.expect_integer();
      lexer_.expect("]");
    } else if (lexer_.accept(">=")) {
      size.range.lo = lexer_.expect_integer();
    } else if (lexer_.accept("<=")) {
      size.range.hi = lexer_.expect_integer();
    } else if (lexer_.accept("mod")) {
      size.modulus.modulus = lexer_.expect_integer();
      if (size.modulus.modulus < 2) lexer_.fail("expected a modulus of at least 2 before this");
      lexer_.expect("=");
      size.modulus.remainder = lexer_.expect_integer();
    } else if (lexer_.accept("=")) {
      size.modulus = {0, lexer_.expect_integer()};
    }
  }

  void expect_index(size_t index, std::string_view what) {
    if (static_cast<size_t>(reader_.index()) != index)
      lexer_.fail(fmt::format("expected {} {}", what, index));
  }

  void input() {
    expect_index(plan_.inputs.size(), "input");
    lexer_.expect(":");
    PlanInput input;
    input.is_integer = lexer_.accept("integer");
    if (input.is_integer) {
      input.dtype = DType::i64;
    } else {
      input.dtype = reader_.dtype();
      input.shape = reader_.expressions();
      lexer_.expect("strides");
      input.strides = reader_.expressions();
    }
    input.is_used = !lexer_.accept("unused");
    input.is_opaque = lexer_.accept("opaque");
    plan_.inputs.push_back(std::move(input));
  }

  void buffer() {
    if (lexer_.expect_value() != std::to_string(plan_.buffers.size()))
      lexer_.fail(fmt::format("expected %{} before this", plan_.buffers.size()));
    PlanBuffer buffer;
    buffer.name = reader_.string();
    lexer_.expect(":");
    buffer.dtype = reader_.dtype();
    lexer_.expect("[");
    buffer.elements = reader_.expression();
    lexer_.expect("]");
    storage(buffer);
    if (lexer_.accept("live")) {
      buffer.first_step = static_cast<uint32_t>(reader_.index());
      lexer_.expect("to");
      buffer.last_step = static_cast<uint32_t>(reader_.index());
    } else {
      lexer_.expect("never");
      buffer.first_step = std::numeric_limits<uint32_t>::max();
    }
    plan_.buffers.push_back(std::move(buffer));
    reader_.set_buffer_count(plan_.buffers.size());
  }

  void storage(PlanBuffer& buffer) {
    if (lexer_.accept("input")) {
      buffer.storage = Storage::input;
      buffer.input_index = reader_.index();
    } else if (lexer_.accept("output")) {
      buffer.storage = Storage::output;
      buffer.output_index = reader_.index();
    } else if (lexer_.accept("adopted")) {
      buffer.storage = Storage::adopted;
    } else {
      lexer_.expect("arena");
    }
  }

  void artifact() {
    expect_index(plan_.artifacts.size(), "artifact");
    target::CpuArtifact artifact;
    artifact.name = reader_.string();
    lexer_.expect("scratch");
    artifact.scratch_bytes = lexer_.expect_integer();
    if (artifact.scratch_bytes < 0) lexer_.fail("expected a number of bytes before this");
    lexer_.expect("object");
    hashes_.push_back(reader_.string());
    plan_.artifacts.push_back(std::move(artifact));
  }

  void launch() {
    LaunchStep launch;
    launch.artifact = static_cast<uint32_t>(reader_.index());
    launch.name = reader_.string();
    if (lexer_.peek().kind == base::TokenKind::value) {
      do launch.buffers.push_back(reader_.buffer());
      while (lexer_.accept(","));
    }
    lexer_.expect("sizes");
    launch.sizes = reader_.expressions();
    lexer_.expect("grid");
    launch.grid = reader_.expression();
    lexer_.expect("work");
    launch.work = reader_.expression();
    lexer_.expect("sources");
    lexer_.expect("[");
    if (!lexer_.accept("]")) {
      do launch.sources.push_back(reader_.string());
      while (lexer_.accept(","));
      lexer_.expect("]");
    }
    plan_.steps.emplace_back(std::move(launch));
  }

  base::Lexer lexer_;
  std::shared_ptr<sym::Context> context_;
  target::Reader reader_;
  Plan plan_;
  std::vector<std::string> hashes_;
};

}  // namespace

Plan parse_plan(std::string_view text, std::vector<std::string>* object_hashes) {
  PlanParser parser(text);
  Plan plan = parser.parse();
  if (object_hashes) *object_hashes = parser.take_hashes();
  return plan;
}

}  // namespace kerf::runtime
