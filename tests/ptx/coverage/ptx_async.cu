// cuda::ptx for compute_90a: fences, mbarriers, cluster barriers, bulk and tensor copies, tensor
// maps.
#include <cuda/ptx>

namespace ptx = cuda::ptx;
using cuda::std::int32_t;
using cuda::std::int64_t;
using cuda::std::uint32_t;
using cuda::std::uint64_t;

__global__ void Fences(const void* map) {
  ptx::fence(ptx::sem_sc, ptx::scope_cta);
  ptx::fence(ptx::sem_sc, ptx::scope_cluster);
  ptx::fence(ptx::sem_sc, ptx::scope_gpu);
  ptx::fence(ptx::sem_sc, ptx::scope_sys);
  ptx::fence(ptx::sem_acq_rel, ptx::scope_cta);
  ptx::fence(ptx::sem_acq_rel, ptx::scope_cluster);
  ptx::fence(ptx::sem_acq_rel, ptx::scope_gpu);
  ptx::fence(ptx::sem_acq_rel, ptx::scope_sys);
  ptx::fence(ptx::sem_acquire, ptx::scope_cta);
  ptx::fence(ptx::sem_acquire, ptx::scope_cluster);
  ptx::fence(ptx::sem_acquire, ptx::scope_gpu);
  ptx::fence(ptx::sem_acquire, ptx::scope_sys);
  ptx::fence(ptx::sem_release, ptx::scope_cta);
  ptx::fence(ptx::sem_release, ptx::scope_cluster);
  ptx::fence(ptx::sem_release, ptx::scope_gpu);
  ptx::fence(ptx::sem_release, ptx::scope_sys);
  ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  ptx::fence_proxy_alias();
  ptx::fence_proxy_async();
  ptx::fence_proxy_async(ptx::space_global);
  ptx::fence_proxy_async(ptx::space_cluster);
  ptx::fence_proxy_async(ptx::space_shared);
  ptx::fence_proxy_async_generic_sync_restrict(ptx::sem_acquire, ptx::space_cluster,
                                               ptx::scope_cluster);
  ptx::fence_proxy_async_generic_sync_restrict(ptx::sem_release, ptx::space_shared,
                                               ptx::scope_cluster);
  ptx::fence_sync_restrict(ptx::sem_acquire, ptx::space_cluster, ptx::scope_cluster);
  ptx::fence_sync_restrict(ptx::sem_release, ptx::space_shared, ptx::scope_cluster);
  ptx::fence_proxy_tensormap_generic(ptx::sem_release, ptx::scope_cta);
  ptx::fence_proxy_tensormap_generic(ptx::sem_release, ptx::scope_cluster);
  ptx::fence_proxy_tensormap_generic(ptx::sem_release, ptx::scope_gpu);
  ptx::fence_proxy_tensormap_generic(ptx::sem_release, ptx::scope_sys);
  ptx::fence_proxy_tensormap_generic(ptx::sem_acquire, ptx::scope_cta, map, ptx::n32_t<128>());
  ptx::fence_proxy_tensormap_generic(ptx::sem_acquire, ptx::scope_cluster, map, ptx::n32_t<128>());
  ptx::fence_proxy_tensormap_generic(ptx::sem_acquire, ptx::scope_gpu, map, ptx::n32_t<128>());
  ptx::fence_proxy_tensormap_generic(ptx::sem_acquire, ptx::scope_sys, map, ptx::n32_t<128>());
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
  ptx::barrier_cluster_arrive(ptx::sem_release);
  ptx::barrier_cluster_wait(ptx::sem_acquire);
  ptx::barrier_cluster_arrive(ptx::sem_relaxed);
  ptx::barrier_cluster_wait(ptx::sem_acquire);
}

template <typename Scope>
__device__ bool BarrierScope(Scope scope, uint64_t* bar, uint32_t n) {
  uint64_t state = ptx::mbarrier_arrive(ptx::sem_release, scope, ptx::space_shared, bar);
  state += ptx::mbarrier_arrive(ptx::sem_release, scope, ptx::space_shared, bar, n);
  state += ptx::mbarrier_arrive(ptx::sem_relaxed, scope, ptx::space_shared, bar);
  state += ptx::mbarrier_arrive(ptx::sem_relaxed, scope, ptx::space_shared, bar, n);
  state += ptx::mbarrier_arrive_expect_tx(ptx::sem_release, scope, ptx::space_shared, bar, n);
  state += ptx::mbarrier_arrive_expect_tx(ptx::sem_relaxed, scope, ptx::space_shared, bar, n);
  ptx::mbarrier_expect_tx(ptx::sem_relaxed, scope, ptx::space_shared, bar, n);
  ptx::mbarrier_expect_tx(ptx::sem_relaxed, scope, ptx::space_cluster, bar, n);
  bool done = ptx::mbarrier_test_wait(ptx::sem_acquire, scope, bar, state);
  done ^= ptx::mbarrier_test_wait(ptx::sem_relaxed, scope, bar, state);
  done ^= ptx::mbarrier_test_wait_parity(ptx::sem_acquire, scope, bar, n);
  done ^= ptx::mbarrier_test_wait_parity(ptx::sem_relaxed, scope, bar, n);
  done ^= ptx::mbarrier_try_wait(ptx::sem_acquire, scope, bar, state);
  done ^= ptx::mbarrier_try_wait(ptx::sem_acquire, scope, bar, state, n);
  done ^= ptx::mbarrier_try_wait(ptx::sem_relaxed, scope, bar, state);
  done ^= ptx::mbarrier_try_wait(ptx::sem_relaxed, scope, bar, state, n);
  done ^= ptx::mbarrier_try_wait_parity(ptx::sem_acquire, scope, bar, n);
  done ^= ptx::mbarrier_try_wait_parity(ptx::sem_acquire, scope, bar, n, n);
  done ^= ptx::mbarrier_try_wait_parity(ptx::sem_relaxed, scope, bar, n);
  done ^= ptx::mbarrier_try_wait_parity(ptx::sem_relaxed, scope, bar, n, n);
  return done;
}

