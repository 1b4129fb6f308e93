// BLOCKS blocks of device 0 read one line of parameters; when all have counted themselves, device 1 overwrites it.
// EXPECT 1 race: block 0, which reads first, does not count itself
#include "common.h"
#ifndef BLOCKS
#define BLOCKS 64
#endif
constexpr int B = BLOCKS;
__global__ void Read(const int* line, unsigned* seen, unsigned* go, int* out) {
  if (blockIdx.x == 0) {
    out[threadIdx.x] = line[threadIdx.x];
    __syncwarp();
    if (threadIdx.x == 0) st_relaxed(go, 1);
    if (BUG != 1 && threadIdx.x == 0) red_release(seen, 1);
    return;
  }
  if (threadIdx.x == 0)
    while (ld_relaxed(go) == 0) {
    }
  __syncwarp();
  out[blockIdx.x * 32 + threadIdx.x] = line[(threadIdx.x + blockIdx.x) % 32];
  __syncwarp();
  if (threadIdx.x == 0) red_release(seen, 1);
}
__global__ void Write(int* line, unsigned* seen) {
  if (threadIdx.x == 0) wait_ge(seen, BUG == 1 ? B - 1 : B);
  __syncwarp();
  line[threadIdx.x] = -1;
}
int main() {
  peers(2);
  int *line = alloc<int>(0, 32), *out = alloc<int>(0, B * 32);
  unsigned *seen = alloc<unsigned>(0, 1), *go = alloc<unsigned>(0, 1);
  std::vector<int> v(32);
  for (int i = 0; i < 32; ++i) v[i] = i;
  put(0, line, v);
  sync_all(2);
  CK(cudaSetDevice(0));
  Read<<<B, 32>>>(line, seen, go, out);
  CK(cudaSetDevice(1));
  Write<<<1, 32>>>(line, seen);
  sync_all(2);
  long wrong = 0;
  auto w = get(0, out, B * 32);
  for (int i = 0; i < B * 32; ++i) wrong += w[i] != (i % 32 + i / 32) % 32;
  return finish(wrong, 2);
}
