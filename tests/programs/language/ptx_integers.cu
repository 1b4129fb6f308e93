// Inline PTX, integers: mul and mad in hi, lo and wide, 24-bit forms, carry chains over 256 bits,
// sad, saturating additions, dp4a and dp2a, division and remainder at the edges, min and max.
#include "arrays.h"

namespace {

// 256-bit a + b and a - b by the carry flag.
__global__ void Carry(const unsigned* a, const unsigned* b, unsigned* sum, unsigned* difference) {
  const int i = threadIdx.x * 8;
  const unsigned *x = a + i, *y = b + i;
  unsigned s[8], d[8];
  asm("add.cc.u32 %0, %8, %16;\n\t addc.cc.u32 %1, %9, %17;\n\t addc.cc.u32 %2, %10, %18;\n\t"
      "addc.cc.u32 %3, %11, %19;\n\t addc.cc.u32 %4, %12, %20;\n\t addc.cc.u32 %5, %13, %21;\n\t"
      "addc.cc.u32 %6, %14, %22;\n\t addc.u32 %7, %15, %23;"
      : "=&r"(s[0]), "=&r"(s[1]), "=&r"(s[2]), "=&r"(s[3]), "=&r"(s[4]), "=&r"(s[5]), "=&r"(s[6]),
        "=&r"(s[7])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]), "r"(x[6]), "r"(x[7]),
        "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(y[4]), "r"(y[5]), "r"(y[6]), "r"(y[7]));
  asm("sub.cc.u32 %0, %8, %16;\n\t subc.cc.u32 %1, %9, %17;\n\t subc.cc.u32 %2, %10, %18;\n\t"
      "subc.cc.u32 %3, %11, %19;\n\t subc.cc.u32 %4, %12, %20;\n\t subc.cc.u32 %5, %13, %21;\n\t"
      "subc.cc.u32 %6, %14, %22;\n\t subc.u32 %7, %15, %23;"
      : "=&r"(d[0]), "=&r"(d[1]), "=&r"(d[2]), "=&r"(d[3]), "=&r"(d[4]), "=&r"(d[5]), "=&r"(d[6]),
        "=&r"(d[7])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]), "r"(x[6]), "r"(x[7]),
        "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(y[4]), "r"(y[5]), "r"(y[6]), "r"(y[7]));
  for (int k = 0; k < 8; ++k) sum[i + k] = s[k], difference[i + k] = d[k];
}

// 64 x 64 -> 128 bits by mad.cc, as big-number code does it.
__global__ void Multiply(const uint2* in, unsigned* out) {
  const int i = threadIdx.x;
  const unsigned al = in[2 * i].x, ah = in[2 * i].y, bl = in[2 * i + 1].x, bh = in[2 * i + 1].y;
  unsigned r0, r1, r2, r3;
  asm("mul.lo.u32 %0, %4, %6;\n\t mul.hi.u32 %1, %4, %6;\n\t"
      "mad.lo.cc.u32 %1, %4, %7, %1;\n\t madc.hi.u32 %2, %4, %7, 0;\n\t"
      "mad.lo.cc.u32 %1, %5, %6, %1;\n\t madc.hi.cc.u32 %2, %5, %6, %2;\n\t addc.u32 %3, 0, 0;\n\t"
      "mad.lo.cc.u32 %2, %5, %7, %2;\n\t madc.hi.u32 %3, %5, %7, %3;"
      : "=&r"(r0), "=&r"(r1), "=&r"(r2), "=&r"(r3)
      : "r"(al), "r"(ah), "r"(bl), "r"(bh));
  out[4 * i] = r0, out[4 * i + 1] = r1, out[4 * i + 2] = r2, out[4 * i + 3] = r3;
}

constexpr int kResults = 20;

__global__ void Mixed(const int2* in, int count, long long* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int a = in[i].x, b = in[i].y;
  long long* r = out + i * kResults;
  long long wide;
  int narrow;
  asm("mul.wide.s32 %0, %1, %2;" : "=l"(wide) : "r"(a), "r"(b));
  r[0] = wide;
  asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(wide) : "r"(a), "r"(b), "l"(static_cast<long long>(a)));
  r[1] = wide;
  r[2] = __mulhi(a, b);
  r[3] = __umulhi(a, b);
  r[4] = __mul24(a, b);
  r[5] = __umul24(a, b);
  r[6] = __sad(a, b, 7u);
  r[7] = __usad(a, b, 7u);
  asm("add.sat.s32 %0, %1, %2;" : "=r"(narrow) : "r"(a), "r"(b));
  r[8] = narrow;
  asm("sub.sat.s32 %0, %1, %2;" : "=r"(narrow) : "r"(a), "r"(b));
  r[9] = narrow;
  r[10] = __dp4a(a, b, 5);
  r[11] = __dp4a(static_cast<unsigned>(a), static_cast<unsigned>(b), 5u);
  r[12] = __dp2a_lo(a, b, -3);
  r[13] = __dp2a_hi(a, b, -3);
  r[14] = b != 0 && !(a == static_cast<int>(0x80000000) && b == -1) ? a / b : 0;
  r[15] = b != 0 && !(a == static_cast<int>(0x80000000) && b == -1) ? a % b : 0;
  r[16] = b != 0 ? static_cast<unsigned>(a) / static_cast<unsigned>(b) : 0;
  r[17] = __hadd(a, b);
  r[18] = __rhadd(a, b);
  asm("mad.hi.sat.s32 %0, %1, %2, %3;" : "=r"(narrow) : "r"(a), "r"(b), "r"(a));
  r[19] = narrow;
}

