// SGLang's custom all-reduce, where it differs from vLLM's. Every signalling thread counts its
// meetings in a word of its own, and odd and even meetings use different flags, since a fast peer
// may be at the next meeting already. The push kernel has no meeting at all: values go into a slot
// of 16 bytes at every peer, zero means "not there yet", and the reader puts the zero back with a
// plain store once it has seen the value. Two sets of slots are used in turn.
//
// As shipped the first and the last meeting of a call are volatile, as in vLLM's: a race by PTX.
// fixed: they release and acquire. The push is the same in both: the plain reset follows the value
// that its own thread has read (`observation`), and the next push into that slot comes two calls
// later. But nothing orders the reset before it: the values of the call between are seen by relaxed
// loads, which acquire nothing. fixed: the reset is a strong store.
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

constexpr int kBlocks = 3, kThreads = 64, kQuads = 450, kCalls = 4;

struct Signal {
  uint32_t meetings[kBlocks][kMaxRanks];  // of this rank's threads
  uint32_t met[2][kBlocks][kMaxRanks];
};

struct Buffers {
  float4 input[kQuads];
  float4 scratch[kQuads];
  uint4 slots[2][kMaxRanks][kQuads];
};

template <bool kFirst, bool kFence>
__device__ void MeetPeers(const Peers<Signal>& signals, int rank, int ranks) {
  if (!kFirst) __syncthreads();
  if (threadIdx.x < ranks) {
    const uint32_t meeting = ++signals[rank]->meetings[blockIdx.x][threadIdx.x];
    uint32_t* theirs = &signals[threadIdx.x]->met[meeting % 2][blockIdx.x][rank];
    uint32_t* ours = &signals[rank]->met[meeting % 2][blockIdx.x][threadIdx.x];
    if (kFence) {
      StoreReleaseSys(theirs, meeting);
      while (LoadAcquireSys(ours) != meeting) {
      }
    } else {
      StoreVolatile(theirs, meeting);
      while (LoadVolatile(ours) != meeting) {
      }
    }
  }
  if (kFirst || kFence) __syncthreads();
}

__device__ float4 SumOf(const Peers<Buffers>& buffers, int ranks, int i) {
  float4 sum = buffers[0]->input[i];
  for (int r = 1; r < ranks; ++r) Add(sum, buffers[r]->input[i]);
  return sum;
}

template <bool kShipped>
__global__ void OneShot(Peers<Buffers> buffers, Peers<Signal> signals, int rank, int ranks,
                        float4* output) {
  MeetPeers<true, !kShipped>(signals, rank, ranks);
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < kQuads; i += kBlocks * kThreads)
    output[i] = SumOf(buffers, ranks, i);
  MeetPeers<false, !kShipped>(signals, rank, ranks);
}

template <bool kShipped>
__global__ void TwoShot(Peers<Buffers> buffers, Peers<Signal> signals, int rank, int ranks,
                        float4* output) {
  const int thread = blockIdx.x * kThreads + threadIdx.x, stride = kBlocks * kThreads;
  const int part = kQuads / ranks, begin = rank * part;
  const int end = rank == ranks - 1 ? kQuads : begin + part, largest = part + kQuads % ranks;
  MeetPeers<true, !kShipped>(signals, rank, ranks);
  for (int i = begin + thread; i < end; i += stride)
    buffers[rank]->scratch[i - begin] = SumOf(buffers, ranks, i);
  MeetPeers<false, true>(signals, rank, ranks);
  for (int i = thread; i < largest; i += stride) {
    for (int step = 0; step < ranks; ++step) {
      const int from = (rank + step) % ranks;
      if (i < part || from == ranks - 1) output[from * part + i] = buffers[from]->scratch[i];
    }
  }
}

// Zero is sent as -0.0, so that no word of a value is zero.
__device__ uint32_t Word(float x) { return x == 0 ? 0x80000000u : __float_as_uint(x); }

template <bool kShipped>
__global__ void Push(Peers<Buffers> buffers, int rank, int ranks, int set, const float4* input,
                     float4* output) {
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < kQuads; i += kBlocks * kThreads) {
    const float4 x = input[i];
    const uint4 words = make_uint4(Word(x.x), Word(x.y), Word(x.z), Word(x.w));
    for (int r = 0; r < ranks; ++r) {
      asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(
                       &buffers[(rank + r) % ranks]->slots[set][rank][i]),
                   "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w)
                   : "memory");
    }
  }
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < kQuads; i += kBlocks * kThreads) {
    float4 sum = make_float4(0, 0, 0, 0);
    for (int r = 0; r < ranks; ++r) {
      uint4* slot = &buffers[rank]->slots[set][r][i];
      uint4 v;
      do {
        asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "l"(slot)
                     : "memory");
      } while (v.x == 0 || v.y == 0 || v.z == 0 || v.w == 0);
      if (kShipped) {
        *slot = make_uint4(0, 0, 0, 0);
      } else {
        StoreVolatile(slot, make_uint4(0, 0, 0, 0));
      }
      Add(sum, make_float4(__uint_as_float(v.x), __uint_as_float(v.y), __uint_as_float(v.z),
                           __uint_as_float(v.w)));
    }
    output[i] = sum;
  }
}

template <bool kShipped>
void Run(World& world) {
  const int rank = world.rank(), ranks = world.ranks();
  const auto buffers = world.Share<Buffers>();
  const auto signals = world.Share<Signal>();
  for (const bool two_shot : {false, true}) {
    RunAllReduce(world, two_shot ? "two shots" : "one shot", kQuads, kCalls,
                 [&](int, const float4* input, float4* output) {
                   CUDA_CHECK(cudaMemcpyAsync(buffers[rank]->input, input, sizeof(Buffers::input),
                                              cudaMemcpyDeviceToDevice, world.stream()));
                   (two_shot ? TwoShot<kShipped>
                             : OneShot<kShipped>)<<<kBlocks, kThreads, 0, world.stream()>>>(
                       buffers, signals, rank, ranks, output);
                 });
  }
  RunAllReduce(world, "push", kQuads, kCalls, [&](int call, const float4* input, float4* output) {
    Push<kShipped>
        <<<kBlocks, kThreads, 0, world.stream()>>>(buffers, rank, ranks, call % 2, input, output);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  const bool shipped = Shipped(setup);
  return RunWorld(setup, [=](World& world) { shipped ? Run<true>(world) : Run<false>(world); });
}
