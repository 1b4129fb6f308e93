// A kernel on device 1 waits for a flag that device 0 sets after a long delay; the variants are the
// ways in which programs wait. How long the wait is must not change what it costs to simulate.
// Usage: wait_long [microseconds] [flag|count|clock|timer|cas|atomic|eventquery|streamquery]
// The runs here are long enough that a detector of deadlocks that only counts time would be wrong.
//
// run flag: | 100000 flag
// run count: | 100000 count
// run clock: | 100000 clock
// run timer: | 100000 timer
// run cas: | 100000 cas
// run atomic: | 100000 atomic
// run eventquery: | 100000 eventquery
// run streamquery: | 100000 streamquery
#include <cstring>
#include <cuda/atomic>

#include "check.h"
#include "flags.h"

namespace {

enum Variant { kFlag, kCount, kClock, kTimer, kCas, kAtomic, kEventQuery, kStreamQuery, kVariants };
const char* const kNames[kVariants] = {"flag", "count",  "clock",      "timer",
                                       "cas",  "atomic", "eventquery", "streamquery"};

constexpr uint32_t kPayload = 0xC0FFEE;
constexpr uint64_t kFarBound = 1ull << 50;  // no wait here comes near it

struct Board {
  uint32_t ready;  // the waiter has taken its start time
  uint32_t flag;
  uint32_t payload;
  uint32_t got;
  uint32_t gave_up;
  uint64_t waited_ns;
};

// Device 0. The waiter begins before the delay does, so it waits for at least as long.
__global__ void DelayThenSet(Board* board, uint64_t delay_ns) {
  while (LoadAcquireSys(&board->ready) == 0) {
  }
  const uint64_t start = GlobalTimer();
  while (GlobalTimer() - start < delay_ns) __nanosleep(1000);
  board->payload = kPayload;
  StoreReleaseSys(&board->flag, 1);
}

// True if the flag was seen, false if a bound was reached.
__device__ bool WaitFor(uint32_t* flag, Variant variant) {
  volatile uint32_t* polled = flag;
  bool seen = true;
  if (variant == kCount) {
    uint64_t spins = 0;
    while (*polled == 0 && spins < kFarBound) ++spins;
    seen = spins < kFarBound;
  } else if (variant == kClock) {
    const long long start = clock64();
    while (*polled == 0 && seen) seen = clock64() - start < (long long)kFarBound;
  } else if (variant == kTimer) {
    const uint64_t start = GlobalTimer();
    while (*polled == 0 && seen) seen = GlobalTimer() - start < kFarBound;
  } else if (variant == kCas) {
    while (atomicCAS_system(flag, 1, 2) != 1) __nanosleep(100);
  } else if (variant == kAtomic) {
    cuda::atomic_ref<uint32_t, cuda::thread_scope_system>(*flag).wait(0);
  } else {
    while (*polled == 0) {
    }
  }
  __threadfence_system();  // with the relaxed polls above, what an acquire would be
  return seen;
}

// Device 1. One kernel for each variant, so that a loop stands as it would alone.
template <Variant kVariant>
__global__ void Wait(Board* board) {
  const uint64_t start = GlobalTimer();
  StoreReleaseSys(&board->ready, 1);
  const bool seen = WaitFor(&board->flag, kVariant);
  board->waited_ns = GlobalTimer() - start;
  board->got = board->payload;
  board->gave_up = !seen;
}

using Kernel = void (*)(Board*);
const Kernel kKernels[kVariants] = {Wait<kFlag>, Wait<kCount>,  Wait<kClock>, Wait<kTimer>,
                                    Wait<kCas>,  Wait<kAtomic>, Wait<kFlag>,  Wait<kFlag>};

}  // namespace

int main(int argc, char** argv) {
  const uint64_t delay_ns = Argument(argc, argv, 1, 1000) * 1000;
  const char* name = argc > 2 ? argv[2] : "flag";
  int variant = 0;
  while (variant < kVariants && std::strcmp(name, kNames[variant]) != 0) ++variant;
  REQUIRE(variant < kVariants, "unknown variant %s", name);
  RequireDevices(2);
  EnablePeer(0, 1);
  Board* board = ZeroedOn<Board>(1);
  cudaEvent_t done;
  CUDA_CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));

  kKernels[variant]<<<1, 1>>>(board);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaEventRecord(done, nullptr));
  CUDA_CHECK(cudaSetDevice(0));
  DelayThenSet<<<1, 1>>>(board, delay_ns);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaSetDevice(1));
  cudaError_t state = cudaErrorNotReady;
  if (variant == kEventQuery) {
    while ((state = cudaEventQuery(done)) == cudaErrorNotReady) {
    }
  } else if (variant == kStreamQuery) {
    while ((state = cudaStreamQuery(nullptr)) == cudaErrorNotReady) {
    }
  } else {
    state = cudaDeviceSynchronize();
  }
  CUDA_CHECK(state);

  const Board end = Fetch(board);
  REQUIRE(end.gave_up == 0, "%s: the bound was reached", name);
  REQUIRE(end.got == kPayload, "%s: payload %x", name, end.got);
  // Two devices' timers tick in steps of about a microsecond, each at its own moment.
  REQUIRE(end.waited_ns + 5000 >= delay_ns, "%s: waited %llu ns of %llu", name,
          (unsigned long long)end.waited_ns, (unsigned long long)delay_ns);
  CUDA_CHECK(cudaEventDestroy(done));
  CUDA_CHECK(cudaFree(board));
  std::printf("PASS wait_long: %s, %llu us\n", name, (unsigned long long)delay_ns / 1000);
  return 0;
}
