#include <allranks/flags.h>

// A kernel leaves this rank's part of all circles in the scratch, all ranks meet, a kernel adds up
// the parts of the own circles from where they lie, and all meet before parts are overwritten.

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

__global__ void Contract(Args args) {
  const int lons = args.lons, lats = args.lats, size = args.channels * lats * lons;
  float* parts = reinterpret_cast<float*>(args.scratch + 1024);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < args.world * size;
       i += gridDim.x * blockDim.x) {
    const int circle = i / size * lats + i / lons % lats, channel = i % size / (lats * lons);
    float sum = 0;
    for (int e = 0; e < args.taps; ++e) {
      const int lat = args.lat[circle * args.taps + e], shift = args.shift[circle * args.taps + e];
      const float* x = args.x + (channel * lats + lat) * lons;
      sum += args.value[circle * args.taps + e] * x[(i + shift) % lons];
    }
    parts[i] = sum;
  }
}

__global__ void Sum(Args args) {
  const int size = args.channels * args.lats * args.lons;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x) {
    float sum = 0;
    for (int r = 0; r < args.world; ++r) {
      sum += reinterpret_cast<const float*>(args.scratch_peers[r] + 1024)[args.rank * size + i];
    }
    args.y[i] = sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Contract<<<32, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Sum<<<32, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
