// Treiber stack with a tag against ABA, nodes and head on device 0, pushed and popped by warps of four devices; payload is weak.
// EXPECT 1 race: push by a relaxed compare-and-swap
// EXPECT 2 race: pop does not acquire
// EXPECT 3 value: no tag: ABA
#include "common.h"
constexpr int R = 4, PER = 4, ROUNDS = 6, NODES = R * PER;
typedef unsigned long long u64;
struct Node {
  unsigned next;
  int value;
};
DEV u64 ld64(u64* p) {
  u64 v;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
DEV u64 cas(u64* p, u64 a, u64 b) {
  u64 v;
#if BUG == 1
  asm volatile("atom.acquire.sys.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(v)
               : "l"(p), "l"(a), "l"(b)
               : "memory");
#elif BUG == 2
  asm volatile("atom.release.sys.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(v)
               : "l"(p), "l"(a), "l"(b)
               : "memory");
#else
  asm volatile("atom.acq_rel.sys.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(v)
               : "l"(p), "l"(a), "l"(b)
               : "memory");
#endif
  return v;
}
DEV u64 make(u64 old, unsigned n) { return BUG == 3 ? n : ((old >> 32) + 1) << 32 | n; }
DEV void push(u64* head, Node* nodes, unsigned n) {
  u64 h;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(h) : "l"(head) : "memory");
  while (true) {
    st_relaxed(&nodes[n].next, (unsigned)h);
    const u64 s = cas(head, h, make(h, n));
    if (s == h) return;
    h = s;
  }
}
DEV unsigned pop(u64* head, Node* nodes) {
  u64 h;
#if BUG == 2
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(h) : "l"(head) : "memory");
#else
  h = ld64(head);
#endif
  while (true) {
    const unsigned n = (unsigned)h;
    if (n == ~0u) return n;
    const unsigned nx = ld_relaxed(&nodes[n].next);
    const u64 s = cas(head, h, make(h, nx));
    if (s == h) return n;
    h = s;
  }
}
__global__ void Run(u64* head, Node* nodes, unsigned* bad, int rank) {
  unsigned mine = rank * PER + threadIdx.x;  // owned at first
  for (int k = 0; k < ROUNDS; ++k) {
    if (mine != ~0u) {
      nodes[mine].value = mine * 3 + 1;
      push(head, nodes, mine);
    }
    mine = pop(head, nodes);
    if (mine != ~0u) {
      if (nodes[mine].value != (int)mine * 3 + 1) atomicAdd_system(bad, 1);
      nodes[mine].value = 0;
    }
  }
  if (mine != ~0u) {
    nodes[mine].value = mine * 3 + 1;
    push(head, nodes, mine);
  }
}
int main() {
  peers(R);
  u64* head = alloc<u64>(0, 1, 0xff);
  Node* nodes = alloc<Node>(0, NODES);
  unsigned* bad = alloc<unsigned>(0, 1);
  sync_all(R);
  for (int r = 0; r < R; ++r) {
    CK(cudaSetDevice(r));
    Run<<<1, PER>>>(head, nodes, bad, r);
  }
  sync_all(R);
  long wrong = get(0, bad, 1)[0];
  auto n = get(0, nodes, NODES);
  unsigned at = (unsigned)get(0, head, 1)[0];
  int count = 0;
  while (at < NODES && count <= NODES) {
    ++count;
    at = n[at].next;
  }
  wrong += count != NODES;
  return finish(wrong, R);
}
