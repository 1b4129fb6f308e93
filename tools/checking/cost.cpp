// `checking cost`: what the checker costs, on against off, in this process's children: CPU time,
// thread-instructions per second and memory beyond that of the same work unchecked. Three kinds of
// work on eight devices: streaming (float4 add), a two-shot all-reduce (bench/allreduce.cu) and MoE
// dispatch (bench/dispatch.cu). Each sample is a process of its own, on and off in turn, so that
// other work on the machine meets both; the best of each counts.
#include "checking/cost.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/check.h"
#include "node/checking.h"
#include "node/findings.h"
#include "node/hardware/profile.h"
#include "node/machine.h"

namespace allranks::checking {
namespace {

using namespace node;
using node::Status;

constexpr int kDevices = 8;
constexpr std::size_t kMaxRanks = 128;  // as in allreduce.cu
constexpr std::uint32_t kThreads = 256;
constexpr double kMostMemory = 4;  // times the bytes touched, all that the process takes more

struct Sample {
  double seconds = 0;  // CPU time of the best run
  double instructions = 0;
  double touched = 0;  // bytes of memory that kernels access
  double peak = 0;     // bytes of memory of the process
  std::uint64_t findings = 0;
};

double Now() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// A machine, and one kernel of each device.
class Work {
 public:
  Work(bool checked, const std::string& file, const std::string& kernel) {
    auto profile = LoadProfile(ALLRANKS_SOURCE_DIR "/profiles/h100x8.toml");
    CHECK(profile.has_value());
    MachineOptions options;
    options.devices = kDevices;
    options.check = checked;
    auto machine = Machine::Create(*profile, options);
    CHECK(machine.has_value());
    machine_ = std::move(*machine);
    process_ = machine_->AddProcess(0, 0);
    std::ifstream in(ALLRANKS_SOURCE_DIR + file);
    std::stringstream out;
    out << in.rdbuf();
    const std::string text = out.str();
    for (int d = 0; d < kDevices; ++d) {
      for (int peer = 0; peer < kDevices; ++peer)
        if (peer != d) CHECK(machine_->EnablePeer(process_, d, peer) == Status::kSuccess);
      Status status;
      auto module = machine_->LoadModule(process_, d, std::as_bytes(std::span(text)), &status);
      CHECK(module.has_value());
      KernelInfo& info = kernels_.emplace_back();
      CHECK(machine_->GetKernel(*module, kernel, &info) == Status::kSuccess);
      LaunchRequest& launch = launches.emplace_back();
      launch.kernel = info.id;
      launch.block = {kThreads};
      launch.params.resize(info.param_bytes);
    }
  }
  template <class T>
  void Set(int device, std::size_t i, const T& value) {
    const auto d = static_cast<std::size_t>(device);
    CHECK(kernels_[d].param_offsets[i] + sizeof value <= launches[d].params.size());
    std::memcpy(launches[d].params.data() + kernels_[d].param_offsets[i], &value, sizeof value);
  }
  // Filled with zeros.
  Address Allocate(int device, std::uint64_t bytes) {
    Address address = 0;
    CHECK(machine_->Allocate(process_, device, bytes, &address) == Status::kSuccess);
    Clear(device, address, bytes);
    touched += static_cast<double>(bytes);
    return address;
  }
  void Clear(int device, Address address, std::uint64_t bytes) {
    MemsetRequest request;
    request.dst = address;
    request.count = bytes / 4;
    request.width = 4;
    OpId op = 0;
    CHECK(machine_->Memset(process_, machine_->DefaultStream(process_, device), request,
                           machine_->now(), &op) == Status::kSuccess);
    ops_.push_back(op);
  }
  void Launch() {
    for (std::size_t d = 0; d < launches.size(); ++d) {
      OpId op = 0;
      CHECK(machine_->Launch(process_, machine_->DefaultStream(process_, static_cast<int>(d)),
                             launches[d], machine_->now(), &op) == Status::kSuccess);
      ops_.push_back(op);
    }
  }
  // The host waits for all of it.
  void Wait() {
    while (machine_->Busy()) CHECK(machine_->RunUntil(kTimeNever) || !machine_->Busy());
    CHECK(machine_->TakeFaults().empty() && machine_->Done(ops_));
    ops_.clear();
  }
  double instructions() const { return static_cast<double>(machine_->stats().thread_instructions); }
  std::uint64_t Findings() {
    auto* checking = machine_->checking();
    if (checking == nullptr) return 0;
    const std::vector<Finding> found = checking->TakeFindings();
    for (const Finding& one : found) fmt::print(stderr, "{}\n", Describe(one));
    return CountedOf(found);
  }

