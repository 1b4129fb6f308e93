// Inline PTX, bits: prmt in all modes, lop3 with every table on samples, bfe, bfi, bfind, popc,
// clz, brev, funnel shifts, bmsk and szext, against the definitions in the PTX ISA.
#include "arrays.h"

namespace {

constexpr int kResults = 24;

__global__ void Bits(const uint3* in, int count, unsigned* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const unsigned a = in[i].x, b = in[i].y, c = in[i].z;
  unsigned r[kResults];
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r[0]) : "r"(a), "r"(b), "r"(c));
  asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(r[1]) : "r"(a), "r"(b), "r"(c));
  asm("prmt.b32.b4e %0, %1, %2, %3;" : "=r"(r[2]) : "r"(a), "r"(b), "r"(c));
  asm("prmt.b32.rc8 %0, %1, %2, %3;" : "=r"(r[3]) : "r"(a), "r"(b), "r"(c));
  asm("prmt.b32.ecl %0, %1, %2, %3;" : "=r"(r[4]) : "r"(a), "r"(b), "r"(c));
  asm("prmt.b32.ecr %0, %1, %2, %3;" : "=r"(r[5]) : "r"(a), "r"(b), "r"(c));
  asm("prmt.b32.rc16 %0, %1, %2, %3;" : "=r"(r[6]) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(r[7]) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0, %1, %2, %3, 0xe8;" : "=r"(r[8]) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0, %1, %2, %3, 0x1b;" : "=r"(r[9]) : "r"(a), "r"(b), "r"(c));
  asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r[10]) : "r"(a), "r"(b), "r"(c));
  asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r[11]) : "r"(a), "r"(b), "r"(c));
  asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r[12]) : "r"(a), "r"(b), "r"(c), "r"(b >> 8));
  asm("bfind.u32 %0, %1;" : "=r"(r[13]) : "r"(a));
  asm("bfind.s32 %0, %1;" : "=r"(r[14]) : "r"(a));
  asm("bfind.shiftamt.u32 %0, %1;" : "=r"(r[15]) : "r"(a));
  asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(r[16]) : "r"(a), "r"(b), "r"(c));
  asm("shf.l.clamp.b32 %0, %1, %2, %3;" : "=r"(r[17]) : "r"(a), "r"(b), "r"(c));
  asm("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(r[18]) : "r"(a), "r"(b), "r"(c));
  asm("shf.r.clamp.b32 %0, %1, %2, %3;" : "=r"(r[19]) : "r"(a), "r"(b), "r"(c));
  r[20] = __popc(a) | __clz(b) << 8 | __ffs(c) << 16;
  r[21] = __brev(a);
  asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(r[22]) : "r"(b % 40), "r"(c % 40));
  asm("szext.wrap.s32 %0, %1, %2;" : "=r"(r[23]) : "r"(a), "r"(c));
  for (int k = 0; k < kResults; ++k) out[i * kResults + k] = r[k];
}

unsigned Permute(int mode, unsigned a, unsigned b, unsigned c) {
  unsigned char bytes[8];
  for (int i = 0; i < 4; ++i) bytes[i] = a >> 8 * i, bytes[4 + i] = b >> 8 * i;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned low = c & 3;
    unsigned selected = 0;
    bool sign = false;
    switch (mode) {
      case 0:
        selected = c >> 4 * i & 7;
        sign = c >> 4 * i & 8;
        break;
      case 1:
        selected = low + i;
        break;
      case 2:
        selected = (low - i) & 7;
        break;
      case 3:
        selected = low;
        break;
      case 4:
        selected = i > low ? i : low;
        break;
      case 5:
        selected = i < low ? i : low;
        break;
      default:
        selected = (low & 1) * 2 + i % 2;
        break;
    }
    unsigned char byte = bytes[selected];
    if (sign) byte = byte & 0x80 ? 0xff : 0;
    result |= static_cast<unsigned>(byte) << 8 * i;
  }
  return result;
}

unsigned Lookup(unsigned a, unsigned b, unsigned c, unsigned table) {
  unsigned result = 0;
  for (int bit = 0; bit < 32; ++bit) {
    const unsigned index = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | (c >> bit & 1);
    result |= (table >> index & 1) << bit;
  }
  return result;
}

