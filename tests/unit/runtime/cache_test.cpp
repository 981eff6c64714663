#include "runtime/cache.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace kerf;
using namespace kerf::runtime;

namespace fs = std::filesystem;

namespace {

// A directory that is gone after the test.
class Directory {
 public:
  Directory() {
    std::string name = (fs::temp_directory_path() / "kerf-cache-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Directory() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::vector<std::string> files(const std::string& name) const {
    std::vector<std::string> result;
    for (const auto& entry : fs::directory_iterator(path_ / name))
      result.push_back(entry.path().filename().string());
    return result;
  }

 private:
  fs::path path_;
};

struct Log {
  std::vector<std::string> messages;
  DiskCache::Log sink() {
    return [this](const std::string& message) { messages.push_back(message); };
  }
};

void write(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Sets an environment variable for the length of a test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Environment() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace

TEST_CASE("entries are stored and found, without leftovers") {
  Directory directory;
  Log log;
  DiskCache cache(directory / "deep/cache", log.sink());
  CHECK_FALSE(cache.load("key"));
  cache.store("key", std::string_view("one\0two", 7));
  CHECK(cache.load("key") == std::string("one\0two", 7));
  cache.store("key", "");
  CHECK(cache.load("key") == "");
  CHECK(directory.files("deep/cache") == std::vector<std::string>{"key.kerf"});
  CHECK(log.messages.empty());
}

TEST_CASE("a discarded entry is reported and replaced by the next store") {
  Directory directory;
  Log log;
  DiskCache cache(directory / "c", log.sink());
  cache.store("key", "damaged");
  cache.discard("key", "damaged");
  REQUIRE(log.messages.size() == 1);
  CHECK(log.messages[0].find("key.kerf is damaged") != std::string::npos);
  CHECK_FALSE(cache.load("key"));  // removed: an ordinary miss
  CHECK(log.messages.size() == 1);
  cache.store("key", "sound");
  CHECK(cache.load("key") == "sound");
}

TEST_CASE(
    "beyond its size the directory loses what was not used for longest, and nothing that is not its own") {
  Directory directory;
  Log log;
  DiskCache cache(directory / "c", log.sink(), 2500);
  const std::string bytes(1000, 'x');
  auto age = [&](const char* name, int hours) {
    fs::last_write_time(directory / (std::string("c/") + name),
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  cache.store("old", bytes);
  cache.store("used", bytes);
  write(directory / "c/foreign", std::string(5000, 'x'));
  age("old.kerf", 2);
  age("used.kerf", 3);
  age("foreign", 4);
  CHECK(cache.load("used"));  // now the most recent
  cache.store("new", bytes);
  CHECK_FALSE(cache.load("old"));
  CHECK(cache.load("used"));
  CHECK(cache.load("new"));
  CHECK(fs::exists(directory / "c/foreign"));
  cache.store("huge", std::string(5000, 'x'));  // the entry just written stays, whatever its size
  CHECK(directory.files("c").size() == 2);
  CHECK(log.messages.empty());
}

TEST_CASE("a directory that cannot be made is reported once") {
  Directory directory;
  write(directory / "file", "");
  Log log;
  DiskCache cache(directory / "file/cache", log.sink());
  CHECK_FALSE(cache.load("key"));
  CHECK(log.messages.empty());
  cache.store("key", "bytes");
  cache.store("other", "bytes");
  CHECK_FALSE(cache.load("key"));
  REQUIRE(log.messages.size() == 1);
  CHECK(log.messages[0].find("Not a directory") != std::string::npos);
}

TEST_CASE("an entry that cannot be replaced or read is reported once") {
  Directory directory;
  fs::create_directories(directory / "c/key.kerf/inside");
  Log log;
  DiskCache cache(directory / "c", log.sink());
  cache.store("key", "bytes");
  CHECK_FALSE(cache.load("key"));
  CHECK(log.messages.size() == 1);
  CHECK(directory.files("c") == std::vector<std::string>{"key.kerf"});  // no temporary file left
}

// A limit on the size of files stands for the full disk: writing fails in the middle of an entry.
TEST_CASE("a full disk is reported once and leaves no entry") {
  Directory directory;
  Log log;
  DiskCache cache(directory / "c", log.sink());
  rlimit old;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
  rlimit small = {1000, old.rlim_max};
  auto old_action = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  cache.store("key", std::string(100000, 'x'));
  cache.store("other", std::string(100000, 'x'));
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_action);
  CHECK(directory.files("c").empty());
  REQUIRE(log.messages.size() == 1);
  CHECK(log.messages[0].find("File too large") != std::string::npos);
  cache.store("key", "small");
  CHECK(cache.load("key") == "small");
}

TEST_CASE("without a directory nothing is stored") {
  Log log;
  DiskCache cache("", log.sink());
  cache.store("key", "bytes");
  CHECK_FALSE(cache.load("key"));
  CHECK(log.messages.empty());
}

TEST_CASE("writers of one key do not disturb readers") {
  Directory directory;
  Log log;
  DiskCache cache(directory / "c", log.sink());
  const std::string bytes(200000, 'x');
  cache.store("key", bytes);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        cache.store("key", bytes);
        if (cache.load("key") != bytes) ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(directory.files("c").size() == 1);
  CHECK(log.messages.empty());
}

TEST_CASE("where the cache is") {
  Environment own("KERF_CACHE_DIR", nullptr);
  Environment xdg("XDG_CACHE_HOME", nullptr);
  Environment home("HOME", "/home/user");
  CHECK(default_cache_directory() == "/home/user/.cache/kerf");
  {
    Environment set("XDG_CACHE_HOME", "/x");
    CHECK(default_cache_directory() == "/x/kerf");
    Environment other("KERF_CACHE_DIR", "/y");
    CHECK(default_cache_directory() == "/y");
  }
  Environment none("HOME", nullptr);
  CHECK(default_cache_directory() == "");
}
