// Runs a solution of a problem on the GPUs of this machine: an ordinary CUDA program, one thread
// per device. For every case it draws inputs, runs a burst of calls that are checked by the
// problem's oracle, then bursts that are timed with events. `tables.h` describes the problem,
// `problem.h` is what the solution includes.
//
// It is no judge: the solution runs in this process and could do anything. A solution that
// deadlocks hangs.
#include <cuda.h>

#include <allranks/boot.h>
#include <allranks/oracle.h>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "problem.h"
#include "tables.h"

extern "C" int AllranksOracleRun(const allranks::oracle::RawCall* raw,
                                 allranks::oracle::RawReport* report);

namespace {

#define CUDA(call)                                                       \
  do {                                                                   \
    if (const cudaError_t status = (call); status != cudaSuccess) {      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                   cudaGetErrorString(status));                          \
      std::exit(1);                                                      \
    }                                                                    \
  } while (false)
#define DRIVER(call)                                                                         \
  do {                                                                                       \
    if (const CUresult status = (call); status != CUDA_SUCCESS) {                            \
      std::fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #call, int(status)); \
      std::exit(1);                                                                          \
    }                                                                                        \
  } while (false)

constexpr unsigned char kPoison = 0xcb;
constexpr int kTimedBursts = 5;

// All ranks meet here, as often as they like.
class Meeting {
 public:
  explicit Meeting(int world) : world_(world), all_(world * kMost) {}
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    const unsigned round = round_;
    if (++waiting_ == world_) {
      waiting_ = 0;
      ++round_;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [&] { return round_ != round; });
    }
  }
  void Gather(int rank, const void* mine, void* all, std::size_t bytes) {
    if (bytes > kMost) std::exit(1);
    std::memcpy(&all_[rank * bytes], mine, bytes);
    Wait();
    std::memcpy(all, all_.data(), world_ * bytes);
    Wait();
  }

 private:
  static constexpr std::size_t kMost = 4096;
  int world_;
  std::vector<char> all_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  unsigned round_ = 0;
};
Meeting* meeting = nullptr;

// --- inputs --------------------------------------------------------------------------------------

struct Random {
  std::uint64_t state;
  std::uint64_t Next() {  // splitmix64
    std::uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  std::uint64_t Below(std::uint64_t n) { return n == 0 ? 0 : Next() % n; }
};

void Put(const TensorTable& tensor, char* at, std::uint64_t i, double value, std::uint64_t bits) {
  using allranks::oracle::Type;
  at += i * tensor.size;
  const auto put = [&](auto typed) { std::memcpy(at, &typed, sizeof typed); };
  switch (tensor.type) {
    case Type::kF32:
      return put(static_cast<float>(value));
    case Type::kF64:
      return put(value);
    case Type::kBf16: {
      const float single = static_cast<float>(value);
      std::uint32_t word;
      std::memcpy(&word, &single, 4);
      return put(static_cast<std::uint16_t>(word >> 16));
    }
    case Type::kF16: {
      // Values here are small: exponents of f16 suffice, and what is below them becomes zero.
      const float single = static_cast<float>(value);
      std::uint32_t word;
      std::memcpy(&word, &single, 4);
      const int exponent = static_cast<int>(word >> 23 & 0xff) - 127 + 15;
      std::uint16_t half = static_cast<std::uint16_t>(word >> 16 & 0x8000);
      if (exponent > 0 && exponent < 31) half |= exponent << 10 | (word >> 13 & 0x3ff);
      return put(half);
    }
    default:
      std::memcpy(at, &bits, tensor.size);
  }
}

void Draw(const TensorTable& tensor, std::uint64_t count, std::uint64_t row, std::int64_t limit,
          std::uint64_t seed, char* out) {
  Random random{seed};
  std::vector<std::uint64_t> taken;
  std::uint64_t left = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (row > 0 && i % row == 0) {
      taken.clear();
      left = random.Below(limit + 1);
    }
    double value = 0;
    std::uint64_t bits = random.Next();
    switch (tensor.draw) {
      case DrawKind::kMixed:
      case DrawKind::kUniform:
        value = static_cast<double>(bits >> 11) / (1ull << 52) - 1;
        break;
      case DrawKind::kIntegers:
        bits = random.Below(2 * limit + 1) - limit;
        value = static_cast<double>(static_cast<std::int64_t>(bits));
        break;
      case DrawKind::kBits:
        break;
      case DrawKind::kBelow:
        bits = random.Below(limit);
        break;
      case DrawKind::kCounts:
        bits = random.Below(left / 2 + 1);
        left -= bits;
        break;
      case DrawKind::kTopK: {
        bits = random.Below(limit);
        const auto used = [&] {
          for (const std::uint64_t one : taken)
            if (one == bits) return true;
          return false;
        };
        while (used()) bits = (bits + 1) % limit;
        taken.push_back(bits);
        break;
      }
    }
    Put(tensor, out, i, value, bits);
  }
}

