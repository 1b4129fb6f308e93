#include <allranks/flags.h>

// The tensors, cut into chunks of 128 floats, form one list of chunks, which is the same on all
// ranks and has one slice per rank. First, a warp sends each chunk from where it lies to a slot at
// the owner of its slice, with its offset in this rank's `out` as the return address. Then the
// owner adds up the slots, and stores the sums where each rank wants them. Nothing is packed.
//
// Lane t of every warp knows tensor t, so a ballot finds the tensor of a chunk. Warps have the same
// numbers of chunks on all ranks, so block b needs to hear of the blocks b only.
//
// A peer's `out` is open once that peer has told of its first step: it is inside the call, and
// cannot leave before it has heard of our second. Slots exist once: a rank leaves a call after it
// has heard of the owner's second step, when the owner has read them.
using namespace allranks;
constexpr int kMaxBlocks = 64, kWarps = 4, kData = 8192;

struct Control {
  std::uint32_t calls[kMaxBlocks];                 // that this block has completed
  std::uint32_t scattered[kMaxBlocks][kMaxRanks];  // by peer: the last call whose chunks are here
  std::uint32_t gathered[kMaxBlocks][kMaxRanks];   // the same of sums
};

__host__ __device__ int Length(const Args& args, int t) {
  const int width = static_cast<int>(args.width);
  return 1 + 7919 * (t + 1) % (t % 2 == 0 ? width : (width + 15) / 16);
}

struct Piece {
  int at;    // of the chunk in `in` and `out`, in floats
  int left;  // floats of the tensor from this lane's vector on; may be negative
};

// Lane t has tensor t.
struct List {
  int length = 0, place = 0, first = 1 << 30;  // chunk
  int chunks = 0;                              // of all tensors
  __device__ explicit List(const Args& args) {
    const int t = threadIdx.x % 32;
    if (t < args.tensors) length = Length(args, t), place = args.place[t];
    const int own = (length + 127) / 128;
    int sum = own;
    for (int k = 1; k < 32; k *= 2) {
      const int before = __shfl_up_sync(~0u, sum, k);
      if (t >= k) sum += before;
    }
    if (t < args.tensors) first = sum - own;
    chunks = __shfl_sync(~0u, sum, 31);
  }
  __device__ Piece Find(const Args& args, int chunk) const {
    const int t = __popc(__ballot_sync(~0u, first <= chunk)) - 1;
    const int offset = 128 * (chunk - __shfl_sync(~0u, first, t));
    return {__shfl_sync(~0u, place, t) * static_cast<int>(args.width) + offset,
            __shfl_sync(~0u, length, t) - offset - 4 * static_cast<int>(threadIdx.x % 32)};
  }
};

__device__ void Store(float* to, int left, float4 v) {
  if (left >= 4) {
    *reinterpret_cast<float4*>(to) = v;
    return;
  }
  if (left > 0) to[0] = v.x;
  if (left > 1) to[1] = v.y;
  if (left > 2) to[2] = v.z;
}

__global__ void __launch_bounds__(32 * kWarps) AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int b = blockIdx.x, t = threadIdx.x, lane = t % 32, world = args.world;
  const std::uint32_t call = mine->calls[b] + 1;
  const List list(args);
  const int slice = (list.chunks + world - 1) / world;
  const int begin = b * kWarps + t / 32, stride = gridDim.x * kWarps;
  // Slot i of rank r, and behind the slots their return addresses.
  const auto slots = [&](int at, int r, int i) {
    return reinterpret_cast<float4*>(args.scratch_peers[at] + kData) + (r * slice + i) * 32 + lane;
  };
  const auto addresses = [&](int at, int r, int i) {
    return reinterpret_cast<int*>(args.scratch_peers[at] + kData + world * slice * 512) +
           r * slice + i;
  };

  for (int i = begin; i < slice; i += stride) {
    float4 v[kMaxRanks];
    Piece piece[kMaxRanks];
#pragma unroll
    for (int step = 1; step < kMaxRanks; ++step) {  // all on their way before the first is needed
      const int owner = (args.rank + step) % world;
      const int chunk = owner * slice + i;
      if (step >= world || chunk >= list.chunks) continue;
      piece[step] = list.Find(args, chunk);
      const float* from = args.in + piece[step].at + 4 * lane;
      if (piece[step].left > 0) v[step] = *reinterpret_cast<const float4*>(from);
    }
#pragma unroll
    for (int step = 1; step < kMaxRanks; ++step) {
      const int owner = (args.rank + step) % world;
      if (step >= world || owner * slice + i >= list.chunks) continue;
      if (piece[step].left > 0) *slots(owner, args.rank, i) = v[step];
      if (lane == 0) *addresses(owner, args.rank, i) = piece[step].at;
    }
  }
  __syncthreads();  //@before_first
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t % world]);
  if (t < world) {
    StoreReleaseSys(&peer->scattered[b][args.rank], call);  //@tell_first
    WaitAcquireSys(&mine->scattered[b][t], call);           //@wait_first
  }
  __syncthreads();  //@after_first

  for (int i = begin; i < slice && args.rank * slice + i < list.chunks; i += stride) {
    const auto [at, left] = list.Find(args, args.rank * slice + i);
    float4 v[kMaxRanks];
    int where[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= world) break;
      where[r] = r == args.rank ? at : *addresses(args.rank, r, i);
      const float4* from = reinterpret_cast<const float4*>(args.in + at) + lane;
      if (left > 0) v[r] = *(r == args.rank ? from : slots(args.rank, r, i));
    }
    float4 sum = v[0];
#pragma unroll
    for (int r = 1; r < kMaxRanks; ++r) {
      if (r >= world) break;  //@ranks
      sum = {sum.x + v[r].x, sum.y + v[r].y, sum.z + v[r].z, sum.w + v[r].w};
    }
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r < world) Store(args.out_peers[r] + where[r] + 4 * lane, left, sum);
    }
  }
  __syncthreads();  //@before_second
  if (t < world) {
    StoreReleaseSys(&peer->gathered[b][args.rank], call);  //@tell_second
    WaitAcquireSys(&mine->gathered[b][t], call);           //@wait_second
  }
  if (t == 0) mine->calls[b] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  int chunks = 0;
  for (int t = 0; t < args.tensors; ++t) chunks += (Length(args, t) + 127) / 128;
  const int slice = (chunks + args.world - 1) / args.world, needed = (slice + kWarps - 1) / kWarps;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, 32 * kWarps, 0, stream>>>(args);
}
