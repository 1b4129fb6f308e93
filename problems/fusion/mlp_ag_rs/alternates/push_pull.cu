// The other way round: rows are pushed to all ranks at once, without waiting for anybody, and
// partial sums stay at home until the owner of their rows reads them. Rows and partial sums exist
// twice, by turns. A block begins when the rows of all blocks of all ranks have come, so in call
// k + 1 it knows that call k has ended everywhere, and call k + 2 may overwrite what call k left.
#include <allranks/flags.h>
#include <allranks/numbers.h>
#include <allranks/tile_mma.h>

using namespace allranks;

constexpr int kBlocks = 8, kThreads = 128, kFloats = 64 * 32;
using Half = std::uint16_t;

struct Control {
  std::uint32_t calls[kBlocks];
  std::uint32_t pushed[kBlocks][kMaxRanks];
  std::uint32_t ready[8][kMaxRanks];  // by own tile and rank
};

__global__ void __launch_bounds__(kThreads) Mlp(Args args) {
  __shared__ TileStage stage;
  __shared__ alignas(16) float gates[kFloats], ups[kFloats];
  TileProduct product(stage);
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t k = args.depth * 64, f = args.inner * 64, tasks = args.world * args.tiles;
  const std::int64_t size = args.tiles * args.depth * 512,
                     before = 8192 + kBlocks * 8192 * args.inner;
  Half* hidden = reinterpret_cast<Half*>(args.scratch + 8192) + blockIdx.x * 4096 * args.inner;
  const auto Rows = [&](int at) {
    return reinterpret_cast<uint4*>(args.scratch_peers[at] + before) + call % 2 * args.world * size;
  };
  const auto Parts = [&](int at) {
    return reinterpret_cast<float*>(args.scratch_peers[at] + before + 32 * args.world * size) +
           call % 2 * tasks * args.cols * kFloats;
  };
  for (std::int64_t n = blockIdx.x * kThreads + threadIdx.x; n < size; n += kBlocks * kThreads) {
    const uint4 v = reinterpret_cast<const uint4*>(args.x)[n];
    for (int to = 0; to < args.world; ++to) Rows(to)[args.rank * size + n] = v;
  }
  __syncthreads();
  const int peer = threadIdx.x % kMaxRanks;
  if (threadIdx.x < args.world) {
    Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[peer]);
    StoreReleaseSys(&theirs->pushed[blockIdx.x][args.rank], call);
  }
  if (threadIdx.x < kBlocks * kMaxRanks && peer < args.world) {
    WaitAcquireSys(&mine->pushed[threadIdx.x / kMaxRanks][peer], call);
  }
  __syncthreads();
  for (std::int64_t i = blockIdx.x; i < tasks; i += kBlocks) {
    const int owner = static_cast<int>((args.rank + 1 + i / args.tiles) % args.world);
    const std::int64_t tile = owner * args.tiles + i % args.tiles;
    const uint4* rows = Rows(args.rank) + tile * 512 * args.depth;
    for (std::int64_t j = 0; j < f; j += 32) {
      product.Clear();
      product.Add(rows, k, reinterpret_cast<const Half*>(args.gate) + j * k, k, k);
      product.Store(gates, 32);
      product.Clear();
      product.Add(rows, k, reinterpret_cast<const Half*>(args.up) + j * k, k, k);
      product.Store(ups, 32);
      __syncthreads();
      for (int n = threadIdx.x; n < kFloats; n += kThreads) {
        const float g = gates[n] / 8, u = ups[n] / 8;
        hidden[n / 32 * f + j + n % 32] = Number<__half>::FromFloat(g / (1 + __expf(-g)) * u);
      }
      __syncthreads();
    }
    for (std::int64_t c = 0; c < args.cols; ++c) {
      product.Clear();
      product.Add(hidden, f, reinterpret_cast<const Half*>(args.down) + c * 32 * f, f, f);
      product.Store(Parts(args.rank) + (tile * args.cols + c) * kFloats, 32);
    }
    __syncthreads();
    Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[owner]);
    if (threadIdx.x == 0) StoreReleaseSys(&theirs->ready[i % args.tiles][args.rank], call);
  }
  for (std::int64_t i = blockIdx.x; i < args.tiles * args.cols; i += kBlocks) {
    const std::int64_t t = i / args.cols, c = i % args.cols;
    if (threadIdx.x < args.world) WaitAcquireSys(&mine->ready[t][threadIdx.x], call);
    __syncthreads();
    for (int n = threadIdx.x; n < kFloats; n += kThreads) {
      float sum = 0;
      for (int r = 0; r < args.world; ++r) {
        sum += Parts(r)[(args.rank * args.tiles * args.cols + i) * kFloats + n];
      }
      args.y[(t * 64 + n / 32) * args.cols * 32 + c * 32 + n % 32] = sum;
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Mlp<<<kBlocks, kThreads, 0, stream>>>(args);
}
