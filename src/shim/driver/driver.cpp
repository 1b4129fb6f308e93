// main() of a rank of a judged run: asks the node what to do and calls the candidate's entry points
// accordingly, knowing nothing of the problem. It is linked together with the candidate, so nothing
// here is trusted by anybody; the node decides (src/server/judged.h).
//
// The command line names the entry points of one call, in order. They are found in the executable,
// as are `setup`, `host` and `answer`; Args are bytes that the node has filled in.
#include <allranks/boot.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "shim/abi.h"
#include "shim/cuda/numbers.h"
#include "shim/driver/instrumented.h"

namespace allranks {
namespace {

using Do = wire::JudgeNextReply::Do;

constexpr int kExitLost = 3;  // the node is gone, or will not talk
constexpr std::size_t kMaxArgs = 4'096;
constexpr std::size_t kMaxAnswer = 1 << 20;

struct Call {
  const char* name;
  void (*entry)(const void* args, cudaStream_t stream);
};

template <class F>
F Find(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
}

template <class M>
typename M::Reply Must(const M& message) {
  typename M::Reply reply;
  if (shim::Call(message, &reply) != 0) _exit(kExitLost);
  return reply;
}

class Driver {
 public:
  explicit Driver(std::vector<Call> calls) : calls_(std::move(calls)) {}
  [[noreturn]] void Run();

 private:
  // False: it failed, and `next_` says how.
  bool Good(cudaError_t status, const char* what);
  bool Missing(const char* name);
  void Take(const wire::JudgeNextReply& told);
  bool CallAll(cudaStream_t stream);
  void Setup();
  void Capture();
  void Window();
  void Answer();

  std::vector<Call> calls_;
  wire::JudgeNextReply told_;
  wire::JudgeNext next_;
  bool device_set_ = false;
  alignas(64) std::byte args_[kMaxArgs];
};

bool Driver::Good(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return true;
  next_.status = static_cast<std::int32_t>(status);
  next_.text =
      std::string(what) + ": " + cudaGetErrorName(status) + " (" + cudaGetErrorString(status) + ")";
  return false;
}

bool Driver::Missing(const char* name) {
  next_.status = static_cast<std::int32_t>(cudaErrorSymbolNotFound);
  next_.text = std::string("no function `") + name + "`";
  return true;
}

// A fresh copy each time: the candidate may have changed the last one.
void Driver::Take(const wire::JudgeNextReply& told) {
  told_ = told;
  if (told_.args.size() > kMaxArgs) _exit(kExitLost);
  std::memcpy(args_, told_.args.data(), told_.args.size());
}

bool Driver::CallAll(cudaStream_t stream) {
  for (const Call& call : calls_) {
    call.entry(args_, stream);
    if (!Good(cudaGetLastError(), call.name)) return false;
  }
  return true;
}

void Driver::Setup() {
  const auto setup = Find<void (*)(Boot&, const void*)>("setup");
  if (setup == nullptr) {
    Missing("setup");
    return;
  }
  Boot boot(static_cast<int>(told_.rank), static_cast<int>(told_.world));
  setup(boot, args_);
  if (Good(cudaGetLastError(), "setup")) Good(cudaDeviceSynchronize(), "setup");
}

void Driver::Capture() {
  cudaStream_t stream = nullptr;
  if (!Good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate")) return;
  // Relaxed, so that what is not allowed gets as far as the node, which says so.
  if (!Good(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture"))
    return;
  if (!CallAll(stream)) return;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  if (!Good(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture")) return;
  if (!Good(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate")) return;
  next_.graph = ar_graph_number(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

void Driver::Window() {
  const auto host = Find<void (*)(const void*, int)>("host");
  if (told_.host_threads != 0 && host == nullptr) {
    Missing("host");
    return;
  }
  cudaStream_t stream = nullptr;
  if (!Good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate")) return;
  const std::uint64_t number = ar_stream_number(stream);
  for (std::uint32_t call = 0; call < told_.calls; ++call) {
    std::memcpy(args_, told_.args.data(), told_.args.size());
    wire::JudgeOpen open;
    open.stream = number;
    open.call = call;
    Must(open);
    // What a launch computes on the host is part of the call, too.
    if (told_.host_threads != 0) shim::BeginInstrumented();
    const bool launched = CallAll(stream);
    if (told_.host_threads != 0) shim::EndInstrumented();
    if (!launched) return;
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < told_.host_threads; ++i) {
      threads.emplace_back([this, host, i] {
        shim::BeginInstrumented();
        host(args_, static_cast<int>(i));
        shim::EndInstrumented();
      });
    }
    for (std::thread& thread : threads) thread.join();
    wire::JudgeClose close;
    close.stream = number;
    close.call = call;
    Must(close);
  }
  if (Good(cudaStreamSynchronize(stream), "the window")) cudaStreamDestroy(stream);
}

void Driver::Answer() {
  const auto answer = Find<std::size_t (*)(const void*, void*, std::size_t)>("answer");
  if (answer == nullptr) {
    Missing("answer");
    return;
  }
  next_.answer.resize(kMaxAnswer);
  const std::size_t size = answer(args_, next_.answer.data(), next_.answer.size());
  next_.answer.resize(size < kMaxAnswer ? size : kMaxAnswer);
}

void Driver::Run() {
  for (;;) {
    const wire::JudgeNextReply told = Must(next_);
    next_ = {};
    if (told.what == Do::kEnd) _exit(0);
    Take(told);
    if (!device_set_) {
      int devices = 0;
      device_set_ = Good(cudaGetDeviceCount(&devices), "cudaGetDeviceCount") && devices > 0 &&
                    Good(cudaSetDevice(static_cast<int>(told.rank) % devices), "cudaSetDevice");
      if (!device_set_) continue;
    }
    bool mapped = true;
    for (const std::uint64_t size : told.pinned) {
      void* memory = nullptr;
      mapped = mapped && Good(cudaHostAlloc(&memory, size, 0), "host memory");
      if (mapped) shim::WatchPinned(memory, size);
    }
    if (!mapped) continue;
    switch (told.what) {
      case Do::kSetup:
        Setup();
        break;
      case Do::kCapture:
        Capture();
        break;
      case Do::kRun:
        Window();
        break;
      case Do::kAnswer:
        Answer();
        break;
      case Do::kEnd:
        break;
    }
  }
}

}  // namespace

void Boot::Barrier() { Must(wire::JudgeGather{}); }

void Boot::AllGather(const void* mine, void* all, std::size_t bytes) {
  wire::JudgeGather gather;
  const auto* from = static_cast<const std::byte*>(mine);
  gather.bytes.assign(from, from + bytes);
  const wire::JudgeGatherReply reply = Must(gather);
  if (reply.bytes.size() != bytes * static_cast<std::size_t>(world_)) _exit(kExitLost);
  std::memcpy(all, reply.bytes.data(), reply.bytes.size());
}

}  // namespace allranks

int main(int argc, char** argv) {
  std::vector<allranks::Call> calls;
  for (int i = 1; i < argc; ++i) {
    const auto entry = allranks::Find<decltype(allranks::Call::entry)>(argv[i]);
    if (entry == nullptr) _exit(allranks::kExitLost);
    calls.push_back({argv[i], entry});
  }
  allranks::Driver(std::move(calls)).Run();
}
