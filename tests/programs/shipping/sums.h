// What the all-reduce programs of this folder share: inputs whose sums are exact, a run of several
// calls, and the comparison of every element of every call.
#pragma once

#include "ptx.h"
#include "world.h"

inline float Input(int rank, int call, int i) {
  return float((rank * 37 + call * 11 + i) % 199 - 99);
}

__device__ inline void Add(float4& sum, float4 v) {
  sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
}

// Whether the run is of the protocol as it ships, or of the one with its order completed.
inline bool Shipped(const Setup& setup) {
  REQUIRE(setup.scheme == "shipped" || setup.scheme == "fixed", "unknown scheme %s",
          setup.scheme.c_str());
  return setup.scheme == "shipped";
}

// `launch(call, input, output)` enqueues an all-reduce of `quads` vectors, `calls` times without
// any wait of the host in between.
template <class Launch>
void RunAllReduce(World& world, const char* what, int quads, int calls, Launch launch) {
  const int count = 4 * quads;
  std::vector<float> inputs;
  for (int k = 0; k < calls * count; ++k)
    inputs.push_back(Input(world.rank(), k / count, k % count));
  const auto* input = reinterpret_cast<const float4*>(world.Allocate(inputs));
  float* output = world.Allocate<float>(inputs.size());
  world.Barrier();
  for (int call = 0; call < calls; ++call) {
    launch(call, input + call * quads, reinterpret_cast<float4*>(output) + call * quads);
    CUDA_CHECK_LAUNCH();
  }
  RequireElements(world, what, calls, world.Result(output, inputs.size()), [&](int k) {
    float sum = 0;
    for (int r = 0; r < world.ranks(); ++r) sum += Input(r, k / count, k % count);
    return sum;
  });
  world.Barrier();
}
