// Header and payload are one message: block b writes the sizes and its chunk of the words, as they
// stand in `in`, into a stage at the receiver, and publishes both by one flag. The receiver learns
// the sizes with the words, and moves its chunk to the aligned places of `out` locally.
//
// There are two stages, used in turn. A rank that enters call k reports that it has read all of
// call k - 1; the sender of call k needs this report of call k - 2, which is there if ranks keep
// pace. Thread 0 sends, thread 32 reports and receives, so that their fences run side by side.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 64, kThreads = 256, kMaxTensors = 32;

struct alignas(16) Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t arrived[kMaxBlocks];  // from the rank before: calls whose chunk is here
  std::uint32_t freed[kMaxBlocks];    // from the rank behind: calls whose stage it has read
  std::int32_t sizes[2][kMaxBlocks][kMaxTensors];
};

struct Chunk {
  int begin, end;  // words
};
__device__ Chunk ChunkOf(int total) {
  const int vectors = (total + 3) / 4, each = 4 * ((vectors + gridDim.x - 1) / gridDim.x);
  return {min(total, each * static_cast<int>(blockIdx.x)),
          min(total, each * static_cast<int>(blockIdx.x + 1))};
}

// By the whole block, with four loads of each thread on their way.
template <class Word>
__device__ void Copy(Word* to, const Word* from, int count) {
  for (int first = threadIdx.x; first < count; first += 4 * kThreads) {
    Word v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (first + k * kThreads < count) v[k] = from[first + k * kThreads];
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (first + k * kThreads < count) to[first + k * kThreads] = v[k];
    }
  }
}

// The sum over this lane and those below it.
__device__ int SumUpTo(int value) {
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(~0u, value, step);
    if (threadIdx.x >= step) value += other;
  }
  return value;
}

__global__ void __launch_bounds__(kThreads) Transfer(Args args) {
  __shared__ int start[kMaxTensors + 1], shift[kMaxTensors];  // in the stage; from there to `out`
  __shared__ int to_send;
  const int next = (args.rank + 1) % args.world, block = blockIdx.x, lane = threadIdx.x;
  const int before = (args.rank + args.world - 1) % args.world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[next]);
  const std::uint32_t call = mine->calls[block] + 1;
  const int tensors = static_cast<int>(args.tensors), set = call % 2;
  const std::int64_t stage = set * ((args.room + 3) / 4 * 4);

  const int own = lane < tensors ? args.sizes[lane] : 0;
  if (threadIdx.x < 32) {
    const int total = __reduce_add_sync(~0u, own);
    if (lane == 0) {
      to_send = total;
      WaitAcquireSys(&mine->freed[block], call - 2);  //@free
    }
  }
  __syncthreads();  //@room
  if (lane < tensors) theirs->sizes[set][block][lane] = own;
  const Chunk sent = ChunkOf(to_send);
  const int words = sent.end - sent.begin, whole = words / 4 * 4;
  std::uint32_t* to = reinterpret_cast<std::uint32_t*>(theirs + 1) + stage + sent.begin;
  const std::uint32_t* from = args.in + sent.begin;
  Copy(reinterpret_cast<uint4*>(to), reinterpret_cast<const uint4*>(from), whole / 4);
  Copy(to + whole, from + whole, words - whole);
  __syncthreads();                                                       //@sent
  if (threadIdx.x == 0) StoreReleaseSys(&theirs->arrived[block], call);  //@tell
  if (threadIdx.x == 32) {
    Control* sender = reinterpret_cast<Control*>(args.scratch_peers[before]);
    StoreReleaseSys(&sender->freed[block], call - 1);  //@give
    WaitAcquireSys(&mine->arrived[block], call);       //@arrived
  }
  __syncthreads();  //@here

  if (threadIdx.x < 32) {
    const int size = lane < tensors ? mine->sizes[set][block][lane] : 0;
    const int end = SumUpTo(size), room = (size + 3) / 4 * 4;
    shift[lane] = SumUpTo(room) - room - (end - size);
    start[lane + 1] = end;
    if (lane == 0) start[0] = 0;
    if (block == 0 && lane < tensors) args.got_sizes[lane] = size;
  }
  __syncthreads();  //@known
  const std::uint32_t* here = reinterpret_cast<const std::uint32_t*>(mine + 1) + stage;
  const Chunk got = ChunkOf(start[tensors]);
  for (int t = 0; t < tensors && start[t] < got.end; ++t) {
    const int begin = max(got.begin, start[t]), end = min(got.end, start[t + 1]);
    if (begin < end) Copy(args.out + begin + shift[t], here + begin, end - begin);
  }
  if (threadIdx.x == 0) mine->calls[block] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.room + 4 * kThreads - 1) / (4 * kThreads);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Transfer<<<blocks, kThreads, 0, stream>>>(args);
}
