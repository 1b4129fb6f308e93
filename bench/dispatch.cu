// MoE dispatch, a kernel of `checking cost`: a warp per token and pick reserves a row at the expert's
// rank by an atomic and writes the token there; when a block is through it tells every rank, and when
// all blocks of all ranks have, each rank sums up the rows that it got. dispatch.ptx is made from it
// with
//   nvcc -ptx -arch=compute_90 dispatch.cu
// and is stored, so that measuring needs no CUDA toolkit.
constexpr int kRanks = 8;

struct Peers {
  float4* rows[kRanks];      // [room][width]
  unsigned* used[kRanks];    // rows taken
  unsigned* blocks[kRanks];  // blocks of all ranks that are through
};

// The expert's rank: uneven, and two picks of a token differ.
__device__ int Pick(int rank, int token, int pick) {
  const unsigned hash = (rank * 7919u + token * 104729u) >> 3;
  return (hash % 13 % kRanks + pick * (1 + hash % (kRanks - 1))) % kRanks;
}

extern "C" __global__ void dispatch(Peers peers, const float4* tokens, float4* sums, int rank,
                                    int count, int width, unsigned call) {
  const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
  for (int n = blockIdx.x * warps + threadIdx.x / 32; n < 2 * count; n += gridDim.x * warps) {
    const int token = n / 2, to = Pick(rank, token, n % 2);
    unsigned row = 0;
    if (lane == 0) row = atomicAdd_system(peers.used[to], 1);
    row = __shfl_sync(~0u, row, 0);
    for (int i = lane; i < width; i += 32)
      peers.rows[to][row * width + i] = tokens[token * width + i];
  }
  __syncthreads();
  if (threadIdx.x < kRanks) {
    asm volatile("red.release.sys.global.add.u32 [%0], 1;" ::"l"(peers.blocks[threadIdx.x])
                 : "memory");
  }
  if (threadIdx.x == 0) {
    unsigned seen;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                   : "=r"(seen)
                   : "l"(peers.blocks[rank])
                   : "memory");
    } while (seen < call * kRanks * gridDim.x);
  }
  __syncthreads();
  unsigned rows;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(rows) : "l"(peers.used[rank]));
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < width; i += gridDim.x * blockDim.x) {
    float4 sum = {0, 0, 0, 0};
    for (unsigned row = 0; row < rows; ++row) {
      const float4 value = peers.rows[rank][row * width + i];
      sum.x += value.x;
      sum.y += value.y;
      sum.z += value.z;
      sum.w += value.w;
    }
    sums[i] = sum;
  }
}
