// Step by step: a kernel multiplies, into this rank's own output; all meet; a kernel copies the own
// logits to all peers; all meet again, so that nobody leaves before everything has come.
#include <allranks/flags.h>
#include <allranks/numbers.h>

using namespace allranks;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncwarp();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Multiply(Args args) {
  const auto* hidden = reinterpret_cast<const std::uint16_t*>(args.hidden);
  const auto* weight = reinterpret_cast<const std::uint16_t*>(args.weight);
  for (std::int64_t i = blockIdx.x; i < args.rows * args.vocab; i += gridDim.x) {
    const std::int64_t row = i / args.vocab, word = i % args.vocab;
    float sum = 0;
    for (std::int64_t k = threadIdx.x; k < args.depth; k += 32) {
      sum += Number<__half>::ToFloat(hidden[row * args.depth + k]) *
             Number<__half>::ToFloat(weight[word * args.depth + k]);
    }
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x == 0) args.logits[(row * args.world + args.rank) * args.vocab + word] = sum;
  }
}

__global__ void Push(Args args) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.rows * args.vocab;
       i += gridDim.x * blockDim.x) {
    const std::int64_t at = (i / args.vocab * args.world + args.rank) * args.vocab + i % args.vocab;
    for (int r = 0; r < args.world; ++r) {
      if (r != args.rank) args.logits_peers[r][at] = args.logits[at];
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Multiply<<<64, 32, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Push<<<32, 128, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
