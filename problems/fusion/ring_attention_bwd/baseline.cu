// Kernel by kernel: all ranks meet and fetch the tensors of their group. A block per query makes a
// row of dq, a block per key rows of dk and dv; then all meet again and add column sums of dq.
#include <allranks/flags.h>
#include <allranks/numbers.h>

using namespace allranks;
using Bf16 = Number<__nv_bfloat16>;

constexpr int kDim = 64, kRun = 8, kSums = 256, kData = 4096, kMaxOthers = 512;

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
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

// Tensors of the group in local memory: by tensor (q, k, v, dout), rank of the group, head and row.
__device__ uint4* Local(const Args& args, int tensor, int source) {
  const int each = static_cast<int>(args.heads * args.rows) * kRun;
  return reinterpret_cast<uint4*>(args.scratch + kData) + (tensor * args.world + source) * each;
}

__global__ void Fetch(Args args) {
  const int ring = static_cast<int>(args.ring), first = args.rank / ring * ring;
  const int each = static_cast<int>(args.heads * args.rows) * kRun;
  const int source = static_cast<int>(blockIdx.x), from = first + source;
  const void* tensors[] = {args.q_peers[from], args.k_peers[from], args.v_peers[from],
                           args.dout_peers[from]};
  for (int tensor = 0; tensor < 4; ++tensor) {
    for (int i = threadIdx.x; i < each; i += blockDim.x) {
      Local(args, tensor, source)[i] = static_cast<const uint4*>(tensors[tensor])[i];
    }
  }
}

__device__ float Dot(const uint4* a, const uint4* b) {
  float dot = 0;
  for (int i = 0; i < kRun; ++i) {
    const uint4 x = a[i], y = b[i];
    const std::uint32_t xs[] = {x.x, x.y, x.z, x.w}, ys[] = {y.x, y.y, y.z, y.w};
    for (int j = 0; j < 4; ++j) {
      dot += __uint_as_float(xs[j] << 16) * __uint_as_float(ys[j] << 16);
      dot += __uint_as_float(xs[j] & 0xffff0000u) * __uint_as_float(ys[j] & 0xffff0000u);
    }
  }
  return dot;
}

__global__ void Gradients(Args args, bool of_keys) {
  __shared__ float weights[kMaxOthers], slopes[kMaxOthers];
  const int rows = static_cast<int>(args.rows), ring = static_cast<int>(args.ring);
  const int first = args.rank / ring * ring, size = min(ring, args.world - first);
  const int head = blockIdx.x / rows, own = blockIdx.x % rows * size + args.rank - first;
  const int begin = of_keys ? own : 0, end = of_keys ? size * rows : own + 1;
  for (int n = begin + threadIdx.x; n < end; n += kDim) {
    const int query = of_keys ? n : own, key = of_keys ? own : n;  // positions
    const int r = query % size, s = key % size;
    const int i = head * rows + query / size, j = head * rows + key / size;
    const auto dot = [&](int of_query, int of_key) {
      return Dot(Local(args, of_query, r) + i * kRun, Local(args, of_key, s) + j * kRun);
    };
    weights[n] = __expf(dot(0, 1) / 8 - args.lse_peers[first + r][i]);
    slopes[n] = weights[n] * (dot(3, 2) - args.delta_peers[first + r][i]);
  }
  __syncthreads();
  float by_slope = 0, by_weight = 0;
  for (int n = begin; n < end; ++n) {
    const int at = (head * rows + n / size) * kDim + static_cast<int>(threadIdx.x);
    const auto element = [&](int tensor) {
      return Bf16::ToFloat(reinterpret_cast<std::uint16_t*>(Local(args, tensor, n % size))[at]);
    };
    by_slope += slopes[n] * element(of_keys ? 0 : 1);
    if (of_keys) by_weight += weights[n] * element(3);
  }
  const int at = static_cast<int>(blockIdx.x * kDim + threadIdx.x);
  (of_keys ? args.dk : args.dq)[at] = by_slope / 8;
  if (of_keys) args.dv[at] = by_weight;
}

__global__ void AddRows(Args args) {
  float sum = 0;
  for (int i = 0; i < args.rows; ++i) {
    sum += args.dq[(blockIdx.x * args.rows + i) * kDim + threadIdx.x];
  }
  reinterpret_cast<float*>(args.scratch + kSums)[blockIdx.x * kDim + threadIdx.x] = sum;
}

__global__ void AddRanks(Args args) {
  const int at = static_cast<int>(blockIdx.x * kDim + threadIdx.x);
  float sum = 0;
  for (int r = 0; r < args.world; ++r) {
    sum += reinterpret_cast<const float*>(args.scratch_peers[r] + kSums)[at];
  }
  args.dbias[at] = sum;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int heads = static_cast<int>(args.heads), rows = static_cast<int>(args.rows);
  Meet<<<1, 32, 0, stream>>>(args);
  const int ring = static_cast<int>(args.ring), first = args.rank / ring * ring;
  const int size = args.world - first < ring ? args.world - first : ring;
  Fetch<<<size, 128, 0, stream>>>(args);
  Gradients<<<heads * rows, kDim, 0, stream>>>(args, false);
  Gradients<<<heads * rows, kDim, 0, stream>>>(args, true);
  AddRows<<<heads, kDim, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  AddRanks<<<heads, kDim, 0, stream>>>(args);
}
