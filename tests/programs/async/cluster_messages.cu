// Messages between the blocks of a cluster in PTX: st.async and red.async with a remote mbarrier, a
// bulk copy from shared memory to a neighbour's, remote arrivals, mapa and the cluster registers.
// nvcc: -arch=sm_90
#include "arrays.h"

namespace {

using u64 = unsigned long long;
constexpr unsigned kCluster = 4;

__device__ unsigned Shared(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
__device__ unsigned Rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ unsigned Map(const void* p, unsigned rank) {
  unsigned address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(Shared(p)), "r"(rank));
  return address;
}
__device__ void Init(u64* barrier, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(Shared(barrier)), "r"(count)
               : "memory");
}
__device__ void ExpectBytes(u64* barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(Shared(barrier)),
               "r"(bytes)
               : "memory");
}
__device__ void Wait(u64* barrier, unsigned parity) {
  unsigned done = 0;
  while (!done) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(Shared(barrier)), "r"(parity)
        : "memory");
  }
}
__device__ void SyncCluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

__global__ void __cluster_dims__(kCluster, 1, 1) Messages(unsigned* out) {
  __shared__ u64 barrier, arrivals;
  __shared__ alignas(16) unsigned inbox[32], sum[32], source[32], copied[32];
  const unsigned lane = threadIdx.x, rank = Rank(), next = (rank + 1) % kCluster;
  if (lane == 0) {
    Init(&barrier, 1);
    Init(&arrivals, 32 * kCluster);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    // st.async: 32 words; red.async: 32 words from each of the cluster's blocks; a bulk copy.
    ExpectBytes(&barrier, 128 + 128 * kCluster + 128);
  }
  sum[lane] = 0;
  source[lane] = rank * 100 + lane;
  SyncCluster();
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(
                   Map(&inbox[lane], next)),
               "r"(rank * 1000 + lane), "r"(Map(&barrier, next))
               : "memory");
  for (unsigned other = 0; other < kCluster; ++other) {
    asm volatile(
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, "
        "[%2];" ::"r"(Map(&sum[lane], other)),
        "r"(rank + 1), "r"(Map(&barrier, other))
        : "memory");
    asm volatile(
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(Map(&arrivals, other))
        : "memory");
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncwarp();
  if (lane == 0) {
    asm volatile(
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 128, "
        "[%2];" ::"r"(Map(copied, next)),
        "r"(Shared(source)), "r"(Map(&barrier, next))
        : "memory");
  }
  Wait(&barrier, 0);
  Wait(&arrivals, 0);
  unsigned* row = out + (blockIdx.x * 32 + lane) * 3;
  row[0] = inbox[lane];
  row[1] = sum[lane];
  row[2] = copied[lane];
  SyncCluster();
}

}  // namespace

int main() {
  constexpr unsigned kBlocks = 2 * kCluster;
  unsigned* out = Unwritten<unsigned>(kBlocks * 32 * 3);
  Messages<<<kBlocks, 32>>>(out);
  std::vector<unsigned> expected;
  for (unsigned block = 0; block < kBlocks; ++block) {
    const unsigned before = (block + kCluster - 1) % kCluster;
    for (unsigned lane = 0; lane < 32; ++lane) {
      expected.insert(expected.end(), {before * 1000 + lane, 1 + 2 + 3 + 4, before * 100 + lane});
    }
  }
  REQUIRE_SAME(ToHost(out, expected.size()), expected);
  std::puts("PASS cluster_messages");
}