unsigned Extract(unsigned a, unsigned position, unsigned length, bool is_signed) {
  position &= 255, length &= 255;
  const unsigned top = position + length - 1 < 31 ? position + length - 1 : 31;
  const bool sign = is_signed && length != 0 && (a >> top & 1);
  unsigned result = 0;
  for (unsigned i = 0; i < 32; ++i) {
    const bool bit = i < length && position + i < 32 ? a >> (position + i) & 1 : sign;
    result |= static_cast<unsigned>(bit) << i;
  }
  return result;
}

unsigned Insert(unsigned a, unsigned b, unsigned position, unsigned length) {
  position &= 255, length &= 255;
  for (unsigned i = 0; i < length && position + i < 32; ++i) {
    b = (b & ~(1u << (position + i))) | (a >> i & 1) << (position + i);
  }
  return b;
}

unsigned Find(unsigned a, bool is_signed) {
  if (is_signed && a >> 31) a = ~a;
  return a == 0 ? ~0u : 31 - __builtin_clz(a);
}

uint64_t Wide(unsigned a, unsigned b) { return static_cast<uint64_t>(b) << 32 | a; }

}  // namespace

int main() {
  Random random(41);
  std::vector<uint3> in;
  const unsigned edges[] = {0,   1,           31,          32,          33,         255,
                            256, 0x80000000u, 0xffffffffu, 0x7fffffffu, 0xfedc7654u};
  for (const unsigned a : edges) {
    for (const unsigned b : edges) {
      for (const unsigned c : edges) in.push_back({a, b, c});
    }
  }
  for (int i = 0; i < 1000; ++i)
    in.push_back({random.Next(), random.Next() % 64, random.Next() % 64});
  for (int i = 0; i < 1000; ++i) in.push_back({random.Next(), random.Next(), random.Next()});
  std::vector<unsigned> expected;
  for (const auto& [a, b, c] : in) {
    for (int mode = 0; mode < 7; ++mode) expected.push_back(Permute(mode, a, b, c));
    for (const unsigned table : {0x96u, 0xe8u, 0x1bu}) expected.push_back(Lookup(a, b, c, table));
    expected.push_back(Extract(a, b, c, false));
    expected.push_back(Extract(a, b, c, true));
    expected.push_back(Insert(a, b, c, b >> 8));
    expected.push_back(Find(a, false));
    expected.push_back(Find(a, true));
    expected.push_back(a == 0 ? ~0u : 31 - Find(a, false));
    const unsigned clamped = c < 32 ? c : 32;
    expected.push_back(static_cast<unsigned>((Wide(a, b) << (c & 31)) >> 32));
    expected.push_back(static_cast<unsigned>((Wide(a, b) << clamped) >> 32));
    expected.push_back(static_cast<unsigned>(Wide(a, b) >> (c & 31)));
    expected.push_back(static_cast<unsigned>(Wide(a, b) >> clamped));
    expected.push_back(__builtin_popcount(a) | (b ? __builtin_clz(b) : 32) << 8 |
                       __builtin_ffs(c) << 16);
    unsigned reversed = 0;
    for (int bit = 0; bit < 32; ++bit) reversed |= (a >> bit & 1) << (31 - bit);
    expected.push_back(reversed);
    expected.push_back(Insert(~0u, 0, b % 40, c % 40));
    const unsigned bits = c & 31;  // .wrap
    expected.push_back(
        bits == 0 ? 0 : static_cast<unsigned>(static_cast<int>(a << (32 - bits)) >> (32 - bits)));
  }
  unsigned* out = Unwritten<unsigned>(expected.size());
  const int count = static_cast<int>(in.size());
  uint3* device_in = nullptr;
  CUDA_CHECK(cudaMalloc(&device_in, in.size() * sizeof(uint3)));
  Upload(device_in, in.data(), in.size());
  Bits<<<(count + 127) / 128, 128>>>(device_in, count, out);
  const std::vector<unsigned> got = ToHost(out, expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const uint3& x = in[i / kResults];
    REQUIRE(got[i] == expected[i], "result %zu of 0x%x, 0x%x, 0x%x: 0x%x, expected 0x%x",
            i % kResults, x.x, x.y, x.z, got[i], expected[i]);
  }
  std::printf("PASS ptx_bits: %zu inputs\n", in.size());
}
