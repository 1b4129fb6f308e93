// Words carry their own flags: a packet has two floats, each beside the number of the call, so that
// whoever finds the number has the float. Block b has row b of every rank's rows: it sends seven of
// them to their owners, and adds up and normalises the eighth.
//
// Packets are in two sets, used in turn. A rank leaves call k with packets of call k of every peer,
// so no peer still reads packets of call k - 1 when call k + 1 overwrites them.

constexpr int kMaxBlocks = 64, kMaxThreads = 512;
constexpr int kPackets = 256;  // where they begin; before: a counter of calls per block

struct alignas(16) Packet {
  std::uint64_t x, y;  // the number of the call in the upper half, a float in the lower one
};

__device__ std::uint64_t Word(float x, std::uint32_t call) {
  return std::uint64_t{call} << 32 | __float_as_uint(x);
}

__device__ void Send(Packet* to, float2 v, std::uint32_t call) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(Word(v.x, call)),
               "l"(Word(v.y, call))
               : "memory");  //@send
}

__device__ Packet Look(const Packet* packet) {
  Packet p;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(p.x), "=l"(p.y)
               : "l"(packet)
               : "memory");  //@look
  return p;
}

__device__ bool Here(Packet p, std::uint32_t call) {
  return p.x >> 32 == call && p.y >> 32 == call;
}

__device__ float Value(std::uint64_t word) {
  return __uint_as_float(static_cast<std::uint32_t>(word));
}

__device__ float2 Receive(const Packet* packet, Packet p, std::uint32_t call) {
  while (!Here(p, call)) p = Look(packet);  //@again
  return {Value(p.x), Value(p.y)};
}

// Over the threads of the block; every thread gets it.
__device__ float BlockSum(float x) {
  __shared__ float of_warp[kMaxThreads / 32];
  const int lane = threadIdx.x % 32;
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(~0u, x, d);
  __syncthreads();  // the sums of the row before have been read
  if (lane == 0) of_warp[threadIdx.x / 32] = x;
  __syncthreads();  //@squared
  x = lane < (blockDim.x + 31) / 32 ? of_warp[lane] : 0;
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(~0u, x, d);
  return x;
}

__global__ void __launch_bounds__(kMaxThreads) ScatterNorm(Args args) {
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t call = calls[blockIdx.x] + 1;  //@epoch
  const int world = args.world, hidden = static_cast<int>(args.hidden), pairs = hidden / 2;
  const std::int64_t all = args.rows * pairs, set = (call & 1) * world * all;
  const float2* in = reinterpret_cast<const float2*>(args.in);
  float2* norm = reinterpret_cast<float2*>(args.norm);

  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    float squares = 0;
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
      const std::int64_t at = row * pairs + i;
      float2 own = {0, 0};
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {
        if (r >= world) break;
        const float2 v = in[(r * args.rows + row) * pairs + i];
        if (r == args.rank) {
          own = v;
          continue;
        }
        Packet* packets = reinterpret_cast<Packet*>(args.scratch_peers[r] + kPackets) + set;
        Send(&packets[args.rank * all + at], v, call);  //@give
      }
      const Packet* slots = reinterpret_cast<Packet*>(args.scratch + kPackets) + set + at;
      Packet p[kMaxRanks];
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {  // all on their way before the first is needed
        if (r < world && r != args.rank) p[r] = Look(&slots[r * all]);
      }
      float2 h = {0, 0};
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {
        if (r >= world) break;
        const float2 v = r == args.rank ? own : Receive(&slots[r * all], p[r], call);
        h = {h.x + v.x, h.y + v.y};
      }
      norm[at] = h;  // not normalised yet
      squares += h.x * h.x + h.y * h.y;
    }
    const float factor = rsqrtf(BlockSum(squares) / hidden + 1e-5f);
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
      const float2 w = reinterpret_cast<const float2*>(args.weight)[i], h = norm[row * pairs + i];
      norm[row * pairs + i] = {w.x * (h.x * factor), w.y * (h.y * factor)};
    }
  }
  if (threadIdx.x == 0) calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int pairs = static_cast<int>(args.hidden / 2);
  const int threads = pairs < kMaxThreads ? (pairs + 31) / 32 * 32 : kMaxThreads;
  const int blocks = static_cast<int>(args.rows < kMaxBlocks ? args.rows : kMaxBlocks);
  ScatterNorm<<<blocks, threads, 0, stream>>>(args);
}
