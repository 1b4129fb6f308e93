// RANKS 4
// Ranks are processes (--ranks 4): IPC handles through files, one-shot all-reduce with flags, a file barrier between set-up and use.
// EXPECT 1 race: flags are set to 0 behind the exchange of handles, no barrier between
// EXPECT 2 race: flag relaxed
// EXPECT 3 use_after_free|race|not_mapped: last call does not wait and rank 0 frees its memory while rank 3 (late) still puts into it
#include <fcntl.h>
#include <unistd.h>
#include <string>
#include "common.h"
constexpr int N = 512, T = 128, CALLS = 3, R = 4;
struct Ptrs {
  int* box[R];
  unsigned* flag[R];
};
__global__ void AllReduce(Ptrs p, int rank, int* out, unsigned e) {
  for (int r = 0; r < R; ++r)
    for (int i = threadIdx.x; i < N; i += T) p.box[r][((e & 1) * R + rank) * N + i] = rank + i * e;
  __syncthreads();
  if (threadIdx.x < R) {
#if BUG == 2
    st_relaxed(p.flag[threadIdx.x] + rank, e);
#else
    st_release(p.flag[threadIdx.x] + rank, e);
#endif
    if (BUG != 3 || e < CALLS) wait_ge(p.flag[rank] + threadIdx.x, e);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < N; i += T) {
    int s = 0;
    for (int r = 0; r < R; ++r) s += p.box[rank][((e & 1) * R + r) * N + i];
    out[i] = s;
  }
}
static std::string dir;
static void post(const std::string& n, const void* d, size_t k) {
  const std::string t = dir + n + ".tmp";
  FILE* f = fopen(t.c_str(), "wb");
  fwrite(d, 1, k, f);
  fclose(f);
  rename(t.c_str(), (dir + n).c_str());
}
static void fetch(const std::string& n, void* d, size_t k) {
  while (access((dir + n).c_str(), F_OK)) usleep(1000);
  FILE* f = fopen((dir + n).c_str(), "rb");
  if (fread(d, 1, k, f) != k) std::exit(4);
  fclose(f);
}
static void meet(const char* what, int rank) {
  post(std::string(what) + std::to_string(rank), "x", 1);
  char c;
  for (int r = 0; r < R; ++r) fetch(std::string(what) + std::to_string(r), &c, 1);
}
struct H {
  cudaIpcMemHandle_t box, flag;
};
int main() {
  const int rank = atoi(getenv("RANK"));
  dir = "/tmp/protocol_ranks." + std::to_string(getppid()) + ".";
  CK(cudaSetDevice(rank));
  Ptrs p;
  int* out[CALLS];
  p.box[rank] = alloc<int>(rank, 2 * R * N);
  p.flag[rank] = alloc<unsigned>(rank, R, BUG == 1 ? -1 : 0);
  for (auto& o : out) o = alloc<int>(rank, N);
  CK(cudaDeviceSynchronize());
  H h;
  CK(cudaIpcGetMemHandle(&h.box, p.box[rank]));
  CK(cudaIpcGetMemHandle(&h.flag, p.flag[rank]));
  post("h" + std::to_string(rank), &h, sizeof h);
  for (int r = 0; r < R; ++r)
    if (r != rank) {
      H o;
      fetch("h" + std::to_string(r), &o, sizeof o);
      CK(cudaIpcOpenMemHandle((void**)&p.box[r], o.box, cudaIpcMemLazyEnablePeerAccess));
      CK(cudaIpcOpenMemHandle((void**)&p.flag[r], o.flag, cudaIpcMemLazyEnablePeerAccess));
    }
  if (BUG == 1) {
    if (rank == 3) usleep(20000);
    CK(cudaMemset(p.flag[rank], 0, R * 4));
  } else
    meet("a", rank);
  for (int c = 0; c < CALLS; ++c) {
    if (BUG == 3 && rank == 3 && c == CALLS - 1) {
      CK(cudaDeviceSynchronize());
      usleep(20000);
    }
    AllReduce<<<1, T>>>(p, rank, out[c], c + 1);
  }
  if (BUG != 3) {
    CK(cudaDeviceSynchronize());
    meet("b", rank);
  }
  long wrong = 0;
  if (BUG != 3)
    for (int c = 0; c < CALLS; ++c) {
      auto v = get(rank, out[c], N);
      for (int i = 0; i < N; ++i) wrong += v[i] != 6 + 4 * i * (c + 1);
    }
  for (int r = 0; r < R; ++r)
    if (r != rank && BUG != 3) {
      CK(cudaIpcCloseMemHandle(p.box[r]));
      CK(cudaIpcCloseMemHandle(p.flag[r]));
    }
  if (BUG != 3)
    meet("c", rank);
  else
    CK(cudaDeviceSynchronize());
  for (auto& m : g_mem) CK(cudaFree(m.second));
  std::printf(wrong ? "WRONG %ld\n" : "OK\n", wrong);
  return wrong ? 1 : 0;
}
