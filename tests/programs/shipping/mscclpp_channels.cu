// Memory channels of mscclpp. channel: ranks tell their peers with a relaxed signal that they have
// entered, put their input into a slot at every peer, meet in a barrier of their own device, signal
// with release, wait with acquire, meet again, and add up. packets: no signals; LL16 packets are
// two words of data and two flags in 16 bytes, LL8 packets one and one in 8, and flags are the
// number of the call. Packets have two sets of slots, the channel one.
//
// The barrier of the device has three counters used in turn. As shipped, every block resets the
// next counter and stores which one was used last, all of them the same value, by plain stores: by
// PTX these race with each other, harmless as equal values are (`race`). The relaxed signal at the
// entry publishes nothing, so that a peer's put races with the reads of the call before
// (`release-pattern`). fixed: one block does the bookkeeping, and the signal at the entry releases.
// Packets are told as `portability`.
//
// finds: race
// run shipped.two: --devices 2 | 2 threads shipped
// run shipped.four: --devices 4 | 4 threads shipped
// run shipped.eight: --devices 8 | 8 threads shipped
// run fixed.two: --devices 2 | 2 threads fixed
// run fixed.four: --devices 4 | 4 threads fixed
// run fixed.eight: --devices 8 | 8 threads fixed
#include "sums.h"

namespace {

constexpr int kBlocks = 3, kThreads = 64, kQuads = 300, kCalls = 4;

struct Inbox {
  uint64_t semaphore[kMaxRanks];  // signals that a peer has given
  alignas(16) float4 slots[kMaxRanks][kQuads];
  uint4 packets16[2][kMaxRanks][2 * kQuads];
  uint2 packets8[2][kMaxRanks][4 * kQuads];
};

struct DeviceBarrier {
  uint32_t count[3];
  uint32_t last;
};

struct Private {
  uint64_t expected[kMaxRanks];  // signals of each peer that have been waited for
  DeviceBarrier barrier;
};

template <bool kShipped>
__device__ void SyncDevice(DeviceBarrier* barrier, uint32_t meeting) {
  __syncthreads();
  if (threadIdx.x == 0) {
    // The fixed one is told which meeting it is.
    const uint32_t now = kShipped ? (barrier->last + 1) % 3 : meeting % 3;
    if (kShipped || blockIdx.x == 0) barrier->count[(now + 1) % 3] = 0;
    AddReleaseGpu(&barrier->count[now], 1);
    while (LoadAcquireGpu(&barrier->count[now]) != gridDim.x) {
    }
    if (kShipped) barrier->last = now;
  }
  __syncthreads();
}

__device__ void Signal(uint64_t* semaphore) {
  asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(semaphore), "l"(1ull) : "memory");
}
__device__ void RelaxedSignal(uint64_t* semaphore) {
  asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" ::"l"(semaphore), "l"(1ull) : "memory");
}
__device__ void Wait(const uint64_t* semaphore, uint64_t* expected) {
  *expected += 1;
  while (LoadAcquireSys(semaphore) < *expected) {
  }
}

template <bool kShipped>
__global__ void Channel(Peers<Inbox> inboxes, Private* mine, int rank, int ranks, uint32_t call,
                        const float4* input, float4* output) {
  const bool waits = blockIdx.x == 0 && threadIdx.x < ranks && threadIdx.x != rank;
  uint64_t* theirs = &inboxes[threadIdx.x % ranks]->semaphore[rank];
  uint64_t* ours = &inboxes[rank]->semaphore[threadIdx.x % ranks];
  if (waits) {
    if (kShipped) {
      RelaxedSignal(theirs);
    } else {
      Signal(theirs);
    }
    Wait(ours, &mine->expected[threadIdx.x]);
  }
  SyncDevice<kShipped>(&mine->barrier, 3 * call);
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = kBlocks * kThreads;
  for (int step = 0; step < ranks; ++step) {
    float4* slot = inboxes[(rank + step) % ranks]->slots[rank];
    for (int i = first; i < kQuads; i += stride) slot[i] = input[i];
  }
  SyncDevice<kShipped>(&mine->barrier, 3 * call + 1);
  if (waits) {
    Signal(theirs);
    Wait(ours, &mine->expected[threadIdx.x]);
  }
  SyncDevice<kShipped>(&mine->barrier, 3 * call + 2);
  for (int i = first; i < kQuads; i += stride) {
    float4 sum = make_float4(0, 0, 0, 0);
    for (int r = 0; r < ranks; ++r) Add(sum, inboxes[rank]->slots[r][i]);
    output[i] = sum;
  }
}

