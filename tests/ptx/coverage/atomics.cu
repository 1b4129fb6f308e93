// cuda::atomic_ref: every operation, order and scope on the types that have instructions of their
// own, fences, and waiting.
#include <cuda/atomic>

namespace {

constexpr cuda::memory_order kOrders[] = {cuda::memory_order_relaxed, cuda::memory_order_acquire,
                                          cuda::memory_order_release, cuda::memory_order_acq_rel,
                                          cuda::memory_order_seq_cst};

template <int kOrder, typename Ref, typename T>
__device__ void Updates(Ref ref, T* p) {
  constexpr cuda::memory_order order = kOrders[kOrder];
  p[0] = ref.exchange(p[1], order);
  p[2] = ref.fetch_add(p[3], order);
  p[4] = ref.fetch_sub(p[5], order);
  p[6] = ref.fetch_min(p[7], order);
  p[8] = ref.fetch_max(p[9], order);
  ref.fetch_add(p[10], order);
  ref.compare_exchange_strong(p[11], p[12], order);
  if constexpr (cuda::std::is_integral<T>::value) {
    p[13] = ref.fetch_and(p[14], order);
    p[15] = ref.fetch_or(p[16], order);
    p[17] = ref.fetch_xor(p[18], order);
    ref.fetch_or(p[16], order);
  }
}

template <typename Ref, typename T>
__device__ void All(Ref ref, T* p) {
  p[0] = ref.load(cuda::memory_order_relaxed);
  p[1] = ref.load(cuda::memory_order_acquire);
  p[2] = ref.load(cuda::memory_order_seq_cst);
  ref.store(p[3], cuda::memory_order_relaxed);
  ref.store(p[4], cuda::memory_order_release);
  ref.store(p[5], cuda::memory_order_seq_cst);
  Updates<0>(ref, p);
  Updates<1>(ref, p);
  Updates<2>(ref, p);
  Updates<3>(ref, p);
  Updates<4>(ref, p);
}

template <typename T>
__device__ void Scopes(T* p) {
  All(cuda::atomic_ref<T, cuda::thread_scope_block>(p[20]), p);
  All(cuda::atomic_ref<T, cuda::thread_scope_device>(p[21]), p);
  All(cuda::atomic_ref<T, cuda::thread_scope_system>(p[22]), p);
}

}  // namespace

template <typename T>
__global__ void Atomics(T* p) {
  Scopes(p);
}
template __global__ void Atomics<int>(int*);
template __global__ void Atomics<unsigned long long>(unsigned long long*);
template __global__ void Atomics<float>(float*);

template <typename T>
__global__ void Few(T* p) {
  cuda::atomic_ref<T, cuda::thread_scope_device> ref(p[30]);
  Updates<0>(ref, p);
  Updates<4>(ref, p);
  p[0] = ref.load();
  ref.store(p[1]);
}
template __global__ void Few<unsigned>(unsigned*);
template __global__ void Few<long long>(long long*);
template __global__ void Few<double>(double*);
template __global__ void Few<short>(short*);
template __global__ void Few<unsigned char>(unsigned char*);

__global__ void Others(cuda::atomic<int>* waiting, int* p) {
  waiting->wait(3);
  waiting->notify_all();
  cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_block);
  cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
  cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_system);
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_block);
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_system);
  p[0] = waiting->is_lock_free();
}

// 16 bytes: the headers' own code for them does not pass the assembler in this version.
__global__ void Wide(ulonglong2* p) {
  ulonglong2 out;
  asm volatile(
      "{ .reg .b128 a, b, c;\n\t"
      "ld.relaxed.gpu.b128 a, [%2];\n\t"
      "ld.acquire.sys.b128 b, [%2];\n\t"
      "atom.cas.relaxed.gpu.b128 c, [%2], a, b;\n\t"
      "atom.cas.acq_rel.sys.b128 c, [%2], c, b;\n\t"
      "atom.exch.release.cta.b128 c, [%2], c;\n\t"
      "st.relaxed.gpu.b128 [%2], c;\n\t"
      "st.release.sys.b128 [%2], c;\n\t"
      "mov.b128 {%0, %1}, c; }"
      : "=l"(out.x), "=l"(out.y)
      : "l"(p)
      : "memory");
  p[1] = out;
}

// The intrinsics of the language itself.
__global__ void Intrinsics(int* i, unsigned* u, unsigned long long* l, float* f, double* d) {
  i[0] = atomicAdd(i, 1) + atomicSub(i, 2) + atomicExch(i, 3) + atomicMin(i, 4) + atomicMax(i, 5) +
         atomicAnd(i, 6) + atomicOr(i, 7) + atomicXor(i, 8) + atomicCAS(i, 9, 10);
  u[0] = atomicInc(u, 7) + atomicDec(u, 7) + atomicMin(u, 3u) + atomicMax(u, 4u) + atomicAdd(u, 5u);
  l[0] = atomicAdd(l, 1ull) + atomicMin(l, 2ull) + atomicMax(l, 3ull) + atomicCAS(l, 4ull, 5ull) +
         atomicExch(l, 6ull);
  f[0] = atomicAdd(f, 1.0f) + atomicExch(f, 2.0f);
  d[0] = atomicAdd(d, 1.0);
  atomicAdd_block(i + 1, 1);
  atomicAdd_system(i + 2, 1);
  i[3] = atomicCAS_block(i + 4, 1, 2) + atomicCAS_system(i + 5, 1, 2) + atomicExch_system(i + 6, 3);
  auto* s = reinterpret_cast<unsigned short*>(i + 8);
  s[0] = atomicCAS(s + 1, s[2], s[3]);
  auto* v = reinterpret_cast<float4*>(f + 16);
  v[1] = atomicAdd(v, make_float4(1, 2, 3, 4));
  auto* v2 = reinterpret_cast<float2*>(f + 32);
  v2[1] = atomicAdd(v2, make_float2(1, 2));
  __threadfence_block();
  __threadfence();
  __threadfence_system();
}