  std::vector<LaunchRequest> launches;
  double touched = 0;
  std::function<void()> before = [] {};  // each run

 private:
  std::unique_ptr<Machine> machine_;
  ProcessId process_ = 0;
  std::vector<KernelInfo> kernels_;
  std::vector<OpId> ops_;
};

std::unique_ptr<Work> Streaming(bool checked) {
  constexpr std::uint32_t kCount = 1 << 17;  // float4 per array and device
  auto work = std::make_unique<Work>(checked, "/tests/node/kernels/basics.ptx", "add4");
  for (int d = 0; d < kDevices; ++d) {
    work->launches[static_cast<std::size_t>(d)].grid = {kCount / kThreads};
    for (std::size_t i = 0; i < 3; ++i) work->Set(d, i, work->Allocate(d, kCount * 16));
    work->Set(d, 3, static_cast<int>(kCount));
  }
  return work;
}

std::unique_ptr<Work> TwoShot(bool checked) {
  constexpr std::uint32_t kCount = 1 << 17, kBlocks = 16;  // float4 per rank
  auto work = std::make_unique<Work>(checked, "/bench/allreduce.ptx", "two_shot");
  std::array<Address, kDevices> buffers{}, flags{};
  for (int d = 0; d < kDevices; ++d) {
    buffers[static_cast<std::size_t>(d)] = work->Allocate(d, kCount * 16);
    flags[static_cast<std::size_t>(d)] = work->Allocate(d, kBlocks * kMaxRanks * 4);
  }
  for (int d = 0; d < kDevices; ++d) {
    work->launches[static_cast<std::size_t>(d)].grid = {kBlocks};
    std::array<std::array<Address, kMaxRanks>, 2> peers{};
    for (std::size_t r = 0; r < kDevices; ++r) {
      peers[0][r] = buffers[(static_cast<std::size_t>(d) + r) % kDevices];
      peers[1][r] = flags[r];
    }
    work->Set(d, 0, peers);
    work->Set(d, 1, d);
    work->Set(d, 2, kDevices);
    work->Set(d, 3, static_cast<int>(kCount) / kDevices);
    work->Set(d, 4, static_cast<int>(kCount));
  }
  work->before = [work = work.get(), epoch = 1]() mutable {
    for (int d = 0; d < kDevices; ++d) work->Set(d, 5, epoch);
    epoch += 2;
  };
  return work;
}

std::unique_ptr<Work> Dispatch(bool checked) {
  constexpr int kTokens = 128, kWidth = 448, kBlocks = 16;  // float4 per token
  // Twice what a rank gets on average; beyond it would be a fault.
  constexpr std::uint64_t kRoom = 4 * kTokens;
  auto work = std::make_unique<Work>(checked, "/bench/dispatch.ptx", "dispatch");
  std::array<std::array<Address, kDevices>, 3> peers{};  // rows, used, blocks
  for (std::size_t d = 0; d < kDevices; ++d) {
    const int device = static_cast<int>(d);
    peers[0][d] = work->Allocate(device, kRoom * kWidth * 16);
    peers[1][d] = work->Allocate(device, 4);
    peers[2][d] = work->Allocate(device, 4);
  }
  for (int d = 0; d < kDevices; ++d) {
    work->launches[static_cast<std::size_t>(d)].grid = {kBlocks};
    work->Set(d, 0, peers);
    work->Set(d, 1, work->Allocate(d, kTokens * kWidth * 16));
    work->Set(d, 2, work->Allocate(d, kWidth * 16));
    work->Set(d, 3, d);
    work->Set(d, 4, kTokens);
    work->Set(d, 5, kWidth);
    work->Set(d, 6, 1);
  }
  work->before = [work = work.get(), peers] {
    for (std::size_t d = 0; d < kDevices; ++d) {
      for (const std::size_t which : {1, 2}) work->Clear(static_cast<int>(d), peers[which][d], 4);
    }
    work->Wait();
  };
  return work;
}

using Make = std::unique_ptr<Work> (*)(bool checked);

Sample Measure(Make make, bool checked, int runs) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    const std::unique_ptr<Work> work = make(checked);
    work->Wait();
    Sample sample;
    sample.seconds = 1e9;
    for (int run = 0; run <= runs; ++run) {  // the first one touches pages
      work->before();
      const double instructions = work->instructions(), begun = Now();
      work->Launch();
      work->Wait();
      if (run == 0) continue;
      sample.seconds = std::min(sample.seconds, Now() - begun);
      sample.instructions = work->instructions() - instructions;
    }
    sample.touched = work->touched;
    sample.findings = work->Findings();
    CHECK(write(ends[1], &sample, sizeof sample) == sizeof sample);
    _exit(0);
  }
  close(ends[1]);
  Sample sample;
  const bool told = read(ends[0], &sample, sizeof sample) == sizeof sample;
  close(ends[0]);
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  CHECK(told && status == 0);
  sample.peak = static_cast<double>(usage.ru_maxrss) * 1024;
  return sample;
}

}  // namespace

