// Copies: by copy engines between devices, and by kernels over NVLink, to the host and within a
// device. Sizes are in MiB. One thread keeps one vector in flight, as a plain grid-stride loop
// does.
#include "bench.h"

namespace {

template <class Vector>
__global__ void CopyKernel(const Vector* __restrict__ from, Vector* __restrict__ to, size_t count) {
  const size_t stride = size_t(gridDim.x) * blockDim.x;
  for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
    to[i] = from[i];
}

// The best of two single copies between two events, after an untimed one: the node repeats itself.
double Best(cudaStream_t stream, const std::function<void()>& copy) {
  copy();
  CHECK(cudaStreamSynchronize(stream));
  double best = 1e30;
  for (int i = 0; i < 2; ++i) best = std::min(best, EventMicroseconds(stream, copy));
  return best;
}

template <class Vector>
double BestOfKernel(int blocks, const void* from, void* to, size_t bytes) {
  cudaStream_t stream = NewStream();
  return Best(stream, [&] {
    CopyKernel<Vector><<<blocks, 1024, 0, stream>>>(
        static_cast<const Vector*>(from), static_cast<Vector*>(to), bytes / sizeof(Vector));
  });
}

// cudaMemcpyPeer from device 0 to 1 and a wait for it, so the second event is recorded a turn of
// the host later.
double PeerCopy(double mib) {
  const size_t bytes = size_t(mib * kMiB);
  void* from = AllocateOn<void>(0, bytes);
  void* to = AllocateOn<void>(1, bytes);
  CHECK(cudaSetDevice(0));
  double sum = 0;
  for (int i = 0; i < 3; ++i) {
    const double us = EventMicroseconds(nullptr, [&] {
      CHECK(cudaMemcpyPeer(to, 1, from, 0, bytes));
      CHECK(cudaDeviceSynchronize());
    });
    if (i >= 1) sum += us / 2;
  }
  CHECK(cudaFree(from));
  CHECK(cudaFree(to));
  return sum;
}

// The reader's device copies from memory of the other: what a receiver does with an IPC handle.
double PullCopy(double mib) {
  const size_t bytes = size_t(mib * kMiB);
  void* remote = AllocateOn<void>(0, bytes);
  void* local = AllocateOn<void>(1, bytes);
  double sum = 0;
  for (int i = 0; i < 3; ++i) {
    const double us = EventMicroseconds(
        nullptr, [&] { CHECK(cudaMemcpy(local, remote, bytes, cudaMemcpyDeviceToDevice)); });
    if (i >= 1) sum += us / 2;
  }
  CHECK(cudaFree(remote));
  CHECK(cudaFree(local));
  return sum;
}

double PushKernel(double mib) {
  const size_t bytes = size_t(mib * kMiB);
  void* to = AllocateOn<void>(1, bytes);
  void* from = AllocateOn<void>(0, bytes);
  const double us = BestOfKernel<uint4>(16, from, to, bytes);
  CHECK(cudaFree(from));
  CHECK(cudaFree(to));
  return us;
}

double PushEngine(double mib) {
  const size_t bytes = size_t(mib * kMiB);
  void* to = AllocateOn<void>(1, bytes);
  void* from = AllocateOn<void>(0, bytes);
  cudaStream_t stream = NewStream();
  const double us = Best(
      stream, [&] { CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream)); });
  CHECK(cudaFree(from));
  CHECK(cudaFree(to));
  return us;
}

double HostKernel(double mib) {
  const size_t bytes = size_t(mib * kMiB);
  void* from = AllocateOn<void>(0, bytes);
  void* to = nullptr;
  CHECK(cudaMallocHost(&to, bytes));
  const double us = BestOfKernel<uint4>(16, from, to, bytes);
  CHECK(cudaFree(from));
  CHECK(cudaFreeHost(to));
  return us;
}

double HostEngine(double mib) {
  const size_t bytes = size_t(mib * kMiB);
  void* from = AllocateOn<void>(0, bytes);
  void* to = nullptr;
  CHECK(cudaMallocHost(&to, bytes));
  cudaStream_t stream = NewStream();
  const double us = Best(
      stream, [&] { CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream)); });
  CHECK(cudaFree(from));
  CHECK(cudaFreeHost(to));
  return us;
}

template <class Vector>
double WithinDevice(double mib) {
  const size_t bytes = size_t(mib * kMiB);
  void* from = AllocateOn<void>(0, bytes);
  void* to = AllocateOn<void>(0, bytes);
  const double us = BestOfKernel<Vector>(32, from, to, bytes);
  CHECK(cudaFree(from));
  CHECK(cudaFree(to));
  return us;
}

void PeersFirst() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  if (devices > 1) EnablePeers(2);
}

}  // namespace

int main(int argc, char** argv) {
  PeersFirst();
  return RunExperiments(argc, argv,
                        {{"peer_copy", PeerCopy},
                         {"pull_copy", PullCopy},
                         {"push_kernel", PushKernel},
                         {"push_engine", PushEngine},
                         {"host_kernel", HostKernel},
                         {"host_engine", HostEngine},
                         {"copy_4", WithinDevice<uint32_t>},
                         {"copy_8", WithinDevice<uint2>},
                         {"copy_16", WithinDevice<uint4>}});
}
