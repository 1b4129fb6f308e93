// Kernel by kernel: all ranks meet and fetch keys and values of their column. A block per query
// and head makes weights and their sums, another kernel multiplies by w, then all meet again and
// add the products of their row of the grid.
#include <allranks/flags.h>
#include <allranks/numbers.h>

using namespace allranks;
using Bf16 = Number<__nv_bfloat16>;

constexpr int kDim = 64, kRun = 8, kData = 4096, kMaxKeys = 512;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

// What lies in scratch: keys and values by rank of the column, attention outputs, products.
struct Local {
  int each;  // vectors of a tensor
  uint4 *keys, *values;
  float *outputs, *products;
  __device__ Local(const Args& args, int rank)
      : each(static_cast<int>(args.heads * args.rows) * kRun),
        keys(reinterpret_cast<uint4*>(args.scratch_peers[rank] + kData)),
        values(keys + args.world * each),
        outputs(reinterpret_cast<float*>(values + args.world * each)),
        products(outputs + each * kRun) {}
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

__global__ void Fetch(Args args) {
  const Local local(args, args.rank);
  const int from = static_cast<int>(blockIdx.x * args.tp + args.rank % args.tp);
  for (int i = threadIdx.x; i < local.each; i += blockDim.x) {
    const int to = static_cast<int>(blockIdx.x) * local.each + i;
    local.keys[to] = reinterpret_cast<const uint4*>(args.k_peers[from])[i];
    local.values[to] = reinterpret_cast<const uint4*>(args.v_peers[from])[i];
  }
}

__global__ void Attend(Args args) {
  __shared__ float weights[kMaxKeys];
  const Local local(args, args.rank);
  const int rows = static_cast<int>(args.rows), head = blockIdx.x / rows;
  const int all = static_cast<int>(args.world / args.tp) * rows, d = threadIdx.x;
  const auto row_of = [&](int n) { return n / rows * local.each / kRun + head * rows + n % rows; };
  for (int n = d; n < all; n += kDim) {
    float dot = 0;
    for (int i = 0; i < kRun; ++i) {
      const auto q = reinterpret_cast<const Pack<__nv_bfloat16>*>(args.q)[blockIdx.x * kRun + i];
      const auto k = reinterpret_cast<Pack<__nv_bfloat16>*>(local.keys)[row_of(n) * kRun + i];
      for (int j = 0; j < kRun; ++j) dot += q[j] * k[j];
    }
    weights[n] = __expf(dot / 8);
  }
  __syncthreads();
  float sum = 0, total = 0;
  for (int n = 0; n < all; ++n) {
    const auto v = reinterpret_cast<std::uint16_t*>(local.values)[row_of(n) * kDim + d];
    sum += weights[n] * Bf16::ToFloat(v);
    total += weights[n];
  }
  local.outputs[blockIdx.x * kDim + d] = sum / total;
}

// A block per row, a thread per column.
__global__ void Multiply(Args args) {
  const Local local(args, args.rank);
  const int heads = static_cast<int>(args.heads), column = threadIdx.x;
  float sum = 0;
  for (int i = 0; i < heads * kRun; ++i) {
    const auto w = reinterpret_cast<const Pack<__nv_bfloat16>*>(args.w)[column * heads * kRun + i];
    const float* output = local.outputs + (i / kRun * args.rows + blockIdx.x) * kDim + i % kRun * 8;
    for (int j = 0; j < kRun; ++j) sum += output[j] * w[j];
  }
  local.products[blockIdx.x * blockDim.x + column] = sum;
}

__global__ void AddRanks(Args args) {
  const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int tp = static_cast<int>(args.tp), first = args.rank / tp * tp;
  float sum = 0;
  for (int r = first; r < first + tp; ++r) sum += Local(args, r).products[at];
  args.out[at] = sum;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int heads = static_cast<int>(args.heads), rows = static_cast<int>(args.rows);
  const int cols = static_cast<int>(args.cols);
  Meet<<<1, 32, 0, stream>>>(args);
  Fetch<<<static_cast<int>(args.world / args.tp), 128, 0, stream>>>(args);
  Attend<<<heads * rows, kDim, 0, stream>>>(args);
  Multiply<<<rows, cols, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  AddRanks<<<rows, cols, 0, stream>>>(args);
}
