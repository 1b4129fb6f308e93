// A chain without algebra: a warp per head waits for the state of the rank below, runs over its
// tokens with a row per thread, and hands the state on. There is one box for a state; who has read
// it says so, and the rank below waits for that before it writes the next one.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kDim = 32, kMaxHeads = 64;

struct Control {
  std::uint32_t calls[kMaxHeads], sent[kMaxHeads], taken[kMaxHeads];
};

__global__ void __launch_bounds__(kDim) DeltaRule(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int head = blockIdx.x, i = threadIdx.x, tokens = static_cast<int>(args.tokens);
  const std::uint32_t call = mine->calls[head] + 1;
  const auto Box = [&](int rank) {  // by column, so that lanes are next to each other
    auto* boxes = reinterpret_cast<std::uint32_t*>(args.scratch_peers[rank] + sizeof(Control));
    return boxes + head * kDim * kDim + i;
  };
  std::uint32_t s[kDim] = {};
  if (args.rank > 0) {
    WaitAcquireSys(&mine->sent[head], call);
#pragma unroll
    for (int j = 0; j < kDim; ++j) s[j] = Box(args.rank)[j * kDim];
    __syncwarp();
    Control* below = reinterpret_cast<Control*>(args.scratch_peers[args.rank - 1]);
    if (i == 0) StoreReleaseSys(&below->taken[head], call);
  }
  for (int t = 0; t < tokens; ++t) {
    const int n = head * tokens + t;
    const std::uint32_t factor = 2 * args.decay[n] + 1;
    std::uint32_t read = 0, result = 0, k[kDim], q[kDim];
#pragma unroll
    for (int j = 0; j < kDim; ++j) k[j] = args.k[n * kDim + j];
#pragma unroll
    for (int j = 0; j < kDim; ++j) q[j] = args.q[n * kDim + j];
#pragma unroll
    for (int j = 0; j < kDim; ++j) read += s[j] * k[j];
    const std::uint32_t change = args.beta[n] * (args.v[n * kDim + i] - factor * read);
#pragma unroll
    for (int j = 0; j < kDim; ++j) {
      s[j] = factor * s[j] + change * k[j];
      result += s[j] * q[j];
    }
    args.out[n * kDim + i] = result;
  }
  if (args.rank + 1 < args.world) {
    WaitAcquireSys(&mine->taken[head], call - 1);
#pragma unroll
    for (int j = 0; j < kDim; ++j) Box(args.rank + 1)[j * kDim] = s[j];
    __syncwarp();
    Control* above = reinterpret_cast<Control*>(args.scratch_peers[args.rank + 1]);
    if (i == 0) StoreReleaseSys(&above->sent[head], call);
  }
#pragma unroll
  for (int j = 0; j < kDim; ++j) args.state[(head * kDim + i) * kDim + j] = s[j];
  if (i == 0) mine->calls[head] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  DeltaRule<<<args.heads, kDim, 0, stream>>>(args);
}
