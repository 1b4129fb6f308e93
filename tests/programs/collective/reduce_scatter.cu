// Reduce-scatter: pull (the owner of a slice reads it from all peers) and atomic (everyone adds its
// contribution to the owner's accumulator by reductions in remote memory).
//
// pull meets twice per call, or a peer would overwrite its input while it is read. atomic has three
// accumulators: one is added to, one is read, and the owner clears the one that comes next.
//
// run pull.2.processes: | 2 processes pull
// run pull.3.threads: | 3 threads pull
// run pull.8.processes: | 8 processes pull
// run atomic.2.threads: | 2 threads atomic
// run atomic.5.processes: | 5 processes atomic
// run atomic.8.threads: | 8 threads atomic
#include "world.h"

namespace {

constexpr int kBlocks = 2, kThreads = 128, kCount = 1801, kCalls = 5;
constexpr int kMostOwned = kCount / 2 + 1;

struct Buffers {
  float input[kCount];
  float accumulator[3][kMostOwned];
};

float Input(int rank, int call, int i) {
  return float((rank * 101 + call * 53 + i * 7) % 512 - 256);
}

__device__ void AddSys(float* to, float value) {
  asm volatile("red.relaxed.sys.global.add.f32 [%0], %1;" ::"l"(to), "f"(value) : "memory");
}

__global__ void Pull(Peers<Buffers> buffers, Peers<Meeting<kBlocks>> meeting, int rank, int ranks,
                     uint32_t call, const float* input, float* output) {
  const int first = blockIdx.x * kThreads + threadIdx.x;
  for (int part = 0; part < ranks; ++part) {
    const Slice slice = SliceOf(kCount, part, ranks);
    for (int i = slice.begin + first; i < slice.end; i += kBlocks * kThreads)
      buffers[rank]->input[i] = input[i];
  }
  Meet(meeting, rank, ranks, 2 * call + 1);
  const Slice slice = SliceOf(kCount, rank, ranks);
  for (int i = slice.begin + first; i < slice.end; i += kBlocks * kThreads) {
    float sum = 0;
    for (int r = 0; r < ranks; ++r) sum += buffers[r]->input[i];
    output[i - slice.begin] = sum;
  }
  Meet(meeting, rank, ranks, 2 * call + 2);
}

__global__ void Atomic(Peers<Buffers> buffers, Peers<Meeting<kBlocks>> meeting, int rank, int ranks,
                       uint32_t call, const float* input, float* output) {
  const int first = blockIdx.x * kThreads + threadIdx.x;
  const Slice own = SliceOf(kCount, rank, ranks);
  // Set call + 1 was last read in call - 2, and is first added to after the meeting of this call.
  for (int i = first; i < own.size(); i += kBlocks * kThreads)
    buffers[rank]->accumulator[(call + 1) % 3][i] = 0;
  for (int step = 0; step < ranks; ++step) {
    const int owner = (rank + step) % ranks;
    const Slice slice = SliceOf(kCount, owner, ranks);
    for (int i = first; i < slice.size(); i += kBlocks * kThreads)
      AddSys(&buffers[owner]->accumulator[call % 3][i], input[slice.begin + i]);
  }
  Meet(meeting, rank, ranks, call + 1);
  for (int i = first; i < own.size(); i += kBlocks * kThreads)
    output[i] = buffers[rank]->accumulator[call % 3][i];
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  return RunWorld(setup, [&](World& world) {
    const auto buffers = world.Share<Buffers>();
    const auto meeting = world.Share<Meeting<kBlocks>>();
    const Slice own = SliceOf(kCount, world.rank(), world.ranks());
    std::vector<float> inputs;
    for (int k = 0; k < kCalls * kCount; ++k)
      inputs.push_back(Input(world.rank(), k / kCount, k % kCount));
    const float* input = world.Allocate(inputs);
    float* output = world.Allocate<float>(kCalls * own.size());
    for (int call = 0; call < kCalls; ++call) {
      (setup.scheme == "pull" ? Pull : Atomic)<<<kBlocks, kThreads, 0, world.stream()>>>(
          buffers, meeting, world.rank(), world.ranks(), call, input + call * kCount,
          output + call * own.size());
      CUDA_CHECK_LAUNCH();
    }
    RequireElements(world, "sum", kCalls, world.Result(output, kCalls * own.size()), [&](int k) {
      float sum = 0;
      for (int r = 0; r < world.ranks(); ++r)
        sum += Input(r, k / own.size(), own.begin + k % own.size());
      return sum;
    });
  });
}
