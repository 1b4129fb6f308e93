// mma.sync of bf16, tf32, f64, fp8, s8 (saturating) and single bits, by inline PTX: one warp each,
// operands placed by the formulas of the PTX ISA ("Matrix Fragments for mma.m16n8k...").
// nvcc: -arch=sm_90
#include <cstring>
#include <vector>

#include "arrays.h"

namespace {

__device__ int Group() { return threadIdx.x / 4; }
__device__ int Member() { return threadIdx.x % 4; }

// What stands at (row, k) of A and (k, column) of B.
__host__ __device__ int A(int row, int k) { return (row * 3 + k * 5) % 7 - 3; }
__host__ __device__ int B(int k, int column) { return (k * 2 + column * 3) % 5 - 2; }

__device__ uint32_t Float(int v) { return __float_as_uint(static_cast<float>(v)); }
__device__ uint32_t Bf16(int v) { return Float(v) >> 16; }
// e4m3 of -3 ... 3: sign, exponent of bias 7, three bits of mantissa.
__device__ uint32_t E4m3(int v) {
  const int m = v < 0 ? -v : v;
  const uint32_t bits = m == 0 ? 0 : m == 1 ? 7 << 3 : m == 2 ? 8 << 3 : (8 << 3 | 4);
  return bits | (v < 0 ? 0x80 : 0);
}

// A register of E elements: element e by `at`.
template <int E, class F>
__device__ uint32_t Register(F at) {
  uint32_t word = 0;
  for (int e = 0; e < E; ++e)
    word |= (at(e) & (E == 1 ? ~0u : (1u << 32 / E) - 1)) << (e * (32 / E) % 32);
  return word;
}

// Four registers of A and two of B of an m16n8 product whose registers hold E elements.
template <int E, class Convert>
__device__ void Fill(uint32_t (&a)[4], uint32_t (&b)[2], Convert convert) {
  for (int i = 0; i < 4; ++i) {
    const int row = Group() + (i % 2) * 8, k = Member() * E + i / 2 * 4 * E;
    a[i] = Register<E>([&](int e) { return convert(A(row, k + e)); });
  }
  for (int i = 0; i < 2; ++i) {
    const int k = Member() * E + i * 4 * E;
    b[i] = Register<E>([&](int e) { return convert(B(k + e, Group())); });
  }
}

template <class T>
__device__ void Store(T* out, const T (&d)[4]) {
  for (int i = 0; i < 4; ++i) out[(Group() + i / 2 * 8) * 8 + Member() * 2 + i % 2] = d[i];
}

#define PRODUCT(type, constraint, name)                                                           \
  asm volatile(                                                                                   \
      "mma.sync.aligned." name " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
      : "+" constraint(d[0]), "+" constraint(d[1]), "+" constraint(d[2]), "+" constraint(d[3])    \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

__global__ void Floats(float* bf16, float* tf32, float* e4m3) {
  uint32_t a[4], b[2];
  {
    float d[4] = {1, 1, 1, 1};
    Fill<2>(a, b, Bf16);
    PRODUCT(float, "f", "m16n8k16.row.col.f32.bf16.bf16.f32");
    Store(bf16, d);
  }
  {
    float d[4] = {1, 1, 1, 1};
    Fill<1>(a, b, Float);
    PRODUCT(float, "f", "m16n8k8.row.col.f32.tf32.tf32.f32");
    Store(tf32, d);
  }
  {
    float d[4] = {1, 1, 1, 1};
    Fill<4>(a, b, E4m3);
    PRODUCT(float, "f", "m16n8k32.row.col.f32.e4m3.e4m3.f32");
    Store(e4m3, d);
  }
}

__global__ void Integers(int* s8, int* saturated, int* bits) {
  uint32_t a[4], b[2];
  const auto byte = [](int v) { return static_cast<uint32_t>(v); };
  Fill<4>(a, b, byte);
  {
    int d[4] = {1, 1, 1, 1};
    PRODUCT(int, "r", "m16n8k32.row.col.s32.s8.s8.s32");
    Store(s8, d);
  }
  {
    int d[4] = {2147483647, 2147483647, -2147483647 - 1, -2147483647 - 1};
    PRODUCT(int, "r", "m16n8k32.row.col.satfinite.s32.s8.s8.s32");
    Store(saturated, d);
  }
  {
    int d[4] = {1, 1, 1, 1};
    Fill<32>(a, b, [](int v) { return static_cast<uint32_t>(v) & 1; });
    PRODUCT(int, "r", "m16n8k256.row.col.s32.b1.b1.s32.and.popc");
    Store(bits, d);
  }
}

__global__ void Doubles(double* out) {
  double d[2] = {1, 1};
  const double a = A(Group(), Member()), b = B(Member(), Group());
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(d[0]), "+d"(d[1])
               : "d"(a), "d"(b));
  out[Group() * 8 + Member() * 2] = d[0];
  out[Group() * 8 + Member() * 2 + 1] = d[1];
}

template <class T>
std::vector<T> Want(int m, int k, bool bits = false) {
  std::vector<T> out(m * 8);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < 8; ++j) {
      int sum = 1;
      for (int l = 0; l < k; ++l) sum += bits ? A(i, l) & B(l, j) & 1 : A(i, l) * B(l, j);
      out[i * 8 + j] = static_cast<T>(sum);
    }
  }
  return out;
}

}  // namespace

int main() {
  float* floats = Unwritten<float>(3 * 128);
  Floats<<<1, 32>>>(floats, floats + 128, floats + 256);
  REQUIRE(ToHost(floats, 128) == Want<float>(16, 16), "bf16");
  REQUIRE(ToHost(floats + 128, 128) == Want<float>(16, 8), "tf32");
  REQUIRE(ToHost(floats + 256, 128) == Want<float>(16, 32), "e4m3");
  int* ints = Unwritten<int>(3 * 128);
  Integers<<<1, 32>>>(ints, ints + 128, ints + 256);
  const std::vector<int> s8 = Want<int>(16, 32);
  REQUIRE(ToHost(ints, 128) == s8, "s8");
  REQUIRE(ToHost(ints + 256, 128) == Want<int>(16, 256, true), "b1");
  const std::vector<int> saturated = ToHost(ints + 128, 128);
  for (int i = 0; i < 128; ++i) {
    const int sum = s8[i] - 1;
    const int want =
        i < 64 ? (sum > 0 ? INT32_MAX : INT32_MAX + sum) : (sum < 0 ? INT32_MIN : INT32_MIN + sum);
    REQUIRE(saturated[i] == want, "saturated[%d] is %d, expected %d", i, saturated[i], want);
  }
  double* doubles = Unwritten<double>(64);
  Doubles<<<1, 32>>>(doubles);
  REQUIRE(ToHost(doubles, 64) == Want<double>(8, 4), "f64");
  return 0;
}
