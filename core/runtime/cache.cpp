#include "runtime/cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/environment.h"

namespace kerf::runtime {

namespace {

namespace fs = std::filesystem;

// Only such files are ours to remove: the directory may be one that others use too.
constexpr std::string_view kSuffix = ".kerf";

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// The whole file, or nullopt with errno.
std::optional<std::string> read_file(const std::string& path) {
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) return std::nullopt;
  std::string bytes;
  char chunk[1 << 16];
  while (size_t count = std::fread(chunk, 1, sizeof chunk, file.get())) bytes.append(chunk, count);
  if (std::ferror(file.get())) return std::nullopt;
  return bytes;
}

// False with errno. Closing reports what writing has put off, such as a full disk.
bool write_file(const std::string& path, std::string_view bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) return false;
  bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  int error = errno;
  bool closed = std::fclose(file) == 0;
  if (!written) errno = error;
  return written && closed;
}

// No two writers share a name: neither threads of this process nor processes of this machine.
std::string temporary_name(const std::string& path) {
  static std::atomic<uint64_t> count = 0;
  return fmt::format("{}.{}.{}.tmp", path, getpid(), count++);
}

}  // namespace

std::string default_cache_directory() {
  if (std::string own = environment("KERF_CACHE_DIR"); !own.empty()) return own;
  if (std::string cache = environment("XDG_CACHE_HOME"); !cache.empty()) return cache + "/kerf";
  if (std::string home = environment("HOME"); !home.empty()) return home + "/.cache/kerf";
  return "";
}

bool is_enabled_by_environment() { return environment("KERF_CACHE") != "0"; }

DiskCache::DiskCache(std::string directory, Log log, uint64_t max_bytes)
    : directory_(std::move(directory)), log_(std::move(log)), max_bytes_(max_bytes) {}

std::string DiskCache::path_of(const std::string& key) const {
  return fmt::format("{}/{}{}", directory_, key, kSuffix);
}

std::optional<std::string> DiskCache::load(const std::string& key) {
  if (directory_.empty()) return std::nullopt;
  errno = 0;
  std::optional<std::string> bytes = read_file(path_of(key));
  // An absent entry is the usual miss; that the directory is a file shows when storing.
  if (!bytes && errno != ENOENT && errno != ENOTDIR)
    warn_once(fmt::format("cannot read {}: {}", path_of(key), std::strerror(errno)));
  // Used now; in a read-only directory that cannot be noted, and need not.
  if (bytes) utimensat(AT_FDCWD, path_of(key).c_str(), nullptr, 0);
  return bytes;
}

void DiskCache::store(const std::string& key, std::string_view bytes) {
  if (directory_.empty()) return;
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error) return warn_once(fmt::format("cannot make {}: {}", directory_, error.message()));
  std::string path = path_of(key);
  std::string temporary = temporary_name(path);
  bool written = write_file(temporary, bytes);
  if (written && std::rename(temporary.c_str(), path.c_str()) == 0) return remove_unused(path);
  int code = errno;
  std::remove(temporary.c_str());
  warn_once(fmt::format("cannot write {}: {}", path, std::strerror(code)));
}

void DiskCache::discard(const std::string& key, std::string_view why) {
  log_(fmt::format("cache entry {} is {}: ignored, compiling again", path_of(key), why));
  std::remove(path_of(key).c_str());
}

// Another process may remove entries, or the whole directory, at the same time: what is gone already is passed over.
void DiskCache::remove_unused(const std::string& except) {
  struct Entry {
    fs::file_time_type used;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator at(directory_, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename().string().find(kSuffix) == std::string::npos) continue;
    std::error_code gone;
    Entry entry{at->last_write_time(gone), at->file_size(gone), at->path()};
    if (gone) continue;
    total += entry.bytes;
    if (entry.path != except) entries.push_back(std::move(entry));
  }
  if (total <= max_bytes_) return;
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& entry : entries) {
    if (total <= max_bytes_) return;
    fs::remove(entry.path, error);
    total -= entry.bytes;
  }
}

void DiskCache::warn_once(const std::string& what) {
  static std::mutex mutex;
  static std::set<std::string> warned;
  {
    std::lock_guard lock(mutex);
    if (!warned.insert(directory_).second) return;
  }
  log_(fmt::format("the compile cache does not work ({}); going on without it", what));
}

}  // namespace kerf::runtime
