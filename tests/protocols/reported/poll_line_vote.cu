// A warp polls 32 words of eight bytes by one load: every eighth lane gets a flag, which stands for the seven words before
// it in the same line, and all lanes vote whether to look again. The sender stores them by one instruction.
// EXPECT 0 none|portability: a flag stands for words of its own line and its own store instruction
// EXPECT 1 hang: nobody sends
// EXPECT 2 hang: the last group's flag is the one of the round before
#include "common.h"
using Word = unsigned long long;
constexpr unsigned ALL = 0xffffffffu;
__global__ void Send(volatile Word* line, Word flag) {
  const unsigned lane = threadIdx.x;
  const Word mine = BUG == 2 && lane == 31 ? flag - 1 : flag;
  line[lane] = lane % 8 == 7 ? mine : 100 * flag + lane;
}
__global__ void Receive(volatile Word* line, Word flag, Word* out) {
  const unsigned lane = threadIdx.x;
  Word value;
  do value = line[lane];
  while (__any_sync(ALL, lane % 8 == 7 && value != flag));
  out[lane] = value;
}
int main() {
  peers(2);
  Word *line = alloc<Word>(1, 32), *out = alloc<Word>(1, 32);
  sync_all(2);
  CK(cudaSetDevice(1));
  Receive<<<1, 32>>>(line, 3, out);
  CK(cudaSetDevice(0));
  if (BUG != 1) Send<<<1, 32>>>(line, 3);
  sync_all(2);
  long wrong = 0;
  const auto got = get(1, out, 32);
  for (unsigned i = 0; i < 32; ++i) wrong += got[i] != (i % 8 == 7 ? 3 : 300 + i);
  return finish(wrong, 2);
}
