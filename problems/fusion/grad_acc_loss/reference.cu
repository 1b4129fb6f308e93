// Every block adds up its part of the tokens and sends sum and count to all ranks, in a packet of
// two words that each hold the number of the call, too: who finds the number has the value. Every
// block of every rank waits for the packets of all blocks of all ranks, so no block waits for
// another one of its device first.
//
// Packets are in two sets, used in turn. A rank leaves call k with packets of call k of all blocks
// of all ranks, so nobody reads packets of call k - 1 any more when call k + 1 overwrites them.

constexpr int kMaxBlocks = 8, kThreads = 256;

struct alignas(16) Packet {
  std::uint64_t sum, count;  // the number of the call in the upper half, a float in the lower one
};
struct Control {
  std::uint32_t calls[64];                     // by block
  Packet packets[2 * kMaxRanks * kMaxBlocks];  // by set, rank and block
};

__device__ void Send(Packet* to, Packet p) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(p.sum), "l"(p.count)
               : "memory");  //@send
}

__device__ Packet Look(const Packet* packet) {
  Packet p;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(p.sum), "=l"(p.count)
               : "l"(packet)
               : "memory");  //@look
  return p;
}

__device__ bool Here(Packet p, std::uint32_t call) {
  return p.sum >> 32 == call && p.count >> 32 == call;
}

__device__ float Value(std::uint64_t word) {
  return __uint_as_float(static_cast<std::uint32_t>(word));
}

// Over the threads of the block; every thread gets it.
__device__ float2 BlockSum(float2 v, float2 (&of_warp)[kThreads / 32]) {
  for (int d = 16; d > 0; d /= 2) {
    v = {v.x + __shfl_xor_sync(~0u, v.x, d), v.y + __shfl_xor_sync(~0u, v.y, d)};
  }
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;
  __syncthreads();  //@gathered
  v = {0, 0};
  for (const float2& w : of_warp) v = {v.x + w.x, v.y + w.y};
  return v;
}

__device__ void Count(float x, int m, float2& own) {
  own.x += m != 0 ? x : 0;
  own.y += m != 0 ? 1 : 0;
}

__global__ void __launch_bounds__(kThreads) MeanLoss(Args args) {
  __shared__ float2 of_own[kThreads / 32], of_all[kThreads / 32];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int n = static_cast<int>(args.n), vectors = n / 4;
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  const int set = (call & 1) * kMaxRanks * kMaxBlocks;

  float2 own = {0, 0};
  for (int i = first; i < vectors; i += stride) {
    const float4 x = reinterpret_cast<const float4*>(args.loss)[i];
    const int4 m = reinterpret_cast<const int4*>(args.mask)[i];
    Count(x.x, m.x, own);
    Count(x.y, m.y, own);
    Count(x.z, m.z, own);
    Count(x.w, m.w, own);
  }
  const int last = 4 * vectors + first;  // of the up to three tokens behind the vectors
  if (last < n) Count(args.loss[last], args.mask[last], own);  //@tail
  own = BlockSum(own, of_own);
  if (threadIdx.x < args.world) {
    const std::uint64_t epoch = std::uint64_t{call} << 32;
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    Packet* to = &peer->packets[set + args.rank * gridDim.x + blockIdx.x];
    Send(to, {epoch | __float_as_uint(own.x), epoch | __float_as_uint(own.y)});  //@tell
  }
  float2 total = {0, 0};
  const int packets = args.world * gridDim.x;
  if (threadIdx.x < packets) {
    Packet p = Look(&mine->packets[set + threadIdx.x]);
    while (!Here(p, call)) p = Look(&mine->packets[set + threadIdx.x]);  //@again
    total = {Value(p.sum), Value(p.count)};
  }
  total = BlockSum(total, of_all);

  const float inverse = total.y > 0 ? 1 / total.y : 0, factor = args.world * inverse;
  for (int i = first; i < vectors; i += stride) {
    const int4 m = reinterpret_cast<const int4*>(args.mask)[i];
    reinterpret_cast<float4*>(args.grad)[i] = {m.x * factor, m.y * factor, m.z * factor,
                                               m.w * factor};
  }
  if (last < n) args.grad[last] = args.mask[last] * factor;
  if (first == 0) args.mean[0] = total.x * inverse;
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = static_cast<int>((args.n + 4 * kThreads - 1) / (4 * kThreads));
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  MeanLoss<<<blocks, kThreads, 0, stream>>>(args);
}
