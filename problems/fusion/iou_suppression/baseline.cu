#include <allranks/flags.h>

// All ranks meet; a kernel collects the objects of all ranks, the next one finds the place of each
// in the order; one block goes through them in order, one thread for each object that may be
// suppressed; then all ranks meet again.

constexpr int kObjects = 256;

struct Control {
  std::uint32_t meetings;
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
  std::int32_t objects, first;       // of all ranks; of the ranks before this one
  std::int32_t scores[kObjects], order[kObjects];
};

__device__ Control* ControlOf(const Args& args, int rank) {
  return reinterpret_cast<Control*>(args.scratch_peers[rank]);
}

__global__ void Meet(Args args) {
  Control* mine = ControlOf(args, args.rank);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    allranks::StoreReleaseSys(&ControlOf(args, threadIdx.x)->reached[args.rank], meeting);
    allranks::WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Collect(Args args) {
  Control* mine = ControlOf(args, args.rank);
  std::uint32_t* masks = reinterpret_cast<std::uint32_t*>(mine + 1);
  const int width = 4 * args.quads;
  int objects = 0;
  for (int s = 0; s < args.world; ++s) {
    const int count = args.count_peers[s][0];
    if (s == args.rank && threadIdx.x == 0) mine->first = objects;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
      mine->scores[objects + i] = args.scores_peers[s][i];
    }
    for (int i = threadIdx.x; i < count * width; i += blockDim.x) {
      masks[objects * width + i] = args.masks_peers[s][i];
    }
    objects += count;
  }
  if (threadIdx.x == 0) mine->objects = objects;
}

__global__ void Sort(Args args) {
  Control* mine = ControlOf(args, args.rank);
  const int j = threadIdx.x;
  if (j >= mine->objects) return;
  int place = 0;
  for (int i = 0; i < mine->objects; ++i) {
    place += mine->scores[i] > mine->scores[j] || (mine->scores[i] == mine->scores[j] && i < j);
  }
  mine->order[place] = j;
}

__global__ void GoThrough(Args args) {
  __shared__ bool alive[kObjects];
  const Control* mine = ControlOf(args, args.rank);
  const std::uint32_t* masks = reinterpret_cast<const std::uint32_t*>(mine + 1);
  const int objects = mine->objects, j = threadIdx.x, width = 4 * args.quads;
  alive[j] = j < objects;
  int total = 0;
  for (int place = 0; place < objects; ++place) {
    __syncthreads();
    const int i = mine->order[place];
    if (!alive[i]) continue;
    ++total;
    __syncthreads();
    if (j == i || !alive[j]) continue;
    const bool later =
        mine->scores[j] < mine->scores[i] || (mine->scores[j] == mine->scores[i] && j > i);
    int both = 0, any = 0;
    for (int w = 0; w < width && later; ++w) {
      both += __popc(masks[i * width + w] & masks[j * width + w]);
      any += __popc(masks[i * width + w] | masks[j * width + w]);
    }
    if (5 * both > 2 * any) alive[j] = false;
  }
  __syncthreads();
  if (j >= mine->first && j < mine->first + args.count[0]) args.keep[j - mine->first] = alive[j];
  if (j == 0) args.total[0] = total;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Collect<<<1, 256, 0, stream>>>(args);
  Sort<<<1, kObjects, 0, stream>>>(args);
  GoThrough<<<1, kObjects, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
