// Counts the bytes of large heap blocks that are alive, and the most there were. Preloaded by memory.py, so that torch,
// its libraries and every backend are counted alike, whoever allocates.
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

// Smaller blocks are left out: most are Python's, and tensors of this size weigh little.
#define KERF_COUNTED_BYTES 16384

// glibc's own names of what is replaced here.
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* block);

static _Atomic long live_bytes, peak_bytes;

long kerf_live_bytes(void) { return live_bytes; }
long kerf_peak_bytes(void) { return peak_bytes; }
void kerf_reset_peak(void) { peak_bytes = live_bytes; }

static void* counted(void* block) {
  long bytes = block ? (long)malloc_usable_size(block) : 0;
  if (bytes < KERF_COUNTED_BYTES) return block;
  long live = atomic_fetch_add(&live_bytes, bytes) + bytes;
  long peak = peak_bytes;
  while (live > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, live)) {
  }
  return block;
}

static void uncount(void* block) {
  long bytes = block ? (long)malloc_usable_size(block) : 0;
  if (bytes >= KERF_COUNTED_BYTES) atomic_fetch_sub(&live_bytes, bytes);
}

void* malloc(size_t bytes) { return counted(__libc_malloc(bytes)); }
void* calloc(size_t count, size_t bytes) { return counted(__libc_calloc(count, bytes)); }
void* memalign(size_t alignment, size_t bytes) { return counted(__libc_memalign(alignment, bytes)); }
void* aligned_alloc(size_t alignment, size_t bytes) { return counted(__libc_memalign(alignment, bytes)); }

int posix_memalign(void** result, size_t alignment, size_t bytes) {
  void* block = counted(__libc_memalign(alignment, bytes));
  if (!block) return ENOMEM;
  *result = block;
  return 0;
}

void* realloc(void* block, size_t bytes) {
  uncount(block);
  void* moved = __libc_realloc(block, bytes);
  counted(moved || bytes == 0 ? moved : block);
  return moved;
}

void free(void* block) {
  uncount(block);
  __libc_free(block);
}
