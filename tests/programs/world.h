// N ranks with one device each which run the same body as threads of one process, as processes, or
// as processes of two threads each; or one rank of those that a launcher has started. Usage of
// every program that includes this:
//   PROGRAM RANKS threads|processes|mixed|launched [SCHEME]
//
// Ranks talk through a full mesh of socket pairs, made before any CUDA call and before the forks.
// The same sockets serve threads and processes, so that only the way memory is shared differs:
// a pointer and peer access within a process, an IPC handle between processes.
#pragma once

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "check.h"
#include "launched.h"
#include "peers.h"

class World {
 public:
  // `process` is the same for ranks that share a process, and only for those; `links[p]` is this
  // rank's end of the connection with rank p.
  World(int rank, int ranks, int device, int process, bool launched, const int* links)
      : rank_(rank), ranks_(ranks), device_(device), launched_(launched) {
    std::memcpy(links_, links, sizeof links_);
    CUDA_CHECK(cudaSetDevice(device));
    processes_ = AllGather(process);
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer != rank && SameProcess(peer)) EnablePeer(rank, peer);
    }
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int device() const { return device_; }
  bool launched() const { return launched_; }
  int right() const { return (rank_ + 1) % ranks_; }
  int left() const { return (rank_ + ranks_ - 1) % ranks_; }
  cudaStream_t stream() const { return stream_; }
  int link(int peer) const { return links_[peer]; }
  bool SameProcess(int peer) const { return processes_[peer] == processes_[rank_]; }

  // Waits until the process of `peer` is gone, and goes on without it.
  void Lose(int peer) {
    char byte;
    REQUIRE(recv(links_[peer], &byte, 1, 0) == 0, "rank %d: rank %d still talks", rank_, peer);
    lost_[peer] = true;
  }

  // What every rank passed, in the order of ranks; this rank's own value for those lost.
  template <class T>
  std::vector<T> AllGather(const T& mine) const {
    static_assert(std::is_trivially_copyable<T>::value, "values travel as bytes");
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer == rank_ || lost_[peer]) continue;
      REQUIRE(send(links_[peer], &mine, sizeof mine, MSG_NOSIGNAL) == sizeof mine,
              "rank %d: rank %d is gone (send)", rank_, peer);
    }
    std::vector<T> all(ranks_, mine);
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer == rank_ || lost_[peer]) continue;
      REQUIRE(recv(links_[peer], &all[peer], sizeof mine, MSG_WAITALL) == sizeof mine,
              "rank %d: rank %d is gone (recv)", rank_, peer);
    }
    return all;
  }

  // Lets this host be late, as Stumble does with a kernel.
  void Linger(int step) const { usleep((rank_ * 37 + step * 23 + 5) % 7 * 20); }

  void Barrier() const { AllGather('b'); }

  // Zeroed memory on this rank's device; lives until the world ends.
  template <class T>
  T* Allocate(size_t count = 1) {
    T* memory = ZeroedOn<T>(device_, count);
    allocations_.push_back(memory);
    return memory;
  }

  template <class T>
  T* Allocate(const std::vector<T>& content) {
    T* memory = Allocate<T>(content.size());
    Upload(memory, content.data(), content.size());
    return memory;
  }

  // Zeroed memory on every rank, which all can read and write.
  template <class T>
  Peers<T> Share(size_t count = 1) {
    return Share(Allocate<T>(count));
  }

  // Everyone's `mine`, the result of a cudaMalloc, as this rank sees it.
  template <class T>
  Peers<T> Share(T* mine) {
    struct Card {
      T* pointer;
      cudaIpcMemHandle_t handle;
    } card;
    card.pointer = mine;
    CUDA_CHECK(cudaIpcGetMemHandle(&card.handle, mine));
    const std::vector<Card> cards = AllGather(card);
    Peers<T> peers{};
    for (int peer = 0; peer < ranks_; ++peer) {
      if (SameProcess(peer)) {
        peers.of[peer] = cards[peer].pointer;
        continue;
      }
      void* theirs = nullptr;
      CUDA_CHECK(cudaIpcOpenMemHandle(&theirs, cards[peer].handle, cudaIpcMemLazyEnablePeerAccess));
      imports_.push_back(theirs);
      peers.of[peer] = static_cast<T*>(theirs);
    }
    return peers;
  }

  // Waits for this rank's stream, and returns what is at `memory` then.
  template <class T>
  std::vector<T> Result(const T* memory, size_t count) const {
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    std::vector<T> host(count);
    CUDA_CHECK(cudaMemcpy(host.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }

  // Memory may be freed only after every importer has closed it.
  void End() {
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    for (void* memory : imports_) CUDA_CHECK(cudaIpcCloseMemHandle(memory));
    Barrier();
    for (void* memory : allocations_) CUDA_CHECK(cudaFree(memory));
    CUDA_CHECK(cudaStreamDestroy(stream_));
  }

 private:
  const int rank_, ranks_, device_;
  const bool launched_;
  int links_[kMaxRanks];
  bool lost_[kMaxRanks] = {};
  std::vector<int> processes_;  // of each rank
  cudaStream_t stream_ = nullptr;
  std::vector<void*> allocations_, imports_;
};

// Every element of `got` must equal `expected(index)`.
template <class T, class Expected>
void RequireElements(const World& world, const char* what, int call, const std::vector<T>& got,
                     Expected expected) {
  for (size_t i = 0; i < got.size(); ++i) {
    const T wanted = expected(int(i));
    REQUIRE(got[i] == wanted, "rank %d of %d, %s, call %d, element %zu: got %.17g, expected %.17g",
            world.rank(), world.ranks(), what, call, i, double(got[i]), double(wanted));
  }
}

struct Setup {
  int ranks;
  int ranks_per_process;  // 0: started by a launcher
  std::string scheme;
};

inline Setup ReadSetup(int argc, char** argv) {
  REQUIRE(argc >= 3, "usage: %s RANKS threads|processes|mixed|launched [SCHEME]", argv[0]);
  const int ranks = int(Argument(argc, argv, 1, 0));
  REQUIRE(ranks >= 2 && ranks <= kMaxRanks, "ranks must be 2..%d", kMaxRanks);
  const std::string mode = argv[2];
  const int per_process = mode == "threads"     ? ranks
                          : mode == "processes" ? 1
                          : mode == "mixed"     ? 2
                          : mode == "launched"  ? 0
                                                : -1;
  REQUIRE(per_process >= 0, "unknown mode %s", argv[2]);
  return {ranks, per_process, argc > 3 ? argv[3] : ""};
}

// Runs `body(world)` as every rank. A process that fails ends the others, which would wait for it.
// `killed` names a rank whose process is meant to die of SIGKILL.
template <class Body>
int RunWorld(const Setup& setup, Body body, int killed = -1) {
  const int ranks = setup.ranks;
  int links[kMaxRanks][kMaxRanks] = {};
  if (setup.ranks_per_process == 0) {
    const int rank = FromEnvironment("RANK");
    REQUIRE(FromEnvironment("WORLD_SIZE") == ranks, "the world is not of %d ranks", ranks);
    launched::ConnectAll(rank, ranks, links[rank]);
    World world(rank, ranks, FromEnvironment("LOCAL_RANK"), rank, true, links[rank]);
    body(world);
    world.End();
    if (rank == 0) std::printf("PASS %d ranks, started by a launcher\n", ranks);
    return 0;
  }
  for (int a = 0; a < ranks; ++a) {
    for (int b = a + 1; b < ranks; ++b) {
      int ends[2];
      REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair failed");
      links[a][b] = ends[0];
      links[b][a] = ends[1];
    }
  }
  const auto run_rank = [&](int rank) {
    World world(rank, ranks, rank, rank / setup.ranks_per_process, false, links[rank]);
    body(world);
    world.End();
  };
  const auto run_process = [&](int first, int count) {
    if (count == 1) return run_rank(first);
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back(run_rank, first + i);
    for (std::thread& thread : threads) thread.join();
  };
  if (setup.ranks_per_process >= ranks) {
    run_process(0, ranks);
  } else {
    std::vector<pid_t> children;
    for (int first = 0; first < ranks; first += setup.ranks_per_process) {
      const int end = std::min(ranks, first + setup.ranks_per_process);
      const pid_t child = fork();
      REQUIRE(child >= 0, "fork failed");
      if (child == 0) {
        // Other ranks' ends are closed, so that the death of a process is seen by its peers.
        for (int a = 0; a < ranks; ++a) {
          for (int b = 0; b < ranks; ++b) {
            if (a != b && (a < first || a >= end)) close(links[a][b]);
          }
        }
        run_process(first, end - first);
        std::exit(0);
      }
      children.push_back(child);
    }
    for (int a = 0; a < ranks; ++a) {
      for (int b = 0; b < ranks; ++b) {
        if (a != b) close(links[a][b]);
      }
    }
    bool failed = false;
    for (size_t left = children.size(); left > 0; --left) {
      int status = 0;
      const pid_t child = waitpid(-1, &status, 0);
      const bool expected = killed >= 0 && child == children[killed / setup.ranks_per_process]
                                ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                                : WIFEXITED(status) && WEXITSTATUS(status) == 0;
      if (!expected && !failed) {
        failed = true;
        for (pid_t other : children) {
          if (other != child) kill(other, SIGKILL);
        }
      }
    }
    if (failed) return 1;
  }
  std::printf("PASS %d ranks, %d per process%s%s\n", ranks, setup.ranks_per_process,
              setup.scheme.empty() ? "" : ", ", setup.scheme.c_str());
  return 0;
}

template <class Body>
int RunWorld(int argc, char** argv, Body body) {
  return RunWorld(ReadSetup(argc, argv), body);
}
