// By reading, without tensor cores: when all have entered the call, a block takes a row of queries
// at a time, and groups of eight lanes share out the keys of all heads, straight from the peers'
// inputs. The block multiplies what comes out by w and sends the product to the rank's row of the
// grid. Then all meet again: inputs have been read and products are there.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kDim = 64, kRun = 8, kThreads = 256, kGroups = kThreads / kRun, kBlocks = 16;
constexpr int kMaxHeads = 4;

struct Control {
  std::uint32_t calls[kBlocks];
  std::uint32_t entered[kBlocks][kMaxRanks];  // by peer: the last call that it has entered
  std::uint32_t done[kBlocks][kMaxRanks];  // by peer: the last call in which it has read and sent
};

__device__ void Unpack(const void* from, int run, float (&to)[kRun]) {
  const uint4 v = static_cast<const uint4*>(from)[run];
  const std::uint32_t pairs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < kRun; ++i) {
    to[i] = __uint_as_float(i % 2 == 0 ? pairs[i / 2] << 16 : pairs[i / 2] & 0xffff0000u);
  }
}

__global__ void __launch_bounds__(kThreads) Attention(Args args) {
  __shared__ float parts[kGroups][kDim], totals[kGroups], output[kMaxHeads * kDim];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int rank = args.rank, world = args.world, tp = static_cast<int>(args.tp);
  const int rows = static_cast<int>(args.rows), cols = static_cast<int>(args.cols);
  const int heads = static_cast<int>(args.heads), all = world / tp * rows, row_of_grid = rank / tp;
  const int t = threadIdx.x, group = t / kRun, lane = t % kRun;
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t % world]);
  const auto product = [&](int to, int source) {
    return reinterpret_cast<float*>(args.scratch_peers[to] + sizeof(Control)) +
           (call % 2 * tp + source) * rows * cols;
  };
  if (t < world) {
    StoreReleaseSys(&peer->entered[blockIdx.x][rank], call);
    WaitAcquireSys(&mine->entered[blockIdx.x][t], call);
  }
  __syncthreads();
  for (int row = blockIdx.x; row < rows; row += kBlocks) {
    for (int head = 0; head < heads; ++head) {
      float q[kRun], sums[kRun] = {}, total = 0;
      Unpack(args.q, (head * rows + row) * kRun + lane, q);
      for (int n = 0; n < all; n += kGroups) {
        const int at = min(n + group, all - 1), source = at / rows * tp + rank % tp;
        const int run = (head * rows + at % rows) * kRun + lane;
        float k[kRun], v[kRun], dot = 0;
        Unpack(args.k_peers[source], run, k);
        Unpack(args.v_peers[source], run, v);
#pragma unroll
        for (int i = 0; i < kRun; ++i) dot += q[i] * k[i];
        for (int d = kRun / 2; d > 0; d /= 2) dot += __shfl_xor_sync(~0u, dot, d);
        const float weight = n + group < all ? expf(dot / 8) : 0;
#pragma unroll
        for (int i = 0; i < kRun; ++i) sums[i] += weight * v[i];
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
        output[head * kDim + t] = sum / whole;
      }
      __syncthreads();
    }
    if (t < cols) {
      float sum = 0;
      for (int n = 0; n < heads * kDim / kRun; ++n) {
        float w[kRun];
        Unpack(args.w, t * heads * kDim / kRun + n, w);
#pragma unroll
        for (int i = 0; i < kRun; ++i) sum += output[n * kRun + i] * w[i];
      }
      for (int n = 0; n < tp; ++n) {
        product(row_of_grid * tp + n, rank % tp)[row * cols + t] = sum;
      }
    }
    __syncthreads();
  }
  __syncthreads();
  if (t < world) {
    StoreReleaseSys(&peer->done[blockIdx.x][rank], call);
    WaitAcquireSys(&mine->done[blockIdx.x][t], call);
  }
  __syncthreads();
  for (int row = blockIdx.x; row < rows; row += kBlocks) {
    float sum = 0;
    for (int n = 0; n < tp && t < cols; ++n) sum += product(rank, n)[row * cols + t];
    if (t < cols) args.out[row * cols + t] = sum;
  }
  if (t == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Attention<<<kBlocks, kThreads, 0, stream>>>(args);
}
