// All-reduce between ranks that a launcher has started and told who they are (RANK, WORLD_SIZE,
// LOCAL_RANK, MASTER_ADDR, MASTER_PORT): IPC handles are exchanged over TCP, as frameworks do
// without MPI; then each rank sums what all ranks of its host have.
//
// run 3: --ranks 3
// run 8: --ranks 8
// run two_hosts: --profile h100x8x2-ib --devices 3 --ranks 6
// run network: --profile h100x8x2-ib --ranks 16
// run nvl72: --profile gb200nvl72 --ranks 72
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "flags.h"

namespace {

constexpr int kMaxRanks = 128;
constexpr int kThreads = 128;
constexpr int kCount = 1000;

struct Card {
  char host[32];
  cudaIpcMemHandle_t memory;
};

struct Shared {
  uint32_t arrived[kMaxRanks];
  int values[kCount];
};

struct Peers {
  Shared* rank[kMaxRanks];  // of one host
};

int FromEnvironment(const char* name) {
  const char* text = std::getenv(name);
  REQUIRE(text != nullptr, "%s is not set", name);
  return std::atoi(text);
}

void SendAll(int fd, const void* data, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t n = send(fd, static_cast<const char*>(data) + done, size - done, 0);
    REQUIRE(n > 0, "send failed");
    done += size_t(n);
  }
}

void ReceiveAll(int fd, void* data, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t n = recv(fd, static_cast<char*>(data) + done, size - done, 0);
    REQUIRE(n > 0, "the other end has closed");
    done += size_t(n);
  }
}

// A star around rank 0.
class Store {
 public:
  Store(int rank, int ranks) : rank_(rank), ranks_(ranks), peers_(ranks) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(uint16_t(FromEnvironment("MASTER_PORT")));
    inet_pton(AF_INET, std::getenv("MASTER_ADDR"), &address.sin_addr);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    if (rank != 0) {
      while (connect(peers_[0] = socket(AF_INET, SOCK_STREAM, 0), any, sizeof address) != 0) {
        close(peers_[0]);
        usleep(1000);  // rank 0 does not listen yet
      }
      SendAll(peers_[0], &rank, sizeof rank);
      return;
    }
    const int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    REQUIRE(bind(listener, any, sizeof address) == 0 && listen(listener, ranks) == 0,
            "cannot listen at the master's port");
    for (int i = 1; i < ranks; ++i) {
      const int fd = accept(listener, nullptr, nullptr);
      int who = 0;
      ReceiveAll(fd, &who, sizeof who);
      REQUIRE(who > 0 && who < ranks, "rank %d has come", who);
      peers_[who] = fd;
    }
    close(listener);
  }

  template <class T>
  std::vector<T> AllGather(const T& own) {
    std::vector<T> all(ranks_);
    all[rank_] = own;
    if (rank_ != 0) {
      SendAll(peers_[0], &own, sizeof own);
      ReceiveAll(peers_[0], all.data(), all.size() * sizeof(T));
      return all;
    }
    for (int r = 1; r < ranks_; ++r) ReceiveAll(peers_[r], &all[r], sizeof(T));
    for (int r = 1; r < ranks_; ++r) SendAll(peers_[r], all.data(), all.size() * sizeof(T));
    return all;
  }

 private:
  int rank_, ranks_;
  std::vector<int> peers_;
};

__global__ void Sum(Peers peers, int rank, int ranks, int* output) {
  if (threadIdx.x < ranks) {
    StoreReleaseSys(&peers.rank[threadIdx.x]->arrived[rank], 1);
    while (LoadAcquireSys(&peers.rank[rank]->arrived[threadIdx.x]) == 0) {
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kCount; i += kThreads) {
    int sum = 0;
    for (int r = 0; r < ranks; ++r) sum += peers.rank[r]->values[i];
    output[i] = sum;
  }
}

}  // namespace

int main() {
  const int rank = FromEnvironment("RANK"), ranks = FromEnvironment("WORLD_SIZE");
  const int local = FromEnvironment("LOCAL_RANK"), beside = FromEnvironment("LOCAL_WORLD_SIZE");
  RequireDevices(beside);
  Shared* mine = ZeroedOn<Shared>(local);
  int* output = ZeroedOn<int>(local, kCount);
  std::vector<int> values(kCount);
  for (int i = 0; i < kCount; ++i) values[i] = rank * 1009 + i;
  Upload(mine->values, values.data(), kCount);

  Store store(rank, ranks);
  Card own{};
  gethostname(own.host, sizeof own.host);
  CUDA_CHECK(cudaIpcGetMemHandle(&own.memory, mine));
  const std::vector<Card> cards = store.AllGather(own);
  Peers peers{};
  int found = 0, first = -1;
  for (int r = 0; r < ranks; ++r) {
    void* opened = mine;
    if (std::strcmp(cards[r].host, own.host) != 0) {
      REQUIRE(cudaIpcOpenMemHandle(&opened, cards[r].memory, cudaIpcMemLazyEnablePeerAccess) !=
                  cudaSuccess,
              "rank %d opened memory of another host", rank);
      cudaGetLastError();
      continue;
    }
    if (r != rank)
      CUDA_CHECK(cudaIpcOpenMemHandle(&opened, cards[r].memory, cudaIpcMemLazyEnablePeerAccess));
    if (first < 0) first = r;
    peers.rank[found++] = static_cast<Shared*>(opened);
  }
  REQUIRE(found == beside && first == rank - local, "%d ranks on %s, the first is %d", found,
          own.host, first);

  Sum<<<1, kThreads>>>(peers, local, beside, output);
  CUDA_CHECK_LAUNCH();
  std::vector<int> got(kCount);
  CUDA_CHECK(cudaMemcpy(got.data(), output, kCount * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) {
    int expected = 0;
    for (int r = first; r < first + beside; ++r) expected += r * 1009 + i;
    REQUIRE(got[i] == expected, "rank %d, element %d: got %d, expected %d", rank, i, got[i],
            expected);
  }
  store.AllGather(0);  // memory may be freed only after everybody has read it
  if (rank == 0) std::printf("PASS allreduce_tcp: %d ranks\n", ranks);
  return 0;
}
