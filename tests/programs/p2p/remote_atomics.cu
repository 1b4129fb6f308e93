// Atomics in other devices' memory, all ranks at once. histogram: bins lie in slices on all ranks.
// tickets: all threads of all ranks draw numbers from one counter; every number must be drawn once.
// list: all push nodes onto one lock-free stack by compare-and-swap of 64 bits.
//
// run histogram.2.processes: | 2 processes histogram
// run histogram.3.threads: | 3 threads histogram
// run histogram.8.processes: | 8 processes histogram
// run tickets.2.threads: | 2 threads tickets
// run tickets.5.processes: | 5 processes tickets
// run tickets.8.threads: | 8 threads tickets
// run list.3.processes: | 3 processes list
// run list.7.threads: | 7 threads list
#include "world.h"

namespace {

constexpr int kBlocks = 2, kThreads = 32, kPerThread = 4, kBins = 37;
constexpr int kPerRank = kBlocks * kThreads * kPerThread;
constexpr uint32_t kHost = 1;  // the rank with the counter and the stack's head

struct Memory {
  uint32_t bins[kBins];
  uint32_t next_ticket;
  unsigned long long head;                // node number + 1, tagged by a count of pushes
  uint32_t owners[kMaxRanks * kPerRank];  // of tickets: thread + 1
  uint32_t next[kMaxRanks * kPerRank];    // the stack's nodes, on every rank its own part
};

uint32_t Sample(int rank, int i) { return (rank * 7919u + i * 104729u) % 1000003u; }

__global__ void Histogram(Peers<Memory> memory, int, int ranks, const uint32_t* samples) {
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < kPerRank; i += kBlocks * kThreads) {
    const uint32_t bin = samples[i] % kBins;
    atomicAdd_system(&memory[bin % ranks]->bins[bin], samples[i]);
  }
}

__global__ void Tickets(Peers<Memory> memory, int rank, int, const uint32_t*) {
  const uint32_t thread = rank * kBlocks * kThreads + blockIdx.x * kThreads + threadIdx.x;
  for (int k = 0; k < kPerThread; ++k) {
    const uint32_t ticket = atomicAdd_system(&memory[kHost]->next_ticket, 1);
    // Counted rather than stored, so that a number drawn twice shows.
    atomicAdd_system(&memory[kHost]->owners[ticket], thread + 1);
  }
}

__global__ void Push(Peers<Memory> memory, int rank, int, const uint32_t*) {
  for (int k = blockIdx.x * kThreads + threadIdx.x; k < kPerRank; k += kBlocks * kThreads) {
    const uint32_t node = rank * kPerRank + k;
    unsigned long long head = *const_cast<volatile unsigned long long*>(&memory[kHost]->head);
    unsigned long long seen;
    for (;;) {
      memory[rank]->next[node] = uint32_t(head);
      __threadfence_system();  // the node before the head that leads to it
      seen = atomicCAS_system(&memory[kHost]->head, head, ((head >> 32) + 1) << 32 | (node + 1));
      if (seen == head) break;
      head = seen;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  return RunWorld(setup, [&](World& world) {
    const int rank = world.rank(), ranks = world.ranks();
    const auto memory = world.Share<Memory>();
    std::vector<uint32_t> samples;
    for (int i = 0; i < kPerRank; ++i) samples.push_back(Sample(rank, i));
    const uint32_t* input = world.Allocate(samples);
    (setup.scheme == "histogram" ? Histogram
     : setup.scheme == "tickets"
         ? Tickets
         : Push)<<<kBlocks, kThreads, 0, world.stream()>>>(memory, rank, ranks, input);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaStreamSynchronize(world.stream()));
    world.Barrier();
    if (setup.scheme == "histogram") {
      std::vector<uint32_t> expected(kBins);
      for (int r = 0; r < ranks; ++r) {
        for (int i = 0; i < kPerRank; ++i) expected[Sample(r, i) % kBins] += Sample(r, i);
      }
      for (int bin = 0; bin < kBins; ++bin) {
        const uint32_t got = Fetch(&memory[bin % ranks]->bins[bin]);
        REQUIRE(got == expected[bin], "rank %d, bin %d: %u, expected %u", rank, bin, got,
                expected[bin]);
      }
    } else if (setup.scheme == "tickets") {
      const Memory host = Fetch(memory[kHost]);
      const uint32_t drawn = ranks * kPerRank;
      REQUIRE(host.next_ticket == drawn, "rank %d: %u drawn", rank, host.next_ticket);
      std::vector<int> of_thread(ranks * kBlocks * kThreads + 1);
      for (uint32_t t = 0; t < drawn; ++t) {
        REQUIRE(host.owners[t] >= 1 && host.owners[t] < of_thread.size(), "ticket %u: %u", t,
                host.owners[t]);
        ++of_thread[host.owners[t]];
      }
      for (size_t t = 1; t < of_thread.size(); ++t)
        REQUIRE(of_thread[t] == kPerThread, "thread %zu has %d tickets", t, of_thread[t]);
    } else {
      std::vector<uint32_t> next(ranks * kPerRank);
      for (int r = 0; r < ranks; ++r)
        CUDA_CHECK(cudaMemcpy(next.data() + r * kPerRank, memory[r]->next + r * kPerRank,
                              kPerRank * sizeof(uint32_t), cudaMemcpyDeviceToHost));
      const unsigned long long head = Fetch(&memory[kHost]->head);
      REQUIRE(head >> 32 == next.size(), "rank %d: %llu pushes", rank, head >> 32);
      std::vector<bool> seen(next.size());
      size_t length = 0;
      for (uint32_t node = uint32_t(head); node != 0; node = next[node - 1], ++length) {
        REQUIRE(node <= next.size() && !seen[node - 1], "rank %d: node %u again", rank, node);
        seen[node - 1] = true;
      }
      REQUIRE(length == next.size(), "rank %d: %zu of %zu nodes", rank, length, next.size());
    }
    world.Barrier();
  });
}
