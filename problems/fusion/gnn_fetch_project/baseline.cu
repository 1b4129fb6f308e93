// All ranks meet, a thread computes an element from the features where they are, and all meet
// again, so that no rank leaves while its features are read.
#include <allranks/flags.h>
#include <allranks/numbers.h>

struct Control { std::uint32_t meetings, reached[kMaxRanks]; };  // reached: by peer, the last one
using Half = allranks::Number<__half>;

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

__global__ void Project(Args args) {
  const auto* w = reinterpret_cast<const std::uint16_t*>(args.w);
  const int width = 64 * args.depth, cols = 32 * args.cols, stride = gridDim.x * blockDim.x;
  int begin = 0;
  for (int owner = 0; owner < args.world; begin += args.counts[owner++]) {
    const auto* features = reinterpret_cast<const std::uint16_t*>(args.features_peers[owner]);
    const int sums = args.counts[owner] * cols;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < sums; i += stride) {
      const std::uint16_t* row = features + args.ids[begin + i / cols] * width;
      float sum = 0;
      for (int k = 0; k < width; ++k) {
        sum += Half::ToFloat(row[k]) * Half::ToFloat(w[i % cols * width + k]);
      }
      args.out[begin * cols + i] = sum;
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Project<<<32, 128, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
