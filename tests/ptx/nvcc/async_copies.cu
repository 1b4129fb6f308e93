// What sm_90 and later add: clusters, TMA, mbarrier, multimem, and with the `a` variants wgmma and
// tcgen05. Empty on older targets.
#include <cooperative_groups.h>
#include <cuda.h>

#include <cuda/barrier>
#include <cuda/ptx>

#include <cstdint>

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
namespace cg = cooperative_groups;

__global__ void __cluster_dims__(2, 1, 1) Cluster(int* data) {
  __shared__ int value;
  cg::cluster_group cluster = cg::this_cluster();
  value = data[cluster.block_rank()];
  cluster.sync();
  data[threadIdx.x] = *cluster.map_shared_rank(&value, cluster.block_rank() ^ 1);
  cluster.sync();
}

__global__ void Tma(const __grid_constant__ CUtensorMap map, int* out) {
  __shared__ alignas(1024) int tile[32][32];
  __shared__ alignas(8) uint64_t barrier;
  const uint32_t bar = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  const uint32_t dst = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar));
    asm volatile("fence.proxy.async.shared::cta;");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
        "[%1, {%2, %3}], [%4];" ::"r"(dst),
        "l"(&map), "r"(0), "r"(32), "r"(bar)
        : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(4096));
  }
  asm volatile(
      "{\n\t.reg .pred P1;\n"
      "WAIT_LOOP:\n\tmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1, 0x989680;\n"
      "\t@P1 bra.uni DONE;\n\tbra.uni WAIT_LOOP;\nDONE:\n}" ::"r"(bar),
      "r"(0));
  asm volatile(
      "{\n\t.reg .pred P1;\n"
      "WAIT_LOOP:\n\tmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
      "\t@!P1 bra WAIT_LOOP;\n}" ::"r"(bar),
      "r"(1));
  out[threadIdx.x] = tile[threadIdx.x][3];
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
      "r"(0), "r"(0), "r"(dst));
  asm volatile("cp.async.bulk.commit_group;");
  asm volatile("cp.async.bulk.wait_group.read 0;");
}

__global__ void Bulk(const int* in, int* out) {
  __shared__ alignas(16) int buffer[1024];
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  if (threadIdx.x == 0) {
    init(&barrier, blockDim.x);
    cuda::device::experimental::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  cuda::barrier<cuda::thread_scope_block>::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::memcpy_async(buffer, in, cuda::aligned_size_t<16>(sizeof(buffer)), barrier);
    token = cuda::device::barrier_arrive_tx(barrier, 1, sizeof(buffer));
  } else {
    token = barrier.arrive();
  }
  barrier.wait(std::move(token));
  out[threadIdx.x] = buffer[threadIdx.x];
}

__global__ void Multimem(float* multicast, float4* out) {
  float4 v;
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(multicast)
               : "memory");
  asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(multicast),
               "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
               : "memory");
  asm volatile("multimem.red.release.sys.global.add.u32 [%0], %1;" ::"l"(multicast), "r"(1));
  asm volatile("fence.proxy.alias;");
  out[0] = v;
}

__global__ void Elect(int* out) {
  uint32_t leader = 0;
  asm volatile(
      "{\n\t.reg .pred P;\n\t.reg .b32 R;\n\telect.sync R|P, %1;\n\tselp.b32 %0, 1, 0, P;\n\t"
      "elect.sync _|P, %1;\n}"
      : "=r"(leader)
      : "r"(0xffffffff));
  out[threadIdx.x] = leader;
  asm volatile("griddepcontrol.wait;");
  asm volatile("griddepcontrol.launch_dependents;");
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
__global__ void Wgmma(float* out, uint64_t desc_a, uint64_t desc_b) {
  float d[4] = {0, 0, 0, 0};
  asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
  asm volatile("wgmma.fence.sync.aligned;");
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %6, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, -1, 0, 1;"
      "\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(desc_a), "l"(desc_b), "r"(1));
  asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;");
  for (int i = 0; i < 4; ++i) out[i] = d[i];
}
#endif

#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM103_ALL)
__global__ void Tcgen05(uint32_t* out, uint64_t desc_a, uint64_t desc_b, uint32_t idesc) {
  __shared__ uint32_t where;
  __shared__ alignas(8) uint64_t barrier;
  const uint32_t slot = static_cast<uint32_t>(__cvta_generic_to_shared(&where));
  const uint32_t bar = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(slot));
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %4, 0;\n\t"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n\t}" ::"r"(where),
      "l"(desc_a), "l"(desc_b), "r"(idesc), "r"(1));
  asm volatile(
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(bar));
  asm volatile("tcgen05.fence::after_thread_sync;");
  uint32_t x[2];
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%0, %1}, [%2];"
               : "=r"(x[0]), "=r"(x[1])
               : "r"(where));
  asm volatile("tcgen05.wait::ld.sync.aligned;");
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" ::"r"(where));
  out[threadIdx.x] = x[0] + x[1];
}
#endif
#endif
