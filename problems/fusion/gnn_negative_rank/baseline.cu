#include <allranks/flags.h>

// All ranks meet, blocks go through the lists of whole queries with one thread per entry, and all
// meet again, so that no rank leaves while its table is read.

struct Control {
  std::uint32_t meetings;
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->reached[args.rank], meeting);
    allranks::WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__device__ int Score(const Args& args, int query, int id) {
  const int words = 4 * args.quads, rows = args.rows;
  const int* head = reinterpret_cast<const int*>(args.heads) + query * words;
  const int* row = reinterpret_cast<const int*>(args.table_peers[id / rows]) + id % rows * words;
  int sum = 0;
  for (int i = 0; i < words; ++i) sum = __dp4a(head[i], row[i], sum);
  return sum;
}

__global__ void Count(Args args) {
  __shared__ int wins;
  int begin = 0;
  for (int query = 0; query < args.queries; begin += args.counts[query++]) {
    if (query % gridDim.x != blockIdx.x) continue;
    if (threadIdx.x == 0) wins = 0;
    __syncthreads();
    const int positive = args.positives[query], at_stake = Score(args, query, positive);
    for (int i = threadIdx.x; i < args.counts[query]; i += blockDim.x) {
      const int id = args.negatives[begin + i], score = Score(args, query, id);
      if (score > at_stake || (score == at_stake && id < positive)) atomicAdd(&wins, 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) args.place[query] = 1 + wins;
    __syncthreads();
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Count<<<16, 128, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
