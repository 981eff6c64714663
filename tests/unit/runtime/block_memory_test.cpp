#include "runtime/block_memory.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

using namespace kerf::runtime;

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

struct Filled {
  char* data;
  int64_t bytes;
  char value;
};

void check_filled(const Filled& block) {
  CHECK(std::all_of(block.data, block.data + block.bytes, [&](char c) { return c == block.value; }));
}

}  // namespace

TEST_CASE("a block that came back is the next one of its size") {
  BlockMemory memory;
  void* first = memory.take(30 * kMiB);
  CHECK(reinterpret_cast<uintptr_t>(first) % 64 == 0);
  CHECK(memory.used_bytes() >= 30 * kMiB);
  memory.give_back(first);
  CHECK(memory.used_bytes() == 0);
  CHECK(memory.held_bytes() >= 30 * kMiB);
  CHECK(memory.take(30 * kMiB) == first);
  memory.give_back(first);
  memory.give_back(nullptr);
  memory.trim();
  CHECK(memory.held_bytes() == 0);
}

TEST_CASE("neighbours that come back in any order make room for a larger block") {
  BlockMemory memory;
  std::vector<void*> blocks;
  for (int i = 0; i < 12; ++i) blocks.push_back(memory.take(kMiB / 8));
  const int64_t held = memory.held_bytes();
  for (size_t i : {3, 1, 2}) memory.give_back(blocks[i]);
  void* large = memory.take(3 * kMiB / 8);
  CHECK(large == blocks[1]);
  CHECK(memory.held_bytes() == held);
  memory.give_back(large);
  for (size_t i : {0, 4, 5, 6, 7, 8, 9, 10, 11}) memory.give_back(blocks[i]);
  CHECK(memory.used_bytes() == 0);
}

TEST_CASE("what is held stays within a tenth of what was in use at once") {
  BlockMemory memory;
  for (int64_t size = 20; size <= 200; size += 20) {  // never two at once, and none fits into an earlier one
    void* block = memory.take(size * kMiB);
    memory.give_back(block);
    CHECK(memory.held_bytes() <= size * kMiB * 11 / 10);
  }
  void* small = memory.take(30 * kMiB);  // lies in what is there
  CHECK(memory.held_bytes() <= 201 * kMiB);
  memory.give_back(small);
}

TEST_CASE("of two empty segments a block takes the one of nearly its size") {
  BlockMemory memory;
  void* large = memory.take(100 * kMiB);
  void* other = memory.take(40 * kMiB);
  memory.give_back(large);
  memory.give_back(other);
  CHECK(memory.take(39 * kMiB) == other);
  CHECK(memory.take(100 * kMiB) == large);
  memory.give_back(large);
  memory.give_back(other);
}

TEST_CASE("a block lies where it is wanted, if that is in the region and free") {
  BlockMemory memory;
  const Region region = memory.reserve(100 * kMiB);
  REQUIRE(region.begin);
  char* wanted = region.begin + 30 * kMiB;
  CHECK(memory.take(20 * kMiB, wanted) == wanted);
  void* other = memory.take(20 * kMiB, wanted + 10 * kMiB);  // overlaps
  CHECK(other != wanted + 10 * kMiB);
  void* outside = memory.take(kMiB, region.begin + region.bytes);
  CHECK(outside != region.begin + region.bytes);
  const std::vector<PlacedBlock> blocks = memory.region().blocks;
  const auto found = std::ranges::find(blocks, 30 * kMiB, &PlacedBlock::offset);
  REQUIRE(found != blocks.end());
  CHECK(found->bytes >= 20 * kMiB);
  CHECK(found->last_step == kStays);
  for (void* block : {static_cast<void*>(wanted), other, outside}) memory.give_back(block);
}

