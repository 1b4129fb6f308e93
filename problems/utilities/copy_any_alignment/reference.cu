#include <allranks/flags.h>

// Eight lanes share a slot: each reads one aligned vector of 16 bytes, if the record touches it,
// so no byte crosses the link twice. Each lane then makes one aligned vector of the target from
// those of two lanes, shifted by the difference of the offsets, and stores it by 16 bytes, or at
// the record's ends by words and bytes.
//
// A rank's `in` is open once the rank has told its reader so; it leaves the call after the reader
// has told it that all was read. Block b of a rank deals with block b of its neighbours only.
using namespace allranks;

constexpr int kMaxBlocks = 64, kThreads = 256, kLanes = 8;  // lanes per slot

struct Control {
  std::uint32_t calls[kMaxBlocks];  // own: that this block has completed
  std::uint32_t open[kMaxBlocks];   // by the owner of the slots: the last call that it has entered
  std::uint32_t done[kMaxBlocks];   // by the reader: the last call of which it has read everything
};

struct Record {
  int from, to, length;
};

__device__ Record Find(const Args& args, int i) {
  if (i >= args.n) return {0, 0, 0};
  return {args.from[i], args.to[i], args.length[i]};
}

// 16 bytes that begin `shift` bytes behind the first of `low` and go on in `high`.
__device__ uint4 Shift(uint4 low, uint4 high, int shift) {
  std::uint32_t w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  if (shift & 8) {
    for (int i = 0; i < 6; ++i) w[i] = w[i + 2];
  }
  if (shift & 4) {
    for (int i = 0; i < 5; ++i) w[i] = w[i + 1];
  }
  for (int i = 0; i < 4; ++i) w[i] = __funnelshift_r(w[i], w[i + 1], 8 * (shift & 3));
  return {w[0], w[1], w[2], w[3]};
}

// The vector `part` of another lane of the slot.
__device__ uint4 Exchange(uint4 v, int part) {
  return {__shfl_sync(~0u, v.x, part, kLanes), __shfl_sync(~0u, v.y, part, kLanes),
          __shfl_sync(~0u, v.z, part, kLanes), __shfl_sync(~0u, v.w, part, kLanes)};
}

// Bytes [begin, end) of the vector, with the widest stores that are aligned.
__device__ void Store(std::uint8_t* to, uint4 v, int begin, int end) {
  if (begin <= 0 && end >= 16) {
    *reinterpret_cast<uint4*>(to) = v;
    return;
  }
  const std::uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    if (begin <= 4 * w && end - 4 * w >= 4) {
      reinterpret_cast<std::uint32_t*>(to)[w] = words[w];
      continue;
    }
    for (int b = 4 * w; b < 4 * w + 4; ++b) {
      if (begin <= b && b < end) to[b] = words[w] >> 8 * (b % 4);
    }
  }
}

__global__ void __launch_bounds__(kThreads) Copy(Args args) {
  const int next = (args.rank + 1) % args.world, block = blockIdx.x, n = args.n;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* owner = reinterpret_cast<Control*>(args.scratch_peers[next]);
  Control* reader =
      reinterpret_cast<Control*>(args.scratch_peers[(args.rank + args.world - 1) % args.world]);
  const std::uint32_t call = mine->calls[block] + 1;
  const int part = threadIdx.x % kLanes, stride = gridDim.x * kThreads / kLanes;
  const int first = (block * kThreads + threadIdx.x) / kLanes;
  Record record = Find(args, first);  // on its way while the flags are
  if (threadIdx.x == 0) {
    StoreReleaseSys(&reader->open[block], call);  //@open
    WaitAcquireSys(&mine->open[block], call);     //@see_open
  }
  __syncthreads();  //@after_open

  const uint4* in = reinterpret_cast<const uint4*>(args.in_peers[next]);
  for (int i = first; i < (n + 3) / 4 * 4; i += stride) {  // whole warps: four slots each
    uint4 source = {0, 0, 0, 0};
    if (record.length > 0 && 16 * part + 16 > record.from &&
        16 * part < record.from + record.length) {
      source = in[kLanes * i + part];
    }
    const int at = 16 * part + record.from - record.to;  // in the source, may be outside
    const uint4 low = Exchange(source, at >> 4), high = Exchange(source, (at >> 4) + 1);
    const int begin = record.to - 16 * part, end = begin + record.length;
    Store(args.out + 128 * i + 16 * part, Shift(low, high, at & 15), begin, end);
    record = Find(args, i + stride);
  }

  __syncthreads();  //@before_done
  if (threadIdx.x == 0) {
    StoreReleaseSys(&owner->done[block], call);  //@done
    WaitAcquireSys(&mine->done[block], call);    //@see_done
    mine->calls[block] = call;                   //@advance
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = (args.n * kLanes + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Copy<<<blocks, kThreads, 0, stream>>>(args);
}
