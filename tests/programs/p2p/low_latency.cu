// Send and receive without separate flags, as communication libraries do for small messages. LL: a
// line of 8 bytes carries 4 bytes of data and a 4-byte flag, stored and loaded as one. LL128: 8
// threads store a line of 128 bytes, whose last 8 bytes are the flag; a reader takes the line when
// the flag is right, which needs links that keep a warp's 128-byte store whole (NVLink does).
//
// Every rank sends to its right and receives from its left. Buffers have room for several messages;
// the receiver returns credits. Flags are message numbers, so nothing is cleared.
//
// run ll.2.processes: | 2 processes ll
// run ll.3.threads: | 3 threads ll
// run ll.8.processes: | 8 processes ll
// run ll128.2.threads: | 2 threads ll128
// run ll128.5.processes: | 5 processes ll128
// run ll128.8.threads: | 8 threads ll128
#include "world.h"

namespace {

constexpr int kThreads = 64, kWords = 480, kSlots = 2, kMessages = 12;
constexpr int kLines = kWords / 30;  // LL128: 30 of 32 words are data

struct Inbox {
  uint32_t credits;  // messages that the right neighbour has taken from us
  alignas(128) uint2 ll[kSlots][kWords];
  alignas(128) uint4 ll128[kSlots][kLines][8];
};

__host__ __device__ uint32_t Word(int sender, uint32_t message, int i) {
  return sender * 0x9e3779b9u + message * 0x85ebca6bu + i;
}

__device__ void SendLL(Inbox* to, int rank, uint32_t message) {
  for (int i = threadIdx.x; i < kWords; i += kThreads) {
    const uint32_t data = Word(rank, message, i);
    asm volatile("st.volatile.global.v2.u32 [%0], {%1, %2};" ::"l"(&to->ll[message % kSlots][i]),
                 "r"(data), "r"(message + 1)
                 : "memory");
  }
}

__device__ void ReceiveLL(const Inbox* mine, uint32_t message, uint32_t* output) {
  for (int i = threadIdx.x; i < kWords; i += kThreads) {
    uint32_t data, flag;
    do {
      asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];"
                   : "=r"(data), "=r"(flag)
                   : "l"(&mine->ll[message % kSlots][i])
                   : "memory");
    } while (flag != message + 1);
    output[i] = data;
  }
}

// Thread t of a group of 8 has bytes 16 t to 16 t + 15 of the line.
__device__ void SendLL128(Inbox* to, int rank, uint32_t message) {
  const int part = threadIdx.x % 8;
  for (int line = threadIdx.x / 8; line < kLines; line += kThreads / 8) {
    const int i = line * 30 + part * 4;
    const uint32_t x = Word(rank, message, i), y = Word(rank, message, i + 1);
    const uint32_t z = part == 7 ? message + 1 : Word(rank, message, i + 2);
    const uint32_t w = part == 7 ? message + 1 : Word(rank, message, i + 3);
    __syncwarp();
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(
                     &to->ll128[message % kSlots][line][part]),
                 "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
  }
}

__device__ void ReceiveLL128(const Inbox* mine, uint32_t message, uint32_t* output) {
  const int part = threadIdx.x % 8;
  for (int line = threadIdx.x / 8; line < kLines; line += kThreads / 8) {
    uint4 v;
    bool missing;
    do {
      asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                   : "l"(&mine->ll128[message % kSlots][line][part])
                   : "memory");
      missing = part == 7 && (v.z != message + 1 || v.w != message + 1);
    } while (__any_sync(~0u, missing));
    uint32_t* at = output + line * 30 + part * 4;
    at[0] = v.x;
    at[1] = v.y;
    if (part < 7) {
      at[2] = v.z;
      at[3] = v.w;
    }
  }
}

__global__ void Exchange(Peers<Inbox> inboxes, int rank, int ranks, uint32_t first, bool ll128,
                         uint32_t* output) {
  Inbox* mine = inboxes[rank];
  Inbox* right = inboxes[(rank + 1) % ranks];
  Inbox* left = inboxes[(rank + ranks - 1) % ranks];
  for (uint32_t message = first; message < first + kMessages; ++message) {
    if (threadIdx.x == 0) {
      Stumble(rank, message);
      WaitAtLeast(&mine->credits, message + 1 - kSlots);
    }
    __syncthreads();
    uint32_t* out = output + message * kWords;
    if (ll128) {
      SendLL128(right, rank, message);
      if (threadIdx.x < 32) Stumble(rank, ~message);
      ReceiveLL128(mine, message, out);
    } else {
      SendLL(right, rank, message);
      if (threadIdx.x < 32) Stumble(rank, ~message);
      ReceiveLL(mine, message, out);
    }
    __syncthreads();
    if (threadIdx.x == 0) StoreReleaseSys(&left->credits, message + 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  static_assert(kLines % (kThreads / 8) == 0, "whole warps vote");
  const Setup setup = ReadSetup(argc, argv);
  return RunWorld(setup, [&](World& world) {
    const auto inboxes = world.Share<Inbox>();
    uint32_t* output = world.Allocate<uint32_t>(2 * kMessages * kWords);
    for (int call = 0; call < 2; ++call) {
      Exchange<<<1, kThreads, 0, world.stream()>>>(
          inboxes, world.rank(), world.ranks(), call * kMessages, setup.scheme == "ll128", output);
      CUDA_CHECK_LAUNCH();
    }
    RequireElements(world, "word", 0, world.Result(output, 2 * kMessages * kWords),
                    [&](int k) { return Word(world.left(), k / kWords, k % kWords); });
  });
}
