#include <allranks/flags.h>

// Vectors are dealt out in turn: vector i of the list is added up by rank i % world. The owners'
// sums come back into symmetric memory, and each rank brings them to their places itself, so that
// nobody needs to know another rank's places. A table in shared memory gives the tensor of a
// vector.
using namespace allranks;
constexpr int kMaxBlocks = 64, kThreads = 128, kData = 8192;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t reached[2][kMaxBlocks][kMaxRanks];
};

__host__ __device__ int Length(const Args& args, int t) {
  return 1 + 7919 * (t + 1) % (t % 2 == 0 ? args.width : (args.width + 15) / 16);
}

__device__ void Meet(const Args& args, int step, std::uint32_t call) {
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[step][blockIdx.x][args.rank], call);
    Control* mine = reinterpret_cast<Control*>(args.scratch);
    WaitAcquireSys(&mine->reached[step][blockIdx.x][threadIdx.x], call);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  __shared__ int first[33], length[32], place[32];  // in vectors of the list; by tensor
  const int t = threadIdx.x, b = blockIdx.x, world = args.world, tensors = args.tensors;
  if (t < 33) first[t] = 1 << 30;
  if (t < tensors) length[t] = Length(args, t), place[t] = args.place[t];
  __syncthreads();
  if (t == 0) {
    first[0] = 0;
    for (int k = 0; k < tensors; ++k) first[k + 1] = first[k] + (length[k] + 3) / 4;
  }
  __syncthreads();
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[b] + 1;
  const int vectors = first[tensors], each = (vectors + world - 1) / world;
  const auto data = [&](int rank) {
    return reinterpret_cast<float4*>(args.scratch_peers[rank] + kData);
  };
  const auto find = [&](int vector, int* left) {  // its place in `in` and `out`
    int k = 0;
    for (int half = 16; half > 0; half /= 2) {
      if (k + half < tensors && first[k + half] <= vector) k += half;
    }
    const int offset = 4 * (vector - first[k]);
    *left = length[k] - offset;
    return place[k] * args.width + offset;
  };
  int left;
  for (int j = b * kThreads + t; j < each; j += gridDim.x * kThreads) {
    for (int owner = 0; owner < world; ++owner) {
      if (j * world + owner >= vectors) break;
      const std::int64_t at = find(j * world + owner, &left);
      data(owner)[args.rank * each + j] = *reinterpret_cast<const float4*>(args.in + at);
    }
  }
  Meet(args, 0, call);
  for (int j = b * kThreads + t; j < each && j * world + args.rank < vectors;
       j += gridDim.x * kThreads) {
    float4 sum = {};
    for (int r = 0; r < world; ++r) {
      const float4 v = data(args.rank)[r * each + j];
      sum = {sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w};
    }
    for (int r = 0; r < world; ++r) data(r)[(world + args.rank) * each + j] = sum;
  }
  Meet(args, 1, call);
  for (int j = b * kThreads + t; j < each; j += gridDim.x * kThreads) {
    for (int owner = 0; owner < world; ++owner) {
      if (j * world + owner >= vectors) break;
      const float4 sum = data(args.rank)[(world + owner) * each + j];
      float* out = args.out + find(j * world + owner, &left);
      if (left >= 4) {
        *reinterpret_cast<float4*>(out) = sum;
        continue;
      }
      out[0] = sum.x;
      if (left > 1) out[1] = sum.y;
      if (left > 2) out[2] = sum.z;
    }
  }
  __syncthreads();
  if (t == 0) mine->calls[b] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  int vectors = 0;
  for (int t = 0; t < args.tensors; ++t) vectors += (Length(args, t) + 3) / 4;
  const int needed = (vectors / args.world + kThreads) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}
