// cuda::ptx::multimem_*: loads that reduce, reductions and stores on multicast addresses.
#include <cuda/ptx>
#include <cuda/std/type_traits>

namespace ptx = cuda::ptx;
using cuda::std::int32_t;
using cuda::std::int64_t;
using cuda::std::uint32_t;
using cuda::std::uint64_t;

template <typename T, typename Op, typename Scope>
__device__ T InScope(Op op, Scope scope, T* p, T value) {
  ptx::multimem_red(ptx::sem_relaxed, scope, op, p, value);
  ptx::multimem_red(ptx::sem_release, scope, op, p, value);
  return ptx::multimem_ld_reduce(ptx::sem_relaxed, scope, op, p) +
         ptx::multimem_ld_reduce(ptx::sem_acquire, scope, op, p);
}

template <typename T, typename Op>
__device__ T Each(Op op, T* p, T value) {
  return ptx::multimem_ld_reduce(ptx::sem_weak, op, p) + InScope(op, ptx::scope_cta, p, value) +
         InScope(op, ptx::scope_cluster, p, value) + InScope(op, ptx::scope_gpu, p, value) +
         InScope(op, ptx::scope_sys, p, value);
}

template <typename T, typename Scope>
__device__ void Store(Scope scope, T* p, T value) {
  ptx::multimem_st(ptx::sem_relaxed, scope, p, value);
  ptx::multimem_st(ptx::sem_release, scope, p, value);
}

template <typename T>
__device__ void Type(T* p, T* out) {
  *out = Each(ptx::op_add, p, *out);
  if constexpr (cuda::std::is_integral_v<T>) {
    *out += Each(ptx::op_min, p, *out) + Each(ptx::op_max, p, *out);
    if constexpr (cuda::std::is_unsigned_v<T>) {
      *out += Each(ptx::op_and_op, p, *out) + Each(ptx::op_or_op, p, *out) +
              Each(ptx::op_xor_op, p, *out);
      ptx::multimem_st(ptx::sem_weak, p, *out);
      Store(ptx::scope_cta, p, *out);
      Store(ptx::scope_cluster, p, *out);
      Store(ptx::scope_gpu, p, *out);
      Store(ptx::scope_sys, p, *out);
    }
  }
}

__global__ void Multimem(void* p, void* out) {
  Type(static_cast<uint32_t*>(p), static_cast<uint32_t*>(out));
  Type(static_cast<int32_t*>(p), static_cast<int32_t*>(out));
  Type(static_cast<uint64_t*>(p), static_cast<uint64_t*>(out));
  Type(static_cast<int64_t*>(p), static_cast<int64_t*>(out));
}
