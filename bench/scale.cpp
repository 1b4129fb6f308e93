// How the node's cost grows with the work: the same two-shot all-reduce (bench/allreduce.cu) on 2
// to 72 devices and 64 KB to 16 MB per rank, each point in a process of its own.
//
//   build/release/bench/bench_scale            the table of docs/performance.md
//   build/release/bench/bench_scale --quick    few small points; fails if a slope is too steep
//
// Every rank has a message of the same size. A two-shot all-reduce moves 2 (n-1)/n of it into and
// out of each rank, so on n devices about 2 n messages move in all: with a fixed message the work
// grows linearly in devices and in bytes, and ns per byte moved should stay where it is. What grows
// faster by its nature are the signals: everybody tells everybody, n (n-1) per block and meeting.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/check.h"
#include "node/hardware/profile.h"
#include "node/machine.h"

namespace allranks::node {
namespace {

constexpr int kMaxRanks = 128;  // as in allreduce.cu
constexpr std::uint32_t kThreads = 256;
constexpr int kMaxDevices = 72;
constexpr std::int64_t kMaxBlocks = 16;
// What --quick accepts beyond linear, as a slope: in devices of the time per byte moved, in bytes
// of the time. Room for a noisy machine and for caches.
constexpr double kSteepest = 0.5;
// How often --quick measures before it believes a steep slope. What others do on the machine can
// slow down some points and not others, for milliseconds; what the code costs shows every time.
constexpr int kRounds = 4;

struct Params {
  Address buffer[kMaxRanks];
  Address flags[kMaxRanks];
};

struct Point {
  double setup_s = 0, run_s = 0;  // CPU time
  double wall_s = 0;              // of the run
  double virtual_us = 0;
  double moved = 0;  // bytes read from or written to another rank, all ranks
  double warp_instructions = 0;
  double peak_mb = 0;
};

double Now(clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// A host of the shipped profile's devices, as many as fit behind one switch.
Profile LargeHost() {
  auto profile = LoadProfile(ALLRANKS_SOURCE_DIR "/profiles/h100x8.toml");
  CHECK(profile.has_value());
  profile->topology = OneSwitch(profile->topology.kinds, "nvlink", "pcie", 1, kMaxDevices);
  profile->machine = {1, kMaxDevices};
  return std::move(*profile);
}

class AllReduce {
 public:
  AllReduce(int devices, std::uint64_t bytes) : devices_(devices), bytes_(bytes) {
    MachineOptions options;
    options.devices = devices;
    auto machine = Machine::Create(LargeHost(), options);
    CHECK(machine.has_value());
    machine_ = std::move(*machine);
    process_ = machine_->AddProcess(0, 0);
    std::ifstream file(ALLRANKS_SOURCE_DIR "/bench/allreduce.ptx");
    std::stringstream text;
    text << file.rdbuf();
    const std::string ptx = text.str();
    const std::int64_t total = static_cast<std::int64_t>(bytes / 16);
    part_ = (total + devices - 1) / devices;
    blocks_ = std::clamp<std::int64_t>(part_ / kThreads, 1, kMaxBlocks);
    for (int d = 0; d < devices; ++d) {
      for (int peer = 0; peer < devices; ++peer)
        if (peer != d) CHECK(machine_->EnablePeer(process_, d, peer) == Status::kSuccess);
      Status status;
      auto module = machine_->LoadModule(process_, d, std::as_bytes(std::span(ptx)), &status);
      CHECK(module.has_value());
      kernels_.emplace_back();
      CHECK(machine_->GetKernel(*module, "two_shot", &kernels_.back()) == Status::kSuccess);
      buffers_.push_back(Allocate(d, bytes));
      flags_.push_back(Allocate(d, kMaxRanks * kMaxBlocks * 4));
    }
    for (int d = 0; d < devices; ++d) {
      Fill(buffers_[static_cast<std::size_t>(d)], bytes, static_cast<float>(d + 1));
      Fill(flags_[static_cast<std::size_t>(d)], kMaxRanks * kMaxBlocks * 4, 0);
    }
    Drain();
  }

  void Run() {
    for (int d = 0; d < devices_; ++d) {
      const KernelInfo& kernel = kernels_[static_cast<std::size_t>(d)];
      LaunchRequest launch;
      launch.kernel = kernel.id;
      launch.grid = {static_cast<std::uint32_t>(blocks_)};
      launch.block = {kThreads};
      launch.params.resize(kernel.param_bytes);
      Params params{};
      for (int r = 0; r < devices_; ++r) {
        params.buffer[r] = buffers_[static_cast<std::size_t>((d + r) % devices_)];
        params.flags[r] = flags_[static_cast<std::size_t>(r)];
      }
      std::memcpy(launch.params.data(), &params, sizeof params);
      const std::int32_t rest[] = {d, devices_, static_cast<std::int32_t>(part_),
                                   static_cast<std::int32_t>(bytes_ / 16), epoch_};
      for (std::size_t i = 0; i < 5; ++i)
        std::memcpy(launch.params.data() + kernel.param_offsets[i + 1], &rest[i], 4);
      OpId op = 0;
      CHECK(machine_->Launch(process_, machine_->DefaultStream(process_, d), launch,
                             machine_->now(), &op) == Status::kSuccess);
    }
    epoch_ += 2;
    Drain();
  }

  // The first and the last sum that each device has after one run.
  void Check() {
    const float expected = static_cast<float>(devices_ * (devices_ + 1) / 2);
    for (const Address buffer : buffers_) {
      for (const std::uint64_t offset : {std::uint64_t{0}, bytes_ - 4}) {
        auto copy = std::make_shared<CopyRequest>();
        copy->src = buffer + offset;
        copy->size = 4;
        OpId op = 0;
        CHECK(machine_->Copy(process_, machine_->DefaultStream(process_, 0), copy, machine_->now(),
                             &op) == Status::kSuccess);
        Drain();
        float value = 0;
        std::memcpy(&value, copy->bytes.data(), 4);
        CHECK(value == expected);
      }
    }
  }

  const Stats& stats() const { return machine_->stats(); }

 private:
  Address Allocate(int device, std::uint64_t bytes) {
    Address address = 0;
    CHECK(machine_->Allocate(process_, device, bytes, &address) == Status::kSuccess);
    return address;
  }
  void Fill(Address address, std::uint64_t bytes, float value) {
    MemsetRequest request;
    request.dst = address;
    request.count = bytes / 4;
    request.width = 4;
    std::memcpy(&request.value, &value, 4);
    OpId op = 0;
    CHECK(machine_->Memset(process_, machine_->DefaultStream(process_, 0), request, machine_->now(),
                           &op) == Status::kSuccess);
  }
  void Drain() {
    while (machine_->Busy()) CHECK(machine_->RunUntil(kTimeNever) || !machine_->Busy());
    CHECK(machine_->TakeFaults().empty());
  }

  int devices_;
  std::uint64_t bytes_;
  std::int64_t part_ = 0, blocks_ = 1;
  std::int32_t epoch_ = 1;
  std::unique_ptr<Machine> machine_;
  ProcessId process_ = 0;
  std::vector<KernelInfo> kernels_;
  std::vector<Address> buffers_, flags_;
};

// Measures in a child, whose peak of memory is its own.
Point Measure(int devices, std::uint64_t bytes, int repeats) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    Point point;
    const double start = Now();
    AllReduce work(devices, bytes);
    point.setup_s = Now() - start;
    work.Run();
    work.Check();
    const std::uint64_t before = work.stats().warp_instructions;
    point.run_s = point.wall_s = 1e9;
    for (int i = 0; i < repeats; ++i) {
      const double from = Now(), wall = Now(CLOCK_MONOTONIC);
      work.Run();
      point.run_s = std::min(point.run_s, Now() - from);
      point.wall_s = std::min(point.wall_s, Now(CLOCK_MONOTONIC) - wall);
    }
    const KernelRecord& last = work.stats().kernels.back();
    point.virtual_us = static_cast<double>(last.end - last.start) * 1e-6;
    point.moved = 2.0 * static_cast<double>(bytes) * (devices - 1);
    point.warp_instructions =
        static_cast<double>(work.stats().warp_instructions - before) / repeats;
    CHECK(write(ends[1], &point, sizeof point) == sizeof point);
    _exit(0);
  }
  close(ends[1]);
  Point point;
  const bool told = read(ends[0], &point, sizeof point) == sizeof point;
  close(ends[0]);
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  CHECK(told && status == 0);
  point.peak_mb = static_cast<double>(usage.ru_maxrss) / 1024.0;
  return point;
}

// Megabytes of a machine that nobody has used yet.
double IdleMegabytes(int devices) {
  const auto resident = [] {
    long pages = 0, all = 0;
    std::ifstream("/proc/self/statm") >> all >> pages;
    return static_cast<double>(pages) * 4096 / (1 << 20);
  };
  MachineOptions options;
  options.devices = devices;
  const Profile profile = LargeHost();
  const double before = resident();
  const auto machine = Machine::Create(profile, options);
  CHECK(machine.has_value());
  return resident() - before;
}

// Of a line through the logarithms.
double Slope(const std::vector<std::pair<double, double>>& points) {
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [a, b] : points) {
    x += std::log(a);
    y += std::log(b);
    xx += std::log(a) * std::log(a);
    xy += std::log(a) * std::log(b);
  }
  const auto n = static_cast<double>(points.size());
  return (n * xy - x * y) / (n * xx - x * x);
}

