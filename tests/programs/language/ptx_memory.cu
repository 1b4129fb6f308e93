// Inline PTX, memory: cache operators and eviction hints, ld.global.nc, vectors of 2, 4 and 8
// elements, sub-word loads with extension, volatile, relaxed and mmio forms, prefetch, generic and
// specific addresses of shared and local memory.
#include "arrays.h"

namespace {

__global__ void Loads(const unsigned* in, unsigned* out) {
  const unsigned* p = in + threadIdx.x * 4;
  unsigned r[16];
  asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(r[0]) : "l"(p));
  asm volatile("ld.global.cg.u32 %0, [%1+4];" : "=r"(r[1]) : "l"(p));
  asm volatile("ld.global.cs.u32 %0, [%1+8];" : "=r"(r[2]) : "l"(p));
  asm volatile("ld.global.lu.u32 %0, [%1+12];" : "=r"(r[3]) : "l"(p));
  asm volatile("ld.global.cv.u32 %0, [%1];" : "=r"(r[4]) : "l"(p));
  asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(r[5]), "=r"(r[6]) : "l"(p));
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[7]), "=r"(r[8]), "=r"(r[9]), "=r"(r[10])
               : "l"(p));
  asm volatile("ld.global.L1::evict_last.L2::128B.u32 %0, [%1+4];" : "=r"(r[11]) : "l"(p));
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1+8];" : "=r"(r[12]) : "l"(p));
  asm volatile("ld.acquire.sys.u32 %0, [%1+12];" : "=r"(r[13]) : "l"(p));
  asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(r[14]) : "l"(p));
  asm volatile("ld.mmio.relaxed.sys.global.u32 %0, [%1+4];" : "=r"(r[15]) : "l"(p));
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
  for (int k = 0; k < 16; ++k) out[threadIdx.x * 16 + k] = r[k];
}

__global__ void Stores(unsigned* out) {
  unsigned* p = out + threadIdx.x * 16;
  const unsigned v = threadIdx.x * 100;
  asm volatile("st.global.wb.u32 [%0], %1;" ::"l"(p), "r"(v));
  asm volatile("st.global.cg.u32 [%0+4], %1;" ::"l"(p), "r"(v + 1));
  asm volatile("st.global.cs.u32 [%0+8], %1;" ::"l"(p), "r"(v + 2));
  asm volatile("st.global.wt.u32 [%0+12], %1;" ::"l"(p), "r"(v + 3));
  asm volatile("st.global.v4.u32 [%0+16], {%1, %2, %3, %4};" ::"l"(p), "r"(v + 4), "r"(v + 5),
               "r"(v + 6), "r"(v + 7));
  asm volatile("st.relaxed.sys.global.v2.u32 [%0+32], {%1, %2};" ::"l"(p), "r"(v + 8), "r"(v + 9));
  asm volatile("st.release.gpu.global.u32 [%0+40], %1;" ::"l"(p), "r"(v + 10));
  asm volatile("st.volatile.global.u32 [%0+44], %1;" ::"l"(p), "r"(v + 11));
  asm volatile("st.mmio.relaxed.sys.global.u32 [%0+48], %1;" ::"l"(p), "r"(v + 12));
  asm volatile("st.global.L1::evict_first.u32 [%0+52], %1;" ::"l"(p), "r"(v + 13));
  asm volatile(
      "st.global.u8 [%0+56], %1;\n\tst.global.u8 [%0+57], %2;\n\tst.global.u16 [%0+58], %3;" ::"l"(
          p),
      "r"(v + 14), "r"(0x12u), "h"(static_cast<unsigned short>(0x3456)));
  asm volatile("st.u32 [%0+60], %1;" ::"l"(p), "r"(v + 15));
}

