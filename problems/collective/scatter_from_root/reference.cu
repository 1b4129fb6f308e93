// The root copies every part into its receiver's `out` in place. A block is one warp, and at the
// root its lane p serves peer p, with a chunk of shared memory and an mbarrier of its own: lanes go
// their own ways, and a receiver that enters late holds up nobody else. Bulk copies move the bytes.
//
// A receiver tells the root that it has entered, which opens its `out`, and leaves when the root's
// word is there, which carries the number of its rows. The root waits for every receiver, also for
// one that gets nothing: otherwise it might overwrite a word that was not read yet.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 16;
constexpr int kChunk = 4096;

// The beginning of every rank's scratch.
struct Control {
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // at the root, by peer: the last call entered
  std::uint64_t arrived[kMaxBlocks];             // call whose rows are here, their number
  std::uint32_t calls[kMaxBlocks];               // that this block has completed
};

__device__ std::uint32_t Shared(const void* address) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(address));
}

__device__ void Load(std::uint8_t* chunk, const std::uint8_t* from, int size, std::uint64_t* full) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(Shared(full)), "r"(size)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(Shared(chunk)),
      "l"(from), "r"(size), "r"(Shared(full))
      : "memory");
}

__device__ void AwaitLoad(std::uint64_t* full, std::uint32_t parity) {
  std::uint32_t ready = 0;
  while (ready == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(ready)
        : "r"(Shared(full)), "r"(parity)
        : "memory");
  }
}

__device__ void Store(std::uint8_t* to, const std::uint8_t* chunk, int size) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(Shared(chunk)), "r"(size)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Lane p of the root: the block's chunks for peer p.
__device__ void Serve(const Args& args, int block, int p, std::uint32_t call) {
  __shared__ __align__(128) std::uint8_t chunks[kMaxRanks][kChunk];
  __shared__ std::uint64_t full[kMaxRanks];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[p]);
  const std::int64_t row_bytes = 4 * args.width, stride = gridDim.x * kChunk;
  std::int64_t begin = 0;
  for (int r = 0; r < p; ++r) begin += args.counts[r];
  const std::int64_t bytes = args.counts[p] * row_bytes;
  const std::uint8_t* from = reinterpret_cast<const std::uint8_t*>(args.in) + begin * row_bytes;
  std::uint8_t* to = reinterpret_cast<std::uint8_t*>(args.out_peers[p]);
  asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(Shared(&full[p])) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  const auto load = [&](std::int64_t at) {
    if (at < bytes) Load(chunks[p], from + at, min(bytes - at, std::int64_t{kChunk}), &full[p]);
  };
  const std::int64_t first = std::int64_t{block} * kChunk;
  load(first);                                     // while the peer enters
  WaitAcquireSys(&mine->entered[block][p], call);  //@entered
  std::uint32_t parity = 0;
  for (std::int64_t at = first; at < bytes; at += stride, parity ^= 1) {
    AwaitLoad(&full[p], parity);
    Store(to + at, chunks[p], min(bytes - at, std::int64_t{kChunk}));
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  //@reuse
    load(at + stride);
  }
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");  //@complete
  const std::uint64_t word = std::uint64_t{call} << 32 | args.counts[p];
  StoreReleaseSys(&peer->arrived[block], word);  //@publish
}

__global__ void __launch_bounds__(32) Scatter(Args args) {
  const int block = blockIdx.x, lane = threadIdx.x;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* root = reinterpret_cast<Control*>(args.scratch_peers[args.root]);
  const std::uint32_t call = mine->calls[block] + 1;                       //@epoch
  if (lane == 0) StoreReleaseSys(&root->entered[block][args.rank], call);  //@enter
  __syncwarp();
  if (args.rank == args.root && lane < args.world) Serve(args, block, lane, call);
  __syncwarp();
  if (lane == 0) {
    std::uint64_t word;
    do {
      word = LoadAcquireSys(&mine->arrived[block]);  //@look
    } while (word >> 32 != call);  //@wait
    if (block == 0) *args.length = static_cast<std::int32_t>(word);
    mine->calls[block] = call;  //@advance
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t chunks = (4 * args.rows * args.width + kChunk - 1) / kChunk;
  const int blocks = chunks < kMaxBlocks ? chunks : kMaxBlocks;
  Scatter<<<blocks, 32, 0, stream>>>(args);
}
