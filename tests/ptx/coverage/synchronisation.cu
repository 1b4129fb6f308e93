// libcu++ barriers, latches, semaphores and pipelines in every scope, and asynchronous copies.
#include <cuda_pipeline.h>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>

template <cuda::thread_scope kScope>
__device__ void Barrier(cuda::barrier<kScope>& barrier, int* p) {
  auto token = barrier.arrive(2);
  barrier.wait(static_cast<decltype(token)&&>(token));
  barrier.arrive_and_wait();
  barrier.wait_parity(p[0] & 1);
  barrier.arrive_and_drop();
  auto other = barrier.arrive();
  if constexpr (kScope == cuda::thread_scope_block) {
    p[1] = barrier.try_wait_for(static_cast<decltype(other)&&>(other),
                                cuda::std::chrono::nanoseconds(50));
  }
}

__global__ void Barriers(cuda::barrier<cuda::thread_scope_device>* device,
                         cuda::barrier<cuda::thread_scope_system>* system, int* p) {
  __shared__ cuda::barrier<cuda::thread_scope_block> block;
  if (threadIdx.x == 0) init(&block, blockDim.x);
  __syncthreads();
  Barrier(block, p);
  Barrier(*device, p);
  Barrier(*system, p);
  cuda::device::barrier_arrive_tx(block, 1, 64);
  cuda::device::barrier_expect_tx(block, 64);
  cuda::device::memcpy_async_tx(p + 64, p, cuda::aligned_size_t<16>(64), block);
}

__global__ void Latches(cuda::latch<cuda::thread_scope_device>* latch,
                        cuda::counting_semaphore<cuda::thread_scope_device>* semaphore,
                        cuda::binary_semaphore<cuda::thread_scope_system>* binary, int* p) {
  latch->arrive_and_wait();
  latch->count_down(2);
  latch->wait();
  p[0] = latch->try_wait();
  semaphore->acquire();
  semaphore->release(2);
  p[1] = semaphore->try_acquire();
  p[2] = semaphore->try_acquire_for(cuda::std::chrono::microseconds(3));
  binary->acquire();
  binary->release();
}

__global__ void Copies(int* p, int n) {
  __shared__ cuda::barrier<cuda::thread_scope_block> block;
  __shared__ alignas(128) int buffer[1024];
  cuda::memcpy_async(buffer, p, sizeof(int), block);
  cuda::memcpy_async(buffer, p, cuda::aligned_size_t<16>(n), block);
  cuda::memcpy_async(buffer, p, cuda::aligned_size_t<4>(4), block);
  cuda::memcpy_async(reinterpret_cast<int2*>(buffer), reinterpret_cast<int2*>(p), sizeof(int2),
                     block);
  cuda::memcpy_async(p, buffer, n, block);
  block.arrive_and_wait();
  p[0] = buffer[n];
}

__global__ void Pipelines(int* p, int n) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ alignas(16) int buffer[1024];
  auto own = cuda::make_pipeline();
  own.producer_acquire();
  cuda::memcpy_async(buffer + threadIdx.x, p + threadIdx.x, cuda::aligned_size_t<4>(4), own);
  own.producer_commit();
  cuda::pipeline_consumer_wait_prior<1>(own);
  own.consumer_wait();
  own.consumer_release();
  struct Threads {
    __device__ static unsigned size() { return blockDim.x; }
    __device__ static unsigned thread_rank() { return threadIdx.x; }
    __device__ static void sync() { __syncthreads(); }
  } threads;
  auto shared = cuda::make_pipeline(threads, &state);
  shared.producer_acquire();
  cuda::memcpy_async(threads, buffer, p, cuda::aligned_size_t<16>(n), shared);
  shared.producer_commit();
  shared.consumer_wait();
  p[0] = buffer[n];
  shared.consumer_release();
  shared.quit();
}

// The language's own copies, fences and barriers.
__global__ void Intrinsics(int* p) {
  __shared__ alignas(16) int buffer[64];
  __pipeline_memcpy_async(buffer, p, 16);
  __pipeline_memcpy_async(buffer + 4, p + 4, 8, 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  p[0] = __syncthreads_and(p[1]) + __syncthreads_or(p[2]) + __syncthreads_count(p[3]);
  __syncwarp(p[4]);
  p[5] = __shfl_sync(~0u, p[6], 3, 8) + __shfl_xor_sync(~0u, p[7], 1);
  p[6] = __reduce_add_sync(~0u, p[8]) + __reduce_min_sync(~0u, p[8]) +
         __reduce_max_sync(~0u, p[8]) +
         static_cast<int>(__reduce_and_sync(~0u, p[8]) + __reduce_or_sync(~0u, p[8]) +
                          __reduce_xor_sync(~0u, p[8]) + __reduce_min_sync(~0u, 3u * p[8]) +
                          __reduce_max_sync(~0u, 3u * p[8]));
  p[9] =
      __any_sync(~0u, p[10]) + __all_sync(~0u, p[10]) + __ballot_sync(~0u, p[10]) + __activemask();
  int same;
  p[11] = __match_any_sync(~0u, p[12]) + __match_all_sync(~0u, p[12], &same) + same +
          __match_any_sync(~0u, static_cast<long long>(p[12]));
  __nanosleep(p[13]);
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
}
