// Everybody tells everybody its length, in a word that also says that it has entered. From all
// lengths a rank knows where its rows begin at the root, and copies them there in place. A block is
// one warp; lane p exchanges words with peer p. Bulk copies move the bytes through shared memory.
//
// The root's `out` is open from its word on, and it leaves when the flags of all ranks are there.
// Other ranks leave when their own rows are stored, perhaps before a slower one has read their word
// of this call, so there are two sets of words, used in turn: in call k + 2 a rank has seen the
// words of call k + 1 of all ranks, which they sent after they had left call k.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 16;
constexpr int kChunk = 8192;

// The beginning of every rank's scratch.
struct Control {
  std::uint64_t entered[2][kMaxBlocks][kMaxRanks];  // by peer: call, length
  std::uint32_t arrived[kMaxBlocks][kMaxRanks];     // at the root, by peer: the last call stored
  std::uint32_t calls[kMaxBlocks];                  // that this block has completed
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

__global__ void __launch_bounds__(32) Gather(Args args) {
  __shared__ __align__(128) std::uint8_t chunk[kChunk];
  __shared__ std::uint64_t full;
  const int block = blockIdx.x, lane = threadIdx.x;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[lane % args.world]);
  Control* root = reinterpret_cast<Control*>(args.scratch_peers[args.root]);
  const std::uint8_t* in = reinterpret_cast<const std::uint8_t*>(args.in);
  const std::uint32_t call = mine->calls[block] + 1;  //@epoch
  const std::uint32_t length = *args.length;
  const std::int64_t row_bytes = 4 * args.width, bytes = length * row_bytes;
  const int turn = call % 2;

  const std::uint64_t word = std::uint64_t{call} << 32 | length;
  if (lane < args.world) StoreReleaseSys(&peer->entered[turn][block][args.rank], word);  //@enter
  std::uint64_t came = 0;
  if (lane < args.world) {
    do {
      came = LoadAcquireSys(&mine->entered[turn][block][lane]);  //@look
    } while (came >> 32 != call);  //@known
  }
  std::uint32_t before = 0;  // rows of the ranks below `lane`
  for (int r = 0; r < args.world; ++r) {
    const std::uint32_t rows = __shfl_sync(~0u, static_cast<std::uint32_t>(came), r);
    if (r < lane) before += rows;
  }
  const bool is_root = args.rank == args.root;
  if (is_root && block == 0 && lane <= args.world) args.starts[lane] = before;
  const std::int64_t start = __shfl_sync(~0u, before, args.rank);

  __syncwarp();  //@meet
  if (lane == 0) {
    std::uint8_t* out = reinterpret_cast<std::uint8_t*>(args.out_peers[args.root]);
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(Shared(&full)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    std::uint32_t parity = 0;
    const std::int64_t stride = gridDim.x * kChunk;
    for (std::int64_t at = std::int64_t{block} * kChunk; at < bytes; at += stride, parity ^= 1) {
      const int size = bytes - at < kChunk ? bytes - at : kChunk;
      Load(chunk, in + at, size, &full);
      AwaitLoad(&full, parity);
      Store(out + start * row_bytes + at, chunk, size);
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  //@reuse
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");  //@complete
    StoreReleaseSys(&root->arrived[block][args.rank], call);   //@publish
  }
  if (is_root && lane < args.world) WaitAcquireSys(&mine->arrived[block][lane], call);  //@wait
  __syncwarp();
  if (lane == 0) mine->calls[block] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t chunks = (4 * args.rows * args.width + kChunk - 1) / kChunk;
  const int blocks = chunks < kMaxBlocks ? chunks : kMaxBlocks;
  Gather<<<blocks, 32, 0, stream>>>(args);
}
