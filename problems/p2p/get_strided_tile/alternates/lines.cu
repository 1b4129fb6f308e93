#include <allranks/flags.h>

// A warp reads lines of 128 bytes, a word per lane, eight lines before it uses the first. One flag
// tells the reader that this rank is there, and the last block of a rank tells the owner that all
// was read: blocks count on a word in own memory.
using namespace allranks;

constexpr int kMaxBlocks = 64, kThreads = 512, kInFlight = 8;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t open, done;
  std::uint32_t finished;  // blocks of all calls that have read their part
};

__global__ void __launch_bounds__(kThreads) Get(Args args) {
  const int next = (args.rank + 1) % args.world, before = (args.rank + args.world - 1) % args.world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* owner = reinterpret_cast<Control*>(args.scratch_peers[next]);
  Control* reader = reinterpret_cast<Control*>(args.scratch_peers[before]);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) StoreReleaseSys(&reader->open, call);
    WaitAcquireSys(&mine->open, call);
  }
  __syncthreads();

  const int width = args.width, pitch = args.pitch, lane = threadIdx.x % 32;
  const int per_row = (width + 62) / 32, items = args.rows * per_row;
  const int warps = gridDim.x * kThreads / 32, warp = (blockIdx.x * kThreads + threadIdx.x) / 32;
  for (int base = warp; base < items; base += kInFlight * warps) {
    std::uint32_t words[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const int item = base + i * warps, row = item / per_row;
      const int start = row * pitch + static_cast<int>(args.column);
      const int column = item % per_row * 32 - start % 32 + lane;
      if (item < items && column >= 0 && column < width) {
        words[i] = args.in_peers[next][start + column];
      }
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const int item = base + i * warps, row = item / per_row;
      const int start = row * pitch + static_cast<int>(args.column);
      const int column = item % per_row * 32 - start % 32 + lane;
      if (item < items && column >= 0 && column < width) args.out[row * width + column] = words[i];
    }
  }

  __syncthreads();
  if (threadIdx.x == 0) {
    if (FetchAddAcqRelGpu(&mine->finished, 1u) + 1 == call * gridDim.x) {
      StoreReleaseSys(&owner->done, call);
    }
    WaitAcquireSys(&mine->done, call);
    mine->calls[blockIdx.x] = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int items = args.rows * ((args.width + 62) / 32),
            needed = (items * 32 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Get<<<blocks, kThreads, 0, stream>>>(args);
}