std::string Size(std::uint64_t bytes) {
  return bytes >= 1 << 20 ? fmt::format("{} MB", bytes >> 20) : fmt::format("{} KB", bytes >> 10);
}

using Points = std::map<std::pair<int, std::uint64_t>, Point>;

// Measures every point, keeps the better of it and what was there, and prints the table.
void MeasureAll(const std::vector<int>& devices, const std::vector<std::uint64_t>& sizes,
                Points& points) {
  fmt::print(
      "| message per rank | devices | wall s | CPU s | ns per byte moved | ns per warp instruction "
      "| peak MB | set-up s | virtual us |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const std::uint64_t bytes : sizes) {
    for (const int n : devices) {
      Point point = Measure(n, bytes, bytes * static_cast<std::uint64_t>(n) > 64 << 20 ? 1 : 5);
      if (const auto before = points.find({n, bytes}); before != points.end()) {
        point.run_s = std::min(point.run_s, before->second.run_s);
        point.wall_s = std::min(point.wall_s, before->second.wall_s);
      }
      points[{n, bytes}] = point;
      fmt::print("| {} | {} | {:.4f} | {:.4f} | {:.2f} | {:.1f} | {:.0f} | {:.3f} | {:.1f} |\n",
                 Size(bytes), n, point.wall_s, point.run_s, point.run_s * 1e9 / point.moved,
                 point.run_s * 1e9 / point.warp_instructions, point.peak_mb, point.setup_s,
                 point.virtual_us);
      std::fflush(stdout);
    }
  }
}

