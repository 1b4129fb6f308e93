// Slots of one warp: the peer pushes a value into each, every lane polls its own slots, takes the value and clears the slot
// with a weak store. The read that saw the push orders that one store before the clearing.
// EXPECT 0 portability: 16 bytes each, polled and cleared as a vector
// EXPECT 1 none: 4 bytes each
// EXPECT 2 race: only the first word of a slot is polled, all four are cleared
#include "common.h"
constexpr int LANES = 32, SLOTS = 3, COUNT = LANES * SLOTS;
constexpr int WORDS = BUG == 1 ? 1 : 4;
__global__ void Push(unsigned* slots) {
  for (int i = threadIdx.x; i < COUNT; i += LANES) {
    unsigned* at = slots + i * WORDS;
#if BUG == 1
    st_relaxed(at, i + 1);
#else
    asm volatile("st.relaxed.sys.global.v4.b32 [%0], {%1, %1, %1, %1};" ::"l"(at), "r"(i + 1)
                 : "memory");
#endif
  }
}
__global__ void Take(unsigned* slots, unsigned* out) {
  for (int i = threadIdx.x; i < COUNT; i += LANES) {
    unsigned* at = slots + i * WORDS;
    unsigned a, b, c, d;
#if BUG == 0
    do {
      asm volatile("ld.relaxed.sys.global.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                   : "l"(at)
                   : "memory");
    } while (a == 0 || b == 0 || c == 0 || d == 0);
#else
    do a = ld_relaxed(at);
    while (a == 0);
    b = c = d = a;
#endif
    out[i] = a + b + c + d;
    // Weak, as a plain assignment is.
#if BUG == 1
    asm volatile("st.global.b32 [%0], %1;" ::"l"(at), "r"(0) : "memory");
#else
    asm volatile("st.global.v4.b32 [%0], {%1, %1, %1, %1};" ::"l"(at), "r"(0) : "memory");
#endif
  }
}
int main() {
  peers(2);
  unsigned *slots = alloc<unsigned>(1, COUNT * WORDS), *out = alloc<unsigned>(1, COUNT);
  sync_all(2);
  CK(cudaSetDevice(1));
  Take<<<1, LANES>>>(slots, out);
  CK(cudaSetDevice(0));
  Push<<<1, LANES>>>(slots);
  sync_all(2);
  long wrong = 0;
  const auto sums = get(1, out, COUNT);
  for (int i = 0; i < COUNT; ++i) wrong += sums[i] != 4u * (i + 1);
  for (const unsigned left : get(1, slots, COUNT * WORDS)) wrong += left != 0;
  return finish(wrong, 2);
}
