// Threads that leave a kernel early: single lanes, whole warps and whole blocks return while the
// others go on with votes, shuffles, __syncwarp and __syncthreads among those that are left.
#include "arrays.h"

namespace {

// Lane l leaves in round l / 4; the others vote among themselves.
__global__ void LanesLeave(unsigned* ballots, unsigned* last) {
  const unsigned lane = threadIdx.x;
  unsigned here = 0xffffffffu;
  for (unsigned round = 0; round < 8; ++round) {
    here = 0xffffffffu << (4 * round);
    if (lane < 4 * round) {
      last[lane] = round;
      return;
    }
    const unsigned active = __ballot_sync(here, true);
    if (lane == 31) ballots[round] = active;
  }
  last[lane] = 100 + __popc(here);
}

// Warp w leaves before barrier w: a barrier counts only the threads that have not exited.
__global__ void WarpsLeave(int* totals) {
  __shared__ int seen;
  const int warp = threadIdx.x / 32;
  if (threadIdx.x == blockDim.x - 1) seen = 0;
  __syncthreads();
  for (int round = 0; round < static_cast<int>(blockDim.x / 32); ++round) {
    atomicAdd(&seen, 1);
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1) totals[blockIdx.x * 8 + round] = seen;
    __syncthreads();
    if (warp == round) return;
  }
}

__global__ void BlocksLeave(int* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  if (blockIdx.x % 2) return;
  out[i] = i;
}

}  // namespace

int main() {
  unsigned* ballots = Unwritten<unsigned>(8);
  unsigned* last = Unwritten<unsigned>(32);
  LanesLeave<<<1, 32>>>(ballots, last);
  std::vector<unsigned> expected_ballots, expected_last;
  for (unsigned round = 0; round < 8; ++round)
    expected_ballots.push_back(0xffffffffu << (4 * round));
  for (unsigned lane = 0; lane < 32; ++lane) {
    expected_last.push_back(lane < 28 ? lane / 4 + 1 : 100 + 4);
  }
  REQUIRE_SAME(ToHost(ballots, 8), expected_ballots);
  REQUIRE_SAME(ToHost(last, 32), expected_last);

  int* totals = Unwritten<int>(16);
  WarpsLeave<<<2, 256>>>(totals);
  std::vector<int> expected_totals;
  for (int block = 0; block < 2; ++block) {
    for (int round = 0, sum = 0; round < 8; ++round) {
      expected_totals.push_back(sum += 256 - 32 * round);
    }
  }
  REQUIRE_SAME(ToHost(totals, 16), expected_totals);

  constexpr int kCount = 1000;
  int* out = Zeroed<int>(kCount);
  BlocksLeave<<<kCount / 64 + 5, 64>>>(out, kCount);
  std::vector<int> expected(kCount, 0);
  for (int i = 0; i < kCount; ++i) expected[i] = (i / 64) % 2 ? 0 : i;
  REQUIRE_SAME(ToHost(out, kCount), expected);
  std::puts("PASS early_exit");
}