int Cost(int repeat, int runs, double most, double least) {
  struct Kind {
    const char* name;
    Make make;
  };
  bool good = true;
  fmt::print("{:<12} {:>9} {:>9} {:>7} {:>14} {:>14} {:>10} {:>11}\n", "", "off ms", "on ms",
             "ratio", "off M instr/s", "on M instr/s", "MB touched", "more memory");
  for (const Kind& kind :
       {Kind{"streaming", Streaming}, Kind{"two-shot", TwoShot}, Kind{"dispatch", Dispatch}}) {
    std::array<Sample, 2> best;
    for (Sample& sample : best) sample.seconds = sample.peak = 1e18;
    std::uint64_t findings = 0;
    for (int i = 0; i < repeat; ++i) {
      for (const std::size_t checked : {0, 1}) {
        const Sample sample = Measure(kind.make, checked != 0, runs);
        const double peak = std::min(best[checked].peak, sample.peak);
        findings += sample.findings;
        if (sample.seconds < best[checked].seconds) best[checked] = sample;
        best[checked].peak = peak;
      }
    }
    const double ratio = best[1].seconds / best[0].seconds;
    const double speed = best[1].instructions / best[1].seconds * 1e-6;
    const double memory = (best[1].peak - best[0].peak) / best[1].touched;
    fmt::print("{:<12} {:>9.1f} {:>9.1f} {:>7.2f} {:>14.1f} {:>14.1f} {:>10.1f} {:>10.2f}x\n",
               kind.name, best[0].seconds * 1e3, best[1].seconds * 1e3, ratio,
               best[0].instructions / best[0].seconds * 1e-6, speed, best[1].touched / 1e6, memory);
    if (findings != 0) fmt::print("{}: {} findings\n", kind.name, findings);
    good &= findings == 0 && ratio <= most && speed >= least && memory <= kMostMemory;
    std::fflush(stdout);
  }
  fmt::print("goals: ratio at most 4, at least 75 M thread-instructions/s, at most 4x memory\n");
  if (!good) fmt::print("beyond {} times, below {} M/s, or findings\n", most, least);
  return good ? 0 : 1;
}

}  // namespace allranks::checking