TEST_CASE("the region grows when it is empty, and shrinks when less was wanted for a while") {
  BlockMemory memory;
  BlockMemory::Clock::time_point now{};
  memory.set_clock([&now] { return now; });
  const int64_t small = memory.reserve(40 * kMiB).bytes;
  CHECK(small < 50 * kMiB);
  void* block = memory.take(30 * kMiB, memory.region().begin);
  CHECK(memory.reserve(80 * kMiB).bytes == small);
  void* other = memory.take(50 * kMiB);  // as a call does whose blocks do not fit
  memory.give_back(block);
  memory.give_back(other);
  CHECK(memory.reserve(40 * kMiB).bytes >= 80 * kMiB);
  CHECK(memory.held_bytes() < 90 * kMiB);
  for (int i = 0; i < 3; ++i) {
    now += BlockMemory::kIdleTime + std::chrono::seconds(1);
    memory.reserve(40 * kMiB);
  }
  CHECK(memory.held_bytes() < 50 * kMiB);
}

TEST_CASE("the region does not grow beyond a quarter more than what was in use at once") {
  BlockMemory memory;
  void* held = memory.take(100 * kMiB);
  memory.reserve(20 * kMiB);
  void* block = memory.take(20 * kMiB, memory.region().begin);
  memory.reserve(200 * kMiB);  // a call of one time
  memory.give_back(block);
  CHECK(memory.reserve(20 * kMiB).bytes < 30 * kMiB);
  CHECK(memory.held_bytes() <= 125 * kMiB);
  memory.give_back(held);
}

TEST_CASE("a segment that stays empty goes with the next one that becomes empty") {
  BlockMemory memory;
  BlockMemory::Clock::time_point now{};
  memory.set_clock([&now] { return now; });
  void* large = memory.take(100 * kMiB);
  void* other = memory.take(40 * kMiB);
  memory.give_back(large);
  now += BlockMemory::kIdleTime;
  memory.give_back(other);
  CHECK(memory.held_bytes() >= 140 * kMiB);
  other = memory.take(40 * kMiB);
  now += std::chrono::seconds(1);
  memory.give_back(other);
  CHECK(memory.held_bytes() < 50 * kMiB);
}

TEST_CASE("blocks in use never overlap, whatever comes and goes") {
  BlockMemory memory;
  std::mt19937 random(1);
  std::vector<Filled> blocks;
  int64_t asked = 0, most = 0;
  for (int i = 0; i < 3000; ++i) {
    if (!blocks.empty() && random() % 2 == 0) {
      size_t index = random() % blocks.size();
      check_filled(blocks[index]);
      asked -= blocks[index].bytes;
      memory.give_back(blocks[index].data);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(index));
      continue;
    }
    int64_t bytes = 1 + static_cast<int64_t>(random() % (random() % 8 == 0 ? 3000000 : 50000));
    Filled block{static_cast<char*>(memory.take(bytes)), bytes, static_cast<char>(random())};
    std::memset(block.data, block.value, static_cast<size_t>(bytes));
    blocks.push_back(block);
    most = std::max(most, asked += bytes);
    CHECK(memory.used_bytes() >= asked);
  }
  for (const Filled& block : blocks) {
    check_filled(block);
    memory.give_back(block.data);
  }
  CHECK(memory.used_bytes() == 0);
  CHECK(memory.held_bytes() <= most * 5 / 4 + 8 * kMiB);
}

TEST_CASE("threads take and give back at once") {
  BlockMemory memory;
  std::atomic<int> wrong = 0;
  auto work = [&](char value) {
    for (int i = 0; i < 200; ++i) {
      const size_t bytes = 200000 + 1000 * static_cast<size_t>(i);
      auto* data = static_cast<char*>(memory.take(static_cast<int64_t>(bytes)));
      std::memset(data, value, bytes);
      if (data[0] != value || data[bytes - 1] != value) ++wrong;
      memory.give_back(data);
    }
  };
  std::vector<std::thread> threads;
  for (char value : {1, 2, 3, 4}) threads.emplace_back(work, value);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(memory.used_bytes() == 0);
}

TEST_CASE("a forked child finds the process's memory unlocked") {
  std::atomic<bool> stop = false;
  block_memory();  // made before anything forks, as the bindings do
  std::thread busy([&] {
    while (!stop) block_memory().give_back(block_memory().take(kBlockBytes));
  });
  int failed = 0;
  for (int i = 0; i < 20; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(10);  // else a lock that nobody frees waits for ever
      block_memory().give_back(block_memory().take(kBlockBytes));
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) ++failed;
  }
  stop = true;
  busy.join();
  CHECK(failed == 0);
}