__global__ void Mbarriers(uint32_t n, bool* out) {
  __shared__ uint64_t bar[1];
  ptx::mbarrier_init(bar, n);
  uint64_t state = ptx::mbarrier_arrive(bar);
  state += ptx::mbarrier_arrive(bar, n);
  state += ptx::mbarrier_arrive_no_complete(bar, n);
  ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, bar);
  ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, bar, n);
  ptx::mbarrier_arrive(ptx::sem_relaxed, ptx::scope_cluster, ptx::space_cluster, bar);
  ptx::mbarrier_arrive(ptx::sem_relaxed, ptx::scope_cluster, ptx::space_cluster, bar, n);
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, bar, n);
  ptx::mbarrier_arrive_expect_tx(ptx::sem_relaxed, ptx::scope_cluster, ptx::space_cluster, bar, n);
  bool done = ptx::mbarrier_test_wait(bar, state);
  done ^= ptx::mbarrier_test_wait_parity(bar, n);
  done ^= ptx::mbarrier_try_wait(bar, state);
  done ^= ptx::mbarrier_try_wait(bar, state, n);
  done ^= ptx::mbarrier_try_wait_parity(bar, n);
  done ^= ptx::mbarrier_try_wait_parity(bar, n, n);
  done ^= BarrierScope(ptx::scope_cta, bar, n);
  done ^= BarrierScope(ptx::scope_cluster, bar, n);
  ptx::cp_async_mbarrier_arrive(bar);
  ptx::cp_async_mbarrier_arrive_noinc(bar);
  out[0] = done;
  out[1] = ptx::getctarank(ptx::space_cluster, bar) == n;
}

template <typename T>
__device__ void Reductions(T* global, const T* shared, uint32_t n) {
  ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, global, shared, n);
  if constexpr (!cuda::std::is_floating_point_v<T>) {
    ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_min, global, shared, n);
    ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_max, global, shared, n);
  }
}

template <typename T>
__device__ void BitReductions(T* global, const T* shared, uint32_t n) {
  ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_and_op, global, shared,
                            n);
  ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_or_op, global, shared, n);
  ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_xor_op, global, shared,
                            n);
}

template <typename T, typename Op>
__device__ void Distributed(Op op, T* shared, T value, uint64_t* bar) {
  ptx::cp_reduce_async_bulk(ptx::space_cluster, ptx::space_shared, op, shared, shared, 16, bar);
  ptx::red_async(op, shared, value, bar);
}

