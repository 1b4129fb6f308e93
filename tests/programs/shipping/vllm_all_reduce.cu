// vLLM's custom all-reduce. The input is copied into a registered buffer by an earlier operation of
// the stream. A kernel meets its peers block by block: each block has a flag per peer for the start
// and one for the end of the call, and counts its meetings in a word of its own. One shot: every
// rank reads all inputs. Two shots: each reduces a slice into its own scratch, meets its peers, and
// gathers the slices.
//
// As shipped, the meetings at the start and at the end of a call use volatile flags; only the one
// between the two shots releases and acquires. The comment there says that kernel boundaries do the
// rest. PTX does not say so: the copy is ordered before the kernel, but a relaxed flag publishes
// nothing of what its thread knows (`release-pattern`, `strong-operations`). fixed: all meetings
// release and acquire.
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

constexpr int kBlocks = 3, kThreads = 64, kQuads = 500, kCalls = 3;

struct Signal {
  uint32_t start[kBlocks][kMaxRanks];
  uint32_t end[kBlocks][kMaxRanks];
  uint32_t meetings[kBlocks];  // of this rank's blocks; peers do not look at it
};

struct Registered {
  float4 input[kQuads];
  float4 scratch[kQuads];
};

enum class Place { kStart, kMiddle, kEnd };

template <Place kPlace, bool kShipped>
__device__ void MeetPeers(const Peers<Signal>& signals, int rank, int ranks) {
  Signal* mine = signals[rank];
  if (kPlace != Place::kStart) __syncthreads();
  const uint32_t meeting = mine->meetings[blockIdx.x] + 1;
  if (threadIdx.x < ranks) {
    const bool start = kPlace == Place::kStart;
    Signal* peer = signals[threadIdx.x];
    uint32_t* theirs = start ? &peer->start[blockIdx.x][rank] : &peer->end[blockIdx.x][rank];
    uint32_t* ours =
        start ? &mine->start[blockIdx.x][threadIdx.x] : &mine->end[blockIdx.x][threadIdx.x];
    if (kPlace == Place::kMiddle || !kShipped) {
      StoreReleaseSys(theirs, meeting);
      while (LoadAcquireSys(ours) != meeting) {
      }
    } else {
      StoreVolatile(theirs, meeting);
      while (LoadVolatile(ours) != meeting) {
      }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings[blockIdx.x] = meeting;
  __syncthreads();
}

__device__ float4 SumOf(const Peers<Registered>& buffers, int ranks, int i) {
  float4 sum = buffers[0]->input[i];
  for (int r = 1; r < ranks; ++r) Add(sum, buffers[r]->input[i]);
  return sum;
}

template <bool kShipped>
__global__ void OneShot(Peers<Registered> buffers, Peers<Signal> signals, int rank, int ranks,
                        float4* output) {
  MeetPeers<Place::kStart, kShipped>(signals, rank, ranks);
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < kQuads; i += gridDim.x * kThreads)
    output[i] = SumOf(buffers, ranks, i);
  MeetPeers<Place::kEnd, kShipped>(signals, rank, ranks);
}

// Thread i of every rank gathers what threads i have reduced, so that blocks meet namesakes only.
template <bool kShipped>
__global__ void TwoShot(Peers<Registered> buffers, Peers<Signal> signals, int rank, int ranks,
                        float4* output) {
  const int part = kQuads / ranks, begin = rank * part;
  const int end = rank == ranks - 1 ? kQuads : begin + part, largest = part + kQuads % ranks;
  const int thread = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  MeetPeers<Place::kStart, kShipped>(signals, rank, ranks);
  for (int i = begin + thread; i < end; i += stride)
    buffers[rank]->scratch[i - begin] = SumOf(buffers, ranks, i);
  MeetPeers<Place::kMiddle, kShipped>(signals, rank, ranks);
  for (int i = thread; i < largest; i += stride) {
    for (int step = 0; step < ranks; ++step) {
      const int from = (rank + step) % ranks;
      if (i < part || from == ranks - 1) output[from * part + i] = buffers[from]->scratch[i];
    }
  }
}

template <bool kShipped>
void Run(World& world) {
  const auto buffers = world.Share<Registered>();
  const auto signals = world.Share<Signal>();
  for (const bool two_shot : {false, true}) {
    RunAllReduce(
        world, two_shot ? "two shots" : "one shot", kQuads, kCalls,
        [&](int call, const float4* input, float4* output) {
          CUDA_CHECK(cudaMemcpyAsync(buffers[world.rank()]->input, input, kQuads * sizeof(float4),
                                     cudaMemcpyDeviceToDevice, world.stream()));
          const int blocks = kBlocks - call % 2;  // sizes vary from call to call
          if (two_shot) {
            TwoShot<kShipped><<<blocks, kThreads, 0, world.stream()>>>(
                buffers, signals, world.rank(), world.ranks(), output);
          } else {
            OneShot<kShipped><<<blocks, kThreads, 0, world.stream()>>>(
                buffers, signals, world.rank(), world.ranks(), output);
          }
        });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  const bool shipped = Shipped(setup);
  return RunWorld(setup, [=](World& world) { shipped ? Run<true>(world) : Run<false>(world); });
}
