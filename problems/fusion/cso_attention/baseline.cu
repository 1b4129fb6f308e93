// Kernel by kernel: all ranks meet and fetch the rows of their heads. A block per query makes
// weights and their sums, then all meet again and fetch the outputs of their positions.
#include <allranks/flags.h>
#include <allranks/numbers.h>

using namespace allranks;
using Bf16 = Number<__nv_bfloat16>;

constexpr int kDim = 64, kRun = 8, kRanges = 4, kData = 4096, kMaxKeys = 256;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

// What lies in scratch, by head of the rank and position: queries, keys, values, outputs.
struct Local {
  int positions, vectors;
  uint4 *q, *k, *v;
  float4* out;
  __device__ Local(const Args& args, int rank)
      : positions(kRanges * args.world * static_cast<int>(args.rows)),
        vectors(static_cast<int>(args.heads) * positions * kRun),
        q(reinterpret_cast<uint4*>(args.scratch_peers[rank] + kData)),
        k(q + vectors),
        v(k + vectors),
        out(reinterpret_cast<float4*>(v + vectors)) {}
};

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

// Where a position lies: its rank, and its row among those of all ranges there.
__device__ int RankOf(const Args& args, int position) {
  return position / static_cast<int>(args.rows) % args.world;
}
__device__ int RowOf(const Args& args, int position) {
  const int rows = static_cast<int>(args.rows);
  return position / (args.world * rows) * rows + position % rows;
}

__global__ void Fetch(Args args) {
  const Local local(args, args.rank);
  const int heads = static_cast<int>(args.heads), all = args.world * heads;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < local.vectors;
       i += gridDim.x * blockDim.x) {
    const int position = i / kRun % local.positions, head = i / kRun / local.positions;
    const int from = RankOf(args, position);
    const int at = (RowOf(args, position) * all + args.rank * heads + head) * kRun + i % kRun;
    local.q[i] = reinterpret_cast<const uint4*>(args.q_peers[from])[at];
    local.k[i] = reinterpret_cast<const uint4*>(args.k_peers[from])[at];
    local.v[i] = reinterpret_cast<const uint4*>(args.v_peers[from])[at];
  }
}

__global__ void Attend(Args args) {
  __shared__ float weights[kMaxKeys];
  const Local local(args, args.rank);
  const int d = threadIdx.x, length = args.world * static_cast<int>(args.rows);
  const auto* keys = reinterpret_cast<Pack<__nv_bfloat16>*>(local.k);
  const auto* queries = reinterpret_cast<Pack<__nv_bfloat16>*>(local.q);
  for (int one = blockIdx.x; one < local.vectors / kRun; one += gridDim.x) {
    const int first = one / local.positions * local.positions;
    const int seen = ((one - first) / length + 1) * length;
    for (int n = d; n < seen; n += kDim) {
      float dot = 0;
      for (int i = 0; i < kRun; ++i) {
        const auto q = queries[one * kRun + i], k = keys[(first + n) * kRun + i];
        for (int j = 0; j < kRun; ++j) dot += q[j] * k[j];
      }
      weights[n] = __expf(dot / 8);
    }
    __syncthreads();
    float sum = 0, total = 0;
    for (int n = 0; n < seen; ++n) {
      const auto v = reinterpret_cast<std::uint16_t*>(local.v)[(first + n) * kDim + d];
      sum += weights[n] * Bf16::ToFloat(v);
      total += weights[n];
    }
    reinterpret_cast<float*>(local.out)[one * kDim + d] = sum / total;
    __syncthreads();
  }
}

__global__ void Collect(Args args) {
  constexpr int kFours = kDim / 4;
  const int heads = static_cast<int>(args.heads), rows = static_cast<int>(args.rows);
  const int all = args.world * heads;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kRanges * rows * all * kFours;
       i += gridDim.x * blockDim.x) {
    const int head = i / kFours % all, row = i / kFours / all;
    const int position = (row / rows * args.world + args.rank) * rows + row % rows;
    const Local from(args, head / heads);
    const int at = (head % heads * from.positions + position) * kFours + i % kFours;
    reinterpret_cast<float4*>(args.out)[i] = from.out[at];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Fetch<<<8, 128, 0, stream>>>(args);
  Attend<<<64, kDim, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Collect<<<8, 128, 0, stream>>>(args);
}
