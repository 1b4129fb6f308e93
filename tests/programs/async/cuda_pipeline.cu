// cuda::pipeline: a block's pipeline of three stages with memcpy_async, one of a single thread, and
// producers and consumers by role.
#include <cooperative_groups.h>
#include <cuda/pipeline>

#include "arrays.h"

// A barrier in shared memory is initialised by init(), not by its constructor.
#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;

namespace {

constexpr int kThreads = 64, kStages = 3;

__global__ void WholeBlock(const int* in, int tiles, int* out) {
  __shared__ int stages[kStages][kThreads];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  auto block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  int fetched = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    for (; fetched < tiles && fetched < tile + kStages; ++fetched) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, stages[fetched % kStages], in + fetched * kThreads,
                         sizeof(stages[0]), pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    out[tile * kThreads + threadIdx.x] = stages[tile % kStages][kThreads - 1 - threadIdx.x] + tile;
    pipeline.consumer_release();
  }
}

// The first warp loads for the second.
__global__ void Roles(const int4* in, int tiles, int4* out) {
  __shared__ int4 stages[2][32];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  const bool producer = threadIdx.x < 32;
  auto pipeline = cuda::make_pipeline(
      block, &state, producer ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  const int lane = threadIdx.x % 32;
  for (int tile = 0; tile < tiles; ++tile) {
    if (producer) {
      pipeline.producer_acquire();
      cuda::memcpy_async(&stages[tile % 2][lane], &in[tile * 32 + lane],
                         cuda::aligned_size_t<16>(16), pipeline);
      pipeline.producer_commit();
    } else {
      pipeline.consumer_wait();
      int4 value = stages[tile % 2][31 - lane];
      value.w += tile;
      out[tile * 32 + lane] = value;
      pipeline.consumer_release();
    }
  }
}

}  // namespace

int main() {
  constexpr int kTiles = 8;
  Random random(109);
  std::vector<int> in, expected;
  for (int i = 0; i < kTiles * 128; ++i) in.push_back(static_cast<int>(random.Next() >> 8));
  for (int i = 0; i < kTiles * kThreads; ++i) {
    expected.push_back(in[i / kThreads * kThreads + kThreads - 1 - i % kThreads] + i / kThreads);
  }
  int* out = Unwritten<int>(kTiles * 128);
  WholeBlock<<<1, kThreads>>>(ToDevice(in), kTiles, out);
  REQUIRE_SAME(ToHost(out, expected.size()), expected);

  Roles<<<1, 64>>>(reinterpret_cast<int4*>(ToDevice(in)), kTiles, reinterpret_cast<int4*>(out));
  expected.clear();
  for (int i = 0; i < kTiles * 32; ++i) {
    for (int k = 0; k < 4; ++k)
      expected.push_back(in[(i / 32 * 32 + 31 - i % 32) * 4 + k] + (k == 3 ? i / 32 : 0));
  }
  REQUIRE_SAME(ToHost(out, expected.size()), expected);
  std::puts("PASS cuda_pipeline");
}
