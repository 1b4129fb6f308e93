// Kernel by kernel: prefill ranks copy their cache to symmetric memory, all meet, decode ranks read
// what they need word by word, and all meet again.
#include <allranks/flags.h>
using namespace allranks;

struct Control {
  std::uint32_t meetings;
  std::uint32_t reached[kMaxRanks];
};
constexpr int kBlocks = 32, kThreads = 256, kData = 256;

__global__ void Stage(Args args) {
  const std::int64_t all = args.rank < args.from ? args.tokens * args.held * args.quads * 4 : 0;
  std::uint32_t* staged = reinterpret_cast<std::uint32_t*>(args.scratch + kData);
  const int first = blockIdx.x * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < all; i += kBlocks * kThreads) staged[i] = args.cache[i];
}

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

__global__ void Collect(Args args) {
  const std::int64_t decode = args.rank - args.from, words = 4 * args.quads;
  if (decode < 0 || decode >= args.to) return;
  const std::int64_t all = args.kept * args.tokens * words;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < all; i += kBlocks * kThreads) {
    const std::int64_t k = i / words / args.tokens, t = i / words % args.tokens;
    const std::int64_t slot = decode * args.kept + k;
    const std::int64_t head = slot * args.from * args.held / (args.to * args.kept);
    const std::uint8_t* scratch = args.scratch_peers[head / args.held];
    const std::uint32_t* staged = reinterpret_cast<const std::uint32_t*>(scratch + kData);
    args.out[i] = staged[(t * args.held + head % args.held) * words + i % words];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Stage<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Collect<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
