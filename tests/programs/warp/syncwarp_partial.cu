// __syncwarp with partial masks: halves, quarters and interleaved lanes of a warp pass data through
// shared memory among themselves, each set at its own pace and from its own branch.
#include "arrays.h"

namespace {

// The lanes of `members` rotate a value round the set; all must see what the neighbour wrote.
__device__ unsigned Rotate(volatile unsigned* board, unsigned members, unsigned lane, int rounds) {
  const unsigned higher = members & (lane == 31 ? 0 : ~0u << (lane + 1));
  const unsigned neighbour = __ffs(higher ? higher : members) - 1;
  unsigned value = lane * 100;
  for (int round = 0; round < rounds; ++round) {
    board[lane] = value;
    __syncwarp(members);
    const unsigned theirs = board[neighbour];
    __syncwarp(members);
    value = theirs + 1;
  }
  return value;
}

__global__ void Sets(unsigned* out) {
  __shared__ unsigned board[32];
  const unsigned lane = threadIdx.x;
  if (lane < 16) {
    out[lane] =
        lane % 2 ? Rotate(board, 0x0000aaaau, lane, 9) : Rotate(board, 0x00005555u, lane, 4);
  } else if (lane < 24) {
    out[lane] = Rotate(board, 0x00ff0000u, lane, 21);
  } else {
    out[lane] =
        lane == 31 ? Rotate(board, 0x80000000u, lane, 5) : Rotate(board, 0x7f000000u, lane, 7);
  }
}

// A lane that waits at __syncwarp for one that still works must not stop the one that works.
__global__ void Unequal(unsigned* out) {
  __shared__ unsigned sum;
  const unsigned lane = threadIdx.x;
  if (lane == 0) sum = 0;
  __syncwarp();
  for (unsigned i = 0; i < lane; ++i) atomicAdd(&sum, 1);
  __syncwarp();
  out[lane] = *const_cast<volatile unsigned*>(&sum);
}

std::vector<unsigned> Members(unsigned mask) {
  std::vector<unsigned> lanes;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (mask >> lane & 1) lanes.push_back(lane);
  }
  return lanes;
}

}  // namespace

int main() {
  unsigned* out = Unwritten<unsigned>(32);
  Sets<<<1, 32>>>(out);
  std::vector<unsigned> expected(32);
  const struct {
    unsigned mask, rounds;
  } sets[] = {{0xaaaa, 9}, {0x5555, 4}, {0x00ff0000, 21}, {0x80000000, 5}, {0x7f000000, 7}};
  for (const auto& set : sets) {
    const std::vector<unsigned> lanes = Members(set.mask);
    for (size_t i = 0; i < lanes.size(); ++i) {
      expected[lanes[i]] = lanes[(i + set.rounds) % lanes.size()] * 100 + set.rounds;
    }
  }
  REQUIRE_SAME(ToHost(out, 32), expected);
  Unequal<<<1, 32>>>(out);
  REQUIRE_SAME(ToHost(out, 32), std::vector<unsigned>(32, 31 * 32 / 2));
  std::puts("PASS syncwarp_partial");
}
