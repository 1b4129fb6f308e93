// Strips of 16 columns of `a`, which are 16 rows of c, go to a block each, and a block's eight warps
// are one rank's slice of the inner dimension each. A warp sends the own strip to one peer, receives
// that peer's strip, and multiplies it: whatever comes first is multiplied first, and the partial
// sums of the warps are added up in shared memory.
//
// The strip is transposed once, by its sender: ldmatrix.trans makes pairs of neighbours along the
// inner dimension, which are the registers that mma takes. These words are what travels; whoever
// receives them multiplies them without a further step. The order of the inner dimension is free as
// long as both factors agree: a thread's share of 32 is eight in a row, so b comes in 16 bytes.
//
// Words need no flags. Zero means "not there yet", so a pair of +0 travels as -0. Three sets of
// slots in turn: call k reads set k and clears the set of call k - 1, into which peers write in
// call k + 2, hence after they have this rank's words of call k + 1.
constexpr int kMaxBlocks = 32, kWarps = 8, kThreads = 32 * kWarps, kMaxDepth = 4;
constexpr int kStrip = 16, kUnit = 64, kColumns = 64;  // rows of c, inner dimension, columns of c

// Registers of one thread for 16 x 64 of A: four products of 16 x 16.
struct Fragments {
  uint4 of[4];
};

// Slots at rank `at`: one unit of the strip from rank `source`.
__device__ uint4* Words(const Args& args, int at, int set, int source, std::int64_t strip,
                        std::int64_t unit) {
  const std::int64_t strips = args.tiles * (64 / kStrip);
  const std::int64_t index = ((set * args.world + source) * strips + strip) * args.depth + unit;
  return reinterpret_cast<uint4*>(args.scratch_peers[at] + 8192) + index * 128 + threadIdx.x % 32;
}

__device__ void Send(uint4* to, uint4 v) {
  asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y),
               "r"(v.z), "r"(v.w)
               : "memory");  //@send
}

__device__ uint4 Look(const uint4* from) {
  uint4 v;
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");  //@receive
  return v;
}

__device__ std::uint32_t Present(std::uint32_t word) { return word == 0 ? 0x80008000u : word; }

// Each word tells for itself whether it has arrived; sixteen bytes need not come together.
__device__ Fragments Receive(const uint4* from) {
  Fragments f;
  bool missing;
  do {
    missing = false;
#pragma unroll
    for (int i = 0; i < 4; ++i) f.of[i] = Look(from + 32 * i);
#pragma unroll
    for (uint4 v : f.of) missing |= v.x == 0 || v.y == 0 || v.z == 0 || v.w == 0;
  } while (missing);  //@wait
  return f;
}

// From rows of the inner dimension in shared memory. Register r of product `step` of a half of 32:
// pair 8 t + 4 step + 2 (r / 2) along the inner dimension for thread t of four.
__device__ Fragments Transpose(const std::uint16_t (*rows)[kStrip]) {
  const int lane = threadIdx.x % 32;
  Fragments f;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int half = i / 2, step = i % 2;
    const int row = 32 * half + 8 * (lane % 8 / 2) + 4 * step + 2 * (lane / 16) + lane % 2;
    const auto place = __cvta_generic_to_shared(&rows[row][lane / 8 % 2 * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(f.of[i].x), "=r"(f.of[i].y), "=r"(f.of[i].z), "=r"(f.of[i].w)
                 : "r"(static_cast<std::uint32_t>(place))
                 : "memory");
  }
  return f;
}

__device__ void Mma(float (&sum)[4], uint4 a, std::uint32_t b0, std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

__global__ void __launch_bounds__(kThreads) GatherMultiply(Args args) {
  __shared__ alignas(16) std::uint16_t rows[kMaxDepth * kUnit][kStrip];
  __shared__ alignas(16) float parts[kWarps][kStrip][kColumns];
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch) + blockIdx.x;
  const std::uint32_t call = *calls + 1;  //@epoch
  const int now = call % 3, used = (call + 2) % 3;
  const std::int64_t m = args.tiles * 64, k = args.depth * kUnit;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, t = lane % 4;
  const int source = (args.rank + warp) % args.world;
  const auto* a = reinterpret_cast<const std::uint16_t*>(args.a);
  const std::int64_t inner = source * k + 8 * t;
  const auto* b = reinterpret_cast<const std::uint16_t*>(args.b) + group * args.world * k + inner;

  for (std::int64_t strip = blockIdx.x; strip < m / kStrip; strip += gridDim.x) {
    for (int n = threadIdx.x; n < 2 * k; n += kThreads) {
      const int row = n / 2, side = n % 2 * 8;
      *reinterpret_cast<uint4*>(&rows[row][side]) =
          *reinterpret_cast<const uint4*>(a + row * m + strip * kStrip + side);
    }
    __syncthreads();  //@staged
    if (warp < args.world) {
      for (std::int64_t unit = 0; warp > 0 && unit < args.depth; ++unit) {
        const Fragments f = Transpose(rows + unit * kUnit);
        uint4* to = Words(args, source, now, args.rank, strip, unit);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const uint4 v = f.of[i];
          Send(to + 32 * i, {Present(v.x), Present(v.y), Present(v.z), Present(v.w)});
        }
        uint4* old = Words(args, args.rank, used, source, strip, unit);
        for (int i = 0; i < 4; ++i) Send(old + 32 * i, {0, 0, 0, 0});  //@clear
      }
      float sums[kColumns / 8][4] = {};
      for (std::int64_t unit = 0; unit < args.depth; ++unit) {  // products
        // of all units
        uint4 weights[2][kColumns / 8];
#pragma unroll
        for (int n = 0; n < 2 * kColumns / 8; ++n) {
          weights[n / 8][n % 8] = *reinterpret_cast<const uint4*>(
              b + n % 8 * 8 * args.world * k + unit * kUnit + n / 8 * 32);
        }
        const Fragments f = warp == 0 ? Transpose(rows + unit * kUnit)
                                      : Receive(Words(args, args.rank, now, source, strip, unit));
#pragma unroll
        for (int n = 0; n < 2 * kColumns / 8; ++n) {
          const uint4 w = weights[n / 8][n % 8];
          Mma(sums[n % 8], f.of[n / 8 * 2], w.x, w.y);
          Mma(sums[n % 8], f.of[n / 8 * 2 + 1], w.z, w.w);
        }
      }
#pragma unroll
      for (int j = 0; j < kColumns / 8; ++j) {
        float2* place = reinterpret_cast<float2*>(&parts[warp][group][j * 8 + 2 * t]);
        place[0] = {sums[j][0], sums[j][1]};
        place[8 * kColumns / 2] = {sums[j][2], sums[j][3]};
      }
    }
    __syncthreads();  //@added
    const float4* from = reinterpret_cast<const float4*>(parts);  // a vector for each thread
    float4 sum = from[threadIdx.x];
    for (int r = 1; r < args.world; ++r) {  //@ranks
      const float4 v = from[r * kThreads + threadIdx.x];
      sum = {sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w};
    }
    reinterpret_cast<float4*>(args.c)[strip * kThreads + threadIdx.x] = sum;
  }
  if (threadIdx.x == 0) *calls = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t strips = args.tiles * (64 / kStrip);
  const int blocks = static_cast<int>(strips < kMaxBlocks ? strips : kMaxBlocks);
  GatherMultiply<<<blocks, kThreads, 0, stream>>>(args);
}
