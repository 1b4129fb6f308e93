// cp.async.bulk: global to shared memory with an mbarrier that counts bytes, shared to global with
// bulk groups, a pipeline of tiles by one thread, and cp.reduce.async.bulk additions.
// nvcc: -arch=sm_90
#include "arrays.h"

namespace {

using u64 = unsigned long long;

__device__ unsigned Shared(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
__device__ void Init(u64* barrier, unsigned count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(Shared(barrier)), "r"(count) : "memory");
}
__device__ void Expect(u64* barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(Shared(barrier)),
               "r"(bytes)
               : "memory");
}
__device__ void Wait(u64* barrier, unsigned parity) {
  unsigned done = 0;
  while (!done) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(Shared(barrier)), "r"(parity)
        : "memory");
  }
}
__device__ void Load(void* to, const void* from, unsigned bytes, u64* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(Shared(to)),
      "l"(from), "r"(bytes), "r"(Shared(barrier))
      : "memory");
}
__device__ void Store(void* to, const void* from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(Shared(from)), "r"(bytes)
               : "memory");
}
__device__ void StoreFence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ void StoresDone() {
  asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
}

constexpr int kTile = 256;

// Tiles come in, are doubled, and go out; two are under way at once.
__global__ void Stream(const int* in, int* out, int tiles) {
  __shared__ alignas(128) int stages[2][kTile];
  __shared__ u64 ready[2];
  const int thread = threadIdx.x;
  if (thread == 0) {
    Init(&ready[0], 1);
    Init(&ready[1], 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    StoreFence();
    for (int tile = 0; tile < 2 && tile < tiles; ++tile) {
      Expect(&ready[tile], kTile * 4);
      // Two copies count towards one phase.
      Load(stages[tile], in + tile * kTile, kTile * 2, &ready[tile]);
      Load(stages[tile] + kTile / 2, in + tile * kTile + kTile / 2, kTile * 2, &ready[tile]);
    }
  }
  __syncthreads();
  for (int tile = 0; tile < tiles; ++tile) {
    int* stage = stages[tile % 2];
    Wait(&ready[tile % 2], tile / 2 % 2);
    for (int i = thread; i < kTile; i += blockDim.x) stage[i] = stage[i] * 2 + tile;
    StoreFence();
    __syncthreads();
    if (thread == 0) {
      Store(out + tile * kTile, stage, kTile * 4);
      StoresDone();
      if (tile + 2 < tiles) {
        Expect(&ready[tile % 2], kTile * 4);
        Load(stage, in + (tile + 2) * kTile, kTile * 4, &ready[tile % 2]);
      }
    }
    __syncthreads();
  }
}

// Every block adds its row to the same place.
__global__ void Reduce(unsigned* sums, int* low) {
  __shared__ alignas(16) unsigned row[64];
  __shared__ alignas(16) int values[64];
  row[threadIdx.x] = threadIdx.x * (blockIdx.x + 1);
  values[threadIdx.x] = static_cast<int>(threadIdx.x * 7 % 13) - static_cast<int>(blockIdx.x);
  StoreFence();
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 256;" ::"l"(sums),
        "r"(Shared(row))
        : "memory");
    asm volatile(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s32 [%0], [%1], 256;" ::"l"(low),
        "r"(Shared(values))
        : "memory");
    StoresDone();
  }
}

}  // namespace

int main() {
  constexpr int kTiles = 7, kBlocks = 10;
  Random random(107);
  std::vector<int> in, expected;
  for (int i = 0; i < kTiles * kTile; ++i) {
    in.push_back(static_cast<int>(random.Next() >> 2));
    expected.push_back(in.back() * 2 + i / kTile);
  }
  int* out = Unwritten<int>(in.size());
  Stream<<<1, 64>>>(ToDevice(in), out, kTiles);
  REQUIRE_SAME(ToHost(out, in.size()), expected);

  unsigned* sums = Zeroed<unsigned>(64);
  int* low = Zeroed<int>(64);
  Reduce<<<kBlocks, 64>>>(sums, low);
  std::vector<unsigned> expected_sums;
  std::vector<int> expected_low;
  for (int i = 0; i < 64; ++i) {
    expected_sums.push_back(i * kBlocks * (kBlocks + 1) / 2);
    const int lowest = i * 7 % 13 - (kBlocks - 1);
    expected_low.push_back(lowest < 0 ? lowest : 0);
  }
  REQUIRE_SAME(ToHost(sums, 64), expected_sums);
  REQUIRE_SAME(ToHost(low, 64), expected_low);
  std::puts("PASS bulk_copy");
}
