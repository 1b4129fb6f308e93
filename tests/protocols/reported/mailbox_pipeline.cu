// A pipeline of three devices with one-word mailboxes that are empty at 0: each takes a value and its data, adds one,
// passes it on.
// EXPECT 1 race: the mailbox is emptied before the data has been read
// EXPECT 2 race|value|hang: the sender does not wait until the mailbox is empty
// EXPECT 3 race: the mailbox is emptied by a relaxed store
// EXPECT 4 race: the sender looks at the mailbox relaxed, without a fence
// EXPECT 5 none: the mailbox is emptied by an exchange that also takes
#include "common.h"

static const int D = 3, ITEMS = 6, N = 4;

struct Mail {
  unsigned value, data[N];
};

static __global__ void stage(Mail* mine, Mail* next, unsigned* out) {
  for (unsigned item = 1; item <= ITEMS; ++item) {
    unsigned v = item, sum = 0;
    if (mine != nullptr) {
      while ((v = ld_acquire(&mine->value)) == 0) {
      }
      if (BUG == 1) st_release(&mine->value, 0);
      for (int i = 0; i < N; ++i) sum += mine->data[i];
      if (BUG == 3)
        st_relaxed(&mine->value, 0);
      else if (BUG == 5)
        asm volatile("atom.release.sys.global.exch.b32 %0, [%1], 0;"
                     : "=r"(v)
                     : "l"(&mine->value)
                     : "memory");
      else if (BUG != 1)
        st_release(&mine->value, 0);
    }
    if (next != nullptr) {
      while (BUG != 2 && (BUG == 4 ? ld_relaxed(&next->value) : ld_acquire(&next->value)) != 0) {
      }
      for (int i = 0; i < N; ++i) next->data[i] = v + i;
      st_release(&next->value, v);
    }
    *out += sum;
  }
}

int main() {
  peers(D);
  Mail* mail[D + 1] = {};
  unsigned* out[D];
  for (int d = 1; d < D; ++d) mail[d] = alloc<Mail>(d, 1);
  for (int d = 0; d < D; ++d) out[d] = alloc<unsigned>(d, 1);
  sync_all(D);
  for (int d = 0; d < D; ++d) {
    CK(cudaSetDevice(d));
    stage<<<1, 1>>>(mail[d], mail[d + 1], out[d]);
  }
  sync_all(D);
  long wrong = 0;
  for (int d = 1; d < D; ++d)
    wrong += get(d, out[d], 1)[0] != N * ITEMS * (ITEMS + 1) / 2 + ITEMS * N * (N - 1) / 2;
  return finish(wrong, D);
}
