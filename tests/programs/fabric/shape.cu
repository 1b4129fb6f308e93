// What a program can measure of the links: senders to one device share its port and senders to
// different ones do not, stores of a few bytes waste a link, a slowed link is slow by its factor, a
// release after remote stores waits for the way there and back.
//
// unchecked: it compares modelled times, which stalls under a schedule change
// run incast: | incast
// run packets: | packets
// run slow: --fault link:gpu1-nvswitch=0.25 | slow
// run drain: | drain
// finds: api_error
#include <cstring>

#include "check.h"

constexpr size_t kBytes = 8 << 20;

__global__ void Push(const uint4* from, uint4* to, size_t count) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count;
       i += size_t(gridDim.x) * blockDim.x) {
    to[i] = from[i];
  }
}

// One word of each line, as scattered updates are.
__global__ void PushSparse(uint32_t* to, size_t count) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count;
       i += size_t(gridDim.x) * blockDim.x) {
    to[i * 32] = uint32_t(i);
  }
}

__global__ void Signal(uint32_t* data, uint32_t* flag, int words, long long* cycles) {
  for (int i = 0; i < words; ++i) data[i * 32] = uint32_t(i);
  const long long start = clock64();
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(1) : "memory");
  __threadfence_system();
  *cycles = clock64() - start;
}

// Pushes from each source to its target at the same time; the longest of them in microseconds.
float Together(const int (*pairs)[2], int count, bool sparse = false) {
  cudaEvent_t begin[8], end[8];
  uint4 *from[8], *to[8];
  for (int i = 0; i < count; ++i) {
    from[i] = ZeroedOn<uint4>(pairs[i][0], kBytes / 16);
    to[i] = ZeroedOn<uint4>(pairs[i][1], kBytes / 16);
    CUDA_CHECK(cudaSetDevice(pairs[i][0]));
    const cudaError_t peer = cudaDeviceEnablePeerAccess(pairs[i][1], 0);
    REQUIRE(peer == cudaSuccess || peer == cudaErrorPeerAccessAlreadyEnabled, "peer access");
    (void)cudaGetLastError();
    CUDA_CHECK(cudaEventCreate(&begin[i]));
    CUDA_CHECK(cudaEventCreate(&end[i]));
  }
  for (int i = 0; i < count; ++i) {
    CUDA_CHECK(cudaSetDevice(pairs[i][0]));
    CUDA_CHECK(cudaEventRecord(begin[i]));
    if (sparse) {
      PushSparse<<<64, 512>>>(reinterpret_cast<uint32_t*>(to[i]), kBytes / 128);
    } else {
      Push<<<64, 512>>>(from[i], to[i], kBytes / 16);
    }
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaEventRecord(end[i]));
  }
  float longest = 0;
  for (int i = 0; i < count; ++i) {
    CUDA_CHECK(cudaSetDevice(pairs[i][0]));
    CUDA_CHECK(cudaEventSynchronize(end[i]));
    float ms = 0;
    CUDA_CHECK(cudaEventElapsedTime(&ms, begin[i], end[i]));
    longest = ms > longest ? ms : longest;
  }
  return longest * 1000;
}

void Incast() {
  const int apart[3][2] = {{1, 4}, {2, 5}, {3, 6}}, onto[3][2] = {{1, 0}, {2, 0}, {3, 0}};
  const float single = Together(apart, 1), separate = Together(apart, 3);
  const float shared = Together(onto, 3);
  std::printf("8 MB: alone %.1f us, three apart %.1f us, three onto one %.1f us\n", single, separate,
              shared);
  REQUIRE(separate < 1.2f * single, "pairs that share no port disturb each other");
  REQUIRE(shared > 2.2f * single && shared < 3.5f * single, "incast is not shared by three");
}

void Packets() {
  const int pair[1][2] = {{0, 1}};
  const float dense = Together(pair, 1), sparse = Together(pair, 1, true);
  // A thirty-second of the bytes, but a packet for every line.
  std::printf("8 MB %.1f us, a word of each of its lines %.1f us\n", dense, sparse);
  REQUIRE(sparse > dense / 8, "single words are as cheap as their bytes");
  REQUIRE(sparse < dense, "single words cost more than whole lines");
}

void Slow() {
  const int hit[1][2] = {{0, 1}}, sound[1][2] = {{2, 3}};
  const float slow = Together(hit, 1), usual = Together(sound, 1);
  std::printf("over the slow link %.1f us, over another %.1f us\n", slow, usual);
  REQUIRE(slow > 3 * usual && slow < 4.5f * usual, "a quarter of the rate is not four times slower");
}

void Drain() {
  EnablePeer(0, 1);
  uint32_t* own = ZeroedOn<uint32_t>(0, 4096);
  uint32_t* remote = ZeroedOn<uint32_t>(1, 4096);
  CUDA_CHECK(cudaSetDevice(0));
  long long* cycles = ZeroedOn<long long>(0);
  long long taken[2];
  for (int i = 0; i < 2; ++i) {
    Signal<<<1, 1>>>(i == 0 ? own : remote, own + 4000, 32, cycles);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaDeviceSynchronize());
    taken[i] = Fetch(cycles);
  }
  std::printf("release after own stores %lld cycles, after remote ones %lld\n", taken[0], taken[1]);
  REQUIRE(taken[1] > taken[0] + 500, "a release does not wait for remote stores");
}

int main(int argc, char** argv) {
  RequireDevices(7);
  const char* what = argc > 1 ? argv[1] : "incast";
  if (std::strcmp(what, "incast") == 0) Incast();
  if (std::strcmp(what, "packets") == 0) Packets();
  if (std::strcmp(what, "slow") == 0) Slow();
  if (std::strcmp(what, "drain") == 0) Drain();
  return 0;
}
