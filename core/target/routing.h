#pragma once
// Kernel or library call, for operators that are both: rows of routing.def, one lookup, and a record of every decision for
// reports. Operators that only the library has are in library_ops.def.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "sym/facts.h"

namespace kerf::target {

enum class Device : uint8_t { cpu, cuda, npu };
enum class Choice : uint8_t { fused, library };

std::string_view to_text(Device device);
std::string_view to_text(Choice choice);

// Bounds that a user may set; absent: the row's own. 0: the row is off.
struct RoutingOptions {
  std::optional<int64_t> softmax_width;
};

struct Route {
  std::string_view ops;  // words: operators of graph_ops.def, or what a pass recognises
  std::string_view devices;
  Choice choice = Choice::fused;
  std::string_view reason;
  // Conditions.
  std::optional<DType> dtype = {};
  std::optional<int64_t> wider_than = {};                    // elements along the dimension that is folded
  std::optional<int64_t> RoutingOptions::* bound = nullptr;  // takes the place of wider_than
  bool at_run_time =
      false;  // a width that is not known leaves the choice to a test in the plan; else the row holds
  bool reads_library = false;  // the first operand is the result of a library call
};

struct RouteQuery {
  std::string_view op;
  DType dtype = DType::f32;
  std::optional<sym::Expr> width = {};
  sym::Range widths = {};  // that it may have
  bool reads_library = false;
  std::string source = {};
};

struct RouteRecord {
  std::string op;
  std::string choice;
  std::string reason;
  std::string condition;  // "s0 > 256": the choice where that holds; empty: always
  std::string source;     // the user's line
};

struct Decision {
  Choice choice = Choice::fused;
  std::string reason = {};
};

// Decides for one compilation of one graph, and remembers.
class Router {
 public:
  // `unknown`: the choice that rows get which a test at run time would decide.
  explicit Router(Device device = Device::cpu, const RoutingOptions& options = {},
                  Choice unknown = Choice::fused)
      : device_(device), options_(options), unknown_(unknown) {}

  Decision decide(const RouteQuery& query);
  const std::vector<RouteRecord>& records() const { return records_; }

 private:
  Device device_;
  RoutingOptions options_;
  Choice unknown_;
  std::vector<RouteRecord> records_;
};

}  // namespace kerf::target
