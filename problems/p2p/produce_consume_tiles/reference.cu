#include <allranks/flags.h>

// Tiles of 3 x 32 words. A packet is one access of 16 bytes: three words of a column of the product
// and the number of the turn, so who sees the number has the words, without a fence. Slot s carries
// the tiles s, s + kSlots, s + 2 kSlots, ..., by one warp that produces them and one at the next
// rank that consumes them. Both count turns on through all calls.
//
// A slot is free for its next turn when its credit has come back: the consumer's lanes have taken
// their packets. All accesses to slots and credits are relaxed, each complete in itself.
using namespace allranks;

constexpr int kSlots = 16, kBlocks = 4, kPairs = kSlots / kBlocks;  // of warps in a block

struct Ring {
  uint4 slots[kSlots][32];
  std::uint32_t credits[kSlots];   // by the consumer: turns that it has taken
  std::uint32_t produced[kSlots];  // own: turns of earlier calls, as producer
  std::uint32_t consumed[kSlots];  // and as consumer
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

// The place of a lane's column in tile `tile`: its first row, and the column.
__device__ int2 Place(const Args& args, int tile, int lane) {
  const int per_row = (static_cast<int>(args.cols) + 31) / 32;
  return {tile / per_row * 3, tile % per_row * 32 + lane};
}

__device__ void Produce(const Args& args, int slot, int lane, int tiles) {
  Ring* mine = reinterpret_cast<Ring*>(args.scratch);
  Ring* theirs = reinterpret_cast<Ring*>(args.scratch_peers[(args.rank + 1) % args.world]);
  const int rows = args.rows, cols = args.cols;
  std::uint32_t turn = mine->produced[slot];
  for (int tile = slot; tile < tiles; tile += kSlots) {
    const auto [row, col] = Place(args, tile, lane);
    std::uint32_t word[3] = {0, 0, 0};
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      if (row + k < rows && col < cols) {
        word[k] = (2 * args.scale[row + k] + 1) * args.in[(row + k) * cols + col];
      }
    }
    WaitRelaxedSys(&mine->credits[slot], turn);  //@credit
    ++turn;
    Send(&theirs->slots[slot][lane], {word[0], word[1], word[2], turn});
  }
  __syncwarp();
  if (lane == 0) mine->produced[slot] = turn;  //@produced
}

__device__ void Consume(const Args& args, int slot, int lane, int tiles) {
  Ring* mine = reinterpret_cast<Ring*>(args.scratch);
  Ring* source =
      reinterpret_cast<Ring*>(args.scratch_peers[(args.rank + args.world - 1) % args.world]);
  const int rows = args.rows, cols = args.cols;
  std::uint32_t turn = mine->consumed[slot];
  for (int tile = slot; tile < tiles; tile += kSlots) {
    const auto [row, col] = Place(args, tile, lane);
    const std::uint32_t bias = col < cols ? args.bias[col] : 0;
    ++turn;
    uint4 packet;
    do {
      packet = Look(&mine->slots[slot][lane]);
    } while (packet.w != turn);  //@flag
    __syncwarp();
    if (lane == 0) StoreRelaxedSys(&source->credits[slot], turn);  //@give_back
    const std::uint32_t word[3] = {packet.x, packet.y, packet.z};
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      if (row + k < rows && col < cols) args.out[col * rows + row + k] = word[k] + bias;
    }
  }
  __syncwarp();
  if (lane == 0) mine->consumed[slot] = turn;  //@consumed
}

__global__ void Stage(Args args) {
  const int warp = threadIdx.x / 32, slot = blockIdx.x * kPairs + warp % kPairs;
  const int tiles = (args.rows + 2) / 3 * ((args.cols + 31) / 32);
  if (warp < kPairs) {
    Produce(args, slot, threadIdx.x % 32, tiles);
  } else {
    Consume(args, slot, threadIdx.x % 32, tiles);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Stage<<<kBlocks, 2 * kPairs * 32, 0, stream>>>(args);
}
