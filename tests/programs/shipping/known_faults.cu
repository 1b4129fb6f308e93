// Faults that shipping kernels have or had, each as small as it gets, and each with its remedy:
// shipped does all of them wrong, fixed all of them right, shipped:NAME only one. Ranks push their
// input to slots at their peers, tell them with released flags, and add up what they got.
//
// no_barrier: threads push, and the flag is released by one that has not waited for the others: no
//   __syncthreads() before it (`barrier`, `program-order`).
// one_workspace: the slots of this call are those of the last one, which a peer may still read.
// copy_in: the kernel fills a buffer that peers read, but only the first block tells peers about
// it,
//   not knowing how far the others are.
// nc_load: slots are read with ld.global.nc while the kernel that fills them runs (`read-only`).
// bulk_exit: a block starts a bulk copy from its shared memory into a peer's slot and exits without
//   waiting for it; the next kernel raises the flag (`bulk-copy`).
// epoch: the number of the call stands in memory, and the first block to end raises it, though
//   blocks of the same call may still have to begin (`race`).
//
// Whether the values come out right is looked at in fixed runs only.
//
// finds: race
// run shipped.two: --devices 2 | 2 threads shipped
// run shipped.four: --devices 4 | 4 threads shipped
// run shipped.eight: --devices 8 | 8 threads shipped
// run fixed.two: --devices 2 | 2 threads fixed
// run fixed.four: --devices 4 | 4 threads fixed
// run fixed.eight: --devices 8 | 8 threads fixed
// nvcc: -arch=sm_90
#include "ptx.h"
#include "world.h"

namespace {

constexpr int kBlocks = 3, kThreads = 64, kCount = 768, kCalls = 4, kPart = kCount / kBlocks;

struct Slots {
  uint32_t met[kBlocks][kMaxRanks];
  uint32_t told[kMaxRanks];
  alignas(16) int values[2][kMaxRanks][kCount];
};

struct Epoch {
  uint32_t epoch;
  uint32_t ended;
};

enum Fault { kNoBarrier, kOneWorkspace, kCopyIn, kNcLoad, kBulkExit, kEpoch, kFaults };
const char* const kNames[] = {"no_barrier", "one_workspace", "copy_in",
                              "nc_load",    "bulk_exit",     "epoch"};

__host__ __device__ int Input(int rank, int call, int i) {
  return rank * 1000003 + call * 1009 + i;
}

__device__ void MeetPeers(const Peers<Slots>& slots, int rank, int ranks, uint32_t call,
                          bool barrier = true) {
  if (barrier) __syncthreads();
  if (threadIdx.x < ranks) {
    StoreReleaseSys(&slots[threadIdx.x]->met[blockIdx.x][rank], call + 1);
    WaitAtLeast(&slots[rank]->met[blockIdx.x][threadIdx.x], call + 1);
  }
  __syncthreads();
}

__device__ int LoadNc(const int* p) {
  int value;
  asm volatile("ld.global.nc.s32 %0, [%1];" : "=r"(value) : "l"(p));
  return value;
}

// Block b has part b of every message.
template <Fault kFault, bool kShipped>
__global__ void Push(Peers<Slots> slots, int rank, int ranks, uint32_t call, int* output) {
  constexpr bool kWrong = kShipped;
  const int set = kFault == kOneWorkspace && kWrong ? 0 : call % 2;
  const int begin = blockIdx.x * kPart;
  for (int step = 0; step < ranks; ++step) {
    for (int i = begin + threadIdx.x; i < begin + kPart; i += kThreads)
      slots[(rank + step) % ranks]->values[set][rank][i] = Input(rank, call, i);
  }
  MeetPeers(slots, rank, ranks, call, !(kFault == kNoBarrier && kWrong));
  for (int i = begin + threadIdx.x; i < begin + kPart; i += kThreads) {
    int sum = 0;
    for (int r = 0; r < ranks; ++r) {
      const int* slot = &slots[rank]->values[set][r][i];
      sum += kFault == kNcLoad && kWrong ? LoadNc(slot) : *slot;
    }
    output[i] = sum;
  }
}

template <bool kShipped>
__global__ void CopyIn(Peers<Slots> slots, int rank, int ranks, uint32_t call, int* output) {
  const int begin = blockIdx.x * kPart;
  for (int i = begin + threadIdx.x; i < begin + kPart; i += kThreads)
    slots[rank]->values[call % 2][0][i] = Input(rank, call, i);
  if (kShipped) {
    __syncthreads();
    if (threadIdx.x < ranks) {
      if (blockIdx.x == 0) StoreReleaseSys(&slots[threadIdx.x]->told[rank], call + 1);
      WaitAtLeast(&slots[rank]->told[threadIdx.x], call + 1);
    }
    __syncthreads();
  } else {
    MeetPeers(slots, rank, ranks, call);
  }
  for (int i = begin + threadIdx.x; i < begin + kPart; i += kThreads) {
    int sum = 0;
    for (int r = 0; r < ranks; ++r) sum += slots[r]->values[call % 2][0][i];
    output[i] = sum;
  }
}

template <bool kShipped>
__global__ void BulkPut(Peers<Slots> slots, int rank, int ranks, uint32_t call) {
  __shared__ alignas(128) int part[kPart];
  const int begin = blockIdx.x * kPart;
  for (int i = threadIdx.x; i < kPart; i += kThreads) part[i] = Input(rank, call, begin + i);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int r = 0; r < ranks; ++r) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                       &slots[r]->values[call % 2][rank][begin]),
                   "r"(uint32_t(__cvta_generic_to_shared(part))), "r"(uint32_t(sizeof part))
                   : "memory");
    }
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    if (!kShipped) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}

