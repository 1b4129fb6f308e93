#include <allranks/flags.h>

// By pulling: every rank leaves what it has for others in its own scratch, block by block, tells
// block b of the rank that it is for, and adds up what others have left. What is left exists twice,
// for odd and even calls: as all wait for all, nobody is two calls ahead.

using namespace allranks;

constexpr int kThreads = 128, kMaxBlocks = 64, kData = 8192;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t left[kMaxBlocks][kMaxRanks];  // by rank: the last call that is there
};

__device__ float Contract(const Args& args, int owner, int i) {
  const int lons = args.lons, lats = args.lats, m = i % lons, row = i / lons % lats;
  const int list = (owner * lats + row) * args.taps;
  float sum = 0;
#pragma unroll 4
  for (int e = list; e < list + args.taps; ++e) {
    const int at = i / lons / lats * lats + args.lat[e];
    sum += args.value[e] * args.x[at * lons + (m + args.shift[e]) % lons];
  }
  return sum;
}

__global__ void __launch_bounds__(kThreads) LeaveAndPull(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int size = args.channels * args.lats * args.lons, world = args.world;
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const auto Left = [&](int at, int owner) -> float& {
    float* data = reinterpret_cast<float*>(args.scratch_peers[at] + kData);
    return data[(call % 2 * world + owner) * size + i];
  };
  for (int r = 0; r < world && i < size; ++r) Left(args.rank, r) = Contract(args, r, i);
  __syncthreads();
  if (threadIdx.x < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->left[blockIdx.x][args.rank], call);
    WaitAcquireSys(&mine->left[blockIdx.x][threadIdx.x], call);
  }
  __syncthreads();
  float sum = 0;
  for (int r = 0; r < world && i < size; ++r) sum += Left(r, args.rank);
  if (i < size) args.y[i] = sum;
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int size = args.channels * args.lats * args.lons;
  LeaveAndPull<<<(size + kThreads - 1) / kThreads, kThreads, 0, stream>>>(args);
}
