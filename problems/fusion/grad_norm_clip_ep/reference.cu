// One hop and no fence. In units of 1 / ep^2 all squares are integers, so sums can travel by atomic
// additions: every block adds its three sums to three counters at every rank, with a count of
// blocks in their upper halves. A counter whose count is complete has the whole sum.
//
// Counters are never cleared: a block remembers what it saw two calls before. There are two sets,
// used in turn. Whoever adds in call k + 2 has the complete counts of call k + 1, to which a block
// contributes after it has ended call k.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 16, kThreads = 512;
constexpr std::uint64_t kOne = std::uint64_t{1} << 32;  // sums below, counts above

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint64_t seen[kMaxBlocks][2][3];  // by parity of the call
  std::uint64_t counters[2][3];
};

__global__ void __launch_bounds__(kThreads) Clip(Args args) {
  __shared__ std::uint32_t sums[3];
  __shared__ float squares[3];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1, set = call % 2;
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  const float* in[3] = {args.dense, args.expert, args.replicated};
  float* out[3] = {args.new_dense, args.new_expert, args.new_replicated};
  const std::int64_t count[3] = {args.n, args.e, args.s};
  const float part = 1.0f / args.ep, factor[3] = {1, part, 1};
  if (threadIdx.x < 3) sums[threadIdx.x] = 0;
  __syncthreads();  //@cleared
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    std::uint32_t sum = 0;
    for (std::int64_t i = first; i < count[k]; i += stride) {
      const int x = static_cast<int>(in[k][i]) * (k == 1 ? 1 : static_cast<int>(args.ep));
      sum += x * x;
    }
    sum = __reduce_add_sync(~0u, sum);
    if (threadIdx.x % 32 == 0 && (k < 2 || args.rank < args.ep)) atomicAdd(&sums[k], sum);
  }
  __syncthreads();  //@summed
  if (threadIdx.x < 3 * args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x / 3]);
    const std::uint64_t sum = sums[threadIdx.x % 3];
    AddRelaxedSys(&peer->counters[set][threadIdx.x % 3], kOne + sum);  //@send
  }
  if (threadIdx.x < 3) {
    std::uint64_t* seen = &mine->seen[blockIdx.x][set][threadIdx.x];
    std::uint64_t now;
    do {
      now = LoadRelaxedSys(&mine->counters[set][threadIdx.x]);  //@look
    } while (now - *seen >> 32 != args.world * gridDim.x);  //@arrived
    const auto sum = static_cast<std::uint32_t>(now - *seen);
    squares[threadIdx.x] = static_cast<float>(sum) * part * part;
    *seen = now;  //@seen
  }
  __syncthreads();  //@known
  const float norm = sqrtf(squares[0] + squares[1] + squares[2]);
  const float limit = static_cast<float>(args.max_norm), scale = norm > limit ? limit / norm : 1;
  if (first < 3) args.norms[first] = sqrtf(squares[first]);
  if (first == 3) args.norms[3] = norm;
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    for (std::int64_t i = first; i < count[k]; i += stride) {
      out[k][i] = in[k][i] * factor[k] * scale;
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t all = args.n + args.e + args.s, needed = (all + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Clip<<<blocks, kThreads, 0, stream>>>(args);
}
