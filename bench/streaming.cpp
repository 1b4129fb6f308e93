// How fast the node executes: float4 streaming add (c = a + b) on one and on eight devices, beside
// the same loop compiled natively, in one run. Observer off, clock and bounds checks on.
//
//   build/release/bench/bench_streaming
//
// thread_instr/s counts PTX instructions of single threads per second of CPU time of one core;
// to_native is CPU time over that of the native loop on as many bytes.
#include <benchmark/benchmark.h>

#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/check.h"
#include "node/machine.h"

namespace allranks::node {
namespace {

struct Float4 {
  float x, y, z, w;
};

// Kept out of line so that the compiler sees neither sizes nor contents.
__attribute__((noinline)) void NativeAdd(const Float4* a, const Float4* b, Float4* c, int n) {
  for (int i = 0; i < n; ++i) {
    c[i] = {a[i].x + b[i].x, a[i].y + b[i].y, a[i].z + b[i].z, a[i].w + b[i].w};
  }
}

// CPU time of this process: other work on the machine does not count.
double Now() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double NativeSeconds(int n, int arrays) {
  std::vector<Float4> a(static_cast<std::size_t>(n) * static_cast<std::size_t>(arrays)), b = a,
                                                                                         c = a;
  double best = 1e9;
  for (int repeat = 0; repeat < 7; ++repeat) {
    const double start = Now();
    NativeAdd(a.data(), b.data(), c.data(), n * arrays);
    benchmark::DoNotOptimize(c.data());
    benchmark::ClobberMemory();
    best = std::min(best, Now() - start);
  }
  return best;
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

// Everything a launch of add4 on each of `devices` devices needs.
class Streaming {
 public:
  Streaming(int devices, int n, const std::string& observer) : n_(n) {
    auto profile = LoadProfile(ALLRANKS_SOURCE_DIR "/profiles/h100x8.toml");
    CHECK(profile.has_value());
    MachineOptions options;
    options.devices = devices;
    options.observer = observer;
    auto machine = Machine::Create(*profile, options);
    CHECK(machine.has_value());
    machine_ = std::move(*machine);
    process_ = machine_->AddProcess(0, 0);
    const std::string text = ReadFile(ALLRANKS_SOURCE_DIR "/tests/node/kernels/basics.ptx");
    for (int d = 0; d < devices; ++d) {
      Status status;
      auto module = machine_->LoadModule(process_, d, std::as_bytes(std::span(text)), &status);
      CHECK(module.has_value());
      KernelInfo info;
      CHECK(machine_->GetKernel(*module, "add4", &info) == Status::kSuccess);
      LaunchRequest launch;
      launch.kernel = info.id;
      launch.grid = {static_cast<std::uint32_t>((n + 255) / 256)};
      launch.block = {256};
      launch.params.resize(info.param_bytes);
      for (int i = 0; i < 3; ++i) {
        Address address = 0;
        CHECK(machine_->Allocate(process_, d, static_cast<std::uint64_t>(n) * 16, &address) ==
              Status::kSuccess);
        std::memcpy(launch.params.data() + info.param_offsets[static_cast<std::size_t>(i)],
                    &address, 8);
      }
      std::memcpy(launch.params.data() + info.param_offsets[3], &n_, 4);
      launches_.push_back(std::move(launch));
    }
  }

  void Run() {
    for (std::size_t d = 0; d < launches_.size(); ++d) {
      OpId op = 0;
      const StreamId stream = machine_->DefaultStream(process_, static_cast<int>(d));
      CHECK(machine_->Launch(process_, stream, launches_[d], machine_->now(), &op) ==
            Status::kSuccess);
    }
    while (machine_->Busy()) machine_->RunUntil(kTimeNever);
    CHECK(machine_->TakeFaults().empty());
  }

  const Stats& stats() const { return machine_->stats(); }

 private:
  int n_;
  std::unique_ptr<Machine> machine_;
  ProcessId process_ = 0;
  std::vector<LaunchRequest> launches_;
};

void BM_Streaming(benchmark::State& state, const std::string& observer) {
  const int devices = static_cast<int>(state.range(0));
  const int n = static_cast<int>(state.range(1)) / devices;
  Streaming streaming(devices, n, observer);
  streaming.Run();  // first touch of the pages
  const std::uint64_t before = streaming.stats().thread_instructions;
  const double start = Now();
  for (auto _ : state) streaming.Run();
  const double seconds = Now() - start;
  const auto runs = static_cast<double>(state.iterations());
  state.counters["thread_instr/s"] =
      static_cast<double>(streaming.stats().thread_instructions - before) / seconds;
  state.counters["to_native"] = seconds / runs / NativeSeconds(n, devices);
  const KernelRecord& last = streaming.stats().kernels.back();
  state.counters["virtual_us"] = static_cast<double>(last.end - last.start) * 1e-6;
}

BENCHMARK_CAPTURE(BM_Streaming, observer_off, "none")
    ->Args({1, 1 << 20})
    ->Args({8, 1 << 20})
    ->Unit(benchmark::kMillisecond)
    ->MinTime(1.0);
BENCHMARK_CAPTURE(BM_Streaming, observer_count, "count")
    ->Args({8, 1 << 20})
    ->Unit(benchmark::kMillisecond)
    ->MinTime(0.5);

}  // namespace
}  // namespace allranks::node

BENCHMARK_MAIN();
