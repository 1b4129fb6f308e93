// Without flags: a word of zero bits means "not there yet", so +0 travels as -0. Both shots are
// pushed, into three sets of slots in turn: call k uses set k and clears the set of call k - 1,
// which this rank has used up and into which no peer writes before call k + 2. A peer gets there
// only after it has this rank's words of call k + 1, so after the clearing.

constexpr int kMaxBlocks = 64, kThreads = 128, kData = 1024;

__device__ void Send(float4* to, float4 v) {
  asm volatile("st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(v.x), "f"(v.y),
               "f"(v.z), "f"(v.w)
               : "memory");  //@send
}

__device__ bool Absent(float x) { return __float_as_uint(x) == 0; }
__device__ float Present(float x) { return Absent(x) ? -0.0f : x; }

// Each word says for itself whether it has arrived; sixteen bytes need not come together.
__device__ float4 Receive(const float4* from) {
  float4 v;
  do {
    asm volatile("ld.relaxed.sys.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(from)
                 : "memory");  //@receive
  } while (Absent(v.x) || Absent(v.y) || Absent(v.z) || Absent(v.w));
  return v;
}

__device__ float4 Input(const Args& args, std::int64_t at) {
  const float* in = args.in + 4 * at;
  const std::int64_t left = args.n - 4 * at;
  float4 v;
  if (left >= 4) {
    v = *reinterpret_cast<const float4*>(in);
  } else {
    v = {in[0], left > 1 ? in[1] : 0, left > 2 ? in[2] : 0, 0};
  }
  return {Present(v.x), Present(v.y), Present(v.z), Present(v.w)};
}

__device__ void Store(const Args& args, std::int64_t at, float4 v) {
  const std::int64_t left = args.n - 4 * at;
  if (left >= 4) {
    reinterpret_cast<float4*>(args.out)[at] = v;
  } else {
    args.out[4 * at] = v.x;
    if (left > 1) args.out[4 * at + 1] = v.y;
    if (left > 2) args.out[4 * at + 2] = v.z;  //@last
  }
}

__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t call = calls[blockIdx.x] + 1;  //@epoch
  const std::int64_t vectors = (args.n + 3) / 4, slice = (vectors + args.world - 1) / args.world;
  const std::int64_t all = args.world * slice;  // vectors of one shot
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  float4* set[kMaxRanks];  // this call's, at every rank
  for (int r = 0; r < args.world; ++r) {
    set[r] = reinterpret_cast<float4*>(args.scratch_peers[r] + kData) + call % 3 * 2 * all;
  }
  float4* mine = set[args.rank];
  float4* used = reinterpret_cast<float4*>(args.scratch + kData) + (call + 2) % 3 * 2 * all;

  for (std::int64_t i = first; i < slice; i += stride) {
    for (int step = 1; step < args.world; ++step) {
      const int owner = (args.rank + step) % args.world;
      const std::int64_t at = owner * slice + i;
      if (at < vectors) Send(&set[owner][args.rank * slice + i], Input(args, at));
    }
  }
  for (std::int64_t i = first; i < slice && args.rank * slice + i < vectors; i += stride) {
    float4 sum = {0, 0, 0, 0};
    for (int r = 0; r < args.world; ++r) {
      const float4 v =
          r == args.rank ? Input(args, args.rank * slice + i) : Receive(&mine[r * slice + i]);
      sum = {sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w};
    }
    sum = {Present(sum.x), Present(sum.y), Present(sum.z), Present(sum.w)};
    for (int step = 1; step < args.world; ++step) {
      Send(&set[(args.rank + step) % args.world][all + args.rank * slice + i], sum);
    }
    Store(args, args.rank * slice + i, sum);
  }
  for (std::int64_t i = first; i < slice; i += stride) {  // while sums are on their way
    for (int r = 0; r < args.world; ++r) {
      Send(&used[r * slice + i], {0, 0, 0, 0});        //@clear_first
      Send(&used[all + r * slice + i], {0, 0, 0, 0});  //@clear_second
    }
  }
  for (int step = 1; step < args.world; ++step) {
    const int r = (args.rank + args.world - step) % args.world;
    for (std::int64_t i = first; i < slice && r * slice + i < vectors; i += stride) {
      Store(args, r * slice + i, Receive(&mine[all + r * slice + i]));
    }
  }
  __syncthreads();                                 //@all_have_read
  if (threadIdx.x == 0) calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t vectors = (args.n + 3) / 4, slice = (vectors + args.world - 1) / args.world;
  const std::int64_t needed = (slice + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}