// --- memory --------------------------------------------------------------------------------------

struct Memory {
  char* own = nullptr;
  char* multicast = nullptr;
};

// Memory of all ranks that also has one address for all of them.
std::vector<Memory> AllocateMulticast(int world, std::size_t bytes) {
  CUmulticastObjectProp group = {};
  group.numDevices = world;
  group.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
  group.size = bytes;
  std::size_t granularity = 0;
  DRIVER(cuMulticastGetGranularity(&granularity, &group, CU_MULTICAST_GRANULARITY_RECOMMENDED));
  bytes = (bytes + granularity - 1) / granularity * granularity;
  group.size = bytes;
  CUmemGenericAllocationHandle handle;
  DRIVER(cuMulticastCreate(&handle, &group));
  for (int r = 0; r < world; ++r) DRIVER(cuMulticastAddDevice(handle, r));
  std::vector<CUmemAccessDesc> access(world);
  for (int r = 0; r < world; ++r)
    access[r] = {{CU_MEM_LOCATION_TYPE_DEVICE, r}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const auto map = [&](CUmemGenericAllocationHandle memory) {
    CUdeviceptr at;
    DRIVER(cuMemAddressReserve(&at, bytes, granularity, 0, 0));
    DRIVER(cuMemMap(at, bytes, 0, memory, 0));
    DRIVER(cuMemSetAccess(at, bytes, access.data(), world));
    return reinterpret_cast<char*>(at);
  };
  std::vector<Memory> all(world);
  for (int r = 0; r < world; ++r) {
    CUmemAllocationProp own = {};
    own.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    own.location = {CU_MEM_LOCATION_TYPE_DEVICE, r};
    CUmemGenericAllocationHandle memory;
    DRIVER(cuMemCreate(&memory, bytes, &own, 0));
    DRIVER(cuMulticastBindMem(handle, 0, memory, 0, bytes, 0));
    all[r].own = map(memory);
  }
  char* everywhere = map(handle);
  for (Memory& one : all) one.multicast = everywhere;
  return all;
}

std::vector<Memory> Allocate(const TensorTable& tensor, int world, std::size_t bytes) {
  bytes = bytes < 16 ? 16 : bytes;
  if (tensor.multicast) return AllocateMulticast(world, bytes);
  std::vector<Memory> all(world);
  for (int r = 0; r < world; ++r) {
    CUDA(cudaSetDevice(r));
    if (tensor.host) {
      CUDA(cudaHostAlloc(&all[r].own, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
    } else {
      CUDA(cudaMalloc(&all[r].own, bytes));
    }
  }
  return all;
}

// --- one case ------------------------------------------------------------------------------------

// One case's memory on all ranks, and its inputs and outputs by call, rank and tensor.
struct Run {
  const CaseTable& what;
  int number;
  std::vector<std::vector<Memory>> memory;  // by tensor and rank
  std::vector<std::vector<char*>> kept;     // by call, then rank x tensor: pinned
  std::vector<double> microseconds;         // by rank: the best burst's time per call
  std::uint64_t Bytes(int t) const { return what.counts[t] * kTensors[t].size; }
};

Args ArgsOf(const Run& run, int rank) {
  Args args = {};
  char* bytes = reinterpret_cast<char*>(&args);
  const auto put = [&](std::uint32_t offset, const auto& value) {
    std::memcpy(bytes + offset, &value, sizeof value);
  };
  for (const FieldTable& field : kFields) {
    switch (field.what) {
      case FieldKind::kRank:
        put(field.offset, std::int32_t(rank));
        break;
      case FieldKind::kWorld:
        put(field.offset, std::int32_t(run.what.world));
        break;
      case FieldKind::kParam:
        put(field.offset, run.what.params[field.index]);
        break;
      case FieldKind::kOwn:
        put(field.offset, run.memory[field.index][rank].own);
        break;
      case FieldKind::kPeer:
        if (int(field.peer) < run.what.world)
          put(field.offset, run.memory[field.index][field.peer].own);
        break;
      case FieldKind::kMulticast:
        put(field.offset, run.memory[field.index][rank].multicast);
        break;
    }
  }
  return args;
}

// The calls of one rank, captured or not.
class Caller {
 public:
  Caller(const Args& args, cudaStream_t stream) : args_(args), stream_(stream) {
    if (!kCaptured) return;
    cudaGraph_t graph;
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    Calls(args, stream);
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&exec_, graph, 0));
    CUDA(cudaGraphDestroy(graph));
  }
  ~Caller() {
    if (exec_ != nullptr) CUDA(cudaGraphExecDestroy(exec_));
  }
  void Call() {
    if (exec_ != nullptr) {
      CUDA(cudaGraphLaunch(exec_, stream_));
      return;
    }
    Calls(args_, stream_);
    std::vector<std::thread> hosts;
    for (int t = 0; t < kHostThreads; ++t) hosts.emplace_back([&, t] { Host(args_, t); });
    for (std::thread& host : hosts) host.join();
  }

 private:
  Args args_;
  cudaStream_t stream_;
  cudaGraphExec_t exec_ = nullptr;
};

void RunRank(Run* run, int rank) {
  CUDA(cudaSetDevice(rank));
  cudaStream_t stream;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const Args args = ArgsOf(*run, rank);
  allranks::Boot boot(rank, run->what.world);
  SetUp(boot, args);
  Caller caller(args, stream);
  CUDA(cudaStreamSynchronize(stream));
  meeting->Wait();
  // Checked: every call has its own inputs, and no call waits for another rank but by itself.
  for (int call = 0; call < kBurst; ++call) {
    for (int t = 0; t < kTensorCount; ++t) {
      char* here = run->memory[t][rank].own;
      char* kept = run->kept[call][rank * kTensorCount + t];
      if (kTensors[t].dir == allranks::oracle::Dir::kIn && run->Bytes(t) > 0)
        CUDA(cudaMemcpyAsync(here, kept, run->Bytes(t), cudaMemcpyDefault, stream));
      if (kTensors[t].dir == allranks::oracle::Dir::kOut && run->Bytes(t) > 0)
        CUDA(cudaMemsetAsync(here, kPoison, run->Bytes(t), stream));
    }
    caller.Call();
    for (int t = 0; t < kTensorCount; ++t) {
      if (kTensors[t].dir == allranks::oracle::Dir::kOut && run->Bytes(t) > 0)
        CUDA(cudaMemcpyAsync(run->kept[call][rank * kTensorCount + t], run->memory[t][rank].own,
                             run->Bytes(t), cudaMemcpyDefault, stream));
    }
  }
  CUDA(cudaStreamSynchronize(stream));
  // Timed: nothing but calls.
  cudaEvent_t begin, end;
  CUDA(cudaEventCreate(&begin));
  CUDA(cudaEventCreate(&end));
  for (int burst = 0; burst < (run->what.timed ? kTimedBursts : 0); ++burst) {
    meeting->Wait();
    CUDA(cudaEventRecord(begin, stream));
    for (int call = 0; call < kBurst; ++call) caller.Call();
    CUDA(cudaEventRecord(end, stream));
    CUDA(cudaStreamSynchronize(stream));
    float milliseconds = 0;
    CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
    const double each = milliseconds * 1000 / kBurst;
    if (burst == 0 || each < run->microseconds[rank]) run->microseconds[rank] = each;
  }
  meeting->Wait();
  CUDA(cudaEventDestroy(begin));
  CUDA(cudaEventDestroy(end));
  CUDA(cudaStreamDestroy(stream));
}

// Elements that are wrong, over all calls; the first is printed.
std::uint64_t Verify(const Run& run) {
  namespace oracle = allranks::oracle;
  std::vector<oracle::RawTensor> tensors(kTensorCount);
  for (int t = 0; t < kTensorCount; ++t)
    tensors[t] = {kTensors[t].name, run.what.counts[t], kTensors[t].type, kTensors[t].dir};
  std::uint64_t wrong = 0;
  for (int call = 0; call < kBurst; ++call) {
    std::vector<const void*> data(run.kept[call].begin(), run.kept[call].end());
    std::uint32_t word;
    std::memset(&word, kPoison, sizeof word);
    std::vector<std::uint32_t> poison(run.what.world, word);
    oracle::RawCall raw = {
        oracle::kAbiVersion, run.what.world, kParamCount, kTensorCount,  kParams,
        run.what.params,     tensors.data(), data.data(), poison.data(), {1, 2, 3, 4}};
    oracle::RawReport report = {};
    report.context = &call;
    report.limit = wrong == 0 ? 1 : 0;
    report.wrong = [](void* context, std::int32_t rank, std::uint32_t tensor, std::uint64_t index,
                      const char* expected, const char* got) {
      std::printf("call %d, rank %d: %s[%llu] is %s, not %s\n", *static_cast<int*>(context), rank,
                  kTensors[tensor].name, static_cast<unsigned long long>(index), got, expected);
    };
    if (AllranksOracleRun(&raw, &report) != 0) {
      std::printf("the oracle failed: %s\n", report.error);
      return 1;
    }
    wrong += report.wrong_count;
  }
  return wrong;
}

bool RunCase(const CaseTable& what, int number) {
  Meeting own(what.world);
  meeting = &own;
  Run run{what, number, {}, {}, std::vector<double>(what.world)};
  for (int t = 0; t < kTensorCount; ++t) {
    run.memory.push_back(Allocate(kTensors[t], what.world, run.Bytes(t)));
    for (int r = 0; r < what.world; ++r) {
      CUDA(cudaSetDevice(r));
      if (run.Bytes(t) > 0) CUDA(cudaMemset(run.memory[t][r].own, 0, run.Bytes(t)));
      CUDA(cudaDeviceSynchronize());
    }
  }
  for (int call = 0; call < kBurst; ++call) {
    auto& kept = run.kept.emplace_back();
    for (int r = 0; r < what.world; ++r) {
      for (int t = 0; t < kTensorCount; ++t) {
        char*& bytes = kept.emplace_back(nullptr);
        if (kTensors[t].dir == allranks::oracle::Dir::kSymmetric) continue;
        CUDA(cudaMallocHost(&bytes, run.Bytes(t) + 16));
        if (kTensors[t].dir == allranks::oracle::Dir::kIn) {
          const std::uint64_t seed = (((number * 64ull + call) * 64 + r) * 64 + t) * 0x10001 + 7;
          Draw(kTensors[t], what.counts[t], what.rows[t], what.limits[t], seed, bytes);
        }
      }
    }
  }
  std::vector<std::thread> ranks;
  for (int r = 0; r < what.world; ++r) ranks.emplace_back(RunRank, &run, r);
  for (std::thread& rank : ranks) rank.join();
  const std::uint64_t wrong = Verify(run);
  double slowest = 0;
  for (const double one : run.microseconds) slowest = one > slowest ? one : slowest;
  std::printf("%-32s %-6s", what.name, wrong == 0 ? "right" : "WRONG");
  if (what.timed) std::printf(" %10.2f us per call", slowest);
  std::printf("\n");
  std::fflush(stdout);
  for (auto& kept : run.kept) {
    for (char* bytes : kept)
      if (bytes != nullptr) CUDA(cudaFreeHost(bytes));
  }
  for (int t = 0; t < kTensorCount; ++t) {
    if (kTensors[t].multicast) continue;  // left to the end of the process
    for (const Memory& one : run.memory[t])
      CUDA(kTensors[t].host ? cudaFreeHost(one.own) : cudaFree(one.own));
  }
  return wrong == 0;
}

}  // namespace

namespace allranks {
void Boot::Barrier() { meeting->Wait(); }
void Boot::AllGather(const void* mine, void* all, std::size_t bytes) {
  meeting->Gather(rank_, mine, all, bytes);
}
}  // namespace allranks

// Usage: run [TEXT]: only cases with TEXT in their names.
int main(int argc, char** argv) {
  int devices = 0;
  CUDA(cudaGetDeviceCount(&devices));
  for (int a = 0; a < devices; ++a) {
    CUDA(cudaSetDevice(a));
    for (int b = 0; b < devices; ++b) {
      int possible = 0;
      if (a != b) CUDA(cudaDeviceCanAccessPeer(&possible, a, b));
      if (possible) CUDA(cudaDeviceEnablePeerAccess(b, 0));
    }
  }
  bool good = true;
  int ran = 0;
  for (int i = 0; i < kCaseCount; ++i) {
    if (argc > 1 && std::string(kCases[i].name).find(argv[1]) == std::string::npos) continue;
    if (kCases[i].world > devices) {
      std::printf("%-32s needs %d devices\n", kCases[i].name, kCases[i].world);
      continue;
    }
    good = RunCase(kCases[i], i) && good;
    ++ran;
  }
  return good && ran > 0 ? 0 : 1;
}
