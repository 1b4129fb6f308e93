// By pulling: a block enters with its peers' blocks, reads queries of its head from all ranks and
// goes through the keys and values of all ranks in chunks of 32, in shared memory. A lane has a key
// for the score and two dimensions for the output. Outputs stay at home; a counter tells each rank
// when all blocks of all ranks are done, and it fetches the outputs of its rows. Who has entered
// the next call has fetched all, so outputs need one place only.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kWords = 32, kKeys = 32, kWarps = 4, kThreads = 32 * kWarps, kMaxBlocks = 64;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t entered[kMaxBlocks][kMaxRanks];
  alignas(16) std::uint32_t finished;  // blocks of all ranks, over all calls
};

__device__ float2 Two(std::uint32_t word) {
  return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)};
}

__device__ std::uint32_t Word(const __nv_bfloat16* rows, int row) {
  return reinterpret_cast<const std::uint32_t*>(rows)[row * kWords + threadIdx.x % 32];
}

__global__ void __launch_bounds__(kThreads) Ulysses(Args args) {
  __shared__ std::uint32_t queries[kWarps][kWords];
  __shared__ std::uint32_t keys[kKeys][kWords + 1], values[kKeys][kWords + 1];
  const int rank = args.rank, world = args.world, tokens = static_cast<int>(args.tokens);
  const int heads = static_cast<int>(args.heads), head = blockIdx.x % heads;
  const int block = blockIdx.x / heads, blocks = gridDim.x / heads, all = world * tokens;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[thread % world]);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  // The head of a position at its rank.
  const auto Row = [&](int position) {
    return position % tokens * world * heads + rank * heads + head;
  };
  if (thread < world) {
    StoreReleaseSys(&peer->entered[blockIdx.x][rank], call);
    WaitAcquireSys(&mine->entered[blockIdx.x][thread], call);
  }
  __syncthreads();
  for (int start = block * kWarps; start < all; start += blocks * kWarps) {
    const int position = min(start + warp, all - 1);
    __syncwarp();  // the query before has been read
    queries[warp][lane] = Word(args.q_peers[position / tokens], Row(position));
    float maximum = -1e30f, sum = 0;
    float2 output = {0, 0};
    for (int first = 0; first < all; first += kKeys) {
      const int count = min(kKeys, all - first);
      __syncthreads();
      for (int n = warp; n < count; n += kWarps) {
        const int source = (first + n) / tokens;
        keys[n][lane] = Word(args.k_peers[source], Row(first + n));
        values[n][lane] = Word(args.v_peers[source], Row(first + n));
      }
      __syncthreads();
      float score = -1e30f, highest = maximum;
      if (lane < count) {
        float dot = 0;
        for (int i = 0; i < kWords; ++i) {
          const float2 q = Two(queries[warp][i]), k = Two(keys[lane][i]);
          dot += q.x * k.x + q.y * k.y;
        }
        score = dot / 8;
      }
      highest = fmaxf(highest, score);
      for (int d = 16; d > 0; d /= 2) highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, d));
      const float fade = __expf(maximum - highest);
      const float weight = lane < count ? __expf(score - highest) : 0;
      float added = weight;
      for (int d = 16; d > 0; d /= 2) added += __shfl_xor_sync(~0u, added, d);
      sum = sum * fade + added;
      output = {output.x * fade, output.y * fade};
      for (int n = 0; n < count; ++n) {
        const float w = __shfl_sync(~0u, weight, n);
        const float2 v = Two(values[n][lane]);
        output = {output.x + w * v.x, output.y + w * v.y};
      }
      maximum = highest;
    }
    if (start + warp < all) {
      reinterpret_cast<float2*>(mine + 1)[(position * heads + head) * 32 + lane] = {output.x / sum,
                                                                                    output.y / sum};
    }
  }
  __syncthreads();
  if (thread < world) AddReleaseSys(&peer->finished, 1u);
  if (thread == 0) WaitAcquireSys(&mine->finished, call * world * gridDim.x);
  __syncthreads();
  for (int i = blockIdx.x * kThreads + thread; i < all * heads * 16; i += gridDim.x * kThreads) {
    const int row = i / 16 / (world * heads), h = i / 16 % (world * heads);
    const Control* from = reinterpret_cast<const Control*>(args.scratch_peers[h / heads]);
    const int at = ((rank * tokens + row) * heads + h % heads) * 16 + i % 16;
    reinterpret_cast<float4*>(args.out)[i] = reinterpret_cast<const float4*>(from + 1)[at];
  }
  if (thread == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int heads = static_cast<int>(args.heads), most = kMaxBlocks / heads;
  const int needed = static_cast<int>((args.world * args.tokens + kWarps - 1) / kWarps);
  Ulysses<<<heads*(needed < most ? needed : most), kThreads, 0, stream>>>(args);
}
