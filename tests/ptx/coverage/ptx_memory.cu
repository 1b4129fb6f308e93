// cuda::ptx::ld and st: every cache hint at every width, and the shifts, masks and permutations.
#include <cuda/ptx>

namespace ptx = cuda::ptx;
using B128 = longlong2;

#define PREFETCHES(Op, ...)  \
  Op(__VA_ARGS__);           \
  Op##_L2_64B(__VA_ARGS__);  \
  Op##_L2_128B(__VA_ARGS__); \
  Op##_L2_256B(__VA_ARGS__)
#define EVICTIONS(Each, Op, Tail, ...)              \
  Each(Op##_L1_evict_first##Tail, __VA_ARGS__);     \
  Each(Op##_L1_evict_last##Tail, __VA_ARGS__);      \
  Each(Op##_L1_evict_normal##Tail, __VA_ARGS__);    \
  Each(Op##_L1_evict_unchanged##Tail, __VA_ARGS__); \
  Each(Op##_L1_no_allocate##Tail, __VA_ARGS__)
#define ONE(Op, ...) Op(__VA_ARGS__)

template <typename T>
__global__ void Loads(const T* p, unsigned long long policy) {
  PREFETCHES(ptx::ld, ptx::space_global, p);
  PREFETCHES(ptx::ld_nc, ptx::space_global, p);
  PREFETCHES(ptx::ld_L2_cache_hint, ptx::space_global, p, policy);
  PREFETCHES(ptx::ld_nc_L2_cache_hint, ptx::space_global, p, policy);
  EVICTIONS(PREFETCHES, ptx::ld, , ptx::space_global, p);
  EVICTIONS(PREFETCHES, ptx::ld_nc, , ptx::space_global, p);
  EVICTIONS(PREFETCHES, ptx::ld, _L2_cache_hint, ptx::space_global, p, policy);
  EVICTIONS(PREFETCHES, ptx::ld_nc, _L2_cache_hint, ptx::space_global, p, policy);
}
template __global__ void Loads<signed char>(const signed char*, unsigned long long);
template __global__ void Loads<short>(const short*, unsigned long long);
template __global__ void Loads<int>(const int*, unsigned long long);
template __global__ void Loads<long long>(const long long*, unsigned long long);
template __global__ void Loads<B128>(const B128*, unsigned long long);

template <typename T>
__global__ void Stores(T* p, T value, unsigned long long policy) {
  ptx::st(ptx::space_global, p, value);
  ptx::st_L2_cache_hint(ptx::space_global, p, value, policy);
  EVICTIONS(ONE, ptx::st, , ptx::space_global, p, value);
  EVICTIONS(ONE, ptx::st, _L2_cache_hint, ptx::space_global, p, value, policy);
}
template __global__ void Stores<signed char>(signed char*, signed char, unsigned long long);
template __global__ void Stores<short>(short*, short, unsigned long long);
template __global__ void Stores<int>(int*, int, unsigned long long);
template __global__ void Stores<long long>(long long*, long long, unsigned long long);
template __global__ void Stores<B128>(B128*, B128, unsigned long long);

template <typename T>
__device__ void Shifts(T* p, unsigned n) {
  p[0] = ptx::shl(p[1], n);
  p[2] = ptx::shr(p[3], n);
}

__global__ void Bits(unsigned* p, unsigned n) {
  Shifts(reinterpret_cast<short*>(p), n);
  Shifts(reinterpret_cast<unsigned short*>(p), n);
  Shifts(reinterpret_cast<int*>(p), n);
  Shifts(p, n);
  Shifts(reinterpret_cast<cuda::std::int64_t*>(p), n);
  Shifts(reinterpret_cast<cuda::std::uint64_t*>(p), n);
  const cuda::std::uint64_t wide = p[0];
  p[0] = ptx::bfind(p[1]) + ptx::bfind(static_cast<int>(p[2])) + ptx::bfind(wide) +
         ptx::bfind(static_cast<cuda::std::int64_t>(wide));
  p[1] = ptx::bfind_shiftamt(p[1]) + ptx::bfind_shiftamt(static_cast<int>(p[2])) +
         ptx::bfind_shiftamt(wide) + ptx::bfind_shiftamt(static_cast<cuda::std::int64_t>(wide));
  p[2] = ptx::bmsk_clamp(p[3], n) + ptx::bmsk_wrap(p[4], n);
  p[3] = ptx::prmt(p[4], p[5], n) + ptx::prmt_f4e(p[4], p[5], n) + ptx::prmt_b4e(p[4], p[5], n) +
         ptx::prmt_rc8(p[4], p[5], n) + ptx::prmt_ecl(p[4], p[5], n) +
         ptx::prmt_ecr(p[4], p[5], n) + ptx::prmt_rc16(p[4], p[5], n);
  bool valid;
  p[6] = ptx::shfl_sync_idx(p[7], valid, n, n, n) + ptx::shfl_sync_up(p[7], valid, n, n, n) +
         ptx::shfl_sync_down(p[7], valid, n, n, n) + ptx::shfl_sync_bfly(p[7], valid, n, n, n) +
         valid;
  if (n == 7) ptx::trap();
  if (n == 8) ptx::exit();
}

#define SREG(name) total += static_cast<cuda::std::uint64_t>(ptx::get_sreg_##name())
#define SREG_XYZ(name) \
  SREG(name##_x);      \
  SREG(name##_y);      \
  SREG(name##_z)

__global__ void SpecialRegisters(cuda::std::uint64_t* out) {
  cuda::std::uint64_t total = 0;
  SREG_XYZ(tid);
  SREG_XYZ(ntid);
  SREG_XYZ(ctaid);
  SREG_XYZ(nctaid);
  SREG_XYZ(clusterid);
  SREG_XYZ(nclusterid);
  SREG_XYZ(cluster_ctaid);
  SREG_XYZ(cluster_nctaid);
  SREG(cluster_ctarank);
  SREG(cluster_nctarank);
  SREG(is_explicit_cluster);
  SREG(laneid);
  SREG(warpid);
  SREG(nwarpid);
  SREG(smid);
  SREG(nsmid);
  SREG(gridid);
  SREG(lanemask_eq);
  SREG(lanemask_le);
  SREG(lanemask_lt);
  SREG(lanemask_ge);
  SREG(lanemask_gt);
  SREG(clock);
  SREG(clock_hi);
  SREG(clock64);
  SREG(globaltimer);
  SREG(globaltimer_lo);
  SREG(globaltimer_hi);
  SREG(total_smem_size);
  SREG(aggr_smem_size);
  SREG(dynamic_smem_size);
  SREG(current_graph_exec);
  *out = total;
}
