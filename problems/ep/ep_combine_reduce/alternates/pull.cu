// By reading: once all ranks are inside the call, every block finds out from the peers' `to` which
// rows belong to its own tokens, and fetches its columns of them. Nobody leaves before all have
// read.
#include <allranks/flags.h>
#include <allranks/numbers.h>

using namespace allranks;

constexpr int kBlocks = 16, kThreads = 256, kMaxTokens = 1024;

struct Control {
  std::uint32_t calls[kBlocks];
  std::uint32_t entered[kBlocks][kMaxRanks];  // by peer: the last call that it has entered
  std::uint32_t read[kBlocks][kMaxRanks];     // by peer: the last call in which it has read
};

__device__ void Exchange(const Args& args, std::size_t board, std::uint32_t call) {
  if (threadIdx.x < args.world) {
    const std::size_t flags = board + blockIdx.x * kMaxRanks * 4;
    auto* theirs = reinterpret_cast<std::uint32_t*>(args.scratch_peers[threadIdx.x] + flags);
    StoreReleaseSys(theirs + args.rank, call);
    WaitAcquireSys(reinterpret_cast<std::uint32_t*>(args.scratch + flags) + threadIdx.x, call);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) CombineReduce(Args args) {
  __shared__ std::int16_t row_of[kMaxTokens][kMaxRanks];  // of a token at a source, or -1
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int world = args.world, tokens = static_cast<int>(args.tokens);
  const int rows = static_cast<int>(args.rows), vectors = static_cast<int>(args.hidden / 8);
  const int slice = (vectors + kBlocks - 1) / kBlocks, first = blockIdx.x * slice;
  const int width = max(0, min(slice, vectors - first));
  for (int i = threadIdx.x; i < tokens * kMaxRanks; i += kThreads) {
    row_of[i / kMaxRanks][i % kMaxRanks] = -1;
  }
  Exchange(args, offsetof(Control, entered), call);
  for (int n = threadIdx.x; n < world * rows; n += kThreads) {
    const int source = n / rows, i = n % rows;
    const int token = args.to_peers[source][i] - args.rank * tokens;
    if (token >= 0 && token < tokens) row_of[token][source] = static_cast<std::int16_t>(i);
  }
  __syncthreads();
  for (int n = threadIdx.x; n < tokens * width; n += kThreads) {
    const int token = n / width, at = first + n % width;
    Pack<__nv_bfloat16> answers[kMaxRanks], result;
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      const int i = row_of[token][r];
      if (i < 0) continue;
      answers[r] = reinterpret_cast<const Pack<__nv_bfloat16>*>(args.y_peers[r])[i * vectors + at];
    }
    float sum[8] = {};
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (row_of[token][r] < 0) continue;
      const float weight = args.weights[token * world + r];
      for (int j = 0; j < 8; ++j) sum[j] = fmaf(weight, answers[r][j], sum[j]);
    }
    for (int j = 0; j < 8; ++j) result.Set(j, sum[j]);
    reinterpret_cast<Pack<__nv_bfloat16>*>(args.out)[token * vectors + at] = result;
  }
  __syncthreads();
  Exchange(args, offsetof(Control, read), call);
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  CombineReduce<<<kBlocks, kThreads, 0, stream>>>(args);
}
