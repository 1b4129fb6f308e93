// design: a ring, reduce-scatter into slots and all-gather into the neighbour's out, with step counters by cuda::atomic_ref
//
// Chunk c starts at rank c and comes to rank c - 1 with everybody's share in it. So a rank that holds
// a complete chunk knows that its next neighbour, where it began, is inside the call: that one's `out`
// is open. It stays open, since the neighbour leaves only with all chunks from this rank. Slots of a
// call are free again when it ends: the neighbour before us ends only with our complete chunk, which
// was made after all slots had been read. Block b of a rank talks to the blocks b of its neighbours.
#include <cooperative_groups.h>
#include <cuda/atomic>
namespace cg = cooperative_groups;

constexpr int kMaxBlocks = 64, kThreads = 256;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t steps[kMaxBlocks];  // that the previous rank has sent, in all calls
};

using SystemRef = cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system>;

__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  cg::thread_block block = cg::this_thread_block();
  const int world = args.world, next = (args.rank + 1) % world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[next]);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  std::uint32_t sent = (call - 1) * 2 * (world - 1), received = sent;

  const std::int64_t chunk = (args.n + world - 1) / world;
  const std::int64_t first = std::int64_t{blockIdx.x} * kThreads + block.thread_rank();
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  float* slots = reinterpret_cast<float*>(args.scratch + sizeof(Control));
  float* next_slots = reinterpret_cast<float*>(args.scratch_peers[next] + sizeof(Control));

  auto tell = [&] {
    block.sync();
    ++sent;
    if (block.thread_rank() == 0) {
      SystemRef(theirs->steps[blockIdx.x]).store(sent, cuda::memory_order_release);
    }
  };
  auto hear = [&] {
    ++received;
    if (block.thread_rank() == 0) {
      SystemRef steps(mine->steps[blockIdx.x]);
      while (std::int32_t(steps.load(cuda::memory_order_acquire) - received) < 0) {
      }
    }
    block.sync();
  };

  for (int step = 0; step < world - 1; ++step) {
    if (step > 0) hear();
    const std::int64_t c = (args.rank - step + world) % world;
    for (std::int64_t i = first; i < chunk && c * chunk + i < args.n; i += stride) {
      float sum = args.in[c * chunk + i];
      if (step > 0) sum += slots[(step - 1) * chunk + i];
      next_slots[step * chunk + i] = sum;
    }
    tell();
  }
  hear();
  const std::int64_t own = (args.rank + 1) % world;
  for (std::int64_t i = first; i < chunk && own * chunk + i < args.n; i += stride) {
    const std::int64_t at = own * chunk + i;
    const float sum = args.in[at] + slots[(world - 2) * chunk + i];
    args.out[at] = sum;
    args.out_peers[next][at] = sum;
  }
  tell();
  for (int step = 1; step < world; ++step) {
    hear();
    if (step == world - 1) break;  // the next rank made this one
    const std::int64_t c = (own - step + world) % world;
    for (std::int64_t i = first; i < chunk && c * chunk + i < args.n; i += stride) {
      args.out_peers[next][c * chunk + i] = args.out[c * chunk + i];
    }
    tell();
  }
  if (block.thread_rank() == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t chunk = (args.n + args.world - 1) / args.world;
  const std::int64_t needed = (chunk + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}
