// By pulling: every rank stages its input in its own memory; the owner of a slice reads it from all
// of them, adds up and keeps the sums; everybody reads the sums from their owners. `out` of peers
// is never touched. Everything exists once: a rank leaves call k after all owners have told of
// their sums, so they have read the inputs; and it writes the sums of call k + 1 after everybody
// has come to it, so has read those of call k.

constexpr int kMaxBlocks = 64, kThreads = 512;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t steps[kMaxBlocks][kMaxRanks];  // 2 * call - 1: has staged; 2 * call: has summed
};

__device__ void Meet(const Args& args, std::uint32_t step) {
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* mine = reinterpret_cast<Control*>(args.scratch);
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(&peer->steps[blockIdx.x][args.rank]),
                 "r"(step)
                 : "memory");
    std::uint32_t reached;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                   : "=r"(reached)
                   : "l"(&mine->steps[blockIdx.x][threadIdx.x])
                   : "memory");
    } while (std::int32_t(reached - step) < 0);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t vectors = (args.n + 3) / 4, slice = (vectors + args.world - 1) / args.world;
  const std::int64_t staged = sizeof(Control);
  const std::int64_t sums = staged + vectors * sizeof(float4);
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;

  for (std::int64_t i = first; i < slice; i += stride) {
    for (int r = 0; r < args.world; ++r) {
      const std::int64_t at = r * slice + i, left = args.n - 4 * at;
      if (left <= 0) break;
      const float* in = args.in + 4 * at;
      float4 v = {0, 0, 0, 0};
      if (left >= 4) {
        v = *reinterpret_cast<const float4*>(in);
      } else {
        v = {in[0], left > 1 ? in[1] : 0, left > 2 ? in[2] : 0, 0};
      }
      reinterpret_cast<float4*>(args.scratch + staged)[at] = v;
    }
  }
  Meet(args, 2 * call - 1);
  for (std::int64_t i = first; i < slice && args.rank * slice + i < vectors; i += stride) {
    float4 v[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= args.world) break;
      v[r] = reinterpret_cast<float4*>(args.scratch_peers[r] + staged)[args.rank * slice + i];
    }
    float4 sum = v[0];
#pragma unroll
    for (int r = 1; r < kMaxRanks; ++r) {
      if (r >= args.world) break;
      sum = {sum.x + v[r].x, sum.y + v[r].y, sum.z + v[r].z, sum.w + v[r].w};
    }
    reinterpret_cast<float4*>(args.scratch + sums)[i] = sum;
  }
  Meet(args, 2 * call);
  for (std::int64_t i = first; i < slice; i += stride) {
    float4 v[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r < args.world) v[r] = reinterpret_cast<float4*>(args.scratch_peers[r] + sums)[i];
    }
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      const std::int64_t at = r * slice + i, left = args.n - 4 * at;
      if (r >= args.world || left <= 0) break;
      if (left >= 4) {
        reinterpret_cast<float4*>(args.out)[at] = v[r];
      } else {
        args.out[4 * at] = v[r].x;
        if (left > 1) args.out[4 * at + 1] = v[r].y;
        if (left > 2) args.out[4 * at + 2] = v[r].z;
      }
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t vectors = (args.n + 3) / 4, slice = (vectors + args.world - 1) / args.world;
  const std::int64_t needed = (slice + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}
