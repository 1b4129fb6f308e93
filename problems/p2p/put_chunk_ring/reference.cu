#include <allranks/flags.h>

// The ring is a set of slots of 32 packets. A packet is one access of 16 bytes: three words of the
// message and the number of the turn, so who sees the number has the words, without a fence. Slot s
// carries the chunks s, s + kSlots, s + 2 kSlots, ... by one warp here and one at the receiver,
// which count turns on through all calls.
//
// A slot is free for its next turn when its credit has come back: the receiver's lanes have taken
// their packets. All accesses to slots and credits are relaxed, each complete in itself.
using namespace allranks;

constexpr int kSlots = 8, kBlocks = 8, kPairs = kSlots / kBlocks;  // of warps in a block
constexpr int kWords = 3 * 32;                                     // of a chunk

struct Ring {
  uint4 slots[kSlots][32];
  std::uint32_t credits[kSlots];  // by the receiver: turns that it has taken
  std::uint32_t sent[kSlots];     // own: turns of earlier calls, as sender
  std::uint32_t taken[kSlots];    // and as receiver
};

__device__ void Send(uint4* to, uint4 packet) {
  asm volatile(
      "{ .reg .b64 low, high; .reg .b128 all;\n"
      "mov.b64 low, {%1, %2}; mov.b64 high, {%3, %4}; mov.b128 all, {low, high};\n"
      "st.relaxed.sys.global.b128 [%0], all; }" ::"l"(to),
      "r"(packet.x), "r"(packet.y), "r"(packet.z), "r"(packet.w)
      : "memory");  //@send
}

__device__ uint4 Look(const uint4* from) {
  uint4 packet;
  asm volatile(
      "{ .reg .b64 low, high; .reg .b128 all;\n"
      "ld.relaxed.sys.global.b128 all, [%4]; mov.b128 {low, high}, all;\n"
      "mov.b64 {%0, %1}, low; mov.b64 {%2, %3}, high; }"
      : "=r"(packet.x), "=r"(packet.y), "=r"(packet.z), "=r"(packet.w)
      : "l"(from)
      : "memory");  //@look
  return packet;
}

__device__ void SendMessage(const Args& args, int slot, int lane) {
  Ring* mine = reinterpret_cast<Ring*>(args.scratch);
  Ring* theirs = reinterpret_cast<Ring*>(args.scratch_peers[(args.rank + 1) % args.world]);
  const std::uint32_t* in = args.in;
  const int n = args.n;
  std::uint32_t turn = mine->sent[slot], credit = LoadRelaxedSys(&mine->credits[slot]);
  for (int first = slot * kWords; first < n; first += kSlots * kWords) {
    const int at = first + 3 * lane;
    const std::uint32_t word[3] = {at < n ? in[at] : 0, at + 1 < n ? in[at + 1] : 0,
                                   at + 2 < n ? in[at + 2] : 0};
    while (static_cast<std::int32_t>(credit - turn) < 0) {  //@credit
      credit = LoadRelaxedSys(&mine->credits[slot]);
    }
    ++turn;
    Send(&theirs->slots[slot][lane], {word[0], word[1], word[2], turn});
  }
  __syncwarp();
  if (lane == 0) mine->sent[slot] = turn;  //@sent
}

__device__ void TakeMessage(const Args& args, int slot, int lane) {
  Ring* mine = reinterpret_cast<Ring*>(args.scratch);
  Ring* source =
      reinterpret_cast<Ring*>(args.scratch_peers[(args.rank + args.world - 1) % args.world]);
  std::uint32_t* out = args.out;
  const int n = args.n;
  std::uint32_t turn = mine->taken[slot];
  for (int first = slot * kWords; first < n; first += kSlots * kWords) {
    ++turn;
    uint4 packet;
    do {
      packet = Look(&mine->slots[slot][lane]);
    } while (packet.w != turn);  //@flag
    __syncwarp();
    if (lane == 0) StoreRelaxedSys(&source->credits[slot], turn);  //@give_back
    const int at = first + 3 * lane;
    if (at < n) out[at] = packet.x;
    if (at + 1 < n) out[at + 1] = packet.y;
    if (at + 2 < n) out[at + 2] = packet.z;
  }
  __syncwarp();
  if (lane == 0) mine->taken[slot] = turn;  //@taken
}

__global__ void Pass(Args args) {
  const int warp = threadIdx.x / 32, slot = blockIdx.x * kPairs + warp % kPairs;
  if (warp < kPairs) {
    SendMessage(args, slot, threadIdx.x % 32);
  } else {
    TakeMessage(args, slot, threadIdx.x % 32);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Pass<<<kBlocks, 2 * kPairs * 32, 0, stream>>>(args);
}
