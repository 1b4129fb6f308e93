// An all-reduce through peer memory with a bug that no output shows: the flag that says "my values
// are there" is stored relaxed, so nothing orders it behind the values. The sums are right all the
// same. `allranks exec --check` names both lines; -DFIXED is the remedy.
#include <cstdio>
#include <vector>

constexpr int kRanks = 4, kCount = 1024, kThreads = 256;

struct Peers {
  float* inbox[kRanks];     // of each rank: a row for every rank
  unsigned* flags[kRanks];  // likewise
};

__global__ void AllReduce(Peers peers, int rank, const float* in, float* out) {
  // My values into everybody's inbox.
  for (int peer = 0; peer < kRanks; ++peer)
    for (int i = threadIdx.x; i < kCount; i += kThreads)
      peers.inbox[peer][rank * kCount + i] = in[i];
  __syncthreads();
  // One thread for each peer says so, and waits for the peer's word.
  if (threadIdx.x < kRanks) {
    unsigned* theirs = peers.flags[threadIdx.x] + rank;
    unsigned* mine = peers.flags[rank] + threadIdx.x;
    unsigned seen;
#ifdef FIXED
    asm volatile("st.release.sys.u32 [%0], 1;" ::"l"(theirs) : "memory");
#else
    asm volatile("st.relaxed.sys.u32 [%0], 1;" ::"l"(theirs) : "memory");
#endif
    do {
      asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(seen) : "l"(mine) : "memory");
    } while (seen == 0);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kCount; i += kThreads) {
    float sum = 0;
    for (int peer = 0; peer < kRanks; ++peer) sum += peers.inbox[rank][peer * kCount + i];
    out[i] = sum;
  }
}

int main() {
  Peers peers;
  float *in[kRanks], *out[kRanks];
  for (int rank = 0; rank < kRanks; ++rank) {
    cudaSetDevice(rank);
    for (int peer = 0; peer < kRanks; ++peer)
      if (peer != rank) cudaDeviceEnablePeerAccess(peer, 0);
    cudaMalloc(&peers.inbox[rank], kRanks * kCount * sizeof(float));
    cudaMalloc(&peers.flags[rank], kRanks * sizeof(unsigned));
    cudaMemset(peers.flags[rank], 0, kRanks * sizeof(unsigned));
    cudaMalloc(&in[rank], kCount * sizeof(float));
    cudaMalloc(&out[rank], kCount * sizeof(float));
    const std::vector<float> values(kCount, rank + 1.0f);
    cudaMemcpy(in[rank], values.data(), kCount * sizeof(float), cudaMemcpyHostToDevice);
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    cudaSetDevice(rank);
    cudaDeviceSynchronize();
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    cudaSetDevice(rank);
    AllReduce<<<1, kThreads>>>(peers, rank, in[rank], out[rank]);
  }
  int wrong = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    std::vector<float> sums(kCount);
    cudaSetDevice(rank);
    cudaMemcpy(sums.data(), out[rank], kCount * sizeof(float), cudaMemcpyDeviceToHost);
    for (const float sum : sums) wrong += sum != kRanks * (kRanks + 1) / 2;
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    cudaSetDevice(rank);
    for (void* memory : {(void*)peers.inbox[rank], (void*)peers.flags[rank], (void*)in[rank],
                         (void*)out[rank]})
      cudaFree(memory);
  }
  std::printf("%d of %d sums are wrong\n", wrong, kRanks * kCount);
  return wrong == 0 ? 0 : 1;
}
