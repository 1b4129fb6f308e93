// A block of threads for each batch of 64 samples, which takes it through the whole step. Four more
// send this rank's weights to everybody and, at the end, add up the gradients of its shard and make
// the optimizer's step. Weights of the second layer are looked at when the first layer has been
// computed. Then the block splits: one half makes the gradients of the second layer and sends them to
// their owners, the other one goes on backwards.
//
// There are no flags: a word of zero bits means "not here yet", so zeros travel as -0. There are
// three sets of slots, for calls by turns. In call k a rank clears the set of call k - 1, which its
// kernel of that call has used up. No peer writes there before call k + 2, and it gets there only
// with the gradients of this rank's call k + 1, whose kernel begins when that of call k has ended.
#include <allranks/numbers.h>

constexpr int kThreads = 512, kGroup = 256, kHelpers = 4, kSets = 3, kData = 1024;
constexpr int kPatience = 48;    // looks without a pause
constexpr int kVectors = 1024;  // of eight weights: 512 of each layer
constexpr float kRate = 0.125f, kDecay = 0.03125f, kEpsilon = 0x1p-10f;
using Half = std::uint16_t;
using Matrix = Half[64][72];  // 64 columns; longer rows lie in different banks

// Updates m and v, and returns the new parameter.
__device__ float Adam(float p, float g, float& m, float& v) {
  m = 0.875f * m + 0.125f * g, v = 0.984375f * fabsf(v) + 0.015625f * g * g;
  return p - kRate * (m / (sqrtf(v) + kEpsilon) + kDecay * p);
}

__device__ std::uint32_t Present(std::uint32_t word, std::uint32_t zero) {
  return word == 0 ? zero : word;
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
               : "memory");  //@look
  return v;
}
__device__ bool Absent(uint4 v) { return v.x == 0 || v.y == 0 || v.z == 0 || v.w == 0; }
// Between looks. Who has looked for long leaves the memory to others.
__device__ void Pause(int& looks) {
  if (++looks > kPatience) __nanosleep(1000);
}
// What has been looked at, or will be there.
__device__ uint4 Receive(const uint4* from, uint4 v) {
  int looks = 0;
  while (Absent(v)) {  //@arrived
    Pause(looks);
    v = Look(from);
  }
  return v;
}

__device__ std::uint32_t Pair(float first, float second) {
  std::uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

template <bool kTransposed>
__device__ void LoadFour(std::uint32_t (&to)[4], const Half* row) {
  const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
  }
}
__device__ void Mma(float (&sum)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                    std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Each of a group's eight warps has 16 rows and 32 columns of a product of 64 x 64. Lanes have pairs of
// columns in rows Row() and Row() + 8; four quarters of eight columns.
using Part = float[4][4];
__device__ int Row() { return threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4; }
__device__ int Column(int n) { return threadIdx.x / 128 % 2 * 32 + n * 8 + threadIdx.x % 4 * 2; }

// The product of `a`, rows along the depth, and `b`, columns along the depth; kRows* says that the
// depth runs from row to row instead. Without kRowsB columns are dealt out so that a lane has four
// in a row: those of quarters 2j and 2j + 1 begin at Column4(j).
__device__ int Column4(int j) { return threadIdx.x / 128 % 2 * 32 + j * 16 + threadIdx.x % 4 * 4; }
template <bool kRowsA, bool kRowsB>
__device__ void Multiply(Part& to, const Matrix& a, const Matrix& b) {
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16;
  const int column = threadIdx.x / 128 % 2 * 32, of8 = lane % 8, odd = lane / 8 % 2, high = lane / 16;
  for (auto& quarter : to) quarter[0] = quarter[1] = quarter[2] = quarter[3] = 0;
  std::uint32_t left[4][4], right[4][2][4];
#pragma unroll
  for (int q = 0; q < 4; ++q) {  // all on their way before the first product
    const int k = q * 16;
    LoadFour<kRowsA>(left[q], kRowsA ? &a[k + high * 8 + of8][row + odd * 8]
                                     : &a[row + odd * 8 + of8][k + high * 8]);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int at = column + j * 16;
      LoadFour<kRowsB>(right[q][j], kRowsB
                                        ? &b[k + odd * 8 + of8][at + high * 8]
                                        : &b[at + of8 / 2 * 4 + high * 2 + of8 % 2][k + odd * 8]);
    }
  }
#pragma unroll
  for (int q = 0; q < 4; ++q) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      Mma(to[n], left[q], right[q][n / 2][n % 2 * 2], right[q][n / 2][n % 2 * 2 + 1]);
    }
  }
}

