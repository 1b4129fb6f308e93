// Kernel by kernel: for each step one thread waits for its input and for room at the next rank, a
// kernel computes, one thread tells both neighbours. Two slots at the receiver; micro-batches go
// in groups that the slots of all ranks can hold.
#include <allranks/flags.h>
using namespace allranks;

struct Control {
  std::uint32_t sent, received;  // own: of all calls
  std::uint32_t arrived;         // from the rank before
  std::uint32_t consumed;        // from the next rank
};
constexpr int kBlocks = 2, kThreads = 128, kData = 256;

__device__ Control* ControlOf(const Args& args, int rank) {
  return reinterpret_cast<Control*>(args.scratch_peers[(rank + args.world) % args.world]);
}
__device__ std::uint32_t* Slot(const Args& args, int rank, std::uint32_t step) {
  std::uint8_t* scratch = args.scratch_peers[rank % args.world];
  return reinterpret_cast<std::uint32_t*>(scratch + kData) + step % 2 * args.n;
}

__global__ void Await(Args args, bool comes, bool goes) {
  const Control* mine = ControlOf(args, args.rank);
  if (comes) WaitAcquireSys(&mine->arrived, mine->received + 1);
  if (goes) WaitAcquireSys(&mine->consumed, mine->sent - 1);
}

__global__ void Compute(Args args, std::int64_t round, std::int64_t m, bool comes, bool goes) {
  const Control* mine = ControlOf(args, args.rank);
  const std::uint32_t* from = comes ? Slot(args, args.rank, mine->received) : args.in + m * args.n;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < args.n; i += kBlocks * kThreads) {
    const std::uint32_t t = (from[i] + args.weights[round * args.n + i]) * 0x9E3779B1u;
    const std::uint32_t y = t ^ args.table[t >> 17];
    args.acts[(round * args.micro + m) * args.n + i] = y;
    if (goes) Slot(args, args.rank + 1, mine->sent)[i] = y;
  }
}

__global__ void Tell(Args args, bool comes, bool goes) {
  Control* mine = ControlOf(args, args.rank);
  if (comes) StoreReleaseSys(&ControlOf(args, args.rank - 1)->consumed, ++mine->received);
  if (goes) StoreReleaseSys(&ControlOf(args, args.rank + 1)->arrived, ++mine->sent);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  for (std::int64_t first = 0; first < args.micro; first += args.world) {
    for (std::int64_t round = 0; round < args.rounds; ++round) {
      for (std::int64_t m = first; m < args.micro && m < first + args.world; ++m) {
        const bool comes = args.rank > 0 || round > 0;
        const bool goes = args.rank + 1 < args.world || round + 1 < args.rounds;
        Await<<<1, 1, 0, stream>>>(args, comes, goes);
        Compute<<<kBlocks, kThreads, 0, stream>>>(args, round, m, comes, goes);
        Tell<<<1, 1, 0, stream>>>(args, comes, goes);
      }
    }
  }
}
