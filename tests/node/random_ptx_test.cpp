// Random race-free programs on machines that differ only in the order of execution: quantum 1
// (exact order) against the profile's and a long one, warps in their usual order and in drawn ones.
// They must leave the same bytes in memory.
//
// ALLRANKS_RANDOM_SEED=N runs program N alone and prints it; ALLRANKS_RANDOM_COUNT=N tries more.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <random>

#include "node/hardware/profile.h"
#include "node/machine.h"
#include "random/generator.h"
#include "test_machine.h"

namespace allranks::node {
namespace {

using random::Generate;
using random::Program;

constexpr std::uint64_t kFirstSeed = 1;
constexpr std::uint64_t kDefaultCount = 250;

struct Order {
  int quantum_cycles;
  std::uint64_t seed;
};
constexpr Order kOrders[] = {{200, 0}, {1, 0}, {200, 7}, {1, 0x9876543210}, {5000, 3}};

std::string Describe(const Order& order) {
  return "quantum " + std::to_string(order.quantum_cycles) + ", order " +
         std::to_string(order.seed);
}

const Profile& TheProfile() {
  static const Profile profile = [] {
    auto loaded = LoadProfile(std::string(ALLRANKS_SOURCE_DIR "/profiles/h100x8.toml"));
    EXPECT_TRUE(loaded) << loaded.error().message;
    return *loaded;
  }();
  return profile;
}

// A machine of one device that runs one program.
class Runner {
 public:
  explicit Runner(const Order& order) {
    Profile profile = TheProfile();
    profile.time.quantum_cycles = order.quantum_cycles;
    MachineOptions options;
    options.devices = 1;
    options.order_seed = order.seed;
    auto machine = Machine::Create(profile, options);
    EXPECT_TRUE(machine) << machine.error().message;
    machine_ = std::move(*machine);
    process_ = machine_->AddProcess(0, 0);
  }

  // What the program leaves in memory; nullopt if it did not run to its end.
  std::optional<std::vector<std::uint32_t>> Run(const Program& program) {
    Status status;
    const auto module =
        machine_->LoadModule(process_, 0, std::as_bytes(std::span(program.text)), &status);
    if (!module) {
      ADD_FAILURE() << module.error().message;
      return std::nullopt;
    }
    KernelInfo info;
    if (machine_->GetKernel(*module, "k", &info) != Status::kSuccess) return std::nullopt;
    std::vector<std::uint32_t> in(program.in_words);
    std::mt19937 values(42);
    for (std::uint32_t& word : in) word = static_cast<std::uint32_t>(values());
    const std::uint32_t sizes[] = {program.in_words, program.out_words, program.sum_words,
                                   program.exchange_words, 1};
    Address addresses[5] = {};
    LaunchRequest request;
    request.params.resize(info.param_bytes);
    for (int i = 0; i < 5; ++i) {
      in.resize(sizes[i]);  // then zeros
      EXPECT_EQ(machine_->Allocate(process_, 0, 4 * sizes[i], &addresses[i]), Status::kSuccess);
      Copy(addresses[i], 0, &in);
      in.assign(0, 0);
      std::memcpy(request.params.data() + info.param_offsets[static_cast<std::size_t>(i)],
                  &addresses[i], 8);
    }
    request.kernel = info.id;
    request.grid = {program.ctas, 1, 1};
    request.block = {program.threads, 1, 1};
    OpId op = 0;
    status = machine_->Launch(process_, machine_->DefaultStream(process_, 0), request,
                              machine_->now(), &op);
    EXPECT_EQ(status, Status::kSuccess);
    if (status != Status::kSuccess || !Wait(op)) return std::nullopt;
    std::vector<std::uint32_t> result;
    for (int i = 1; i < 4; ++i) {
      std::vector<std::uint32_t> part(sizes[i]);
      if (!Copy(0, addresses[i], &part)) return std::nullopt;
      result.insert(result.end(), part.begin(), part.end());
    }
    for (const auto& fault : machine_->TakeFaults()) {
      ADD_FAILURE() << fault.message;
      return std::nullopt;
    }
    return result;
  }

 private:
  bool Wait(OpId op) { return WaitFor(*machine_, op); }

  bool Copy(Address to, Address from, std::vector<std::uint32_t>* words) {
    auto copy = std::make_shared<CopyRequest>();
    copy->dst = to;
    copy->src = from;
    copy->size = words->size() * 4;
    if (from == 0) {
      copy->bytes.resize(copy->size);
      std::memcpy(copy->bytes.data(), words->data(), copy->size);
    }
    OpId op = 0;
    if (machine_->Copy(process_, machine_->DefaultStream(process_, 0), copy, machine_->now(),
                       &op) != Status::kSuccess ||
        !Wait(op)) {
      return false;
    }
    if (from != 0) std::memcpy(words->data(), copy->bytes.data(), copy->size);
    return true;
  }

  std::unique_ptr<Machine> machine_;
  ProcessId process_ = 0;
};

std::uint64_t FromEnvironment(const char* name, std::uint64_t fallback) {
  const char* value = std::getenv(name);
  return value == nullptr ? fallback : std::strtoull(value, nullptr, 10);
}

TEST(RandomPtx, OrderMakesNoDifference) {
  std::uint64_t seed = kFirstSeed, count = FromEnvironment("ALLRANKS_RANDOM_COUNT", kDefaultCount);
  const bool alone = std::getenv("ALLRANKS_RANDOM_SEED") != nullptr;
  if (alone) {
    seed = FromEnvironment("ALLRANKS_RANDOM_SEED", 0);
    count = 1;
  }
  for (std::uint64_t end = seed + count; seed < end; ++seed) {
    const Program program = Generate(seed);
    if (alone) std::printf("%s", program.text.c_str());
    SCOPED_TRACE("ALLRANKS_RANDOM_SEED=" + std::to_string(seed));
    std::optional<std::vector<std::uint32_t>> first;
    for (const Order& order : kOrders) {
      const auto result = Runner(order).Run(program);
      ASSERT_TRUE(result) << Describe(order) << ": did not end";
      if (!first) {
        first = result;
        continue;
      }
      ASSERT_EQ(first->size(), result->size());
      for (std::size_t i = 0; i < result->size(); ++i) {
        ASSERT_EQ((*first)[i], (*result)[i])
            << "word " << i << " of " << result->size() << " (out " << program.out_words
            << ", sums " << program.sum_words << ") with " << Describe(order) << " against "
            << Describe(kOrders[0]) << "; " << program.ctas << " CTAs of " << program.threads;
      }
    }
  }
}

// The test above would be worth nothing if the orders were all the same.
TEST(RandomPtx, OrderShowsInRacyPrograms) {
  int differ = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Program program = Generate(seed, /*racy=*/true);
    const auto first = Runner(kOrders[0]).Run(program);
    for (const Order& order : kOrders) {
      const auto result = Runner(order).Run(program);
      if (first && result && *first != *result) {
        ++differ;
        break;
      }
    }
  }
  EXPECT_GE(differ, 5);
}

}  // namespace
}  // namespace allranks::node
