// Kernel by kernel: in every round sums of the own samples, a meeting, the sums of all ranks, and a
// meeting before sums are overwritten; then the new factors of the own samples.
#include <allranks/flags.h>

constexpr int kThreads = 128;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
  float sums[128], u[128], v[64];    // sums: read by peers
};

__global__ void Columns(Args args, bool first) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::int64_t j = threadIdx.x;
  if (j >= args.protos) return;
  float sum = 0;
  for (std::int64_t i = 0; i < args.samples; ++i) {
    sum += expf(8 * args.scores[i * args.protos + j]) * (first ? 1 : mine->v[i]);
  }
  mine->sums[j] = sum;
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

__global__ void Gather(Args args) {
  if (threadIdx.x >= args.protos) return;
  float sum = 0;
  for (int r = 0; r < args.world; ++r) {
    sum += reinterpret_cast<const Control*>(args.scratch_peers[r])->sums[threadIdx.x];
  }
  reinterpret_cast<Control*>(args.scratch)->u[threadIdx.x] = 1 / sum;
}

// A thread has a sample.
__global__ void Rows(Args args, bool last) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::int64_t i = threadIdx.x;
  if (i >= args.samples) return;
  const float* scores = args.scores + i * args.protos;
  float sum = 0;
  for (std::int64_t j = 0; j < args.protos; ++j) sum += expf(8 * scores[j]) * mine->u[j];
  mine->v[i] = 1 / sum;
  for (std::int64_t j = 0; last && j < args.protos; ++j) {
    args.q[i * args.protos + j] = expf(8 * scores[j]) * mine->u[j] / sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  for (int round = 0; round < 3; ++round) {
    Columns<<<1, kThreads, 0, stream>>>(args, round == 0);
    Meet<<<1, 32, 0, stream>>>(args);
    Gather<<<1, kThreads, 0, stream>>>(args);
    Meet<<<1, 32, 0, stream>>>(args);
    Rows<<<1, kThreads, 0, stream>>>(args, round == 2);
  }
}
