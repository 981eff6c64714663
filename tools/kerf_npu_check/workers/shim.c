// What kernels that were compiled for the host need: memory that begins without values, strided copies, host forms of
// the device's functions, and a way out of a fault.
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { kOk = 0, kBadAddress = 1, kArithmetic = 2, kOutOfMemory = 3 };

static char* arena;
static size_t used;
static const size_t kArenaSize = (size_t)1 << 28;
static sigjmp_buf way_out;
static volatile uintptr_t bad_address;

static void on_fault(int signal_number, siginfo_t* info, void* context) {
  (void)context;
  bad_address = (uintptr_t)info->si_addr;
  siglongjmp(way_out, signal_number == SIGFPE ? kArithmetic : kBadAddress);
}

uintptr_t shim_bad_address(void) { return bad_address; }

// Runs all programs of a kernel one after another; `arguments[place]` is the number of the program. Returns how it ended.
int shim_run(void (*kernel)(const int64_t*), int64_t* arguments, int64_t place, int64_t programs) {
  static const int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE};
  struct sigaction old[3], action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  for (int i = 0; i < 3; i++) sigaction(kSignals[i], &action, &old[i]);
  const int ending = sigsetjmp(way_out, 1);
  if (ending == kOk) {
    for (arguments[place] = 0; arguments[place] < programs; arguments[place]++) {
      used = 0;
      kernel(arguments);
    }
  }
  for (int i = 0; i < 3; i++) sigaction(kSignals[i], &old[i], NULL);
  return ending;
}

// All ones: a NaN of every float type.
void* shim_malloc(int64_t size) {
  if (!arena) arena = mmap(NULL, kArenaSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const size_t padded = ((size_t)size + 127) & ~(size_t)127;
  if (arena == MAP_FAILED || padded > kArenaSize - used) siglongjmp(way_out, kOutOfMemory);
  char* block = arena + used;
  used += padded;
  memset(block, 0xFF, padded);
  return block;
}

void shim_free(void* block) { (void)block; }

// MLIR's memref of unknown rank: a rank, and a pointer to this with `rank` sizes and then `rank` strides.
typedef struct {
  char *allocated, *aligned;
  int64_t offset, sizes_and_strides[];
} memref;
typedef struct {
  int64_t rank;
  memref* of;
} unranked;

static void copy(int64_t size, int64_t rank, const int64_t* sizes, const char* from,
                 const int64_t* from_strides, char* to, const int64_t* to_strides) {
  const int is_row = rank == 1 && from_strides[0] == 1 && to_strides[0] == 1;
  if (rank == 0 || is_row) {
    memmove(to, from, is_row ? size * sizes[0] : size);
    return;
  }
  for (int64_t i = 0; i < sizes[0]; i++)
    copy(size, rank - 1, sizes + 1, from + i * from_strides[0] * size, from_strides + 1,
         to + i * to_strides[0] * size, to_strides + 1);
}

void shim_copy(int64_t size, const unranked* from, const unranked* to) {
  const int64_t rank = from->rank;
  const memref *source = from->of, *target = to->of;
  const int64_t* sizes = source->sizes_and_strides;
  for (int64_t i = 0; i < rank; i++)
    if (sizes[i] == 0) return;
  copy(size, rank, sizes, source->aligned + source->offset * size, sizes + rank,
       target->aligned + target->offset * size, target->sizes_and_strides + rank);
}

// f32 to bf16, ties to even. The compiler's calling convention returns bf16 in the low half of a float register.
float shim_truncate_bf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  bits = x != x ? (bits >> 16) | 0x40 : (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  memcpy(&x, &bits, 4);
  return x;
}

float shim_recip(float x) { return 1.0f / x; }
float shim_relu(float x) { return x != x || x > 0 ? x : 0; }
_Bool shim_isinf(float x) { return isinf(x); }
_Bool shim_isnan(float x) { return isnan(x); }
