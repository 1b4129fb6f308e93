// Up to 64 KB one shot: everybody gets every input and adds up. Up to 512 KB two shots: a rank gets
// its slice of every input, and sends the sums to all. In both a word of zero bits means "not there
// yet", so +0 travels as -0. A thread has one vector of each slice. Three sets of slots take turns:
// call k clears the set of call k - 1, into which peers write again in call k + 2, when they have
// this rank's words of call k + 1.
//
// Above, two shots with flags, for which there is room: inputs are pushed to their owners' slots,
// sums into the outputs, which are open once their owner has sent its input. Slots exist once:
// nobody enters the next call before all owners have told that they have read theirs.
#include <allranks/flags.h>
using namespace allranks;
constexpr int kMaxBlocks = 64, kThreads = 512, kOneShot = 1 << 14, kTwoShots = 1 << 17;

struct alignas(16) Control {
  std::uint32_t calls[kMaxBlocks];                 // that this block has completed
  std::uint32_t scattered[kMaxBlocks][kMaxRanks];  // by peer: the last call whose input is here
  std::uint32_t gathered[kMaxBlocks][kMaxRanks];   // by peer: the last call whose sums are here
};

__device__ void Send(float4* to, float4 v) {
  asm volatile("st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(v.x), "f"(v.y),
               "f"(v.z), "f"(v.w)
               : "memory");  //@send
}
__device__ float4 Look(const float4* from) {
  float4 v;
  asm volatile("ld.relaxed.sys.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from)
               : "memory");  //@look
  return v;
}
__device__ bool Absent(float x) { return __float_as_uint(x) == 0; }
__device__ float Present(float x) { return Absent(x) ? -0.0f : x; }
__device__ bool Absent(float4 v) {  // each word says for itself whether it is here
  return Absent(v.x) || Absent(v.y) || Absent(v.z) || Absent(v.w);
}
__device__ float4 Present(float4 v) {
  return {Present(v.x), Present(v.y), Present(v.z), Present(v.w)};
}
__device__ bool Other(const Args& args, int r) { return r < args.world && r != args.rank; }

// Waits for a vector of each other rank; slots of ranks are `stride` apart.
__device__ void Receive(float4 (&v)[kMaxRanks], const float4* slots, int stride, const Args& args) {
#pragma unroll
  for (int r = 0; r < kMaxRanks; ++r) {  // all loads are on their way before one is looked at
    if (Other(args, r)) v[r] = Look(slots + r * stride);
  }
#pragma unroll
  for (int r = 0; r < kMaxRanks; ++r) {
    while (Other(args, r) && Absent(v[r])) v[r] = Look(slots + r * stride);  //@wait
  }
}

__device__ float4 Sum(const float4 (&v)[kMaxRanks], float4 own, const Args& args) {
  float4 sum = {0, 0, 0, 0};
#pragma unroll
  for (int r = 0; r < kMaxRanks; ++r) {
    if (r >= args.world) break;  //@ranks
    const float4 x = r == args.rank ? own : v[r];
    sum = {sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w};
  }
  return sum;
}

// Vector `at`; elements from n on are zero.
__device__ float4 Load(const Args& args, int at) {
  const float* in = args.in + 4 * at;
  const int left = static_cast<int>(args.n) - 4 * at;
  if (left >= 4) return *reinterpret_cast<const float4*>(in);
  return {left > 0 ? in[0] : 0, left > 1 ? in[1] : 0, left > 2 ? in[2] : 0, 0};
}
__device__ void Store(float* out, int n, int at, float4 v) {
  const int left = n - 4 * at;
  if (left >= 4) *reinterpret_cast<float4*>(out + 4 * at) = v;
  if (left >= 4) return;
  if (left > 0) out[4 * at] = v.x;
  if (left > 1) out[4 * at + 1] = v.y;
  if (left > 2) out[4 * at + 2] = v.z;  //@last
}

__device__ int Turn(const Args& args, int step) {
  return args.rank + step < args.world ? args.rank + step : args.rank + step - args.world;
}

