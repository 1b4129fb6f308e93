// Blocks of one warp take tiles of four pages in turn. A tile comes into shared memory by a bulk
// copy, is stamped there, and leaves for the next rank's `out` by another one. Four stages of
// shared memory let three tiles be on their way in while one is stamped or sent: `full` of a stage
// completes with the bytes of its tile, and a stage is filled again when the copy out of it has
// read its bytes. Lanes fence the asynchronous proxy before the copy out may read what they wrote.
//
// The next rank's `out` is open once it has told of its entry; the first tiles come in meanwhile.
// It leaves when the same block here has told that its tiles are complete there.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 32, kStages = 4, kPage = 512, kTile = 4 * kPage;  // words

struct Control {
  std::uint32_t calls[kMaxBlocks];    // own: that this block has completed
  std::uint32_t entered[kMaxBlocks];  // by the next rank: the last call that it is in
  std::uint32_t done[kMaxBlocks];     // by the rank before: the last call whose tiles are here
};

__device__ std::uint32_t Shared(const void* address) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(address));
}

__device__ void Load(std::uint32_t* stage, const std::uint32_t* from, int words,
                     std::uint64_t* full) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(Shared(full)),
               "r"(4 * words)
               : "memory");
  if (words == 0) return;
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(Shared(stage)),
      "l"(from), "r"(4 * words), "r"(Shared(full))
      : "memory");
}

__device__ void AwaitLoad(std::uint64_t* full, std::uint32_t parity) {
  std::uint32_t ready = 0;
  while (ready == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(ready)
        : "r"(Shared(full)), "r"(parity)
        : "memory");
  }
}

__device__ void Store(std::uint32_t* to, const std::uint32_t* stage, int words) {
  if (words > 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
                 "r"(Shared(stage)), "r"(4 * words)
                 : "memory");
  }
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__global__ void __launch_bounds__(32) Put(Args args) {
  __shared__ __align__(128) std::uint32_t stages[kStages][kTile];
  __shared__ std::uint64_t full[kStages];
  const int block = blockIdx.x, lane = threadIdx.x, next = (args.rank + 1) % args.world, n = args.n;
  const int before = (args.rank + args.world - 1) % args.world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* receiver = reinterpret_cast<Control*>(args.scratch_peers[next]);
  Control* sender = reinterpret_cast<Control*>(args.scratch_peers[before]);
  std::uint32_t* out = args.out_peers[next];
  const std::uint32_t call = mine->calls[block] + 1;
  const auto first_of = [&](int i) { return (block + i * static_cast<int>(gridDim.x)) * kTile; };
  // Of tile i of this block: words that bulk copies can move, none behind the last tile.
  const auto words_of = [&](int first) { return min(kTile, n - first) / 4 * 4; };

  if (lane == 0) {
    for (int s = 0; s < kStages; ++s) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(Shared(&full[s])) : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    for (int i = 0; i < kStages - 1 && first_of(i) < n; ++i) {
      Load(stages[i], args.in + first_of(i), words_of(first_of(i)), &full[i]);
    }
  }
  __syncwarp();
  if (lane == 1) StoreReleaseSys(&sender->entered[block], call);  //@enter
  for (int i = 0; first_of(i) < n; ++i) {
    const int stage = i % kStages, first = first_of(i), words = words_of(first);
    const int page = first + lane * kPage;
    const bool stamps = page < first + words;
    const std::uint32_t stamp = stamps ? args.stamps[page / kPage] : 0;
    AwaitLoad(&full[stage], i / kStages % 2);  //@arrived
    if (stamps) stages[stage][lane * kPage] += stamp;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");           //@proxy
    if (i == 0 && lane == 1) WaitAcquireSys(&mine->entered[block], call);  //@entered
    __syncwarp();                                                          //@stamped
    if (lane == 0) {
      Store(out + first, stages[stage], words);
      const int ahead = first_of(i + kStages - 1), free = (i + kStages - 1) % kStages;
      asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");  //@reuse
      if (ahead < n) Load(stages[free], args.in + ahead, words_of(ahead), &full[free]);
    }
  }
  const int left = n / 4 * 4 + lane;  // too short for a bulk copy
  if (block == 0 && left < n) {       //@tail
    out[left] = args.in[left] + (left % kPage == 0 ? args.stamps[left / kPage] : 0);
  }
  __syncwarp();
  if (lane == 0) {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");  //@complete
    StoreReleaseSys(&receiver->done[block], call);             //@publish
    WaitAcquireSys(&mine->done[block], call);                  //@wait
    mine->calls[block] = call;                                 //@advance
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t tiles = (args.n + kTile - 1) / kTile;
  const int blocks = tiles < kMaxBlocks ? tiles : kMaxBlocks;
  Put<<<blocks, 32, 0, stream>>>(args);
}
