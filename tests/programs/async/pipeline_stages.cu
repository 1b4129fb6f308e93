// cuda::pipeline with memcpy_async: a two-stage producer and consumer over tiles, and the same by
// one thread for itself.
#include <cuda/pipeline>
#include <vector>

#include "check.h"

namespace {

constexpr int kThreads = 64;
constexpr int kTiles = 7;
constexpr int kStages = 2;

__device__ int4 Twice(int4 v) { return {v.x * 2, v.y * 2, v.z * 2, v.w * 2}; }

// Every thread copies its own part of each tile.
__global__ void ByThread(const int4* in, int4* out) {
  __shared__ int4 buffer[kStages][kThreads];
  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
  for (int tile = 0; tile < kTiles + kStages - 1; ++tile) {
    if (tile < kTiles) {
      pipe.producer_acquire();
      cuda::memcpy_async(&buffer[tile % kStages][threadIdx.x], &in[tile * kThreads + threadIdx.x],
                         cuda::aligned_size_t<16>(16), pipe);
      pipe.producer_commit();
    }
    const int ready = tile - (kStages - 1);
    if (ready < 0) continue;
    if (tile < kTiles) {
      cuda::pipeline_consumer_wait_prior<kStages - 1>(pipe);
    } else {
      cuda::pipeline_consumer_wait_prior<0>(pipe);
    }
    out[ready * kThreads + threadIdx.x] = Twice(buffer[ready % kStages][threadIdx.x]);
    pipe.consumer_release();
  }
}

// The first warp produces, the second consumes.
__global__ void ByRole(const int4* in, int4* out) {
  __shared__ int4 buffer[kStages][kThreads];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  const auto role =
      threadIdx.x < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  struct Group {
    __device__ unsigned size() const { return kThreads; }
    __device__ unsigned thread_rank() const { return threadIdx.x; }
    __device__ void sync() const { __syncthreads(); }
  };
  auto pipe = cuda::make_pipeline(Group{}, &state, role);
  for (int tile = 0; tile < kTiles; ++tile) {
    int4(&stage)[kThreads] = buffer[tile % kStages];
    if (role == cuda::pipeline_role::producer) {
      pipe.producer_acquire();
      for (int i = threadIdx.x; i < kThreads; i += 32) {
        cuda::memcpy_async(&stage[i], &in[tile * kThreads + i], cuda::aligned_size_t<16>(16), pipe);
      }
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      for (int i = threadIdx.x - 32; i < kThreads; i += 32) {
        out[tile * kThreads + i] = Twice(stage[i]);
      }
      pipe.consumer_release();
    }
  }
}

}  // namespace

int main() {
  constexpr int kCount = kTiles * kThreads * 4;
  std::vector<int> host(kCount), result(kCount);
  for (int i = 0; i < kCount; ++i) host[i] = i * 3 + 1;
  int4 *in, *out;
  CUDA_CHECK(cudaMalloc(&in, kCount * sizeof(int)));
  CUDA_CHECK(cudaMalloc(&out, kCount * sizeof(int)));
  CUDA_CHECK(cudaMemcpy(in, host.data(), kCount * sizeof(int), cudaMemcpyHostToDevice));
  for (int variant = 0; variant < 2; ++variant) {
    CUDA_CHECK(cudaMemset(out, 0, kCount * sizeof(int)));
    if (variant == 0) {
      ByThread<<<1, kThreads>>>(in, out);
    } else {
      ByRole<<<1, kThreads>>>(in, out);
    }
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(result.data(), out, kCount * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < kCount; ++i) {
      REQUIRE(result[i] == host[i] * 2, "variant %d: element %d is %d", variant, i, result[i]);
    }
  }
  return 0;
}
