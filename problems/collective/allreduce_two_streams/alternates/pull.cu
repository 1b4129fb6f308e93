// Two branches, of which each copies its input to its scratch, tells the members of the group, and
// adds up what they have told of. Two buffers: peers may read that of the call before.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 8, kThreads = 256;

struct alignas(16) Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t staged[kMaxBlocks][kMaxRanks];  // by rank: the last call
};

__global__ void __launch_bounds__(kThreads) AllReduce(Args args, const float* in, float* out, int n,
                                                      int base, int first, int end, int step) {
  Control* mine = reinterpret_cast<Control*>(args.scratch + base);
  const int block = blockIdx.x, thread = threadIdx.x, stride = gridDim.x * kThreads;
  const std::uint32_t call = mine->calls[block] + 1;
  const int buffer = base + sizeof(Control) + call % 2 * 4 * n, peer = first + thread * step;
  for (int i = block * kThreads + thread; i < n; i += stride) {
    reinterpret_cast<float*>(args.scratch + buffer)[i] = in[i];
  }
  __syncthreads();
  if (peer < end) {
    Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[peer] + base);
    StoreReleaseSys(&theirs->staged[block][args.rank], call);
    WaitAcquireSys(&mine->staged[block][peer], call);
  }
  __syncthreads();
  for (int i = block * kThreads + thread; i < n; i += stride) {
    float sum = 0;
    for (int r = first; r < end; r += step) {
      sum += reinterpret_cast<const float*>(args.scratch_peers[r] + buffer)[i];
    }
    out[i] = sum;
  }
  if (thread == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const auto blocks = [](int n) { return n < 2048 ? (n + 255) / 256 : kMaxBlocks; };
  const int n = args.n, m = args.m, cols = args.cols, second = 1024 + 8 * ((n + 3) / 4 * 4);
  const int row = args.rank / cols * cols;
  const int end = row + cols < args.world ? row + cols : args.world;
  cudaStream_t side;
  cudaEvent_t fork, join;
  cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
  cudaEventRecord(fork, stream);
  cudaStreamWaitEvent(side, fork, 0);
  AllReduce<<<blocks(n), kThreads, 0, stream>>>(args, args.act, args.act_sum, n, 0, row, end, 1);
  AllReduce<<<blocks(m), kThreads, 0, side>>>(args, args.grad, args.grad_sum, m, second,
                                              args.rank % cols, args.world, cols);
  cudaEventRecord(join, side);
  cudaStreamWaitEvent(stream, join, 0);
}