long long Saturate(long long x) {
  return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : x;
}
int Low24(int x) { return x << 8 >> 8; }

void Expect(int a, int b, std::vector<long long>* r) {
  const long long la = a, lb = b;
  const unsigned long long ua = static_cast<unsigned>(a), ub = static_cast<unsigned>(b);
  r->push_back(la * lb);
  r->push_back(static_cast<long long>(ua * ub + static_cast<unsigned long long>(la)));
  r->push_back(la * lb >> 32);
  r->push_back(static_cast<long long>(ua * ub >> 32));
  r->push_back(static_cast<int>(static_cast<long long>(Low24(a)) * Low24(b)));
  r->push_back(static_cast<unsigned>((ua & 0xffffff) * (ub & 0xffffff)));
  r->push_back(static_cast<unsigned>((la > lb ? la - lb : lb - la) + 7));
  r->push_back(static_cast<unsigned>((ua > ub ? ua - ub : ub - ua) + 7));
  r->push_back(Saturate(la + lb));
  r->push_back(Saturate(la - lb));
  int dot = 5;
  unsigned unsigned_dot = 5;
  for (int k = 0; k < 4; ++k) {
    dot += static_cast<signed char>(a >> 8 * k) * static_cast<signed char>(b >> 8 * k);
    unsigned_dot += (ua >> 8 * k & 255) * (ub >> 8 * k & 255);
  }
  r->push_back(dot);
  r->push_back(unsigned_dot);
  for (int half = 0; half < 2; ++half) {
    int sum = -3;
    for (int k = 0; k < 2; ++k) {
      sum += static_cast<short>(a >> 16 * k) * static_cast<signed char>(b >> 8 * (2 * half + k));
    }
    r->push_back(sum);
  }
  const bool fine = b != 0 && !(a == INT32_MIN && b == -1);
  r->push_back(fine ? a / b : 0);
  r->push_back(fine ? a % b : 0);
  r->push_back(b != 0 ? static_cast<long long>(ua / ub) : 0);
  r->push_back(la + lb >> 1);
  r->push_back(la + lb + 1 >> 1);
  r->push_back(Saturate((la * lb >> 32) + la));
}

}  // namespace

int main() {
  Random random(43);
  std::vector<unsigned> a, b, sums, differences;
  for (int i = 0; i < 32 * 8; ++i) {
    a.push_back(i < 8 ? ~0u : i < 16 ? 0 : random.Next());
    b.push_back(i == 0 || i == 8 ? 1 : i < 16 ? 0 : random.Next());
  }
  for (int number = 0; number < 32; ++number) {
    uint64_t carry = 0, borrow = 0;
    for (int k = 0; k < 8; ++k) {
      const uint64_t x = a[number * 8 + k], y = b[number * 8 + k];
      carry += x + y;
      sums.push_back(static_cast<unsigned>(carry));
      carry >>= 32;
      const uint64_t difference = x - y - borrow;
      differences.push_back(static_cast<unsigned>(difference));
      borrow = difference >> 63;
    }
  }
  unsigned* out = Unwritten<unsigned>(32 * 16);
  Carry<<<1, 32>>>(ToDevice(a), ToDevice(b), out, out + 32 * 8);
  REQUIRE_SAME(ToHost(out, 32 * 8), sums);
  REQUIRE_SAME(ToHost(out + 32 * 8, 32 * 8), differences);

  std::vector<unsigned> products;
  for (int i = 0; i < 32; ++i) {
    const unsigned __int128 product =
        static_cast<unsigned __int128>(static_cast<uint64_t>(a[4 * i + 1]) << 32 | a[4 * i]) *
        (static_cast<uint64_t>(a[4 * i + 3]) << 32 | a[4 * i + 2]);
    for (int k = 0; k < 4; ++k) products.push_back(static_cast<unsigned>(product >> 32 * k));
  }
  Multiply<<<1, 32>>>(reinterpret_cast<uint2*>(ToDevice(a)), out);
  REQUIRE_SAME(ToHost(out, 128), products);

  std::vector<int> pairs;
  const int edges[] = {0, 1, -1, INT32_MIN, INT32_MAX, 0x7fffff, 0x800000, -128, -0x7f7f7f80, 12345};
  for (const int x : edges) {
    for (const int y : edges) pairs.push_back(x), pairs.push_back(y);
  }
  for (int i = 0; i < 2000; ++i) pairs.push_back(static_cast<int>(random.Next()));
  std::vector<long long> expected;
  const int count = static_cast<int>(pairs.size() / 2);
  for (int i = 0; i < count; ++i) Expect(pairs[2 * i], pairs[2 * i + 1], &expected);
  long long* mixed = Unwritten<long long>(expected.size());
  Mixed<<<(count + 63) / 64, 64>>>(reinterpret_cast<int2*>(ToDevice(pairs)), count, mixed);
  REQUIRE_SAME(ToHost(mixed, expected.size()), expected);
  std::printf("PASS ptx_integers: %d pairs\n", count);
}
