#include <allranks/flags.h>

// Two rings, one half of the blocks for each direction. Partial sums of shard q begin behind rank q
// and go from rank to rank; the owner's sums go on in the same direction, from `out` to `out`. Each
// step of each block has a slot for partial sums and a pair of semaphores. The next rank's `out` is
// open when it has read our last partial sum of this chunk.
using namespace allranks;
constexpr int kMaxBlocks = 16, kThreads = 64, kData = 16384;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t sent[kMaxBlocks][2 * kMaxRanks];  // by step: chunks that came from the rank before
  std::uint32_t room[kMaxBlocks][kMaxRanks];      // chunks that the next rank has read
};

__global__ void AllReduce(Args args) {
  const int b = blockIdx.x, t = threadIdx.x, world = args.world, half_grid = gridDim.x / 2;
  const bool up = b < half_grid;
  const int turn = up ? 1 : world - 1, back = world - turn;
  const int after = (args.rank + turn) % world, before = (args.rank + back) % world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* next = reinterpret_cast<Control*>(args.scratch_peers[after]);
  Control* previous = reinterpret_cast<Control*>(args.scratch_peers[before]);
  const int vectors = args.n / 4, half = (vectors + 2 * world - 1) / (2 * world);
  const int wave = half_grid * kThreads, chunks = (half + wave - 1) / wave;
  const std::uint32_t call = mine->calls[b];
  const int slots = b * kMaxRanks * kThreads + t;
  const float4* here = reinterpret_cast<float4*>(args.scratch + kData) + slots;
  float4* there = reinterpret_cast<float4*>(args.scratch_peers[after] + kData) + slots;
  float4* out = reinterpret_cast<float4*>(args.out);
  float4* out_next = reinterpret_cast<float4*>(args.out_peers[after]);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const std::uint32_t seq = call * chunks + chunk + 1;
    const int i = chunk * wave + b % half_grid * kThreads + t;
    // Steps from 0 to world - 2 send partial sums, those from world - 1 on the owners' sums.
    for (int step = 0; step < 2 * world - 1; ++step) {
      const int shard = (args.rank + (step + 1) * back) % world;
      const int at = shard * 2 * half + (up ? 0 : half) + i;
      const bool valid = i < half && at < vectors;
      float4 sum = {};
      if (valid && step < world) sum = reinterpret_cast<const float4*>(args.in)[at];
      if (step > 0) {
        if (t == 0) WaitAcquireSys(&mine->sent[b][step - 1], seq);
        __syncthreads();
        if (valid && step < world) {
          const float4 x = here[(step - 1) * kThreads];
          sum = {x.x + sum.x, x.y + sum.y, x.z + sum.z, x.w + sum.w};
        } else if (valid) {
          sum = out[at];
        }
        __syncthreads();
        if (t == 0 && step < world) StoreReleaseSys(&previous->room[b][step - 1], seq);
      }
      if (valid && step == world - 1) out[at] = sum;
      if (step == 2 * world - 2) break;
      if (t == 0 && step < world) {
        const bool last = step == world - 1;
        WaitAcquireSys(&mine->room[b][last ? step - 1 : step], last ? seq : seq - 1);
      }
      __syncthreads();
      if (valid && step < world - 1) there[step * kThreads] = sum;
      if (valid && step >= world - 1) out_next[at] = sum;
      __syncthreads();
      if (t == 0) StoreReleaseSys(&next->sent[b][step], seq);
    }
  }
  __syncthreads();
  if (t == 0) mine->calls[b] = call + 1;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int half = (args.n / 4 + 2 * args.world - 1) / (2 * args.world);
  const int needed = (half + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks / 2 ? needed : kMaxBlocks / 2;
  AllReduce<<<2 * blocks, kThreads, 0, stream>>>(args);
}