// What all blocks know about the sets of slots. A set has all weights, then this shard's gradients of
// all batches: two vectors for eight weights.
struct Plan {
  int shard, begin, size, now, used;  // shards in vectors of eight weights
  __device__ Plan(const Args& args, std::uint32_t call) {
    shard = (kVectors + args.world - 1) / args.world, begin = args.rank * shard;
    size = kVectors + args.world * static_cast<int>(args.batches) * shard * 2;
    now = call % kSets * size, used = (call + 2) % kSets * size;
  }
};
__device__ uint4* Slots(const Args& args, int rank) {
  return reinterpret_cast<uint4*>(args.scratch_peers[rank] + kData);
}

__device__ void Help(const Args& args, const Plan& plan) {
  const int world = args.world, batches = args.batches, shard = plan.shard;
  const int start = threadIdx.x * kHelpers + blockIdx.x - batches, stride = kHelpers * kThreads;
  for (int i = start; i < shard * world; i += stride) {
    const int own = i % shard, peer = (args.rank + i / shard) % world;
    if (plan.begin + own >= kVectors) continue;
    const float4* from = reinterpret_cast<const float4*>(args.param) + 2 * own;
    const float4 low = from[0], high = from[1];
    const auto pair = [](float a, float b) { return Present(Pair(a, b), 0x80008000); };
    Send(Slots(args, peer) + plan.now + plan.begin + own,
         {pair(low.x, low.y), pair(low.z, low.w), pair(high.x, high.y), pair(high.z, high.w)});
  }
  for (int i = start; i < plan.size; i += stride) {
    Send(Slots(args, args.rank) + plan.used + i, {0, 0, 0, 0});  //@clear
  }
  for (int i = start; i < 2 * shard && 2 * plan.begin + i < 2 * kVectors; i += stride) {
    const float4 p = reinterpret_cast<const float4*>(args.param)[i];
    float4 m = reinterpret_cast<const float4*>(args.m)[i];
    float4 v = reinterpret_cast<const float4*>(args.v)[i], g = {0, 0, 0, 0};
    const uint4* grads = Slots(args, args.rank) + plan.now + kVectors + i;
    Receive(grads, {});  // before that there is no use in looking at all others
    for (int first = 0; first < world * batches; first += kMaxRanks) {
      uint4 words[kMaxRanks];
      bool absent = true;
      int looks = 0;
      while (absent) {  //@all
        absent = false;
        Pause(looks);
#pragma unroll
        for (int s = 0; s < kMaxRanks; ++s) {  // all on their way before one is looked at
          if (first + s < world * batches) words[s] = Look(grads + (first + s) * 2 * shard);
        }
#pragma unroll
        for (int s = 0; s < kMaxRanks; ++s) absent |= first + s < world * batches && Absent(words[s]);
      }
#pragma unroll
      for (int s = 0; s < kMaxRanks; ++s) {
        if (first + s >= world * batches) break;  //@batches
        g = {g.x + __uint_as_float(words[s].x), g.y + __uint_as_float(words[s].y),
             g.z + __uint_as_float(words[s].z), g.w + __uint_as_float(words[s].w)};
      }
    }
    reinterpret_cast<float4*>(args.new_param)[i] = {
        Adam(p.x, g.x, m.x, v.x), Adam(p.y, g.y, m.y, v.y), Adam(p.z, g.z, m.z, v.z),
        Adam(p.w, g.w, m.w, v.w)};
    reinterpret_cast<float4*>(args.new_m)[i] = m;
    reinterpret_cast<float4*>(args.new_v)[i] = v;
  }
}

