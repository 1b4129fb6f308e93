// Collectives that lanes of one warp reach on different ways: disjoint masks at once from the arms
// of a switch, groups of a loop whose size shrinks, and a full-mask shuffle right behind a loop
// with different trip counts.
// nvcc: -arch=sm_90
#include "arrays.h"

namespace {

__global__ void Arms(int* out) {
  const int lane = threadIdx.x;
  const unsigned mask = 0x11111111u << (lane % 4);
  int result = 0;
  switch (lane % 4) {
    case 0:
      result = __shfl_sync(mask, lane, 28);
      break;
    case 1:
      result = __reduce_add_sync(mask, lane);
      break;
    case 2:
      result = __popc(__ballot_sync(mask, lane > 9));
      break;
    default:
      result = __shfl_xor_sync(mask, lane * 2, 4);
      break;
  }
  out[lane] = result;
}

// In round r the lanes from r on are still there; each takes the value of the next one.
__global__ void Shrinking(int* out) {
  const int lane = threadIdx.x;
  int value = lane;
  for (int round = 0; round <= lane; ++round) {
    value = __shfl_down_sync(0xffffffffu << round, value, 1) + 1;
  }
  out[lane] = value;
}

__global__ void AfterLoop(int* out) {
  const int lane = threadIdx.x;
  int steps = 0;
  for (int x = lane * lane + 1; x > 1; x = x % 2 ? x - 1 : x / 2) ++steps;
  const int left = __shfl_up_sync(0xffffffffu, steps, 1);
  out[lane] = steps * 1000 + left;
}

int Steps(int lane) {
  int steps = 0;
  for (int x = lane * lane + 1; x > 1; x = x % 2 ? x - 1 : x / 2) ++steps;
  return steps;
}

}  // namespace

int main() {
  int* out = Unwritten<int>(32);
  std::vector<int> arms(32), shrinking(32), after(32);
  for (int lane = 0; lane < 32; ++lane) {
    if (lane % 4 == 0) arms[lane] = 28;
    if (lane % 4 == 1) arms[lane] = 1 + 5 + 9 + 13 + 17 + 21 + 25 + 29;
    if (lane % 4 == 2) arms[lane] = 6;  // 10, 14, 18, 22, 26, 30
    if (lane % 4 == 3) arms[lane] = (lane ^ 4) * 2;
    after[lane] = Steps(lane) * 1000 + Steps(lane == 0 ? 0 : lane - 1);
  }
  std::vector<int> values(32);
  for (int lane = 0; lane < 32; ++lane) values[lane] = lane;
  for (int round = 0; round < 32; ++round) {
    const std::vector<int> before = values;
    for (int lane = round; lane < 32; ++lane) values[lane] = before[lane == 31 ? 31 : lane + 1] + 1;
  }
  shrinking = values;
  Arms<<<1, 32>>>(out);
  REQUIRE_SAME(ToHost(out, 32), arms);
  Shrinking<<<1, 32>>>(out);
  REQUIRE_SAME(ToHost(out, 32), shrinking);
  AfterLoop<<<1, 32>>>(out);
  REQUIRE_SAME(ToHost(out, 32), after);
  std::puts("PASS collectives_from_branches");
}
