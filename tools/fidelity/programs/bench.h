// What the experiments share: devices that reach each other, one host thread per rank, and times
// taken the way published benchmarks take them (CUDA events around one launch or around many, a
// captured graph of many, or the host's clock). An experiment prints one line per size,
// `size microseconds`; tools/fidelity compares them with the published points.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#define CHECK(call)                                                      \
  do {                                                                   \
    const cudaError_t check_error = (call);                              \
    if (check_error != cudaSuccess) {                                    \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                   cudaGetErrorString(check_error));                     \
      std::_Exit(1);                                                     \
    }                                                                    \
  } while (0)

constexpr int kMaxRanks = 8;
constexpr double kMiB = 1024.0 * 1024.0;

// One pointer per rank, small enough to be a kernel's argument.
template <class T>
struct PerRank {
  T* at[kMaxRanks];
};

inline void Report(double size, double microseconds) {
  std::printf("%.10g %.4f\n", size, microseconds);
  std::fflush(stdout);
}

inline void EnablePeers(int ranks) {
  for (int device = 0; device < ranks; ++device) {
    CHECK(cudaSetDevice(device));
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer != device) CHECK(cudaDeviceEnablePeerAccess(peer, 0));
    }
  }
}

template <class T>
T* AllocateOn(int device, size_t bytes) {
  void* memory = nullptr;
  CHECK(cudaSetDevice(device));
  CHECK(cudaMalloc(&memory, bytes));
  CHECK(cudaMemset(memory, 0, bytes));
  CHECK(cudaDeviceSynchronize());
  return static_cast<T*>(memory);
}

template <class T>
PerRank<T> AllocateOnAll(int ranks, size_t bytes) {
  PerRank<T> all{};
  for (int rank = 0; rank < ranks; ++rank) all.at[rank] = AllocateOn<T>(rank, bytes);
  return all;
}

template <class T>
void FreeOnAll(int ranks, PerRank<T> all) {
  for (int rank = 0; rank < ranks; ++rank) {
    CHECK(cudaSetDevice(rank));
    CHECK(cudaFree(all.at[rank]));
  }
}

// Runs `body(rank)` on a thread of its own with its device current, for every rank; the mean (or
// the greatest) of what they return.
enum class Over { kMean, kMax };
inline double OnRanks(int ranks, Over over, const std::function<double(int)>& body) {
  std::vector<double> results(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      CHECK(cudaSetDevice(rank));
      results[rank] = body(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (over == Over::kMax) return *std::max_element(results.begin(), results.end());
  double sum = 0;
  for (const double result : results) sum += result;
  return sum / ranks;
}

// Microseconds on the current device's stream from before `work` to after it.
inline double EventMicroseconds(cudaStream_t stream, const std::function<void()>& work) {
  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  CHECK(cudaEventRecord(start, stream));
  work();
  CHECK(cudaGetLastError());
  CHECK(cudaEventRecord(stop, stream));
  CHECK(cudaEventSynchronize(stop));
  float milliseconds = 0;
  CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(stop));
  return milliseconds * 1000.0;
}

inline cudaStream_t NewStream() {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

// `launches` calls of `launch(i)` back to back, after `warm_up` untimed ones and `align`, which
// lets all ranks start together; per launch.
inline double BackToBack(cudaStream_t stream, int warm_up, int launches,
                         const std::function<void()>& align,
                         const std::function<void(int)>& launch) {
  for (int i = 0; i < warm_up; ++i) launch(i);
  CHECK(cudaStreamSynchronize(stream));
  align();
  const double total = EventMicroseconds(stream, [&] {
    for (int i = 0; i < launches; ++i) launch(warm_up + i);
  });
  return total / launches;
}

// Microseconds of one captured graph of `launches` calls.
inline double GraphMicroseconds(cudaStream_t stream, int launches,
                                const std::function<void()>& align,
                                const std::function<void(int)>& launch) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < launches; ++i) launch(i);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  align();
  const double total =
      EventMicroseconds(stream, [&] { CHECK(cudaGraphLaunch(executable, stream)); });
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
  return total;
}

// The same in a captured graph, after one launch to warm up. Published graphs hold a hundred
// launches; here few must do, so the graph's own start is taken out as the difference of two.
inline double Graphed(cudaStream_t stream, int launches, const std::function<void()>& align,
                      const std::function<void(int)>& launch) {
  launch(0);
  CHECK(cudaStreamSynchronize(stream));
  const double once = GraphMicroseconds(stream, launches, align, launch);
  return (GraphMicroseconds(stream, 2 * launches, align, launch) - once) / launches;
}

inline std::vector<double> Sizes(int argc, char** argv) {
  std::vector<double> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(std::strtod(argv[i], nullptr));
  return sizes;
}

// main of every program: `program EXPERIMENT SIZE...`
using Experiment = std::pair<const char*, std::function<double(double size)>>;
inline int RunExperiments(int argc, char** argv, const std::vector<Experiment>& experiments) {
  for (const auto& [name, body] : experiments) {
    if (argc < 3 || std::string(argv[1]) != name) continue;
    for (const double size : Sizes(argc, argv)) Report(size, body(size));
    return 0;
  }
  std::fprintf(stderr, "usage: %s EXPERIMENT SIZE...; experiments:", argv[0]);
  for (const auto& [name, body] : experiments) std::fprintf(stderr, " %s", name);
  std::fputc('\n', stderr);
  return 2;
}
