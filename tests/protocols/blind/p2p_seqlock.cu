// A seqlock: device 0 updates a record whose sequence number is odd during the update, two other devices read it until
// they have seen the last version. All words of the record are relaxed accesses.
// EXPECT 1 race: weak accesses to the record; readers overlap with the writer by design
// EXPECT 2 value: no fence after the odd number; new words may be seen under the old even number
// EXPECT 3 value: no fence before the second look at the number; the words may be read after it
// EXPECT 4 scope: the words are stored at gpu scope
// EXPECT 5 value: the last store of the number is relaxed without a fence; old words may be seen under the new number
// EXPECT 6 none: the number is compared before it is checked for oddness, and a redundant fence of the reader
#include "common.h"

constexpr int kRanks = 3, kWords = 8, kVersions = 6;

struct Record {
  unsigned* seq;
  unsigned* word;  // [kWords]
};

DEV void fence_sys() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

__global__ void writer(Record r) {
  for (unsigned v = 1; v <= kVersions; ++v) {
    st_relaxed(r.seq, 2 * v - 1);
    if (BUG != 2) fence_sys();
    for (int k = 0; k < kWords; ++k) {
      if (BUG == 1)
        r.word[k] = v * 100 + k;
      else if (BUG == 4)
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(r.word + k), "r"(v * 100 + k)
                     : "memory");
      else
        st_relaxed(r.word + k, v * 100 + k);
    }
    if (BUG == 5)
      st_relaxed(r.seq, 2 * v);
    else
      st_release(r.seq, 2 * v);
  }
}

__global__ void reader(Record r, unsigned* torn) {
  unsigned bad = 0;
  for (unsigned seen = 0; seen < 2 * kVersions;) {
    const unsigned s = ld_acquire(r.seq);
    if (BUG == 6) fence_sys();
    if (BUG != 6 && s % 2) continue;
    unsigned w[kWords];
    for (int k = 0; k < kWords; ++k) w[k] = BUG == 1 ? r.word[k] : ld_relaxed(r.word + k);
    if (BUG != 3) fence_sys();
    if (ld_relaxed(r.seq) != s || s % 2) continue;
    seen = s;
    for (int k = 0; k < kWords; ++k) bad += s && w[k] != s / 2 * 100 + k;
  }
  torn[threadIdx.x] = bad;
}

int main() {
  peers(kRanks);
  const Record r = {alloc<unsigned>(0, 1), alloc<unsigned>(0, kWords)};
  unsigned* torn[kRanks];
  for (int d = 0; d < kRanks; ++d) torn[d] = alloc<unsigned>(d, 2);
  sync_all(kRanks);
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    if (d == 0)
      writer<<<1, 1>>>(r);
    else
      reader<<<1, 2>>>(r, torn[d]);
    CK(cudaGetLastError());
  }
  sync_all(kRanks);
  long wrong = 0;
  for (int d = 1; d < kRanks; ++d)
    for (unsigned bad : get(d, torn[d], 2)) wrong += bad;
  return finish(wrong, kRanks);
}
