// Every shuffle (idx, up, down, xor) with every width and every distance, on 32-bit and 64-bit
// integers and floating-point numbers. A lane out of range keeps its own value.
#include "arrays.h"

namespace {

constexpr int kModes = 4, kWidths = 5, kDistances = 34;

template <class T>
__global__ void Shuffle(T* out) {
  const int lane = threadIdx.x;
  const T value = static_cast<T>(lane * 3 + 1) / 2;
  int at = 0;
  for (int width = 2; width <= 32; width *= 2) {
    for (int distance = 0; distance < kDistances; ++distance) {
      T* row = out + (at++) * kModes * 32 + lane;
      row[0] = __shfl_sync(0xffffffffu, value, distance, width);
      row[32] = __shfl_up_sync(0xffffffffu, value, distance, width);
      row[64] = __shfl_down_sync(0xffffffffu, value, distance, width);
      row[96] = __shfl_xor_sync(0xffffffffu, value, distance, width);
    }
  }
}

// Where the value of `lane` comes from, after the description in the CUDA C++ Programming Guide.
int Source(int mode, int lane, int distance, int width) {
  distance %= 32;  // the PTX ISA: bval = b[4:0]
  const int first = lane / width * width, inside = lane % width;
  switch (mode) {
    case 0:
      return first + distance % width;
    case 1:
      return inside < distance ? lane : lane - distance;
    case 2:
      return inside + distance >= width ? lane : lane + distance;
    default: {
      const int source = lane ^ distance;
      // An index beyond the lane's own group cannot be read; an earlier group can.
      return source >= first + width ? lane : source;
    }
  }
}

template <class T>
void Check() {
  constexpr size_t kCount = kWidths * kDistances * kModes * 32;
  T* out = Unwritten<T>(kCount);
  Shuffle<T><<<1, 32>>>(out);
  std::vector<T> expected;
  for (int width = 2; width <= 32; width *= 2) {
    for (int distance = 0; distance < kDistances; ++distance) {
      for (int mode = 0; mode < kModes; ++mode) {
        for (int lane = 0; lane < 32; ++lane) {
          expected.push_back(static_cast<T>(Source(mode, lane, distance, width) * 3 + 1) / 2);
        }
      }
    }
  }
  REQUIRE_SAME(ToHost(out, kCount), expected);
}

}  // namespace

int main() {
  Check<int>();
  Check<unsigned>();
  Check<long long>();
  Check<float>();
  Check<double>();
  std::puts("PASS shuffle_modes: 5 types, 4 modes, 5 widths, 34 distances");
}
