// Kernel parameters of all shapes: small and large structs by value, arrays inside, odd sizes and
// alignments, many parameters, and a parameter block beyond 4 KB (sm_70 and later allow 32,764).
#include "arrays.h"

namespace {

struct Odd {
  char a;
  short b;
  char c[3];
  double d;
  char e;
};

struct alignas(32) Aligned {
  float4 v[2];
};

struct Matrix {
  float m[4][4];
  __host__ __device__ float Trace() const { return m[0][0] + m[1][1] + m[2][2] + m[3][3]; }
};

template <int kWords>
struct Block {
  int words[kWords];
};

__global__ void Mixed(char c, Odd odd, bool flag, Aligned aligned, short s, Matrix matrix,
                      double* out, unsigned char last) {
  out[0] = c;
  out[1] = odd.a + odd.b + odd.c[0] * 100 + odd.c[2] + odd.d + odd.e;
  out[2] = flag;
  out[3] = aligned.v[1].w + aligned.v[0].x;
  out[4] = s;
  out[5] = matrix.Trace();
  out[6] = last;
  // A copy that is written and indexed by a variable lives in local memory.
  matrix.m[threadIdx.x][threadIdx.x] = 100;
  out[7] = matrix.m[threadIdx.x + 1][threadIdx.x + 1] + matrix.Trace();
}

template <int kWords>
__global__ void Sum(Block<kWords> block, long long* out) {
  long long sum = 0;
  for (int i = threadIdx.x; i < kWords; i += blockDim.x)
    sum += static_cast<long long>(block.words[i]) * (i + 1);
  atomicAdd(reinterpret_cast<unsigned long long*>(out), sum);
}

template <int kWords>
void CheckBlock() {
  Block<kWords> block;
  long long expected = 0;
  Random random(kWords);
  for (int i = 0; i < kWords; ++i) {
    block.words[i] = static_cast<int>(random.Next());
    expected += static_cast<long long>(block.words[i]) * (i + 1);
  }
  long long* out = Zeroed<long long>(1);
  Sum<kWords><<<1, 64>>>(block, out);
  const long long got = ToHost(out, 1)[0];
  REQUIRE(got == expected, "%d words: %lld, expected %lld", kWords, got, expected);
}

}  // namespace

int main() {
  double* out = Unwritten<double>(8);
  Matrix matrix;
  for (int i = 0; i < 16; ++i) matrix.m[i / 4][i % 4] = static_cast<float>(i);
  const Odd odd = {1, 2000, {3, 4, 5}, 0.5, 6};
  const Aligned aligned = {{{1, 2, 3, 4}, {5, 6, 7, 8}}};
  Mixed<<<1, 1>>>('x', odd, true, aligned, -300, matrix, out, 255);
  const std::vector<double> expected = {
      120, 1 + 2000 + 300 + 5 + 0.5 + 6, 1, 8 + 1, -300, 30, 255, 5 + 130};
  REQUIRE_SAME(ToHost(out, 8), expected);
  CheckBlock<1>();
  CheckBlock<100>();
  CheckBlock<1000>();
  CheckBlock<8000>();
  std::puts("PASS structs_by_value");
}
