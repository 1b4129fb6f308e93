// Kernel by kernel: scores of all positions, one thread per position; partial outputs, one thread
// per dimension; a meeting; the owner's merge of all partial outputs; and a meeting, after which
// they may be overwritten.
#include <allranks/flags.h>
#include <allranks/numbers.h>

using namespace allranks;
using Bf16 = Number<__nv_bfloat16>;

constexpr int kDim = 64, kParts = 256, kThreads = 256;
constexpr int kMaxLength = 4096;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

__device__ float* PartOf(const Args& args, int at, int head) {
  return reinterpret_cast<float*>(args.scratch_peers[at] + kParts) + head * (kDim + 2);
}

__global__ void Attend(Args args) {
  __shared__ float scores[kMaxLength];
  const int head = blockIdx.x, used = args.used[0];
  const auto* q = reinterpret_cast<const std::uint16_t*>(args.q) + head * kDim;
  const auto* k = reinterpret_cast<const std::uint16_t*>(args.k);
  const auto* v = reinterpret_cast<const std::uint16_t*>(args.v);
  for (int i = threadIdx.x; i < used; i += kThreads) {
    float dot = 0;
    for (int d = 0; d < kDim; ++d) dot += Bf16::ToFloat(q[d]) * Bf16::ToFloat(k[i * kDim + d]);
    scores[i] = dot / 8;
  }
  __syncthreads();
  if (threadIdx.x >= kDim) return;
  float maximum = -1e30, sum = 0, output = 0;
  for (int i = 0; i < used; ++i) maximum = fmaxf(maximum, scores[i]);
  for (int i = 0; i < used; ++i) {
    const float weight = __expf(scores[i] - maximum);
    sum += weight;
    output += weight * Bf16::ToFloat(v[i * kDim + threadIdx.x]);
  }
  float* part = PartOf(args, args.rank, head);
  part[threadIdx.x] = output;
  if (threadIdx.x == 0) part[kDim] = maximum, part[kDim + 1] = sum;
}

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void MergeParts(Args args) {
  const int head = args.rank * static_cast<int>(args.per) + blockIdx.x;
  float maximum = -1e30, sum = 0, output = 0;
  for (int r = 0; r < args.world; ++r) maximum = fmaxf(maximum, PartOf(args, r, head)[kDim]);
  for (int r = 0; r < args.world; ++r) {
    const float* part = PartOf(args, r, head);
    const float factor = __expf(part[kDim] - maximum);
    sum += factor * part[kDim + 1];
    output += factor * part[threadIdx.x];
  }
  args.out[blockIdx.x * kDim + threadIdx.x] = sum > 0 ? output / sum : 0;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int heads = static_cast<int>(args.world * args.per);
  Attend<<<heads, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  MergeParts<<<args.per, kDim, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
