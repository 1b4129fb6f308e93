// design: a cluster of four blocks, each with eight keys of a row; token out and partial sums back through distributed shared memory
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

struct Box {
  std::uint64_t word;    // written by the peer: step number, token
  std::uint32_t before;  // own: steps of all earlier calls
};

constexpr int kBlocks = 4;

__global__ void __cluster_dims__(kBlocks, 1, 1) Bounce(Args args) {
  __shared__ std::uint32_t handed, parts[kBlocks];
  cg::cluster_group cluster = cg::this_cluster();
  const std::uint32_t lane = threadIdx.x, block = cluster.block_rank();
  Box* mine = reinterpret_cast<Box*>(args.scratch);
  Box* theirs = reinterpret_cast<Box*>(args.scratch_peers[1 - args.rank]);
  std::uint32_t step = mine->before + args.rank;
  cluster.sync();  // all blocks have begun and have read the number
  for (std::int64_t i = 0; i < args.rounds; ++i) {
    const std::uint32_t key = lane < 8 ? args.keys[i * 32 + block * 8 + lane] : 0;
    if (block == 0) {
      std::uint64_t word;
      do {
        asm volatile("ld.relaxed.sys.global.u64 %0, [%1];"
                     : "=l"(word)
                     : "l"(&mine->word)
                     : "memory");
      } while (word >> 32 != step);
      const std::uint32_t token = args.rank == 0 && i == 0 ? 0 : static_cast<std::uint32_t>(word);
      if (lane < kBlocks) *cluster.map_shared_rank(&handed, lane) = token;
    }
    cluster.sync();
    const std::uint32_t part = __reduce_add_sync(~0u, lane < 8 ? Mix(handed + key) : 0);
    if (lane == 0) *cluster.map_shared_rank(&parts[block], 0) = part;
    cluster.sync();
    if (block == 0 && lane == 0) {
      const std::uint32_t next = parts[0] + parts[1] + parts[2] + parts[3];
      asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(&theirs->word),
                   "l"(std::uint64_t{step + 1} << 32 | next)
                   : "memory");
      args.out[i] = next;
    }
    step += 2;
  }
  if (block == 0 && lane == 0) mine->before = step - args.rank;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Bounce<<<kBlocks, 32, 0, stream>>>(args);
}
