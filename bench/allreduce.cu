// The kernel of bench_scale: a two-shot all-reduce in place. Each rank sums its own part of all
// ranks' buffers and writes the sum back into all of them, between two meetings of all ranks in
// which everybody tells everybody. allreduce.ptx is made from it with
//   nvcc -ptx -arch=compute_90 allreduce.cu
// and is stored, so that measuring needs no CUDA toolkit.
constexpr int kMaxRanks = 128;

struct Peers {
  float4* buffer[kMaxRanks];   // from the rank's own on, so that not all begin with the same
  unsigned* flags[kMaxRanks];  // of each rank: [block][rank]
};

__device__ void Meet(const Peers& peers, int rank, int ranks, unsigned epoch) {
  __syncthreads();
  for (int r = threadIdx.x; r < ranks; r += blockDim.x) {
    unsigned* theirs = peers.flags[r] + blockIdx.x * kMaxRanks + rank;
    const unsigned* mine = peers.flags[rank] + blockIdx.x * kMaxRanks + r;
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(theirs), "r"(epoch) : "memory");
    unsigned seen;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(mine) : "memory");
    } while (seen < epoch);
  }
  __syncthreads();
}

// `count` float4 in each rank's part; the last part may be short of `total`.
extern "C" __global__ void two_shot(Peers peers, int rank, int ranks, int count, int total,
                                    unsigned epoch) {
  Meet(peers, rank, ranks, epoch);
  const int first = rank * count, last = min(first + count, total);
  for (int i = first + blockIdx.x * blockDim.x + threadIdx.x; i < last;
       i += gridDim.x * blockDim.x) {
    float4 sum = {0, 0, 0, 0};
    for (int r = 0; r < ranks; ++r) {
      const float4 value = peers.buffer[r][i];
      sum.x += value.x;
      sum.y += value.y;
      sum.z += value.z;
      sum.w += value.w;
    }
    for (int r = 0; r < ranks; ++r) peers.buffer[r][i] = sum;
  }
  Meet(peers, rank, ranks, epoch + 1);
}
