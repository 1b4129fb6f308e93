#include <cstdint>

// One shot, without fences. A rank adds up those nodes of the tree that lie within its own
// micro-batches, at most two, and sends them to everybody; all ranks finish the tree by themselves.
// `parts` is a constant of the kernel, so that the shape of the tree is one, too.
//
// Two numbers travel as two words of 64 bits that each carry the number of the call: whoever sees
// that number in both has the data. There are two sets of slots. A rank enters call k + 2, which
// uses those of call k again, after it has all data of call k + 1 of every peer, which that peer
// sent after it had finished call k.
constexpr int kMaxBlocks = 32, kThreads = 64, kMaxNodes = 2, kLevels = 6;
constexpr int kData = 1024;  // behind the counters of calls, one per block

using Packet = ulonglong2;

__device__ void Send(Packet* to, float2 v, std::uint32_t call) {
  const std::uint64_t flag = std::uint64_t{call} << 32;
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to),
               "l"(flag | __float_as_uint(v.x)), "l"(flag | __float_as_uint(v.y))
               : "memory");  //@send
}

__device__ Packet Look(const Packet* from) {
  Packet p;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(p.x), "=l"(p.y)
               : "l"(from)
               : "memory");  //@look
  return p;
}

__device__ float2 Plus(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }

// Partial sums of a growing row of leaves: one per bit of `count`, the larger ones on the left.
struct Tree {
  float2 s[kLevels];
  std::uint32_t count = 0;
  __device__ void Push(float2 x, int level) {
    bool open = true;
#pragma unroll
    for (int l = 0; l < kLevels; ++l) {
      if (l < level || !open) continue;
      if (count >> l & 1) {
        x = Plus(s[l], x);
      } else {
        s[l] = x;
        open = false;
      }
    }
    count += 1u << level;
  }
  __device__ float2 Sum() const {
    float2 sum = {};
    bool any = false;
#pragma unroll
    for (int l = 0; l < kLevels; ++l) {
      if ((count >> l & 1) == 0) continue;
      sum = any ? Plus(s[l], sum) : s[l];
      any = true;
    }
    return sum;
  }
};

// The size of a rank's node, as a power of two. Three leaves make two nodes: a pair begins at an
// even leaf, which is the first one of even ranks and the second one of odd ranks.
__device__ constexpr int Level(int parts, int rank, int node) {
  return parts == 3 ? (rank + node + 1) % 2 : parts / 2;
}

__device__ Packet* Slot(const Args& args, int at, std::uint32_t call, int from, int node) {
  const int pairs = (static_cast<int>(args.n) + 1) / 2;
  return reinterpret_cast<Packet*>(args.scratch_peers[at] + kData) +
         (call % 2 * kMaxRanks * kMaxNodes + from * kMaxNodes + node) * pairs;
}

template <int kParts>
__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  constexpr int kNodes = kParts == 3 ? 2 : 1;
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t call = calls[blockIdx.x] + 1;  //@epoch
  const int n = static_cast<int>(args.n), rank = args.rank, world = args.world;
  const int pairs = (n + 1) / 2;  // the last may be half a one
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < pairs; i += gridDim.x * kThreads) {
    float2 x[4] = {};
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      const float* row = args.in + std::int64_t{p} * n + 2 * i;
      x[p] = {row[0], 2 * i + 1 < n ? row[1] : 0};
    }
    float2 nodes[kMaxNodes] = {x[0], x[2]};
    if (kParts == 3 && Level(kParts, rank, 0) == 0) {
      nodes[1] = Plus(x[1], x[2]);
    } else if (kParts > 1) {
      nodes[0] = Plus(x[0], x[1]);
    }
    if (kParts == 4) nodes[0] = Plus(nodes[0], Plus(x[2], x[3]));
    for (int step = 1; step <= world; ++step) {
      const int to = (rank + step) % world;
#pragma unroll
      for (int node = 0; node < kNodes; ++node) {
        Send(Slot(args, to, call, rank, node) + i, nodes[node], call);  //@publish
      }
    }
    Packet p[kMaxRanks][kMaxNodes];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {  // all on their way before the first is needed
#pragma unroll
      for (int node = 0; node < kNodes; ++node) {
        if (r < world) p[r][node] = Look(Slot(args, rank, call, r, node) + i);
      }
    }
    Tree tree;
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= world) break;
#pragma unroll
      for (int node = 0; node < kNodes; ++node) {
        while (p[r][node].x >> 32 != call || p[r][node].y >> 32 != call) {  //@wait
          p[r][node] = Look(Slot(args, rank, call, r, node) + i);
        }
        tree.Push({__uint_as_float(p[r][node].x), __uint_as_float(p[r][node].y)},
                  Level(kParts, r, node));
      }
    }
    const float2 sum = tree.Sum();
    args.out[2 * i] = sum.x;
    if (2 * i + 1 < n) args.out[2 * i + 1] = sum.y;
  }
  __syncthreads();
  if (threadIdx.x == 0) calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  constexpr void (*kKernels[])(Args) = {AllReduce<1>, AllReduce<2>, AllReduce<3>, AllReduce<4>};
  const int needed = static_cast<int>((args.n + 2 * kThreads - 1) / (2 * kThreads));
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  kKernels[args.parts - 1]<<<blocks, kThreads, 0, stream>>>(args);
}
