#include <allranks/flags.h>

// One thread adds up the lengths of the input, all ranks meet, lengths are loaded from their
// sources, one thread adds them up again, lists are loaded one thread each, and all meet again.

struct Control {
  std::uint32_t meetings;
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

__device__ std::int32_t* StartsOf(const Args& args, int rank) {
  return reinterpret_cast<std::int32_t*>(args.scratch_peers[rank] + sizeof(Control));
}

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

__global__ void AddUpInput(Args args) {
  for (int i = 0, sum = 0; i < args.world * args.per * args.batch; sum += args.lengths[i++]) {
    StartsOf(args, args.rank)[i] = sum;
  }
}

__global__ void LoadLengths(Args args) {
  const int batch = args.batch, lists = args.per * batch;
  for (int i = threadIdx.x; i < args.world * lists; i += blockDim.x) {
    const int f = i / batch / args.world, source = i / batch % args.world;
    args.out_lengths[i] = args.lengths_peers[source][args.rank * lists + f * batch + i % batch];
  }
}

__global__ void AddUpOutput(Args args) {
  int sum = 0;
  for (int i = 0; i < args.world * args.per * args.batch; sum += args.out_lengths[i++]) {
    args.offsets[i] = sum;
  }
  args.offsets[args.world * args.per * args.batch] = sum;
}

__global__ void LoadValues(Args args) {
  const int batch = args.batch, lists = args.per * batch;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < args.world * lists;
       i += gridDim.x * blockDim.x) {
    const int f = i / batch / args.world, source = i / batch % args.world;
    const int from = StartsOf(args, source)[args.rank * lists + f * batch + i % batch];
    for (int j = 0; j < args.out_lengths[i]; ++j) {
      args.out_values[args.offsets[i] + j] = args.values_peers[source][from + j];
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  AddUpInput<<<1, 1, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  LoadLengths<<<1, 512, 0, stream>>>(args);
  AddUpOutput<<<1, 1, 0, stream>>>(args);
  LoadValues<<<16, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
