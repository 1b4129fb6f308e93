// One kernel whose even blocks add up one vector and whose odd blocks the other: residency is that
// of one grid. Inputs are pushed into slots and followed by flags, two sets of slots in turn.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 16, kThreads = 512;

struct alignas(16) Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t pushed[kMaxBlocks][kMaxRanks];  // by member of the group: the last call
};

__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  const int block = blockIdx.x, thread = threadIdx.x, world = args.world, cols = args.cols;
  const bool tp = block % 2 == 0;
  const int first = tp ? args.rank / cols * cols : args.rank % cols, step = tp ? 1 : cols;
  const int size = tp ? min(cols, world - first) : (world - first + cols - 1) / cols;
  const int place = tp ? args.rank % cols : args.rank / cols, n = tp ? args.n : args.m;
  const float* in = tp ? args.act : args.grad;
  float* out = tp ? args.act_sum : args.grad_sum;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[block] + 1;
  const int vectors = (n + 3) / 4, stride = gridDim.x / 2 * kThreads;
  const std::size_t set = sizeof(Control) + (tp ? 0 : 32ull * world * ((args.n + 3) / 4)) +
                          16ull * (call % 2 * size * vectors);
  const auto peer = [&](int member) { return args.scratch_peers[first + member * step]; };
  for (int i = block / 2 * kThreads + thread; i < vectors; i += stride) {
    float v[4];
    for (int k = 0; k < 4; ++k) v[k] = 4 * i + k < n ? in[4 * i + k] : 0;
    for (int m = 0; m < size; ++m) {
      float4* slots = reinterpret_cast<float4*>(peer((place + m) % size) + set);
      slots[place * vectors + i] = {v[0], v[1], v[2], v[3]};
    }
  }
  __syncthreads();  //@pushed
  if (thread < size) {
    Control* theirs = reinterpret_cast<Control*>(peer(thread));
    StoreReleaseSys(&theirs->pushed[block][place], call);  //@tell
    WaitAcquireSys(&mine->pushed[block][thread], call);    //@wait
  }
  __syncthreads();  //@arrived
  const float4* slots = reinterpret_cast<const float4*>(args.scratch + set);
  for (int i = block / 2 * kThreads + thread; i < vectors; i += stride) {
    float sum[4] = {};
    for (int m = 0; m < size; ++m) {
      const float4 v = slots[m * vectors + i];
      sum[0] += v.x, sum[1] += v.y, sum[2] += v.z, sum[3] += v.w;
    }
    for (int k = 0; k < 4 && 4 * i + k < n; ++k) out[4 * i + k] = sum[k];
  }
  if (thread == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t most = args.n > args.m ? args.n : args.m;
  const int needed = static_cast<int>((most + 4 * kThreads - 1) / (4 * kThreads));
  AllReduce<<<2 * needed < kMaxBlocks ? 2 * needed : kMaxBlocks, kThreads, 0, stream>>>(args);
}
