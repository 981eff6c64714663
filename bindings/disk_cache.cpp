#include "disk_cache.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/build_id.h"
#include "runtime/cache.h"
#include "runtime/content_hash.h"
#include "runtime/sealed.h"

namespace nb = nanobind;

namespace kerf::bindings {
namespace {

constexpr std::string_view kHeader = "kerf trace 1\n";

std::string_view view(const nb::bytes& bytes) {
  return {static_cast<const char*>(bytes.data()), bytes.size()};
}

// One directory; what goes wrong is told to `warn`, a Python function of one text.
class PythonCache {
 public:
  PythonCache(const std::string& directory, nb::object warn)
      : warn_(std::move(warn)),
        cache_(directory, [this](const std::string& message) { warn_(message.c_str()); }) {}

  // A list of bytes, or None.
  nb::object load(const std::string& key) {
    std::optional<std::string> bytes = cache_.load(key);
    if (!bytes) return nb::none();
    std::optional<std::vector<std::string_view>> parts = runtime::unseal(kHeader, *bytes);
    if (!parts) {
      cache_.discard(key, "damaged");
      return nb::none();
    }
    nb::list result;
    for (std::string_view part : *parts) result.append(nb::bytes(part.data(), part.size()));
    return result;
  }

  void store(const std::string& key, const std::vector<nb::bytes>& parts) {
    std::vector<std::string_view> views;
    for (const nb::bytes& part : parts) views.push_back(view(part));
    cache_.store(key, runtime::seal(kHeader, views));
  }

  void discard(const std::string& key, const std::string& why) { cache_.discard(key, why); }

 private:
  nb::object warn_;
  runtime::DiskCache cache_;
};

}  // namespace

void bind_disk_cache(nb::module_& module) {
  nb::class_<PythonCache>(module, "DiskCache", "A directory of entries; see core/runtime/cache.h.")
      .def(nb::init<const std::string&, nb::object>(), nb::arg("directory"), nb::arg("warn"))
      .def("load", &PythonCache::load, nb::arg("key"))
      .def("store", &PythonCache::store, nb::arg("key"), nb::arg("parts"))
      .def("discard", &PythonCache::discard, nb::arg("key"), nb::arg("why"));
  module.def(
      "cache_directory",
      [] {
        return runtime::is_enabled_by_environment() ? runtime::default_cache_directory() : std::string();
      },
      "Where the disk cache is by the environment; empty: there is none.");
  module.def("build_id", &runtime::build_id, "The hash of this build.");
  module.def(
      "content_hash", [](const nb::bytes& bytes) { return runtime::content_hash({view(bytes)}); },
      "32 hexadecimal digits.");
}

}  // namespace kerf::bindings
