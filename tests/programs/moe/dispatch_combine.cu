// Mixture of experts: each rank owns two experts and some tokens; every token goes to two experts,
// wherever they are, and comes back as the weighted sum of their answers. slots: each source has
// room of its own at every expert and sends its count last (low latency, room for the worst case).
// atomic: senders reserve rows at the expert by an atomic in its memory (compact, any order).
//
// run slots.2.processes: | 2 processes slots
// run slots.3.threads: | 3 threads slots
// run slots.8.processes: | 8 processes slots
// run atomic.2.threads: | 2 threads atomic
// run atomic.5.processes: | 5 processes atomic
// run atomic.8.mixed: | 8 mixed atomic
// run atomic.8.slow_links: --fault link:gpu0-nvswitch=0.5 --fault link:gpu7-nvswitch=0.01 | 8 threads atomic
#include "world.h"

namespace {

constexpr int kExperts = 2, kTokens = 24, kWidth = 32, kCalls = 3, kThreads = 128;
constexpr int kWarps = kThreads / 32, kPicks = 2;
constexpr int kRoom = kMaxRanks * kTokens;  // rows per expert: all tokens of all ranks

struct Row {
  uint32_t source, token, pick;
  int data[kWidth];
};
struct Memory {
  uint32_t counts[kExperts][kMaxRanks];  // slots: rows from each source
  uint32_t used[kCalls][kExperts];       // atomic: rows reserved
  Row rows[kExperts][kRoom];
  int answers[kTokens][kPicks][kWidth];
};

__host__ __device__ int Value(int rank, int call, int token, int i) {
  return (rank * 131 + call * 17 + token * 7 + i * 3) % 1000;
}
// Uneven on purpose: low experts are popular. The two picks of a token differ.
__host__ __device__ int Pick(int rank, int call, int token, int pick, int experts) {
  const int hash = (rank * 37 + call * 11 + token * 29) % 101;
  const int first = hash * hash % experts * (hash % 3) / 2;
  return pick == 0 ? first : (first + 1 + hash % (experts - 1)) % experts;
}
__host__ __device__ int Expert(int expert, int x) { return x * (expert + 1) + expert; }
__host__ __device__ int Combined(int first, int second) { return 3 * first + second; }

__device__ void Send(Row* row, int rank, int call, int token, int pick) {
  const int lane = threadIdx.x % 32;
  row->data[lane] = Value(rank, call, token, lane);
  if (lane == 0) {
    row->source = rank;
    row->token = token;
    row->pick = pick;
  }
}

// One warp per token and pick.
__device__ void DispatchAtomic(Peers<Memory> memory, int rank, int ranks, int call) {
  const int lane = threadIdx.x % 32;
  for (int n = threadIdx.x / 32; n < kTokens * kPicks; n += kWarps) {
    const int token = n / kPicks, pick = n % kPicks;
    const int expert = Pick(rank, call, token, pick, ranks * kExperts);
    Memory* home = memory[expert / kExperts];
    uint32_t row = 0;
    if (lane == 0) row = atomicAdd_system(&home->used[call][expert % kExperts], 1);
    row = __shfl_sync(~0u, row, 0);
    Send(&home->rows[expert % kExperts][row], rank, call, token, pick);
  }
}

// One warp per expert of the world, which keeps the rows of one source in order.
__device__ void DispatchSlots(Peers<Memory> memory, int rank, int ranks, int call) {
  for (int expert = threadIdx.x / 32; expert < ranks * kExperts; expert += kWarps) {
    Memory* home = memory[expert / kExperts];
    uint32_t count = 0;
    for (int n = 0; n < kTokens * kPicks; ++n) {
      if (Pick(rank, call, n / kPicks, n % kPicks, ranks * kExperts) != expert) continue;
      Send(&home->rows[expert % kExperts][rank * kTokens + count], rank, call, n / kPicks,
           n % kPicks);
      ++count;
    }
    if (threadIdx.x % 32 == 0) home->counts[expert % kExperts][rank] = count;
  }
}

// The answer goes straight to the token's home.
__device__ void Answer(Peers<Memory> memory, int expert, const Row* row) {
  const int lane = threadIdx.x % 32;
  memory[row->source]->answers[row->token][row->pick][lane] = Expert(expert, row->data[lane]);
}

// One block per rank.
__global__ void Layer(Peers<Memory> memory, Peers<Meeting<1>> meeting, int rank, int ranks,
                      int call, bool slots, int* output) {
  Memory* mine = memory[rank];
  if (slots) {
    DispatchSlots(memory, rank, ranks, call);
  } else {
    DispatchAtomic(memory, rank, ranks, call);
  }
  Meet(meeting, rank, ranks, 2 * call + 1);
  for (int local = 0; local < kExperts; ++local) {
    const int expert = rank * kExperts + local;
    if (slots) {
      for (int source = 0; source < ranks; ++source) {
        for (uint32_t n = threadIdx.x / 32; n < mine->counts[local][source]; n += kWarps)
          Answer(memory, expert, &mine->rows[local][source * kTokens + n]);
      }
    } else {
      for (uint32_t n = threadIdx.x / 32; n < mine->used[call][local]; n += kWarps)
        Answer(memory, expert, &mine->rows[local][n]);
    }
  }
  Meet(meeting, rank, ranks, 2 * call + 2);
  for (int i = threadIdx.x; i < kTokens * kWidth; i += kThreads)
    output[i] = Combined(mine->answers[i / kWidth][0][i % kWidth],
                         mine->answers[i / kWidth][1][i % kWidth]);
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  return RunWorld(setup, [&](World& world) {
    const int rank = world.rank(), ranks = world.ranks();
    const auto memory = world.Share<Memory>();
    const auto meeting = world.Share<Meeting<1>>();
    constexpr int kSize = kTokens * kWidth;
    int* output = world.Allocate<int>(kCalls * kSize);
    for (int call = 0; call < kCalls; ++call) {
      Layer<<<1, kThreads, 0, world.stream()>>>(memory, meeting, rank, ranks, call,
                                                setup.scheme == "slots", output + call * kSize);
      CUDA_CHECK_LAUNCH();
    }
    RequireElements(world, "token", kCalls, world.Result(output, kCalls * kSize), [&](int k) {
      const int call = k / kSize, token = k % kSize / kWidth;
      const int x = Value(rank, call, token, k % kWidth);
      return Combined(Expert(Pick(rank, call, token, 0, ranks * kExperts), x),
                      Expert(Pick(rank, call, token, 1, ranks * kExperts), x));
    });
  });
}
