// design: clusters: blocks put values into their own shared memory, the first block of the cluster ships all of them through DSMEM as batches with headers; std::atomic on the host
//
// One ticket is drawn for the whole cluster and round: as many batches as it has blocks. A warp of
// the first block takes one block's values each.
#include <cooperative_groups.h>

#include <atomic>

namespace cg = cooperative_groups;

constexpr std::uint32_t kBatches = 8, kItems = 32, kMaxCluster = 8;

struct Queue {
  std::uint32_t values[kBatches][kItems];
  std::uint64_t headers[kBatches];  // (ticket + 1) << 16 | producer << 8 | items
  std::uint64_t taken;              // batches ever taken; written by the host
};
static_assert(sizeof(Queue) <= 2048, "fits");

__global__ void __launch_bounds__(32 * kMaxCluster) Produce(Args args) {
  __shared__ std::uint32_t values[2][kItems];
  __shared__ unsigned long long first_ticket;
  const cg::cluster_group cluster = cg::this_cluster();
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  const std::uint32_t blocks = cluster.num_blocks(), own = cluster.block_rank();
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const auto items = static_cast<std::uint32_t>(args.items);
  const std::uint32_t rounds = (items + kItems - 1) / kItems;
  if (own == 0 && threadIdx.x == 0) {
    first_ticket = atomicAdd(reinterpret_cast<unsigned long long*>(args.scratch),
                             static_cast<unsigned long long>(rounds * blocks));
  }
  std::uint64_t taken = 0;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const std::uint32_t count = min(items - round * kItems, kItems);
    if (threadIdx.x < count)
      values[round % 2][threadIdx.x] = args.values[blockIdx.x * items + round * kItems + lane];
    // Two buffers by turns: whoever fills one has met the first block after it had read it.
    cluster.sync();
    if (own == 0 && warp < blocks) {
      const std::uint32_t* theirs = cluster.map_shared_rank(&values[round % 2][0], warp);
      const std::uint64_t ticket = first_ticket + round * blocks + warp, slot = ticket % kBatches;
      while (ticket >= taken + kBatches) {
        asm volatile("ld.acquire.sys.global.u64 %0, [%1];"
                     : "=l"(taken)
                     : "l"(&queue->taken)
                     : "memory");
      }
      if (lane < count) queue->values[slot][lane] = theirs[lane];
      __syncwarp();
      if (lane == 0) {
        const std::uint64_t header = (ticket + 1) << 16 | (blockIdx.x + warp) << 8 | count;
        asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(&queue->headers[slot]),
                     "l"(header)
                     : "memory");
      }
    }
  }
  cluster.sync();  // nobody ends while his values are read
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  unsigned int blocks = kMaxCluster;
  while (args.producers % blocks != 0) blocks /= 2;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = blocks;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned int>(args.producers));
  config.blockDim = dim3(32 * kMaxCluster);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, Produce, args);
}

extern "C" void host(const Args& args, int) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  auto* taken = reinterpret_cast<std::atomic<std::uint64_t>*>(&queue->taken);
  const std::int64_t total = args.producers * args.items;
  std::uint64_t ticket = taken->load(std::memory_order_relaxed);
  for (std::int64_t n = 0; n < total; ++ticket) {
    const std::uint64_t slot = ticket % kBatches;
    auto* word = reinterpret_cast<std::atomic<std::uint64_t>*>(&queue->headers[slot]);
    std::uint64_t header;
    do {
      header = word->load(std::memory_order_acquire);
    } while (header >> 16 != ticket + 1);
    const std::uint64_t producer = header >> 8 & 255, count = header & 255;
    std::uint32_t values[kItems];
    std::memcpy(values, queue->values[slot], count * sizeof(values[0]));
    taken->store(ticket + 1, std::memory_order_release);
    for (std::uint64_t i = 0; i < count; ++i) args.out[n++] = producer << 32 | values[i];
  }
}