// This batch's part of a gradient, to the owners of its weights.
__device__ void Scatter(const Args& args, const Plan& plan, int layer, const Part& part) {
  const int source = args.rank * static_cast<int>(args.batches) + blockIdx.x;
  const auto word = [](float x) { return Present(__float_as_uint(x), 0x80000000); };
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int j = i / 2, r = i % 2 * 2;
    const int at = (layer * 64 + Row() + r * 4) * 16 + Column4(j) / 4;
    const int owner = at / (2 * plan.shard), place = source * 2 * plan.shard + at % (2 * plan.shard);
    Send(Slots(args, owner) + plan.now + kVectors + place,
         {word(part[2 * j][r]), word(part[2 * j][r + 1]), word(part[2 * j + 1][r]),
          word(part[2 * j + 1][r + 1])});
  }
}

// Pairs of halves, each made of two elements of a part.
template <class F>
__device__ void Put(Matrix& to, F f) {
#pragma unroll
  for (int n = 0; n < 4; ++n) {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      *reinterpret_cast<std::uint32_t*>(&to[Row() + 4 * i][Column(n)]) = Pair(f(n, i), f(n, i + 1));
    }
  }
}

__device__ void Train(const Args& args, const Plan& plan) {
  __shared__ alignas(16) Matrix inputs, first, second, hidden, errors;
  const int thread = threadIdx.x;
  const bool leads = thread < kGroup;
  const auto put = [&](Matrix& to, uint4 v) {
    *reinterpret_cast<uint4*>(&to[thread / 8][thread % 8 * 8]) = v;
  };
  const uint4 x = reinterpret_cast<const uint4*>(args.x)[blockIdx.x * 512 + thread];
  const auto* target = reinterpret_cast<const std::uint32_t*>(args.target) + blockIdx.x * 2048;
  std::uint32_t targets[4][2];  // of this lane's pairs of samples
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    for (int i = 0; i < 2; ++i) targets[n][i] = target[((Row() + 8 * i) * 64 + Column(n)) / 2];
  }
  put(inputs, x);
  const uint4 *weights = Slots(args, args.rank) + plan.now + thread, *of_second = weights + 512;
  put(first, Receive(weights, {}));
  const uint4 ahead = Look(of_second);
  __syncthreads();  //@first

  Part z, part;
  if (leads) {
    Multiply<false, true>(z, first, inputs);
    Put(hidden, [&](int n, int i) { return fmaxf(z[n][i], 0); });
  }
  put(second, Receive(of_second, ahead));
  __syncthreads();  //@hidden
  if (leads) {
    Multiply<false, true>(part, second, hidden);
    Put(errors, [&](int n, int i) {
      const auto bits = static_cast<Half>(targets[n][i / 2] >> 16 * (i % 2));
      const float y = part[n][i], t = allranks::Number<__half>::ToFloat(bits);
      return static_cast<float>((y > t) - (y < t));
    });
  }
  __syncthreads();  //@errors
  if (!leads) {
    Multiply<false, false>(part, errors, hidden);
    Scatter(args, plan, 1, part);
    return;
  }
  Multiply<true, true>(part, second, errors);
  // In place of the first layer's weights, which have been used.
  Put(first, [&](int n, int i) { return z[n][i] > 0 ? part[n][i] : 0; });
  asm volatile("barrier.sync 1, %0;" ::"n"(kGroup) : "memory");  //@deltas
  Multiply<false, false>(part, first, inputs);
  Scatter(args, plan, 0, part);
}

__global__ void __launch_bounds__(kThreads) Step(Args args) {
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);  // own: completed
  const std::uint32_t call = calls[blockIdx.x] + 1;
  const Plan plan(args, call);
  __syncthreads();
  if (threadIdx.x == 0) calls[blockIdx.x] = call;  //@advance
  if (blockIdx.x < args.batches) {
    Train(args, plan);
  } else {
    Help(args, plan);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Step<<<static_cast<int>(args.batches) + kHelpers, kThreads, 0, stream>>>(args);
}
