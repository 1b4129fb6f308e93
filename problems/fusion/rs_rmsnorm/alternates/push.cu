// By pushing plain floats: block b writes row b of each owner's rows into a slot there, tells block
// b of every peer, and adds up the slots when all have told. Two sets of slots, used in turn: a
// rank that tells of call k + 1 has read its slots of call k, and nobody writes those of call k + 2
// before it has told so.
#include <allranks/flags.h>

constexpr int kMaxBlocks = 64, kThreads = 128;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t pushed[kMaxBlocks][kMaxRanks];
};

__global__ void __launch_bounds__(kThreads) ScatterNorm(Args args) {
  __shared__ float squares;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t all = args.rows * args.hidden, set = (call & 1) * args.world * all;
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    for (int r = 0; r < args.world; ++r) {
      float* slots = reinterpret_cast<float*>(args.scratch_peers[r] + sizeof(Control)) + set;
      for (std::int64_t at = row * args.hidden + threadIdx.x; at < (row + 1) * args.hidden;
           at += kThreads) {
        slots[args.rank * all + at] = args.in[r * all + at];
      }
    }
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->pushed[blockIdx.x][args.rank], call);
    allranks::WaitAcquireSys(&mine->pushed[blockIdx.x][threadIdx.x], call);
  }
  __syncthreads();
  const float* slots = reinterpret_cast<float*>(args.scratch + sizeof(Control)) + set;
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    if (threadIdx.x == 0) squares = 0;
    __syncthreads();
    float own = 0;
    const std::int64_t begin = row * args.hidden + threadIdx.x, end = (row + 1) * args.hidden;
    for (std::int64_t at = begin; at < end; at += kThreads) {
      float h = 0;
      for (int r = 0; r < args.world; ++r) h += slots[r * all + at];
      args.norm[at] = h;
      own += h * h;
    }
    atomicAdd(&squares, own);
    __syncthreads();
    const float factor = rsqrtf(squares / args.hidden + 1e-5f);
    for (std::int64_t at = begin; at < end; at += kThreads) {
      args.norm[at] *= factor * args.weight[at - row * args.hidden];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int blocks = static_cast<int>(args.rows < kMaxBlocks ? args.rows : kMaxBlocks);
  ScatterNorm<<<blocks, kThreads, 0, stream>>>(args);
}
