#pragma once
// The disk cache: a directory of entries, one file each, named by key. It only ever saves time: whatever goes wrong
// (no such directory, read-only, full, damaged entries) is told to the log and the caller compiles.
//
// Several processes may share a directory: an entry appears whole, by renaming a finished temporary file, and two
// writers of one key write the same. Entries are not removed except damaged ones; the directory may be deleted at
// any time.
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/plan.h"

namespace kerf::runtime {

// KERF_CACHE_DIR; else kerf below XDG_CACHE_HOME or ~/.cache. Empty when none of them is set: no cache.
std::string default_cache_directory();

// What an entry depends on: the canonical text of what is compiled, the target with its features, the options that
// change the result, and the version of the compiler.
std::string cache_key(std::string_view text, std::string_view target, std::string_view options,
                      std::string_view version);

class DiskCache {
 public:
  using Log = std::function<void(const std::string& message)>;

  // An empty directory: nothing is found and nothing stored.
  DiskCache(std::string directory, Log log);

  std::optional<std::string> load(const std::string& key);
  void store(const std::string& key, std::string_view bytes);

  // The entry cannot be used: told to the log and removed, so that the next store replaces it.
  void discard(const std::string& key, std::string_view why);

  const std::string& directory() const { return directory_; }

 private:
  std::string path_of(const std::string& key) const;
  void warn_once(const std::string& what);

  std::string directory_;
  Log log_;
  std::mutex mutex_;
  bool warned_ = false;
};

// A plan of the cache, with objects but without loaded code. A damaged entry is discarded.
std::optional<Plan> load_plan(DiskCache& cache, const std::string& key);
void store_plan(DiskCache& cache, const std::string& key, const Plan& plan);

}  // namespace kerf::runtime