__global__ void Take(Peers<Slots> slots, int rank, int ranks, uint32_t call, int* output) {
  MeetPeers(slots, rank, ranks, call);
  const int begin = blockIdx.x * kPart;
  for (int i = begin + threadIdx.x; i < begin + kPart; i += kThreads) {
    int sum = 0;
    for (int r = 0; r < ranks; ++r) sum += slots[rank]->values[call % 2][r][i];
    output[i] = sum;
  }
}

// No peers: what call it is decides where the blocks write.
template <bool kShipped>
__global__ void WriteByEpoch(Epoch* epoch, int ranks, int* outputs) {
  const uint32_t call = epoch->epoch;
  const int begin = blockIdx.x * kPart;
  for (int i = begin + threadIdx.x; call < kCalls && i < begin + kPart; i += kThreads) {
    int sum = 0;
    for (int r = 0; r < ranks; ++r) sum += Input(r, call, i);
    outputs[call * kCount + i] = sum;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (kShipped) {
    if (blockIdx.x == 0) epoch->epoch = call + 1;
  } else {
    __threadfence();
    if (atomicAdd(&epoch->ended, 1) != gridDim.x - 1) return;
    __threadfence();
    epoch->ended = 0;
    epoch->epoch = call + 1;
  }
}

template <bool kShipped>
void Run(World& world, const std::string& only) {
  const int rank = world.rank(), ranks = world.ranks();
  for (int fault = 0; fault < kFaults; ++fault) {
    if (!only.empty() && only != kNames[fault]) continue;
    const auto slots = world.Share<Slots>();
    Epoch* epoch = world.Allocate<Epoch>();
    int* output = world.Allocate<int>(kCalls * kCount);
    world.Barrier();
    for (int call = 0; call < kCalls; ++call) {
      int* out = output + call * kCount;
      const cudaStream_t s = world.stream();
      switch (fault) {
        case kNoBarrier:
          Push<kNoBarrier, kShipped><<<kBlocks, kThreads, 0, s>>>(slots, rank, ranks, call, out);
          break;
        case kOneWorkspace:
          Push<kOneWorkspace, kShipped><<<kBlocks, kThreads, 0, s>>>(slots, rank, ranks, call, out);
          break;
        case kCopyIn:
          CopyIn<kShipped><<<kBlocks, kThreads, 0, s>>>(slots, rank, ranks, call, out);
          break;
        case kNcLoad:
          Push<kNcLoad, kShipped><<<kBlocks, kThreads, 0, s>>>(slots, rank, ranks, call, out);
          break;
        case kBulkExit:
          BulkPut<kShipped><<<kBlocks, kThreads, 0, s>>>(slots, rank, ranks, call);
          Take<<<kBlocks, kThreads, 0, s>>>(slots, rank, ranks, call, out);
          break;
        case kEpoch:
          WriteByEpoch<kShipped><<<kBlocks, kThreads, 0, s>>>(epoch, ranks, output);
          break;
      }
      CUDA_CHECK_LAUNCH();
    }
    const std::vector<int> got = world.Result(output, kCalls * kCount);
    if (!kShipped) {
      RequireElements(world, kNames[fault], kCalls, got, [&](int k) {
        int sum = 0;
        for (int r = 0; r < ranks; ++r) sum += Input(r, k / kCount, k % kCount);
        return sum;
      });
    }
    world.Barrier();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  const size_t colon = setup.scheme.find(':');
  const std::string mode = setup.scheme.substr(0, colon);
  const std::string only = colon == std::string::npos ? "" : setup.scheme.substr(colon + 1);
  REQUIRE(mode == "shipped" || mode == "fixed", "unknown scheme %s", setup.scheme.c_str());
  return RunWorld(setup, [&](World& world) {
    mode == "shipped" ? Run<true>(world, only) : Run<false>(world, only);
  });
}
