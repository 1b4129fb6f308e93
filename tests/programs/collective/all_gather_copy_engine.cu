// All-gather without a kernel: copy engines move the blocks, values in memory order the streams.
// Each rank copies its block to every peer and raises a flag there by a stream's memory operation;
// its stream then waits for the flags of all peers. A second round of flags says "read", after
// which the buffers may be overwritten.
//
// run 2.threads: | 2 threads
// run 3.processes: | 3 processes
// run 5.threads: | 5 threads
// run 8.processes: | 8 processes
#include "driver.h"
#include "world.h"

namespace {

constexpr int kWords = 4096, kCalls = 4;

struct Flags {
  uint32_t arrived[kMaxRanks], read[kMaxRanks];
};

uint32_t Input(int rank, int call, int i) { return (rank + 1) * 1000000u + call * 10000u + i; }

CUdeviceptr Address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

}  // namespace

int main(int argc, char** argv) {
  return RunWorld(argc, argv, [](World& world) {
    const auto write = DRIVER(cuStreamWriteValue32);
    const auto batch = DRIVER(cuStreamBatchMemOp);
    const int rank = world.rank(), ranks = world.ranks();
    const auto gathered = world.Share<uint32_t>(kMaxRanks * kWords);
    const auto flags = world.Share<Flags>();
    uint32_t* results = world.Allocate<uint32_t>(kCalls * ranks * kWords);
    std::vector<uint32_t> inputs;
    for (int k = 0; k < kCalls * kWords; ++k) inputs.push_back(Input(rank, k / kWords, k % kWords));
    const uint32_t* input = world.Allocate(inputs);

    // The stream goes on when all peers' flags have reached `call`.
    const auto wait_all = [&](const uint32_t* peers_flags, uint32_t call) {
      std::vector<CUstreamBatchMemOpParams> waits(ranks);
      for (int peer = 0; peer < ranks; ++peer) {
        waits[peer].waitValue = {};
        waits[peer].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
        waits[peer].waitValue.address = Address(peers_flags + peer);
        waits[peer].waitValue.value = call;
        waits[peer].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
      }
      DRIVER_CHECK(batch(world.stream(), ranks, waits.data(), 0));
    };
    for (int call = 0; call < kCalls; ++call) {
      world.Linger(call);
      if (call > 0) wait_all(flags[rank]->read, call);
      for (int step = 0; step < ranks; ++step) {
        const int peer = (rank + step) % ranks;
        CUDA_CHECK(cudaMemcpyAsync(gathered[peer] + rank * kWords, input + call * kWords,
                                   kWords * sizeof(uint32_t), cudaMemcpyDeviceToDevice,
                                   world.stream()));
        DRIVER_CHECK(write(world.stream(), Address(&flags[peer]->arrived[rank]), call + 1, 0));
      }
      wait_all(flags[rank]->arrived, call + 1);
      CUDA_CHECK(cudaMemcpyAsync(results + call * ranks * kWords, gathered[rank],
                                 ranks * kWords * sizeof(uint32_t), cudaMemcpyDeviceToDevice,
                                 world.stream()));
      for (int peer = 0; peer < ranks; ++peer)
        DRIVER_CHECK(write(world.stream(), Address(&flags[peer]->read[rank]), call + 1, 0));
    }
    RequireElements(world, "gathered", kCalls, world.Result(results, kCalls * ranks * kWords),
                    [&](int k) {
                      const int call = k / (ranks * kWords), at = k % (ranks * kWords);
                      return Input(at / kWords, call, at % kWords);
                    });
  });
}
