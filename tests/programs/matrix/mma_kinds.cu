// mma.sync for the other kinds of numbers: bf16, tf32, signed and unsigned bytes, the 8-bit floats
// e4m3 and e5m2, and double, each on one tile with exact values.
#include "arrays.h"

namespace {

// C[16][8] = A[16][k] * B[k][8] of small integers.
struct Tile {
  std::vector<int> a, b;
  std::vector<float> c;
};

Tile Make(int k, bool is_unsigned) {
  Random random(k);
  Tile tile;
  const int low = is_unsigned ? 0 : 2;
  for (int i = 0; i < 16 * k; ++i) tile.a.push_back(static_cast<int>(random.Next() % 5) - low);
  for (int i = 0; i < k * 8; ++i) tile.b.push_back(static_cast<int>(random.Next() % 5) - low);
  tile.c.assign(16 * 8, 0);
  for (int i = 0; i < 16 * 8; ++i) {
    for (int l = 0; l < k; ++l) {
      tile.c[i] += static_cast<float>(tile.a[i / 8 * k + l] * tile.b[l * 8 + i % 8]);
    }
  }
  return tile;
}

// In all these shapes a row of A is eight 32-bit registers wide, however many elements they hold:
// register r of a lane is word r / 2 * 4 + lane % 4 of row lane / 4 (+ 8 if r is odd). A register
// of B is word r * 4 + lane % 4 of column lane / 4.
template <class Multiply>
__global__ void Run(const unsigned* a, const unsigned* b, float* c, Multiply multiply) {
  const int lane = threadIdx.x, group = lane / 4, inside = lane % 4;
  unsigned left[4], right[2];
  for (int r = 0; r < 4; ++r) left[r] = a[(group + r % 2 * 8) * 8 + r / 2 * 4 + inside];
  for (int r = 0; r < 2; ++r) right[r] = b[group * 8 + r * 4 + inside];
  float d[4];
  multiply(d, left, right);
  for (int i = 0; i < 4; ++i) c[(group + i / 2 * 8) * 8 + inside * 2 + i % 2] = d[i];
}

#define MMA(name, form, Number, constraint)                                             \
  struct name {                                                                         \
    __device__ void operator()(float* d, const unsigned* a, const unsigned* b) const {  \
      Number s[4] = {};                                                                 \
      asm volatile("mma.sync.aligned." form                                             \
                   " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"   \
                   : "+" constraint(s[0]), "+" constraint(s[1]), "+" constraint(s[2]),  \
                     "+" constraint(s[3])                                               \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); \
      for (int i = 0; i < 4; ++i) d[i] = static_cast<float>(s[i]);                      \
    }                                                                                   \
  }
MMA(Bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", float, "f");
MMA(Tf32, "m16n8k8.row.col.f32.tf32.tf32.f32", float, "f");
MMA(S8, "m16n8k32.row.col.s32.s8.s8.s32", int, "r");
MMA(U8, "m16n8k32.row.col.s32.u8.u8.s32", int, "r");
MMA(E4m3, "m16n8k32.row.col.f32.e4m3.e4m3.f32", float, "f");
MMA(E5m2, "m16n8k32.row.col.f32.e5m2.e5m2.f32", float, "f");

// A small integer as a float of `bits` bits, `mantissa` of them below the exponent.
unsigned Small(int value, int bits, int mantissa, int bias) {
  if (value == 0) return 0;
  const unsigned sign = value < 0 ? 1u << (bits - 1) : 0, magnitude = value < 0 ? -value : value;
  const unsigned exponent = 31 - __builtin_clz(magnitude);
  return sign | (exponent + bias) << mantissa |
         (magnitude - (1u << exponent)) << mantissa >> exponent;
}

template <class Multiply, class Encode>
void Check(int k, bool is_unsigned, Encode encode) {
  const Tile tile = Make(k, is_unsigned);
  const int per = k / 8, bits = 32 / per;
  std::vector<unsigned> a(16 * 8, 0), b(8 * 8, 0);  // b by columns
  for (int l = 0; l < k; ++l) {
    for (int i = 0; i < 16; ++i) a[i * 8 + l / per] |= encode(tile.a[i * k + l]) << l % per * bits;
    for (int j = 0; j < 8; ++j) b[j * 8 + l / per] |= encode(tile.b[l * 8 + j]) << l % per * bits;
  }
  float* c = Unwritten<float>(16 * 8);
  Run<<<1, 32>>>(ToDevice(a), ToDevice(b), c, Multiply());
  REQUIRE_SAME(ToHost(c, 16 * 8), tile.c);
}

__global__ void Doubles(const double* a, const double* b, double* c) {
  const int lane = threadIdx.x;
  double d0 = 0.5, d1 = -0.5;
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(d0), "+d"(d1)
               : "d"(a[lane / 4 * 4 + lane % 4]), "d"(b[lane % 4 * 8 + lane / 4]));
  c[lane / 4 * 8 + lane % 4 * 2] = d0;
  c[lane / 4 * 8 + lane % 4 * 2 + 1] = d1;
}

}  // namespace

int main() {
  Check<Bf16>(16, false, [](int v) { return Small(v, 16, 7, 127); });
  Check<Tf32>(8, false, [](int v) { return Small(v, 32, 23, 127); });
  Check<S8>(32, false, [](int v) { return static_cast<unsigned>(v) & 255; });
  Check<U8>(32, true, [](int v) { return static_cast<unsigned>(v); });
  Check<E4m3>(32, false, [](int v) { return Small(v, 8, 3, 7); });
  Check<E5m2>(32, false, [](int v) { return Small(v, 8, 2, 15); });

  std::vector<double> a, b, expected;
  for (int i = 0; i < 32; ++i) a.push_back(i * 0.25 - 3), b.push_back(7 - i * 0.5);
  for (int i = 0; i < 64; ++i) {
    double sum = i % 2 ? -0.5 : 0.5;
    for (int k = 0; k < 4; ++k) sum += a[i / 8 * 4 + k] * b[k * 8 + i % 8];
    expected.push_back(sum);
  }
  double* c = Unwritten<double>(64);
  Doubles<<<1, 32>>>(ToDevice(a), ToDevice(b), c);
  REQUIRE_SAME(ToHost(c, 64), expected);
  std::puts("PASS mma_kinds");
}