// Prints the slopes, and says whether one is too steep.
bool Steep(const std::vector<int>& devices, const std::vector<std::uint64_t>& sizes,
           const Points& points) {
  bool steep = false;
  fmt::print("\n| slope in devices | time | time per byte moved | memory |\n|---|---|---|---|\n");
  for (const std::uint64_t bytes : sizes) {
    std::vector<std::pair<double, double>> time, each, memory;
    for (const int n : devices) {
      const Point& point = points.at({n, bytes});
      time.emplace_back(n, point.run_s);
      each.emplace_back(n, point.run_s / point.moved);
      memory.emplace_back(n, point.peak_mb);
    }
    steep = steep || Slope(each) > kSteepest;
    fmt::print("| {} | {:.2f} | {:.2f} | {:.2f} |\n", Size(bytes), Slope(time), Slope(each),
               Slope(memory));
  }
  fmt::print("\n| slope in bytes | time | memory |\n|---|---|---|\n");
  for (const int n : devices) {
    std::vector<std::pair<double, double>> time, memory;
    for (const std::uint64_t bytes : sizes) {
      time.emplace_back(bytes, points.at({n, bytes}).run_s);
      memory.emplace_back(bytes, points.at({n, bytes}).peak_mb);
    }
    steep = steep || Slope(time) > 1 + kSteepest;
    fmt::print("| {} devices | {:.2f} | {:.2f} |\n", n, Slope(time), Slope(memory));
  }
  return steep;
}

int Main(bool quick) {
  std::vector<int> devices = {2, 4, 8, 16, 32, 72};
  std::vector<std::uint64_t> sizes = {64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20};
  if (quick) {
    devices = {4, 12, 36};
    sizes = {128 << 10, 512 << 10};
  }
  fmt::print("An idle machine of {} devices takes {:.1f} MB.\n\n", kMaxDevices,
             IdleMegabytes(kMaxDevices));
  Points points;
  for (int round = 0; round < (quick ? kRounds : 1); ++round) {
    MeasureAll(devices, sizes, points);
    if (!Steep(devices, sizes, points) || !quick) return 0;
    fmt::print("a slope is more than {} beyond linear\n\n", kSteepest);
  }
  return 1;
}

}  // namespace
}  // namespace allranks::node

// `bench_scale DEVICES BYTES`: that point alone, for a profiler.
int main(int argc, char** argv) {
  if (argc == 3) {
    allranks::node::AllReduce work(std::atoi(argv[1]), std::strtoull(argv[2], nullptr, 10));
    work.Run();
    work.Check();
    return 0;
  }
  return allranks::node::Main(argc > 1 && std::strcmp(argv[1], "--quick") == 0);
}
