// By reading, without tensor cores: when all have entered the call, a block takes a query or a key
// at a time and its warps share out the rows of the other kind, eight lanes each, straight from the
// peers' inputs. A second kernel adds the columns of dq and sends the sums; who has those of all
// knows that all have read.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kDim = 64, kRun = 8, kThreads = 256, kWarps = kThreads / 32, kBlocks = 32;
constexpr int kSums = 8192, kMaxHeads = 4;

struct Control {
  std::uint32_t calls[kBlocks], sum_calls[kMaxHeads];
  std::uint32_t entered[kBlocks][kMaxRanks];  // by peer: the last call that it has entered
  std::uint32_t summed[kMaxHeads][kMaxRanks];
};

__device__ void Unpack(const __nv_bfloat16* tensor, int row, float (&to)[kRun]) {
  const uint4 v = reinterpret_cast<const uint4*>(tensor)[row * kRun + threadIdx.x % kRun];
  const std::uint32_t pairs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < kRun; ++i) {
    to[i] = __uint_as_float(i % 2 == 0 ? pairs[i / 2] << 16 : pairs[i / 2] & 0xffff0000u);
  }
}

__device__ float Dot(const float (&a)[kRun], const float (&b)[kRun]) {
  float dot = 0;
#pragma unroll
  for (int i = 0; i < kRun; ++i) dot += a[i] * b[i];
  for (int d = kRun / 2; d > 0; d /= 2) dot += __shfl_xor_sync(~0u, dot, d);
  return dot;
}

__global__ void __launch_bounds__(kThreads) Gradients(Args args) {
  __shared__ float parts[2][kThreads / kRun][kDim];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int rank = args.rank, world = args.world, rows = static_cast<int>(args.rows);
  const int ring = static_cast<int>(args.ring), first = rank / ring * ring;
  const int size = min(ring, world - first), t = threadIdx.x, group = t / kRun;
  if (t < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t]);
    StoreReleaseSys(&peer->entered[blockIdx.x][rank], call);
    WaitAcquireSys(&mine->entered[blockIdx.x][t], call);
  }
  __syncthreads();
  for (int one = blockIdx.x; one < 2 * args.heads * rows; one += kBlocks) {
    const int kind = one % 2, row = one / 2, head = row / rows * rows;  // kind 1: keys
    const int own = (row - head) * size + rank - first;                 // position
    const int begin = kind == 0 ? 0 : own, end = kind == 0 ? own + 1 : size * rows;
    float a[kRun], b[kRun], sums[2][kRun] = {};
    Unpack(kind == 0 ? args.q : args.k, row, a);
    Unpack(kind == 0 ? args.dout : args.v, row, b);
    for (int n = begin; n < end; n += kThreads / kRun) {
      const int at = min(n + group, end - 1), source = first + at % size, other = head + at / size;
      float x[kRun], y[kRun];
      Unpack(kind == 0 ? args.k_peers[source] : args.q_peers[source], other, x);
      Unpack(kind == 0 ? args.v_peers[source] : args.dout_peers[source], other, y);
      const float lse = kind == 0 ? args.lse[row] : args.lse_peers[source][other];
      const float delta = kind == 0 ? args.delta[row] : args.delta_peers[source][other];
      const float score = Dot(a, x) / 8 - lse, inner = Dot(b, y) - delta;
      const float weight = n + group < end ? expf(score) : 0;
#pragma unroll
      for (int i = 0; i < kRun; ++i) {
        sums[0][i] += weight * inner * x[i];
        sums[1][i] += weight * y[i];
      }
    }
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      parts[0][group][t % kRun * kRun + i] = sums[0][i] / 8;
      parts[1][group][t % kRun * kRun + i] = sums[1][i];
    }
    __syncthreads();
    if (t < (kind + 1) * kDim) {
      float* out = kind == 0 ? args.dq : t < kDim ? args.dk : args.dv;
      float sum = 0;
      for (const auto& part : parts[t / kDim]) sum += part[t % kDim];
      out[row * kDim + t % kDim] = sum;
    }
    __syncthreads();
  }
  if (t == 0) mine->calls[blockIdx.x] = call;
}

__global__ void AddColumns(Args args) {
  const int head = blockIdx.x, d = threadIdx.x, heads = gridDim.x;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->sum_calls[head] + 1;
  const auto slot = [&](int at, int source) {
    return reinterpret_cast<float*>(args.scratch_peers[at] + kSums) +
           ((call % 2 * args.world + source) * heads + head) * kDim + d;
  };
  float sum = 0;
  for (int i = 0; i < args.rows; ++i) sum += args.dq[(head * args.rows + i) * kDim + d];
  for (int peer = 0; peer < args.world; ++peer) *slot(peer, args.rank) = sum;
  __syncthreads();
  if (d < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[d]);
    StoreReleaseSys(&peer->summed[head][args.rank], call);
    WaitAcquireSys(&mine->summed[head][d], call);
  }
  __syncthreads();
  sum = 0;
  for (int source = 0; source < args.world; ++source) sum += *slot(args.rank, source);
  args.dbias[head * kDim + d] = sum;
  if (d == 0) mine->sum_calls[head] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Gradients<<<kBlocks, kThreads, 0, stream>>>(args);
  AddColumns<<<static_cast<int>(args.heads), kDim, 0, stream>>>(args);
}
