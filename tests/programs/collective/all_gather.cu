// All-gather by kernels: push (everyone stores its block into all others' memory, then meets them)
// and pull (everyone publishes, meets, reads all others). Blocks go as 16-byte vectors with a rest.
//
// push meets before it writes, because a peer may still read the previous result; pull keeps two
// source buffers instead, so that one meeting per call suffices.
//
// run push.2.threads: | 2 threads push
// run push.3.processes: | 3 processes push
// run push.7.threads: | 7 threads push
// run push.8.processes: | 8 processes push
// run pull.2.processes: | 2 processes pull
// run pull.5.threads: | 5 threads pull
// run pull.6.mixed: | 6 mixed pull
// run pull.7.processes: | 7 processes pull
#include "world.h"

namespace {

constexpr int kBlocks = 3, kThreads = 96, kWords = 1003, kCalls = 4;
constexpr int kStride = 1004;  // words between ranks' blocks: a multiple of 16 bytes

struct Buffers {
  alignas(16) uint32_t gathered[kMaxRanks * kStride];
  alignas(16) uint32_t source[2][kStride];
};

uint32_t Input(int rank, int call, int i) { return rank * 0x01000193u + call * 0x9e3779b9u + i; }

__device__ void Copy(uint32_t* to, const uint32_t* from) {
  constexpr int kQuads = kWords / 4;
  const int first = blockIdx.x * kThreads + threadIdx.x;
  for (int i = first; i < kQuads; i += kBlocks * kThreads)
    reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
  if (first < kWords % 4) to[4 * kQuads + first] = from[4 * kQuads + first];
}

__global__ void Push(Peers<Buffers> buffers, Peers<Meeting<kBlocks>> meeting, int rank, int ranks,
                     uint32_t epoch, const uint32_t* input, uint32_t* output) {
  Meet(meeting, rank, ranks, 2 * epoch);
  for (int step = 0; step < ranks; ++step)
    Copy(buffers[(rank + step) % ranks]->gathered + rank * kStride, input);
  Meet(meeting, rank, ranks, 2 * epoch + 1);
  for (int r = 0; r < ranks; ++r) Copy(output + r * kStride, buffers[rank]->gathered + r * kStride);
}

__global__ void Pull(Peers<Buffers> buffers, Peers<Meeting<kBlocks>> meeting, int rank, int ranks,
                     uint32_t epoch, const uint32_t* input, uint32_t* output) {
  Copy(buffers[rank]->source[epoch & 1], input);
  Meet(meeting, rank, ranks, epoch);
  for (int step = 0; step < ranks; ++step) {
    const int r = (rank + step) % ranks;
    Copy(output + r * kStride, buffers[r]->source[epoch & 1]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  return RunWorld(setup, [&](World& world) {
    const auto buffers = world.Share<Buffers>();
    const auto meeting = world.Share<Meeting<kBlocks>>();
    std::vector<uint32_t> inputs;
    for (int k = 0; k < kCalls * kStride; ++k)
      inputs.push_back(Input(world.rank(), k / kStride, k % kStride));
    const uint32_t* input = world.Allocate(inputs);
    const int size = world.ranks() * kStride;
    uint32_t* output = world.Allocate<uint32_t>(kCalls * size);
    for (int call = 0; call < kCalls; ++call) {
      (setup.scheme == "push" ? Push : Pull)<<<kBlocks, kThreads, 0, world.stream()>>>(
          buffers, meeting, world.rank(), world.ranks(), call + 1, input + call * kStride,
          output + call * size);
      CUDA_CHECK_LAUNCH();
    }
    RequireElements(world, "gathered", kCalls, world.Result(output, kCalls * size), [&](int k) {
      const int call = k / size, r = k % size / kStride, i = k % kStride;
      return i < kWords ? Input(r, call, i) : 0;
    });
  });
}
