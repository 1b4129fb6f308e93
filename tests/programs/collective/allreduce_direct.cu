// All-reduce by direct access to every peer's memory. one_shot: everyone pushes its whole input
// into a slot of its own at every peer and sums its slots. two_shot: everyone reduces one slice by
// reading the peers' inputs, and pushes the result to all of them.
//
// one_shot needs two sets of slots: a fast peer may push call e + 1 while this rank still sums call
// e, but call e + 2 only after this rank has met it in call e + 1. In two_shot the second meeting
// of a call already says that all have read, so one set of everything suffices.
//
// run one_shot.2.processes: | 2 processes one_shot
// run one_shot.3.threads: | 3 threads one_shot
// run one_shot.7.processes: | 7 processes one_shot
// run one_shot.8.threads: | 8 threads one_shot
// run two_shot.2.threads: | 2 threads two_shot
// run two_shot.3.processes: | 3 processes two_shot
// run two_shot.4.mixed: | 4 mixed two_shot
// run two_shot.5.threads: | 5 threads two_shot
// run two_shot.8.processes: | 8 processes two_shot
// run two_shot.8.slow_link: --fault link:gpu3-nvswitch=0.02@50us | 8 threads two_shot
#include "world.h"

namespace {

constexpr int kBlocks = 4, kThreads = 128, kCount = 3001, kCalls = 4;
constexpr int kStride = kBlocks * kThreads;

struct Buffers {
  float slots[2][kMaxRanks][kCount];  // one_shot
  float input[kCount];                // two_shot
  float result[kCount];
};

float Input(int rank, int call, int i) { return float((rank * 37 + call * 11 + i) % 2003 - 1000); }

__global__ void OneShot(Peers<Buffers> buffers, Peers<Meeting<kBlocks>> meeting, int rank,
                        int ranks, uint32_t epoch, const float* input, float* output) {
  const int first = blockIdx.x * kThreads + threadIdx.x;
  for (int step = 0; step < ranks; ++step) {
    // Everyone starts with another peer, so that no port is hit by all at once.
    float* slot = buffers[(rank + step) % ranks]->slots[epoch & 1][rank];
    for (int i = first; i < kCount; i += kStride) slot[i] = input[i];
  }
  Meet(meeting, rank, ranks, epoch);
  for (int i = first; i < kCount; i += kStride) {
    float sum = 0;
    for (int r = 0; r < ranks; ++r) sum += buffers[rank]->slots[epoch & 1][r][i];
    output[i] = sum;
  }
}

// Block b works on the same elements of each slice in every phase and on every rank; so blocks meet
// their namesakes only.
template <class Do>
__device__ void InSlice(int part, int parts, Do work) {
  const Slice slice = SliceOf(kCount, part, parts);
  for (int i = slice.begin + blockIdx.x * kThreads + threadIdx.x; i < slice.end; i += kStride)
    work(i);
}

__global__ void TwoShot(Peers<Buffers> buffers, Peers<Meeting<kBlocks>> meeting, int rank,
                        int ranks, uint32_t epoch, const float* input, float* output) {
  Buffers* mine = buffers[rank];
  for (int part = 0; part < ranks; ++part)
    InSlice(part, ranks, [=](int i) { mine->input[i] = input[i]; });
  Meet(meeting, rank, ranks, 2 * epoch);
  InSlice(rank, ranks, [=](int i) {
    float sum = 0;
    for (int r = 0; r < ranks; ++r) sum += buffers[r]->input[i];
    for (int r = 0; r < ranks; ++r) buffers[(rank + r) % ranks]->result[i] = sum;
  });
  Meet(meeting, rank, ranks, 2 * epoch + 1);
  for (int part = 0; part < ranks; ++part)
    InSlice(part, ranks, [=](int i) { output[i] = mine->result[i]; });
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  const bool one_shot = setup.scheme == "one_shot";
  return RunWorld(setup, [=](World& world) {
    const auto buffers = world.Share<Buffers>();
    const auto meeting = world.Share<Meeting<kBlocks>>();
    std::vector<float> inputs;
    for (int call = 0; call < kCalls; ++call) {
      for (int i = 0; i < kCount; ++i) inputs.push_back(Input(world.rank(), call, i));
    }
    const float* input = world.Allocate(inputs);
    float* output = world.Allocate<float>(inputs.size());
    for (int call = 0; call < kCalls; ++call) {
      (one_shot ? OneShot : TwoShot)<<<kBlocks, kThreads, 0, world.stream()>>>(
          buffers, meeting, world.rank(), world.ranks(), call + 1, input + call * kCount,
          output + call * kCount);
      CUDA_CHECK_LAUNCH();
    }
    RequireElements(world, "sum", kCalls, world.Result(output, inputs.size()), [&](int k) {
      float sum = 0;
      for (int r = 0; r < world.ranks(); ++r) sum += Input(r, k / kCount, k % kCount);
      return sum;
    });
  });
}
