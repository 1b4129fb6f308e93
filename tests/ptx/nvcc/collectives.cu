// Cooperative groups, libcu++ atomics and barriers, CUB block primitives, warp intrinsics.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/semaphore>

namespace cg = cooperative_groups;

__global__ void Groups(int* data, int n) {
  cg::grid_group grid = cg::this_grid();
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  int v = cg::reduce(tile, data[grid.thread_rank()], cg::plus<int>());
  v += cg::exclusive_scan(tile, v);
  grid.sync();
  auto active = cg::coalesced_threads();
  if (active.thread_rank() == 0) data[0] = v + active.size();
  __shared__ int buffer[256];
  cg::memcpy_async(block, buffer, data, sizeof(int) * 256);
  cg::wait(block);
  auto parts = cg::labeled_partition(active, v & 3);
  data[n] = buffer[v & 255] + parts.size() + tile.any(v > 3) + tile.match_any(v);
}

__global__ void Atomics(int* flag, unsigned long long* wide, float* f, double* d) {
  cuda::atomic_ref<int, cuda::thread_scope_system> ref(*flag);
  ref.store(1, cuda::memory_order_release);
  ref.wait(1, cuda::memory_order_acquire);
  ref.fetch_add(3, cuda::memory_order_acq_rel);
  int expected = 4;
  while (!ref.compare_exchange_weak(expected, 9)) {
  }
  ref.notify_all();
  cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> w(*wide);
  w.fetch_max(7);
  w.fetch_or(7, cuda::memory_order_relaxed);
  cuda::atomic_ref<float, cuda::thread_scope_block>(*f).fetch_add(1.5f);
  atomicAdd(d, 2.0);
  atomicAdd_system(flag, 1);
  atomicCAS_block(flag, 1, 2);
  atomicInc(reinterpret_cast<unsigned*>(flag), 5);
  __threadfence_system();
  __threadfence();
  __threadfence_block();
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_system);
}

__global__ void Barriers(int* data) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ int buffer[128];
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(buffer + threadIdx.x, data + threadIdx.x, sizeof(int), barrier);
  barrier.arrive_and_wait();
  auto token = barrier.arrive();
  barrier.wait(std::move(token));
  data[threadIdx.x] = buffer[127 - threadIdx.x];
  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
  pipe.producer_acquire();
  cuda::memcpy_async(buffer + threadIdx.x, data + threadIdx.x, cuda::aligned_size_t<4>(4), pipe);
  pipe.producer_commit();
  pipe.consumer_wait();
  pipe.consumer_release();
}

__global__ void Blocks(int* data, float* values) {
  using Reduce = cub::BlockReduce<float, 128>;
  using Scan = cub::BlockScan<int, 128>;
  using Sort = cub::BlockRadixSort<int, 128, 4>;
  __shared__ union {
    Reduce::TempStorage reduce;
    Scan::TempStorage scan;
    Sort::TempStorage sort;
  } temp;
  float sum = Reduce(temp.reduce).Sum(values[threadIdx.x]);
  __syncthreads();
  int prefix;
  Scan(temp.scan).ExclusiveSum(data[threadIdx.x], prefix);
  __syncthreads();
  int keys[4] = {prefix, data[0], data[1], data[2]};
  Sort(temp.sort).Sort(keys);
  data[threadIdx.x] = keys[0] + static_cast<int>(sum);
}

__global__ void Warps(int* data, long long* times) {
  int v = data[threadIdx.x];
  v += __shfl_xor_sync(~0u, v, 1) + __shfl_down_sync(~0u, v, 2, 16) + __shfl_sync(~0u, v, 3);
  int all;
  v += __ballot_sync(~0u, v) + __any_sync(~0u, v) + __match_any_sync(~0u, v) +
       __match_all_sync(~0u, v, &all) + __activemask() + all;
  v += __popc(v) + __clz(v) + __brev(v) + __ffs(v) + __byte_perm(v, all, 0x1234) +
       __funnelshift_l(v, all, 3) + __dp4a(v, all, 1) + __vadd4(v, all) + __vabsdiffs4(v, all) +
       __vmaxs2(v, all) + __sad(v, all, 4u);
  __syncwarp();
  v += __syncthreads_count(v > 0) + __syncthreads_or(v);
  times[threadIdx.x] = clock64() + clock();
  __nanosleep(20);
  float f = __int_as_float(v);
  data[threadIdx.x] = v + __float2int_rn(__sinf(f) + rsqrtf(f) + __fdividef(f, 3.f) + sinf(f) +
                                         fmaf(f, f, 2.f) + exp2f(f) + powf(f, 2.5f));
}
