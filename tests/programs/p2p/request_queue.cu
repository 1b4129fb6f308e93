// A persistent kernel that serves requests until it is told to stop. host: the host writes requests
// into a ring in pinned memory and polls for the answers there. peer: kernels on all other ranks
// are clients, each with a ring of its own in the server's memory, and get their answers by stores
// into theirs.
//
// run host.2.processes: | 2 processes host
// run host.3.threads: | 3 threads host
// run peer.2.threads: | 2 threads peer
// run peer.5.processes: | 5 processes peer
// run peer.8.threads: | 8 threads peer
#include <atomic>

#include "world.h"

namespace {

constexpr uint32_t kSlots = 4, kRequests = 50, kThreads = 32;
enum Kind : uint32_t { kStop, kSquare, kSumTo };

// Sequence numbers: a request is there when `request` has its number, an answer likewise.
struct Slot {
  uint32_t kind, argument, value;
  uint32_t request, answer;
};
struct Ring {
  Slot slots[kSlots];
};

Kind KindOf(uint32_t i) { return i % 3 == 0 ? kSumTo : kSquare; }
__host__ __device__ uint32_t ArgumentOf(int client, uint32_t i) { return client * 100 + i + 1; }
uint32_t Expected(int client, uint32_t i) {
  const uint32_t n = ArgumentOf(client, i);
  return KindOf(i) == kSumTo ? n * (n + 1) / 2 : n * n;
}

// The whole warp works on a request.
__device__ uint32_t Serve(uint32_t kind, uint32_t argument) {
  if (kind == kSquare) return argument * argument;
  uint32_t sum = 0;
  for (uint32_t i = threadIdx.x + 1; i <= argument; i += kThreads) sum += i;
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(~0u, sum, lane);
  return sum;
}

// Takes requests from `in` and answers into `out` (the same ring for the host). Block b serves
// client b.
__device__ void ServeClient(Ring* in, Ring* out) {
  for (uint32_t i = 0;; ++i) {
    Slot* slot = &in->slots[i % kSlots];
    if (threadIdx.x == 0) {
      WaitAtLeast(&slot->request, i + 1);
      Stumble(blockIdx.x, i);
    }
    __syncwarp();
    // Written by a host or a peer in the same kernel's lifetime: not through a cached constant
    // path.
    const uint32_t kind = *const_cast<volatile uint32_t*>(&slot->kind);
    const uint32_t argument = *const_cast<volatile uint32_t*>(&slot->argument);
    if (kind == kStop) return;
    const uint32_t value = Serve(kind, argument);
    Slot* answer = &out->slots[i % kSlots];
    __syncwarp();  // all lanes have read the request: the answer frees its slot
    if (threadIdx.x == 0) {
      *const_cast<volatile uint32_t*>(&answer->value) = value;
      StoreReleaseSys(&answer->answer, i + 1);
    }
    __syncwarp();
  }
}

__global__ void HostServer(Ring* ring) { ServeClient(ring, ring); }

__global__ void PeerServer(Ring* requests, Peers<Ring> answers) {
  const int client = blockIdx.x + 1;
  ServeClient(requests + client, answers[client]);
}

// Keeps up to kSlots requests under way.
__global__ void Client(Ring* requests, Ring* answers, int rank, uint32_t* output) {
  for (uint32_t i = 0; i < kRequests + kSlots; ++i) {
    Stumble(rank, i);
    if (i >= kSlots) {
      Slot* slot = &answers->slots[i % kSlots];
      WaitAtLeast(&slot->answer, i - kSlots + 1);
      output[i - kSlots] = *const_cast<volatile uint32_t*>(&slot->value);
    }
    if (i <= kRequests) {
      Slot* slot = &requests->slots[i % kSlots];
      slot->kind = i == kRequests ? kStop : i % 3 == 0 ? kSumTo : kSquare;
      slot->argument = ArgumentOf(rank, i);
      StoreReleaseSys(&slot->request, i + 1);
    }
  }
}

void AskFromHost(World& world) {
  Ring* ring;
  CUDA_CHECK(cudaHostAlloc(&ring, sizeof(Ring), cudaHostAllocMapped));
  std::memset(ring, 0, sizeof(Ring));
  Ring* device_ring;
  CUDA_CHECK(cudaHostGetDevicePointer(&device_ring, ring, 0));
  HostServer<<<1, kThreads, 0, world.stream()>>>(device_ring);
  CUDA_CHECK_LAUNCH();
  for (uint32_t i = 0; i <= kRequests; ++i) {
    if (i % 5 == 4) world.Linger(i);
    Slot& slot = ring->slots[i % kSlots];
    slot.kind = i == kRequests ? kStop : KindOf(i);
    slot.argument = ArgumentOf(world.rank(), i);
    __atomic_store_n(&slot.request, i + 1, __ATOMIC_RELEASE);
    if (i + 1 < kSlots || i == kRequests) continue;
    // The oldest request under way; the last three are looked at below.
    const uint32_t oldest = i + 1 - kSlots;
    Slot& answer = ring->slots[oldest % kSlots];
    while (__atomic_load_n(&answer.answer, __ATOMIC_ACQUIRE) != oldest + 1) {
    }
    REQUIRE(answer.value == Expected(world.rank(), oldest), "rank %d, request %u: %u", world.rank(),
            oldest, answer.value);
  }
  CUDA_CHECK(cudaStreamSynchronize(world.stream()));
  for (uint32_t i = kRequests - kSlots + 1; i < kRequests; ++i)
    REQUIRE(ring->slots[i % kSlots].value == Expected(world.rank(), i), "request %u", i);
  CUDA_CHECK(cudaFreeHost(ring));
}

void AskFromPeers(World& world) {
  const int rank = world.rank(), ranks = world.ranks();
  const auto requests = world.Share<Ring>(kMaxRanks);  // those of rank 0 are used
  const auto answers = world.Share<Ring>();
  uint32_t* output = world.Allocate<uint32_t>(kRequests);
  if (rank == 0) {
    PeerServer<<<ranks - 1, kThreads, 0, world.stream()>>>(requests[0], answers);
  } else {
    Client<<<1, 1, 0, world.stream()>>>(requests[0] + rank, answers[rank], rank, output);
  }
  CUDA_CHECK_LAUNCH();
  RequireElements(world, "answer", 0, world.Result(output, kRequests),
                  [&](int i) { return rank == 0 ? 0 : Expected(rank, i); });
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  return RunWorld(setup, setup.scheme == "host" ? AskFromHost : AskFromPeers);
}