// Vectors by rank, each `slice` long; with one shot a slice is all there is, and everybody owns it.
template <bool kTwo>
__global__ void __launch_bounds__(256) ByWords(Args args, int slice) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int all = args.world * slice, i = blockIdx.x * blockDim.x + threadIdx.x;
  const int shots = kTwo ? 2 : 1, own = kTwo ? args.rank * slice + i : i;
  const auto set = [&](int r, std::uint32_t call) {
    return reinterpret_cast<float4*>(args.scratch_peers[r] + sizeof(Control)) +
           call % 3 * shots * all;
  };
  if (i < slice) {
    const float4 my = Present(Load(args, own));
    for (int step = 1; step < args.world; ++step) {
      const int r = Turn(args, step);
      Send(set(r, call) + args.rank * slice + i, kTwo ? Present(Load(args, r * slice + i)) : my);
    }
    float4* used = set(args.rank, call + 2);
    for (int k = i; k < shots * all; k += slice) Send(used + k, {0, 0, 0, 0});  //@clear
    float4 v[kMaxRanks];
    Receive(v, set(args.rank, call) + i, slice, args);
    const float4 sum = Present(Sum(v, my, args));
    Store(args.out, args.n, own, sum);
    if (kTwo) {
      for (int step = 1; step < args.world; ++step) {
        Send(set(Turn(args, step), call) + all + own, sum);
      }
      Receive(v, set(args.rank, call) + all + i, slice, args);
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {
        if (Other(args, r)) Store(args.out, args.n, r * slice + i, v[r]);
      }
    }
  }
  __syncthreads();                                       //@all_have_read
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

__global__ void __launch_bounds__(kThreads) ByFlags(Args args, int slice) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x % args.world]);
  const int block = blockIdx.x, thread = threadIdx.x, stride = gridDim.x * blockDim.x;
  const std::uint32_t call = mine->calls[block] + 1;
  for (int i = block * blockDim.x + thread; i < slice; i += stride) {
    float4 v[kMaxRanks];
#pragma unroll
    for (int step = 1; step < kMaxRanks; ++step) {
      if (step < args.world) v[step] = Load(args, Turn(args, step) * slice + i);
    }
#pragma unroll
    for (int step = 1; step < kMaxRanks; ++step) {
      if (step >= args.world) break;
      std::uint8_t* slots = args.scratch_peers[Turn(args, step)] + sizeof(Control);
      reinterpret_cast<float4*>(slots)[args.rank * slice + i] = v[step];
    }
  }
  __syncthreads();  //@scattered
  if (thread < args.world) {
    StoreReleaseSys(&peer->scattered[block][args.rank], call);  //@tell_scattered
    WaitAcquireSys(&mine->scattered[block][thread], call);      //@wait_scattered
  }
  __syncthreads();  //@after_scattered
  const float4* slots = reinterpret_cast<const float4*>(args.scratch + sizeof(Control));
  for (int i = block * blockDim.x + thread; i < slice; i += stride) {
    float4 v[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (Other(args, r)) v[r] = slots[r * slice + i];
    }
    const float4 sum = Sum(v, Load(args, args.rank * slice + i), args);
    for (int step = 0; step < args.world; ++step) {
      Store(args.out_peers[Turn(args, step)], args.n, args.rank * slice + i, sum);
    }
  }
  __syncthreads();
  if (thread < args.world) {
    StoreReleaseSys(&peer->gathered[block][args.rank], call);
    WaitAcquireSys(&mine->gathered[block][thread], call);      //@wait_gathered
  }
  if (thread == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int vectors = static_cast<int>((args.n + 3) / 4);
  const int slice = args.n <= kOneShot ? vectors : (vectors + args.world - 1) / args.world;
  const auto kernel = args.n <= kOneShot    ? ByWords<false>
                      : args.n <= kTwoShots ? ByWords<true>
                                            : ByFlags;
  const int threads = slice <= 128 * kMaxBlocks ? 128 : slice <= 256 * kMaxBlocks ? 256 : kThreads;
  const int needed = (slice + threads - 1) / threads;
  kernel<<<needed < kMaxBlocks ? needed : kMaxBlocks, threads, 0, stream>>>(args, slice);
}
