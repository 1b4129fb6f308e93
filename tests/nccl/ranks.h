// The ranks of a communicator that this process has: all of them, a device each, or the one that
// `exec --ranks` made of it. Run() calls a collective on all of them and compares every element.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <nccl.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "check.h"
#include "nccl_check.h"
#include "store.h"

inline int g_world = 0;
inline int g_first = 0, g_end = 0;  // the ranks of this process
inline int g_device = 0;            // of the first of them; the others follow
inline std::vector<ncclComm_t> g_comms;
inline std::vector<cudaStream_t> g_streams;

// Where Run() has its buffers from: (rank, bytes).
inline std::function<void*(int, std::size_t)> g_allocate = [](int, std::size_t bytes) {
  void* data = nullptr;
  CUDA_CHECK(cudaMalloc(&data, bytes));
  return data;
};
inline std::function<void(int, void*)> g_free = [](int, void* data) { CUDA_CHECK(cudaFree(data)); };

inline void Use(int rank) { CUDA_CHECK(cudaSetDevice(g_device + rank - g_first)); }

// Calls `call(rank)` for the ranks of this process, each with its device.
inline void Each(const std::function<void(int)>& call) {
  for (int r = g_first; r < g_end; ++r) {
    Use(r);
    call(r);
  }
}

// The same as one group of NCCL.
inline void Group(const std::function<ncclResult_t(int)>& call) {
  NCCL_CHECK(ncclGroupStart());
  Each([&](int r) { NCCL_CHECK(call(r)); });
  NCCL_CHECK(ncclGroupEnd());
}

inline void Synchronize() {
  Each([](int r) { CUDA_CHECK(cudaStreamSynchronize(g_streams[r])); });
}

inline void Say(const std::string& text) {
  if (g_first == 0) std::puts(text.c_str());
  std::fflush(stdout);
}

// All ranks in this process, or this process is one of them.
inline void Begin(int world) {
  g_world = world;
  g_comms.resize(static_cast<std::size_t>(world));
  g_streams.resize(static_cast<std::size_t>(world));
  if (std::getenv("WORLD_SIZE") == nullptr) {
    g_end = world;
    NCCL_CHECK(ncclCommInitAll(g_comms.data(), world, nullptr));
  } else {
    const int rank = FromEnvironment("RANK");
    REQUIRE(FromEnvironment("WORLD_SIZE") == world, "%d ranks are wanted", world);
    g_first = rank;
    g_end = rank + 1;
    g_device = FromEnvironment("LOCAL_RANK");
    Store store(rank, world);
    ncclUniqueId id{};
    if (rank == 0) NCCL_CHECK(ncclGetUniqueId(&id));
    id = store.AllGather(id)[0];
    Use(rank);
    NCCL_CHECK(ncclCommInitRank(&g_comms[rank], world, id, rank));
  }
  Each([](int r) { CUDA_CHECK(cudaStreamCreate(&g_streams[r])); });
}

inline void End() {
  Each([](int r) { NCCL_CHECK(ncclCommDestroy(g_comms[r])); });
  Say("done");
}

// Small whole numbers, so that every type holds all sums and products exactly.
inline int Input(int rank, std::size_t i) {
  return static_cast<int>((i * 7 + rank * 3) % 3) + (i % 5 == 0);
}

inline float Reduced(ncclRedOp_t op, std::size_t i) {
  float result = Input(0, i);
  for (int r = 1; r < g_world; ++r) {
    const auto x = static_cast<float>(Input(r, i));
    if (op == ncclSum || op == ncclAvg) result += x;
    if (op == ncclProd) result *= x;
    if (op == ncclMin) result = x < result ? x : result;
    if (op == ncclMax) result = x > result ? x : result;
  }
  return op == ncclAvg ? result / static_cast<float>(g_world) : result;
}

template <class T>
std::vector<T> Inputs(int rank, std::size_t n) {
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i)
    values[i] = static_cast<T>(static_cast<float>(Input(rank, i)));
  return values;
}

// Element i of `data` must be `expected(i)`; a negative one is not compared.
template <class T>
void Compare(const char* name, int rank, const T* data, std::size_t n,
             const std::function<float(std::size_t)>& expected) {
  std::vector<T> values(n);
  CUDA_CHECK(cudaMemcpy(values.data(), data, n * sizeof(T), cudaMemcpyDeviceToHost));
  for (std::size_t i = 0; i < n; ++i) {
    const float wanted = expected(i);
    const auto value = static_cast<float>(values[i]);
    REQUIRE(wanted < 0 || value == wanted, "%s: rank %d, element %zu is %g, not %g", name, rank, i,
            value, wanted);
  }
}

// Fills the input of every rank, calls the collective of every rank in one group, and compares.
// `expected(rank, i)` is element i of rank's output; `in` and `out` are its sizes per rank.
template <class T>
void Run(const char* name, std::size_t in, std::size_t out,
         const std::function<ncclResult_t(int, const void*, void*)>& call,
         const std::function<float(int, std::size_t)>& expected) {
  std::vector<T*> from(g_world), to(g_world);
  Each([&](int r) {
    from[r] = static_cast<T*>(g_allocate(r, in * sizeof(T)));
    to[r] = static_cast<T*>(g_allocate(r, out * sizeof(T)));
    CUDA_CHECK(cudaMemset(to[r], 0xff, out * sizeof(T)));
    Upload(from[r], Inputs<T>(r, in).data(), in);
  });
  Group([&](int r) { return call(r, from[r], to[r]); });
  Each([&](int r) {
    CUDA_CHECK(cudaStreamSynchronize(g_streams[r]));
    Compare<T>(name, r, to[r], out, [&](std::size_t i) { return expected(r, i); });
    g_free(r, from[r]);
    g_free(r, to[r]);
  });
  Say(std::string(name) + " ok");
}

template <class T>
void AllReduce(const char* name, ncclDataType_t type, ncclRedOp_t op, std::size_t n) {
  Run<T>(
      name, n, n,
      [&](int r, const void* in, void* out) {
        return ncclAllReduce(in, out, n, type, op, g_comms[r], g_streams[r]);
      },
      [&](int, std::size_t i) { return Reduced(op, i); });
}

inline void AllGather(std::size_t n) {
  Run<float>(
      "all-gather", n, n * g_world,
      [&](int r, const void* in, void* out) {
        return ncclAllGather(in, out, n, ncclFloat32, g_comms[r], g_streams[r]);
      },
      [&](int, std::size_t i) { return Input(static_cast<int>(i / n), i % n); });
}

inline void ReduceScatter(std::size_t n) {
  Run<float>(
      "reduce-scatter", n * g_world, n,
      [&](int r, const void* in, void* out) {
        return ncclReduceScatter(in, out, n, ncclFloat32, ncclSum, g_comms[r], g_streams[r]);
      },
      [&](int r, std::size_t i) { return Reduced(ncclSum, static_cast<std::size_t>(r) * n + i); });
}

inline void AllToAll(std::size_t n) {
  Run<float>(
      "all-to-all", n * g_world, n * g_world,
      [&](int r, const void* in, void* out) {
        return ncclAlltoAll(in, out, n, ncclFloat32, g_comms[r], g_streams[r]);
      },
      [&](int r, std::size_t i) {
        return Input(static_cast<int>(i / n), static_cast<std::size_t>(r) * n + i % n);
      });
}
