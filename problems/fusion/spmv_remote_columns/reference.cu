// Owners are asked for what they have, and send it. Block b of a rank has a part of `columns`: it
// sorts them by owner into lists at the owners, each element with the place where its entry is to
// go. Block b of an owner has one warp per rank that asks: it stores the entries into that rank's
// memory. When all have come, every block copies them to shared memory, where its rows find them.
// So each listed entry crosses a link once, however many elements use it.
//
// Lists and entries exist once. A rank sends lists of call k + 1 after all owners have answered
// those of call k, and an owner writes entries of call k + 1 when it was asked for them, by a rank
// that has ended call k.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kBlocks = 8, kThreads = 32 * kMaxRanks, kMaxNeeded = 8192;
constexpr int kEntryBits = 18;  // of a request; the place is in the bits above

// The beginning of every rank's scratch; entries follow, then lists.
struct Control {
  std::uint32_t calls[kBlocks];                // that the block has completed
  std::uint64_t asked[kMaxRanks][kBlocks];     // by rank: call, length of the list
  std::uint32_t answered[kMaxRanks][kBlocks];  // by owner: the last call whose entries are here
};

__device__ float* Entries(const Args& args, int at) {
  return reinterpret_cast<float*>(reinterpret_cast<Control*>(args.scratch_peers[at]) + 1);
}

// At rank `at`: what block `block` of rank `from` wants, at most `part` requests.
__device__ std::uint32_t* List(const Args& args, int at, int from, int block, int part) {
  return reinterpret_cast<std::uint32_t*>(Entries(args, at)) +
         (kBlocks + from * kBlocks + block) * part;
}

__global__ void __launch_bounds__(kThreads) Multiply(Args args) {
  __shared__ std::uint32_t counts[kMaxRanks];
  __shared__ alignas(16) float entry[kMaxNeeded];
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, block = blockIdx.x;
  const int world = args.world, entries = args.entries, needed = args.needed;
  const int part = (needed + kBlocks - 1) / kBlocks, end = min((block + 1) * part, needed);
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[warp < world ? warp : args.rank]);
  const std::uint32_t call = mine->calls[block] + 1;  //@epoch

  if (thread < kMaxRanks) counts[thread] = 0;
  __syncthreads();  //@cleared
  for (int i = block * part + thread; i < end; i += kThreads) {
    const int column = args.columns[i];
    const int owner = column / entries, place = atomicAdd(&counts[owner], 1);
    List(args, owner, args.rank, block, part)[place] = i << kEntryBits | (column - owner * entries);
  }
  __syncthreads();  //@listed
  if (warp < world) {
    if (lane == 0) {
      const std::uint64_t word = std::uint64_t{call} << 32 | counts[warp];
      StoreReleaseSys(&theirs->asked[args.rank][block], word);  //@ask
    }
    std::uint64_t word;
    do {
      word = LoadAcquireSys(&mine->asked[warp][block]);  //@look
    } while (word >> 32 != call);
    const std::uint32_t* list = List(args, args.rank, warp, block, part);
    float* to = Entries(args, warp);
    const int count = static_cast<int>(word);
    for (int i = lane; i < count; i += 32) {
      to[list[i] >> kEntryBits] = args.x[list[i] & ((1 << kEntryBits) - 1)];
    }
    __syncwarp();                                                               //@served
    if (lane == 0) StoreReleaseSys(&theirs->answered[args.rank][block], call);  //@tell
  }
  for (int i = thread; i < world * kBlocks; i += kThreads) {
    WaitAcquireSys(&mine->answered[i / kBlocks][i % kBlocks], call);  //@wait
  }
  __syncthreads();  //@arrived
  const float* came = Entries(args, args.rank);
  for (int i = 4 * thread; i + 4 <= needed; i += 4 * kThreads) {
    *reinterpret_cast<float4*>(&entry[i]) = *reinterpret_cast<const float4*>(&came[i]);
  }
  if (thread < needed % 4) entry[needed - 1 - thread] = came[needed - 1 - thread];
  __syncthreads();  //@gathered

  const int quads = args.per_row / 4, rows = args.rows;  // four lanes have a row
  for (int first = block * kThreads / 4; first < rows; first += kBlocks * kThreads / 4) {
    const int row = first + thread / 4;
    float sum = 0;
    for (int q = thread % 4; q < quads && row < rows; q += 4) {
      const int4 at = reinterpret_cast<const int4*>(args.index)[row * quads + q];
      const float4 v = reinterpret_cast<const float4*>(args.value)[row * quads + q];
      sum += v.x * entry[at.x] + v.y * entry[at.y] + v.z * entry[at.z] + v.w * entry[at.w];
    }
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    if (thread % 4 == 0 && row < rows) args.y[row] = sum;
  }
  if (thread == 0) mine->calls[block] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Multiply<<<kBlocks, kThreads, 0, stream>>>(args);
}