__global__ void Narrow(const unsigned char* in, long long* out) {
  long long r[8];
  const unsigned char* p = in + threadIdx.x * 8;
  int s8, u8, s16, u16;
  asm volatile("ld.global.s8 %0, [%1];" : "=r"(s8) : "l"(p));
  asm volatile("ld.global.u8 %0, [%1];" : "=r"(u8) : "l"(p));
  asm volatile("ld.global.s16 %0, [%1+2];" : "=r"(s16) : "l"(p));
  asm volatile("ld.global.u16 %0, [%1+2];" : "=r"(u16) : "l"(p));
  r[0] = s8, r[1] = u8, r[2] = s16, r[3] = u16;
  asm volatile("ld.global.s32 %0, [%1+4];" : "=l"(r[4]) : "l"(p));
  asm volatile("ld.global.u32 %0, [%1+4];" : "=l"(r[5]) : "l"(p));
  asm volatile("ld.global.s8 %0, [%1+7];" : "=l"(r[6]) : "l"(p));
  asm volatile("ld.global.b64 %0, [%1];" : "=l"(r[7]) : "l"(p));
  for (int k = 0; k < 8; ++k) out[threadIdx.x * 8 + k] = r[k];
}

// The same object by its shared and its generic address, and what isspacep says of each.
__global__ void Spaces(unsigned* out) {
  __shared__ unsigned board[32];
  unsigned local[4] = {threadIdx.x, 1, 2, 3};
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&board[threadIdx.x]));
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(threadIdx.x * 3) : "memory");
  __syncthreads();
  unsigned value;
  asm volatile("ld.u32 %0, [%1];" : "=r"(value) : "l"(&board[31 - threadIdx.x]) : "memory");
  volatile unsigned* mine = local;
  mine[threadIdx.x % 4] = 77;
  out[threadIdx.x] = value + (mine[threadIdx.x % 4] == 77 ? 1000 : 0) +
                     (__isShared(&board[0]) && !__isGlobal(&board[0]) ? 10000 : 0) +
                     (__isLocal(local) && !__isShared(local) ? 100000 : 0) +
                     (__isGlobal(out) && !__isLocal(out) ? 1000000 : 0) +
                     (__cvta_shared_to_generic(at) == &board[threadIdx.x] ? 10000000 : 0);
}

}  // namespace

int main() {
  std::vector<unsigned> in, loaded, stored, spaces;
  Random random(47);
  for (int i = 0; i < 128; ++i) in.push_back(random.Next());
  for (int thread = 0; thread < 32; ++thread) {
    for (const int k : {0, 1, 2, 3, 0, 0, 1, 0, 1, 2, 3, 1, 2, 3, 0, 1})
      loaded.push_back(in[thread * 4 + k]);
    for (unsigned k = 0; k < 16; ++k) {
      const unsigned v = thread * 100 + k;
      stored.push_back(k == 14 ? (v & 255) | 0x34561200u : v);
    }
    spaces.push_back((31 - thread) * 3 + 11111000);
  }
  unsigned* out = Unwritten<unsigned>(32 * 16);
  Loads<<<1, 32>>>(ToDevice(in), out);
  REQUIRE_SAME(ToHost(out, 32 * 16), loaded);
  Stores<<<1, 32>>>(out);
  REQUIRE_SAME(ToHost(out, 32 * 16), stored);
  Spaces<<<1, 32>>>(out);
  REQUIRE_SAME(ToHost(out, 32), spaces);

  std::vector<unsigned char> bytes;
  std::vector<long long> narrow;
  for (int i = 0; i < 32 * 8; ++i) bytes.push_back(static_cast<unsigned char>(random.Next()));
  for (int thread = 0; thread < 32; ++thread) {
    const unsigned char* p = bytes.data() + thread * 8;
    const short s16 = static_cast<short>(p[2] | p[3] << 8);
    const unsigned u32 = p[4] | p[5] << 8 | p[6] << 16 | static_cast<unsigned>(p[7]) << 24;
    uint64_t all = 0;
    for (int k = 7; k >= 0; --k) all = all << 8 | p[k];
    narrow.insert(narrow.end(), {static_cast<signed char>(p[0]), p[0], s16,
                                 static_cast<unsigned short>(s16), static_cast<int>(u32), u32,
                                 static_cast<signed char>(p[7]), static_cast<long long>(all)});
  }
  long long* wide = Unwritten<long long>(narrow.size());
  Narrow<<<1, 32>>>(ToDevice(bytes), wide);
  REQUIRE_SAME(ToHost(wide, narrow.size()), narrow);
  std::puts("PASS ptx_memory");
}
