// One flag per block and peer: block b pushes what it has to say of its rows, tells all peers, and
// goes on when all have told. Exponentials are summed relative to a running maximum. Two sets, used
// in turn: a rank that tells of call k + 1 has read what was said in call k, and nobody overwrites
// it before it has told so.
#include <allranks/flags.h>

constexpr int kMaxBlocks = 64;  // of one warp

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t told[kMaxBlocks][kMaxRanks];
};
struct Said {
  float most, sum, chosen;
};

// The sum of both, relative to the larger maximum.
__device__ void Join(Said& a, float most, float sum) {
  const float larger = fmaxf(a.most, most);
  if (larger == -INFINITY) return;
  a.sum = a.sum * __expf(a.most - larger) + sum * __expf(most - larger);
  a.most = larger;
}

__global__ void CrossEntropy(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t set = (call & 1) * args.rows;
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const float* x = args.logits + row * args.vocab;
    Said said = {-INFINITY, 0, x[args.label[row]]};
    for (int j = threadIdx.x; j < args.vocab; j += 32) Join(said, x[j], 1);
    for (int d = 16; d > 0; d /= 2) {
      const float most = __shfl_xor_sync(~0u, said.most, d);
      Join(said, most, __shfl_xor_sync(~0u, said.sum, d));
    }
    if (threadIdx.x < args.world) {
      Said* to = reinterpret_cast<Said*>(args.scratch_peers[threadIdx.x] + sizeof(Control));
      to[(set + row) * kMaxRanks + args.rank] = said;
    }
  }
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->told[blockIdx.x][args.rank], call);
    allranks::WaitAcquireSys(&mine->told[blockIdx.x][threadIdx.x], call);
  }
  __syncwarp();
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const Said* from = reinterpret_cast<Said*>(args.scratch + sizeof(Control));
    Said all = {-INFINITY, 0, 0};
    for (int r = 0; r < args.world; ++r) {
      const Said said = from[(set + row) * kMaxRanks + r];
      Join(all, said.most, said.sum);
      all.chosen += said.chosen / args.world;
    }
    const float lse = all.most + __logf(all.sum);
    for (int j = threadIdx.x; j < args.vocab; j += 32) {
      const float target = j == args.label[row] ? 1.0f / args.world : 0;
      args.grad[row * args.vocab + j] = __expf(args.logits[row * args.vocab + j] - lse) - target;
    }
    if (threadIdx.x == 0) args.loss[row] = lse - all.chosen;
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int blocks = static_cast<int>(args.rows < kMaxBlocks ? args.rows : kMaxBlocks);
  CrossEntropy<<<blocks, 32, 0, stream>>>(args);
}
