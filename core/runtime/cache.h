#pragma once
// The disk cache: a directory of entries, one file each, named by key. It only ever saves time: whatever goes wrong
// (no such directory, read-only, full, damaged entries) is told to the log and the caller compiles.
//
// Several processes may share a directory: an entry appears whole, by renaming a finished temporary file, and of two
// writers of one key either may win. The directory is kept below a size by removing what was not used for longest; it
// may be deleted at any time.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace kerf::runtime {

// KERF_CACHE_DIR; else kerf below XDG_CACHE_HOME or ~/.cache. Empty when none of them is set: no cache.
std::string default_cache_directory();

// False when the variable KERF_CACHE is 0.
bool is_enabled_by_environment();

class DiskCache {
 public:
  using Log = std::function<void(const std::string& message)>;

  static constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

  // An empty directory: nothing is found and nothing stored.
  DiskCache(std::string directory, Log log, uint64_t max_bytes = kMaxBytes);

  std::optional<std::string> load(const std::string& key);
  void store(const std::string& key, std::string_view bytes);

  // The entry cannot be used: told to the log and removed, so that the next store replaces it.
  void discard(const std::string& key, std::string_view why);

  const std::string& directory() const { return directory_; }

 private:
  std::string path_of(const std::string& key) const;
  void remove_unused(const std::string& except);
  void warn_once(const std::string& what);  // once for this directory in this process

  std::string directory_;
  Log log_;
  uint64_t max_bytes_;
};

}  // namespace kerf::runtime
