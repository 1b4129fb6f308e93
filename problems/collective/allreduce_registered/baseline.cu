#include <allranks/flags.h>
#include <allranks/numbers.h>

// Three kernels: one block meets all peers, every thread sums elements, and all meet again before
// a rank may leave and its input may change.
struct Control {
  std::uint32_t meetings;            // that this rank has completed
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

__global__ void Sum(Args args) {
  using Half = allranks::Number<__half>;
  const std::int64_t stride = gridDim.x * blockDim.x;
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.n; i += stride) {
    float sum = 0;
    for (int r = 0; r < args.world; ++r) {
      sum += Half::ToFloat(reinterpret_cast<const std::uint16_t*>(args.in_peers[r])[i]);
    }
    reinterpret_cast<std::uint16_t*>(args.out)[i] = Half::FromFloat(sum);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Sum<<<16, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