// A packet carries words 2 i and 2 i + 1 of the message.
__global__ void Packets16(Peers<Inbox> inboxes, int rank, int ranks, uint32_t flag,
                          const float4* input, float4* output) {
  const auto* in = reinterpret_cast<const uint2*>(input);
  auto* out = reinterpret_cast<float2*>(output);
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = kBlocks * kThreads;
  for (int step = 1; step < ranks; ++step) {
    uint4* slot = inboxes[(rank + step) % ranks]->packets16[flag % 2][rank];
    for (int i = first; i < 2 * kQuads; i += stride)
      StoreVolatile(&slot[i], make_uint4(in[i].x, flag, in[i].y, flag));
  }
  for (int i = first; i < 2 * kQuads; i += stride) {
    float2 sum = make_float2(__uint_as_float(in[i].x), __uint_as_float(in[i].y));
    for (int step = 1; step < ranks; ++step) {
      const uint4* slot = &inboxes[rank]->packets16[flag % 2][(rank + step) % ranks][i];
      uint4 v = LoadVolatile(slot);
      while (v.y != flag || v.w != flag) v = LoadVolatile(slot);
      sum = make_float2(sum.x + __uint_as_float(v.x), sum.y + __uint_as_float(v.z));
    }
    out[i] = sum;
  }
}

__global__ void Packets8(Peers<Inbox> inboxes, int rank, int ranks, uint32_t flag,
                         const float4* input, float4* output) {
  const auto* in = reinterpret_cast<const uint32_t*>(input);
  auto* out = reinterpret_cast<float*>(output);
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = kBlocks * kThreads;
  for (int step = 1; step < ranks; ++step) {
    uint2* slot = inboxes[(rank + step) % ranks]->packets8[flag % 2][rank];
    for (int i = first; i < 4 * kQuads; i += stride)
      StoreVolatile(&slot[i], make_uint2(in[i], flag));
  }
  for (int i = first; i < 4 * kQuads; i += stride) {
    float sum = __uint_as_float(in[i]);
    for (int step = 1; step < ranks; ++step) {
      const uint2* slot = &inboxes[rank]->packets8[flag % 2][(rank + step) % ranks][i];
      uint2 v = LoadVolatile(slot);
      while (v.y != flag) v = LoadVolatile(slot);
      sum += __uint_as_float(v.x);
    }
    out[i] = sum;
  }
}

template <bool kShipped>
void Run(World& world) {
  const int rank = world.rank(), ranks = world.ranks();
  const auto inboxes = world.Share<Inbox>();
  Private* mine = world.Allocate<Private>();
  RunAllReduce(world, "channel", kQuads, kCalls,
               [&](int call, const float4* input, float4* output) {
                 Channel<kShipped><<<kBlocks, kThreads, 0, world.stream()>>>(
                     inboxes, mine, rank, ranks, call, input, output);
               });
  for (const auto kernel : {Packets16, Packets8}) {
    RunAllReduce(world, "packets", kQuads, kCalls,
                 [&](int call, const float4* input, float4* output) {
                   kernel<<<kBlocks, kThreads, 0, world.stream()>>>(inboxes, rank, ranks, call + 1,
                                                                    input, output);
                 });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  const bool shipped = Shipped(setup);
  return RunWorld(setup, [=](World& world) { shipped ? Run<true>(world) : Run<false>(world); });
}
