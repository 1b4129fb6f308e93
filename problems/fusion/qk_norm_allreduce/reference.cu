// A warp has a row, and no warp waits for another one of its device. Lane r sends the row's two
// sums of squares to rank r, in one packet of two words that both hold the number of the call: who
// finds the number has the sum. A warp sends the sums of all its rows before it waits for any.
//
// Packets are in two sets, used in turn. A rank leaves call k with packets of call k of every peer,
// so no peer still reads packets of call k - 1 when call k + 1 overwrites them.
#include <allranks/numbers.h>

constexpr int kMaxBlocks = 64, kMaxWarps = 2;
constexpr int kPackets = 4096;  // where they begin; before: a counter of calls per warp
using Vector = allranks::Pack<__nv_bfloat16>;

struct alignas(16) Packet {
  std::uint64_t q, k;  // in the upper half the number of the call, in the lower one a sum
};

__device__ void Send(Packet* to, Packet p) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(p.q), "l"(p.k)
               : "memory");  //@send
}

__device__ Packet Look(const Packet* packet) {
  Packet p;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(p.q), "=l"(p.k)
               : "l"(packet)
               : "memory");  //@look
  return p;
}

__device__ bool Here(Packet p, std::uint32_t call) {
  return p.q >> 32 == call && p.k >> 32 == call;
}

__device__ float Value(std::uint64_t word) {
  return __uint_as_float(static_cast<std::uint32_t>(word));
}

// Over 2 * `from` neighbouring lanes; all of them get it.
__device__ float Sum(float x, int from) {
  for (int d = from; d > 0; d /= 2) x += __shfl_xor_sync(~0u, x, d);
  return x;
}

// This lane's part of `count` vectors.
__device__ float Squares(const Vector* x, int count) {
  float sum = 0;
#pragma unroll 4
  for (int i = threadIdx.x % 32; i < count; i += 32) {
    const Vector v = x[i];
    for (int e = 0; e < Vector::kCount; ++e) sum += v[e] * v[e];
  }
  return sum;
}

__device__ void Scale(Vector* to, const Vector* x, const Vector* weight, int count, float factor) {
#pragma unroll 4
  for (int i = threadIdx.x % 32; i < count; i += 32) {
    const Vector v = x[i], w = weight[i];
    Vector y;
    for (int e = 0; e < Vector::kCount; ++e) y.Set(e, w[e] * (v[e] * factor));
    to[i] = y;
  }
}

__global__ void __launch_bounds__(32 * kMaxWarps) NormQk(Args args) {
  const int lane = threadIdx.x % 32;
  const int q_vectors = static_cast<int>(args.q_dim / Vector::kCount);
  const int k_vectors = static_cast<int>(args.k_dim / Vector::kCount);
  const int warp = threadIdx.x / 32 * gridDim.x + blockIdx.x, warps = blockDim.x / 32 * gridDim.x;
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch) + warp;
  const std::uint32_t call = *calls + 1;  //@epoch
  const std::int64_t set = (call & 1) * args.rows;
  const Vector* qkv = reinterpret_cast<const Vector*>(args.qkv);

  for (std::int64_t row = warp; row < args.rows; row += warps) {
    const Vector* q_in = qkv + row * (q_vectors + 2 * k_vectors);
    const Vector* k_in = q_in + q_vectors;
    const float q = Sum(Squares(q_in, q_vectors), 16), k = Sum(Squares(k_in, k_vectors), 16);
    if (lane < args.world) {
      const std::uint64_t epoch = std::uint64_t{call} << 32;
      Packet* to = reinterpret_cast<Packet*>(args.scratch_peers[lane] + kPackets);
      Send(&to[(set + row) * kMaxRanks + args.rank],
           {epoch | __float_as_uint(q), epoch | __float_as_uint(k)});  //@tell
    }
  }
  const Packet* packets = reinterpret_cast<const Packet*>(args.scratch + kPackets);
  for (std::int64_t row = warp; row < args.rows; row += warps) {
    const Packet* from = &packets[(set + row) * kMaxRanks + lane];
    Packet p = {0, 0};
    if (lane < args.world) {
      p = Look(from);
      while (!Here(p, call)) p = Look(from);  //@again
    }
    const float q_total = __shfl_sync(~0u, Sum(Value(p.q), kMaxRanks / 2), 0);
    const float k_total = __shfl_sync(~0u, Sum(Value(p.k), kMaxRanks / 2), 0);
    const Vector* in = qkv + row * (q_vectors + 2 * k_vectors);
    Scale(reinterpret_cast<Vector*>(args.q) + row * q_vectors, in,
          reinterpret_cast<const Vector*>(args.q_weight), q_vectors,
          rsqrtf(q_total / (args.world * args.q_dim) + 1e-5f));
    Scale(reinterpret_cast<Vector*>(args.k) + row * k_vectors, in + q_vectors,
          reinterpret_cast<const Vector*>(args.k_weight), k_vectors,
          rsqrtf(k_total / (args.world * args.k_dim) + 1e-5f));
  }
  __syncwarp();
  if (lane == 0) *calls = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t each = (args.rows + kMaxBlocks - 1) / kMaxBlocks;  // rows of a block
  const int blocks = static_cast<int>(args.rows < kMaxBlocks ? args.rows : kMaxBlocks);
  const int warps = static_cast<int>(each < kMaxWarps ? each : kMaxWarps);
  NormQk<<<blocks, 32 * warps, 0, stream>>>(args);
}
