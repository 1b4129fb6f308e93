// By pulling: a rank copies sizes and words to its own symmetric memory and publishes the call; the
// next rank reads them across the link, straight into place. Two copies, used in turn: a rank that
// enters call k reports that it has read call k - 1.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = 256;

struct alignas(16) Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t made[kMaxBlocks];  // from the rank before
  std::uint32_t read[kMaxBlocks];  // from the rank behind
  std::int32_t sizes[2][kMaxBlocks][32];
};

__global__ void __launch_bounds__(kThreads) Transfer(Args args) {
  const int block = blockIdx.x, tensors = static_cast<int>(args.tensors);
  const int next = (args.rank + 1) % args.world;
  const int before = (args.rank + args.world - 1) % args.world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* sender = reinterpret_cast<Control*>(args.scratch_peers[before]);
  Control* receiver = reinterpret_cast<Control*>(args.scratch_peers[next]);
  const std::uint32_t call = mine->calls[block] + 1, set = call % 2;
  const std::int64_t first = block * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  if (threadIdx.x == 0) {
    StoreReleaseSys(&sender->read[block], call - 1);
    WaitAcquireSys(&mine->read[block], call - 2);
  }
  __syncthreads();
  if (threadIdx.x < tensors) mine->sizes[set][block][threadIdx.x] = args.sizes[threadIdx.x];
  std::uint32_t* copy = reinterpret_cast<std::uint32_t*>(mine + 1) + set * args.room;
  for (std::int64_t i = first; i < args.room; i += stride) copy[i] = args.in[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    StoreReleaseSys(&receiver->made[block], call);
    WaitAcquireSys(&mine->made[block], call);
  }
  __syncthreads();
  // Block b has words i with the same i / kThreads % blocks at sender and receiver.
  const std::uint32_t* theirs =
      reinterpret_cast<const std::uint32_t*>(sender + 1) + set * args.room;
  std::int64_t begin = 0, to = 0, i = first;
  for (int t = 0; t < tensors; ++t) {
    const std::int64_t size = sender->sizes[set][block][t];
    for (; i < begin + size; i += stride) args.out[to + i - begin] = theirs[i];
    begin += size;
    to += (size + 3) / 4 * 4;
    if (first == 0) args.got_sizes[t] = static_cast<std::int32_t>(size);
  }
  if (threadIdx.x == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.room + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Transfer<<<blocks, kThreads, 0, stream>>>(args);
}