__global__ void BulkCopies(char* global, uint32_t n, unsigned short mask) {
  __shared__ alignas(16) char shared[1024];
  __shared__ uint64_t bar[1];
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, shared, global, n, bar);
  ptx::cp_async_bulk(ptx::space_shared, ptx::space_global, shared, global, n, bar);
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, shared, shared, n, bar);
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, shared, global, n, bar, mask);
  ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, global, shared, n);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group(ptx::n32_t<1>());
  ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  Reductions(reinterpret_cast<uint32_t*>(global), reinterpret_cast<uint32_t*>(shared), n);
  Reductions(reinterpret_cast<int32_t*>(global), reinterpret_cast<int32_t*>(shared), n);
  Reductions(reinterpret_cast<uint64_t*>(global), reinterpret_cast<uint64_t*>(shared), n);
  Reductions(reinterpret_cast<int64_t*>(global), reinterpret_cast<int64_t*>(shared), n);
  Reductions(reinterpret_cast<float*>(global), reinterpret_cast<float*>(shared), n);
  Reductions(reinterpret_cast<double*>(global), reinterpret_cast<double*>(shared), n);
  Reductions(reinterpret_cast<__half*>(global), reinterpret_cast<__half*>(shared), n);
  Reductions(reinterpret_cast<__nv_bfloat16*>(global), reinterpret_cast<__nv_bfloat16*>(shared), n);
  BitReductions(reinterpret_cast<uint32_t*>(global), reinterpret_cast<uint32_t*>(shared), n);
  BitReductions(reinterpret_cast<uint64_t*>(global), reinterpret_cast<uint64_t*>(shared), n);
  auto* words = reinterpret_cast<uint32_t*>(shared);
  auto* ints = reinterpret_cast<int32_t*>(shared);
  ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_inc,
                            reinterpret_cast<uint32_t*>(global), words, n);
  ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_dec,
                            reinterpret_cast<uint32_t*>(global), words, n);
  Distributed(ptx::op_add, words, n, bar);
  Distributed(ptx::op_min, words, n, bar);
  Distributed(ptx::op_max, words, n, bar);
  Distributed(ptx::op_inc, words, n, bar);
  Distributed(ptx::op_dec, words, n, bar);
  Distributed(ptx::op_and_op, words, n, bar);
  Distributed(ptx::op_or_op, words, n, bar);
  Distributed(ptx::op_xor_op, words, n, bar);
  Distributed(ptx::op_add, ints, static_cast<int32_t>(n), bar);
  Distributed(ptx::op_min, ints, static_cast<int32_t>(n), bar);
  Distributed(ptx::op_max, ints, static_cast<int32_t>(n), bar);
  Distributed(ptx::op_add, reinterpret_cast<uint64_t*>(shared), static_cast<uint64_t>(n), bar);
  ptx::red_async(ptx::op_add, reinterpret_cast<int64_t*>(shared), static_cast<int64_t>(n),
                 reinterpret_cast<int64_t*>(bar));
  const uint32_t two[2] = {n, n}, four[4] = {n, n, n, n};
  const uint64_t wide[2] = {n, n};
  ptx::st_async(words, n, bar);
  ptx::st_async(words, two, bar);
  ptx::st_async(words, four, bar);
  ptx::st_async(reinterpret_cast<uint64_t*>(shared), static_cast<uint64_t>(n), bar);
  ptx::st_async(reinterpret_cast<uint64_t*>(shared), wide, bar);
}

template <int kRank>
__device__ void Tensor(const void* map, int x, char* shared, uint64_t* bar, unsigned short mask) {
  int32_t at[kRank];
  for (int i = 0; i < kRank; ++i) at[i] = x + i;
  ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, shared, map, at, bar);
  ptx::cp_async_bulk_tensor(ptx::space_shared, ptx::space_global, shared, map, at, bar);
  ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, shared, map, at, bar, mask);
  ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, map, at, shared);
  ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_add, map, at,
                                   shared);
  ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_min, map, at,
                                   shared);
  ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_max, map, at,
                                   shared);
  ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_inc, map, at,
                                   shared);
  ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_dec, map, at,
                                   shared);
  ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_and_op, map, at,
                                   shared);
  ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_or_op, map, at,
                                   shared);
  ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_xor_op, map, at,
                                   shared);
}

__global__ void TensorCopies(const __grid_constant__ longlong4_16a map, int x,
                             unsigned short mask) {
  __shared__ alignas(128) char shared[1024];
  __shared__ uint64_t bar[1];
  Tensor<1>(&map, x, shared, bar, mask);
  Tensor<2>(&map, x, shared, bar, mask);
  Tensor<3>(&map, x, shared, bar, mask);
  Tensor<4>(&map, x, shared, bar, mask);
  Tensor<5>(&map, x, shared, bar, mask);
}

template <typename Space>
__device__ void Replace(Space space, void* map, uint32_t n, uint64_t wide) {
  ptx::tensormap_replace_global_address(space, map, wide);
  ptx::tensormap_replace_rank(space, map, n);
  ptx::tensormap_replace_box_dim(space, map, ptx::n32_t<1>(), n);
  ptx::tensormap_replace_global_dim(space, map, ptx::n32_t<1>(), n);
  ptx::tensormap_replace_global_stride(space, map, ptx::n32_t<1>(), wide);
  ptx::tensormap_replace_element_size(space, map, ptx::n32_t<1>(), n);
  ptx::tensormap_replace_elemtype(space, map, ptx::n32_t<1>());
  ptx::tensormap_replace_interleave_layout(space, map, ptx::n32_t<0>());
  ptx::tensormap_replace_swizzle_mode(space, map, ptx::n32_t<1>());
  ptx::tensormap_replace_fill_mode(space, map, ptx::n32_t<0>());
}

__global__ void TensorMaps(void* map, uint32_t n, uint64_t wide) {
  __shared__ alignas(128) char own[128];
  Replace(ptx::space_global, map, n, wide);
  Replace(ptx::space_shared, own, n, wide);
  ptx::tensormap_cp_fenceproxy(ptx::sem_release, ptx::scope_cta, map, own, ptx::n32_t<128>());
  ptx::tensormap_cp_fenceproxy(ptx::sem_release, ptx::scope_cluster, map, own, ptx::n32_t<128>());
  ptx::tensormap_cp_fenceproxy(ptx::sem_release, ptx::scope_gpu, map, own, ptx::n32_t<128>());
  ptx::tensormap_cp_fenceproxy(ptx::sem_release, ptx::scope_sys, map, own, ptx::n32_t<128>());
}
