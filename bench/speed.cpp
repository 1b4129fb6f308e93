// How fast the node executes, in one run: arithmetic on registers on one device, and float4
// streaming add (c = a + b) on one and on eight devices beside the same loop compiled natively.
// Clock and bounds checks on, checker off unless the name says so.
//
//   build/release/bench/bench_speed
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
#include "node/hardware/profile.h"
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

// One kernel on each of some devices.
class Bench {
 public:
  Bench(int devices, bool check) {
    auto profile = LoadProfile(ALLRANKS_SOURCE_DIR "/profiles/h100x8.toml");
    CHECK(profile.has_value());
    MachineOptions options;
    options.devices = devices;
    options.check = check;
    auto machine = Machine::Create(*profile, options);
    CHECK(machine.has_value());
    machine_ = std::move(*machine);
    process_ = machine_->AddProcess(0, 0);
  }

  // The launch has room for parameters and none set: see Set.
  void Add(int device, const std::string& file, const std::string& name, std::uint32_t ctas) {
    const std::string text = ReadFile(ALLRANKS_SOURCE_DIR + file);
    Status status;
    auto module = machine_->LoadModule(process_, device, std::as_bytes(std::span(text)), &status);
    CHECK(module.has_value());
    CHECK(machine_->GetKernel(*module, name, &info_) == Status::kSuccess);
    LaunchRequest launch;
    launch.kernel = info_.id;
    launch.grid = {ctas};
    launch.block = {256};
    launch.params.resize(info_.param_bytes);
    launches_.push_back(std::move(launch));
  }
  // Parameter `i` of the launch added last.
  template <class T>
  void Set(std::size_t i, T value) {
    std::memcpy(launches_.back().params.data() + info_.param_offsets[i], &value, sizeof(value));
  }
  void SetMemory(std::size_t i, int device, std::uint64_t bytes) {
    Address address = 0;
    CHECK(machine_->Allocate(process_, device, bytes, &address) == Status::kSuccess);
    Set(i, address);
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

  // Repeats Run() as the state says; CPU seconds of one.
  double Measure(benchmark::State& state) {
    Run();  // first touch of the pages
    const std::uint64_t before = machine_->stats().thread_instructions;
    const double start = Now();
    for (auto _ : state) Run();
    const double seconds = Now() - start;
    const Stats& stats = machine_->stats();
    state.counters["thread_instr/s"] =
        static_cast<double>(stats.thread_instructions - before) / seconds;
    state.counters["virtual_us"] =
        static_cast<double>(stats.kernels.back().end - stats.kernels.back().start) * 1e-6;
    return seconds / static_cast<double>(state.iterations());
  }

 private:
  std::unique_ptr<Machine> machine_;
  ProcessId process_ = 0;
  KernelInfo info_;
  std::vector<LaunchRequest> launches_;
};

void BM_Arithmetic(benchmark::State& state) {
  constexpr std::uint32_t kCtas = 264;
  Bench bench(1, false);
  bench.Add(0, "/bench/arithmetic.ptx", "arithmetic", kCtas);
  bench.SetMemory(0, 0, kCtas * 256 * sizeof(float));
  bench.Set(1, 64);
  bench.Set(2, 0.25f);
  bench.Set(3, 1.5f);
  bench.Measure(state);
}

void BM_Streaming(benchmark::State& state, bool check) {
  const int devices = static_cast<int>(state.range(0));
  const int n = static_cast<int>(state.range(1)) / devices;
  Bench bench(devices, check);
  for (int d = 0; d < devices; ++d) {
    bench.Add(d, "/tests/node/kernels/basics.ptx", "add4",
              static_cast<std::uint32_t>((n + 255) / 256));
    for (std::size_t i = 0; i < 3; ++i) {
      bench.SetMemory(i, d, static_cast<std::uint64_t>(n) * sizeof(Float4));
    }
    bench.Set(3, n);
  }
  state.counters["to_native"] = bench.Measure(state) / NativeSeconds(n, devices);
}

BENCHMARK(BM_Arithmetic)->Unit(benchmark::kMillisecond)->MinTime(1.0);
BENCHMARK_CAPTURE(BM_Streaming, checker_off, false)
    ->Args({1, 1 << 20})
    ->Args({8, 1 << 20})
    ->Unit(benchmark::kMillisecond)
    ->MinTime(1.0);
BENCHMARK_CAPTURE(BM_Streaming, checker_on, true)
    ->Args({8, 1 << 20})
    ->Unit(benchmark::kMillisecond)
    ->MinTime(0.5);

}  // namespace
}  // namespace allranks::node

BENCHMARK_MAIN();
