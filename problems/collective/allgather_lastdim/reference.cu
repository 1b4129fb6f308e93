// A block is one warp with chunks of whole rows. A chunk is contiguous in `in`: one bulk copy loads
// it into shared memory. From there every row goes to its place in the `out` of every rank by a
// bulk copy of its own, so that each piece travels in large packets and nothing is ever rearranged.
// Lanes are (row, peer) pairs; lanes below world also exchange the flags.
//
// A peer's `out` is open from its entry flag on, and it cannot leave before our arrival flag.
// Flags hold the number of the last call; they only grow, so nothing is ever reset.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 16;
constexpr int kChunk = 2048;  // at least a row

// The beginning of every rank's scratch.
struct Control {
  std::uint32_t calls[kMaxBlocks];               // that this block has completed
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // by peer: the last call that it has entered
  std::uint32_t arrived[kMaxBlocks][kMaxRanks];  // by peer: the last call whose data are here
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

__global__ void __launch_bounds__(32) AllGather(Args args) {
  __shared__ __align__(128) std::uint8_t chunk[kChunk];
  __shared__ std::uint64_t full;
  const int block = blockIdx.x, lane = threadIdx.x, to = lane % args.world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[to]);
  const std::uint8_t* in = reinterpret_cast<const std::uint8_t*>(args.in);
  std::uint8_t* out = reinterpret_cast<std::uint8_t*>(args.out_peers[to]);
  const int row_bytes = 4 * args.width, rows = args.rows, chunk_rows = kChunk / row_bytes;
  const std::uint32_t call = mine->calls[block] + 1;  //@epoch

  if (lane < args.world) StoreReleaseSys(&peer->entered[block][args.rank], call);  //@enter
  if (lane == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(Shared(&full)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  if (lane < args.world) WaitAcquireSys(&mine->entered[block][lane], call);  //@entered
  __syncwarp();
  std::uint32_t parity = 0;
  for (int first = block * chunk_rows; first < rows; first += gridDim.x * chunk_rows) {
    const int count = rows - first < chunk_rows ? rows - first : chunk_rows;
    if (lane == 0) Load(chunk, in + std::int64_t{first} * row_bytes, count * row_bytes, &full);
    AwaitLoad(&full, parity);  //@loaded
    const int last_lane = 32 / args.world * args.world;
    for (int r = lane / args.world; lane < last_lane && r < count; r += 32 / args.world) {
      const std::int64_t piece = std::int64_t{first + r} * args.world + args.rank;
      Store(out + piece * row_bytes, chunk + r * row_bytes, row_bytes);
    }
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  //@reuse
    __syncwarp();
    parity ^= 1;
  }
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");  //@complete
  __syncwarp();                                              // all lanes' copies are complete
  if (lane < args.world) {
    StoreReleaseSys(&peer->arrived[block][args.rank], call);  //@publish
    WaitAcquireSys(&mine->arrived[block][lane], call);        //@wait
  }
  __syncwarp();
  if (lane == 0) mine->calls[block] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t chunk_rows = kChunk / (4 * args.width);
  const std::int64_t chunks = (args.rows + chunk_rows - 1) / chunk_rows;
  const int blocks = chunks < kMaxBlocks ? chunks : kMaxBlocks;
  AllGather<<<blocks, 32, 0, stream>>>(args);
}
