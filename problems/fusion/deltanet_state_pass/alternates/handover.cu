// A chain of short steps: each rank first finds what its tokens do to any state (U and M), then
// waits for the state S of the rank below, sends S M + U to the rank above, and corrects its
// results by S p at last. Two boxes for a state take turns; a reader acknowledges each.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kDim = 32, kMaxTokens = 64, kMaxHeads = 64;

struct Control {
  std::uint32_t calls[kMaxHeads], sent[kMaxHeads], taken[kMaxHeads];
};

__global__ void __launch_bounds__(2 * kDim) DeltaRule(Args args) {
  __shared__ std::uint32_t results[kMaxTokens][2 * kDim], m[kDim][kDim + 1];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int head = blockIdx.x, row = threadIdx.x, tokens = static_cast<int>(args.tokens);
  const std::uint32_t call = mine->calls[head] + 1;
  const auto Box = [&](int rank) {
    auto* boxes = reinterpret_cast<std::uint32_t*>(args.scratch_peers[rank] + sizeof(Control));
    return boxes + (call % 2 * gridDim.x + head) * kDim * kDim;
  };
  std::uint32_t s[kDim];  // the rows of U, then those of M
#pragma unroll
  for (int j = 0; j < kDim; ++j) s[j] = j == row - kDim;
  for (int t = 0; t < tokens; ++t) {
    const int n = head * tokens + t;
    const std::uint32_t factor = 2 * args.decay[n] + 1;
    const std::uint32_t value = row < kDim ? args.v[n * kDim + row] : 0;
    std::uint32_t read = 0, result = 0;
#pragma unroll
    for (int j = 0; j < kDim; ++j) read += s[j] * args.k[n * kDim + j];
    const std::uint32_t change = args.beta[n] * (value - factor * read);
#pragma unroll
    for (int j = 0; j < kDim; ++j) {
      s[j] = factor * s[j] + change * args.k[n * kDim + j];
      result += s[j] * args.q[n * kDim + j];
    }
    results[t][row] = result;
  }
  if (row >= kDim) {
#pragma unroll
    for (int j = 0; j < kDim; ++j) m[row - kDim][j] = s[j];
  }
  __syncthreads();
  if (row < kDim) {
    std::uint32_t before[kDim] = {};
    if (args.rank > 0) {
      WaitAcquireSys(&mine->sent[head], call);
#pragma unroll
      for (int i = 0; i < kDim; ++i) before[i] = Box(args.rank)[i * kDim + row];
      __syncwarp();
      Control* below = reinterpret_cast<Control*>(args.scratch_peers[args.rank - 1]);
      if (row == 0) StoreReleaseSys(&below->taken[head], call);
    }
#pragma unroll
    for (int j = 0; j < kDim; ++j) {
#pragma unroll
      for (int i = 0; i < kDim; ++i) s[j] += before[i] * m[i][j];
      args.state[(head * kDim + row) * kDim + j] = s[j];
    }
    if (args.rank + 1 < args.world) {
      if (call > 2) WaitAcquireSys(&mine->taken[head], call - 2);
#pragma unroll
      for (int j = 0; j < kDim; ++j) Box(args.rank + 1)[j * kDim + row] = s[j];
      __syncwarp();
      Control* above = reinterpret_cast<Control*>(args.scratch_peers[args.rank + 1]);
      if (row == 0) StoreReleaseSys(&above->sent[head], call);
    }
    for (int t = 0; t < tokens; ++t) {
      std::uint32_t result = results[t][row];
#pragma unroll
      for (int j = 0; j < kDim; ++j) result += before[j] * results[t][kDim + j];
      args.out[(head * tokens + t) * kDim + row] = result;
    }
  }
  if (row == 0) mine->calls[head] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  DeltaRule<<<args.heads, 2 * kDim, 0, stream>>>(args);
}
