// All-to-all with counts before data: a sender announces its count in a word tagged with the epoch, the receiver
// answers with an offset into its dense buffer, the sender writes there and raises a flag.
// EXPECT 1 race: the flag after the data is a relaxed store without a fence
// EXPECT 2 race: the count is a weak store and its tag a relaxed one; nothing orders the two
// EXPECT 3 none: the count is a weak store, its tag a release store that the receiver acquires
// EXPECT 4 value: count and tag are two relaxed words; an old count may be read with a new tag
// EXPECT 5 out_of_bounds|hang: the dense buffer has room for average counts only
// EXPECT 6 race: the receiver answers with offsets before it has read the previous epoch's data
#include "common.h"

constexpr int kRanks = 3, kThreads = 32, kEpochs = 3;
constexpr int kRoom = BUG == 5 ? kRanks * 16 : kRanks * kThreads;

struct Rank {
  unsigned long long* count;   // [kRanks] from each sender: epoch << 32 | count
  unsigned long long* offset;  // [kRanks] from each receiver: epoch << 32 | offset
  unsigned* tag;               // [2][kRanks] epoch and count as separate words
  unsigned* dense;             // [kRoom]
  unsigned* flag;              // [kRanks]
  unsigned* sum;               // [kEpochs][kThreads]
};
struct Node {
  Rank r[kRanks];
};

static __host__ __device__ int count_of(int from, int to, int e) {
  return (from * 11 + to * 7 + e * 5) % 20 + 13;
}

DEV void st64(unsigned long long* p, unsigned e, unsigned v) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p),
               "l"((static_cast<unsigned long long>(e) << 32) | v)
               : "memory");
}
DEV unsigned wait64(const unsigned long long* p, unsigned e) {
  unsigned long long v;
  do {
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  } while (v >> 32 != e);
  asm volatile("fence.acq_rel.sys;" ::
                   : "memory");  // also orders this epoch's answers after the last epoch's reads
  return static_cast<unsigned>(v);
}

DEV void send_count(const Rank& to, int me, unsigned e, unsigned n) {
  if (BUG == 2 || BUG == 3)
    to.tag[kRanks + me] = n;
  else if (BUG == 4)
    st_relaxed(&to.tag[kRanks + me], n);
  if (BUG == 3)
    st_release(&to.tag[me], e);
  else if (BUG == 2 || BUG == 4)
    st_relaxed(&to.tag[me], e);
  else
    st64(&to.count[me], e, n);
}
DEV unsigned wait_count(const Rank& own, int from, unsigned e) {
  if (BUG < 2 || BUG > 4) return wait64(&own.count[from], e);
  wait_ge(&own.tag[from], e);
  return BUG == 4 ? ld_relaxed(&own.tag[kRanks + from]) : own.tag[kRanks + from];
}

__global__ void all_to_all(Node node, int me) {
  const Rank own = node.r[me];
  const int t = threadIdx.x;
  __shared__ unsigned start[kRanks], n[kRanks];
  for (unsigned e = 1; e <= kEpochs; ++e) {
    if (t == 0)
      asm volatile("fence.acq_rel.sys;" ::
                       : "memory");  // the reads of the last epoch, before the barrier
    if (t < kRanks) send_count(node.r[t], me, e, count_of(me, t, e));
    if (t < kRanks) n[t] = wait_count(own, t, e);
    __syncthreads();
    if (t == 0) {
      unsigned offset = 0;
      for (int p = 0; p < kRanks; offset += n[p++]) st64(&node.r[p].offset[me], e, offset);
    }
    if (t < kRanks) start[t] = wait64(&own.offset[t], e);
    __syncthreads();
    for (int p = 0; p < kRanks; ++p)
      if (t < count_of(me, p, e)) node.r[p].dense[start[p] + t] = e * 100 + me * 10 + p;
    __syncthreads();
    if (t < kRanks) {
      BUG == 1 ? st_relaxed(&node.r[t].flag[me], e) : st_release(&node.r[t].flag[me], e);
      wait_ge(&own.flag[t], e);
    }
    __syncthreads();
    unsigned sum = 0;
    for (int j = t; j < int(n[0] + n[1] + n[2]); j += kThreads) sum += own.dense[j];
    own.sum[(e - 1) * kThreads + t] = sum;
    if (BUG != 6) __syncthreads();
  }
}

int main() {
  peers(kRanks);
  Node node;
  for (int d = 0; d < kRanks; ++d)
    node.r[d] = {alloc<unsigned long long>(d, kRanks), alloc<unsigned long long>(d, kRanks),
                 alloc<unsigned>(d, 2 * kRanks),       alloc<unsigned>(d, kRoom),
                 alloc<unsigned>(d, kRanks),           alloc<unsigned>(d, kEpochs * kThreads)};
  sync_all(kRanks);
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    all_to_all<<<1, kThreads>>>(node, d);
    CK(cudaGetLastError());
  }
  sync_all(kRanks);
  long wrong = 0;
  for (int d = 0; d < kRanks; ++d) {
    const auto sum = get(d, node.r[d].sum, kEpochs * kThreads);
    for (int e = 1; e <= kEpochs; ++e) {
      long rest = 0;
      for (int t = 0; t < kThreads; ++t) rest += sum[(e - 1) * kThreads + t];
      for (int p = 0; p < kRanks; ++p) rest -= count_of(p, d, e) * (e * 100 + p * 10 + d);
      wrong += rest != 0;
    }
  }
  return finish(wrong, kRanks);
}
