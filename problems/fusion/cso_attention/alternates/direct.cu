// By reading and without tensor cores: when all have entered the call, a block takes a query of the
// rank's heads at a time, and groups of eight lanes share out the keys, straight from the peers'
// inputs. The output goes straight to the rank of the query's position. Nobody leaves before all
// have read and written.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kDim = 64, kRun = 8, kThreads = 64, kGroups = kThreads / kRun, kBlocks = 64;
constexpr int kRanges = 4;

struct Control {
  std::uint32_t calls[kBlocks];
  std::uint32_t entered[kBlocks][kMaxRanks];  // by peer: the last call that it has entered
  std::uint32_t done[kBlocks][kMaxRanks];  // by peer: the last call in which it has done its part
};

__device__ void Unpack(const uint4& v, float (&to)[kRun]) {
  const std::uint32_t pairs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < kRun; ++i) {
    to[i] = __uint_as_float(i % 2 == 0 ? pairs[i / 2] << 16 : pairs[i / 2] & 0xffff0000u);
  }
}

__global__ void __launch_bounds__(kThreads) Attention(Args args) {
  __shared__ float parts[kGroups][kDim], totals[kGroups];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int rank = args.rank, world = args.world, rows = static_cast<int>(args.rows);
  const int heads = static_cast<int>(args.heads), length = world * rows;
  const int t = threadIdx.x, group = t / kRun, lane = t % kRun;
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t % world]);
  if (t < world) {
    StoreReleaseSys(&peer->entered[blockIdx.x][rank], call);
    WaitAcquireSys(&mine->entered[blockIdx.x][t], call);
  }
  __syncthreads();
  for (int one = blockIdx.x; one < kRanges * length * heads; one += kBlocks) {
    const int head = rank * heads + one % heads, query = one / heads;
    const auto row_of = [&](int n) {
      return (n / length * rows + n % rows) * world * heads + head;
    };
    const auto load = [&](const __nv_bfloat16* const* tensor, int n) {
      return reinterpret_cast<const uint4*>(tensor[n / rows % world])[row_of(n) * kRun + lane];
    };
    const int seen = (query / length + 1) * length, owner = query / rows % world;
    float q[kRun], sums[kRun] = {}, total = 0;
    Unpack(load(args.q_peers, query), q);
    for (int n = group; n - group < seen; n += kGroups) {
      float elements[kRun], dot = 0;
      const uint4 k = load(args.k_peers, min(n, seen - 1)),
                  v = load(args.v_peers, min(n, seen - 1));
      Unpack(k, elements);
#pragma unroll
      for (int i = 0; i < kRun; ++i) dot += q[i] * elements[i];
      for (int d = kRun / 2; d > 0; d /= 2) dot += __shfl_xor_sync(~0u, dot, d);
      const float weight = n < seen ? expf(dot / 8) : 0;
      Unpack(v, elements);
#pragma unroll
      for (int i = 0; i < kRun; ++i) sums[i] += weight * elements[i];
      total += weight;
    }
#pragma unroll
    for (int i = 0; i < kRun; ++i) parts[group][lane * kRun + i] = sums[i];
    if (lane == 0) totals[group] = total;
    __syncthreads();
    if (t < kDim) {
      float sum = 0, whole = 0;
      for (int n = 0; n < kGroups; ++n) {
        sum += parts[n][t];
        whole += totals[n];
      }
      args.out_peers[owner][row_of(query) * kDim + t] = sum / whole;
    }
    __syncthreads();
  }
  if (t < world) {
    StoreReleaseSys(&peer->done[blockIdx.x][rank], call);
    WaitAcquireSys(&mine->done[blockIdx.x][t], call);
  }
  if (t == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Attention<<<kBlocks, kThreads, 0, stream>>>(args);
}
