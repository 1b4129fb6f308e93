#include <allranks/flags.h>

// A block takes whole rows. Aligned vectors of a piece of a row go to shared memory by asynchronous
// copies, so that registers bound nothing; then the words are stored to `out` lane by lane.
using namespace allranks;

constexpr int kMaxBlocks = 64, kThreads = 256, kVectors = 2048;  // that shared memory holds

struct Control {
  std::uint32_t calls[kMaxBlocks], open[kMaxBlocks], done[kMaxBlocks];
};

__device__ void Fetch(std::uint32_t* to, const std::uint32_t* from, int bytes) {
  const auto shared = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(bytes)
               : "memory");
}

__global__ void __launch_bounds__(kThreads) Get(Args args) {
  __shared__ alignas(16) std::uint32_t words[4 * kVectors];
  const int next = (args.rank + 1) % args.world, before = (args.rank + args.world - 1) % args.world;
  const int block = blockIdx.x;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[block] + 1;
  if (threadIdx.x == 0) {
    StoreReleaseSys(&reinterpret_cast<Control*>(args.scratch_peers[before])->open[block], call);
    WaitAcquireSys(&mine->open[block], call);
  }
  __syncthreads();

  const int rows = args.rows, width = args.width, pitch = args.pitch, count = rows * pitch;
  const int per_row = (width + 6) / 4, chunk = per_row < kVectors ? per_row : kVectors;
  const int fit = kVectors / chunk, rounds = (rows + gridDim.x - 1) / gridDim.x;
  const int at_once = fit < rounds ? fit : rounds;  // rows, if they are short
  const std::uint32_t* in = args.in_peers[next];
  for (int row = block; row < rows; row += at_once * gridDim.x) {
    for (int from = 0; from < per_row; from += chunk) {
      for (int i = threadIdx.x; i < at_once * chunk; i += kThreads) {
        const int r = row + i / chunk * gridDim.x;
        const int start = r * pitch + static_cast<int>(args.column);
        const int at = (start & ~3) + 4 * (from + i % chunk), left = count - at;
        if (r < rows && at < start + width) Fetch(&words[4 * i], in + at, left < 4 ? 4 * left : 16);
      }
      asm volatile("cp.async.wait_all;" ::: "memory");
      __syncthreads();
      for (int i = threadIdx.x; i < at_once * 4 * chunk; i += kThreads) {
        const int r = row + i / (4 * chunk) * gridDim.x;
        const int start = r * pitch + static_cast<int>(args.column);
        const int column = 4 * from + i % (4 * chunk) - (start & 3);
        if (r < rows && column >= 0 && column < width) args.out[r * width + column] = words[i];
      }
      __syncthreads();
    }
  }

  __syncthreads();
  if (threadIdx.x == 0) {
    StoreReleaseSys(&reinterpret_cast<Control*>(args.scratch_peers[next])->done[block], call);
    WaitAcquireSys(&mine->done[block], call);
    mine->calls[block] = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int blocks = args.rows < kMaxBlocks ? args.rows : kMaxBlocks;
  Get<<<blocks, kThreads, 0, stream>>>(args);
}
