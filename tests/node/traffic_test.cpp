// What the statistics say of links: who moved how much in which direction.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

#include "node/machine.h"
#include "test_machine.h"

namespace allranks::node {
namespace {

constexpr std::uint64_t kMega = 1 << 20;

const DirectionRecord* Find(const Stats& stats, const std::string& from, const std::string& to) {
  for (const LinkRecord& link : stats.links)
    for (const DirectionRecord& direction : link.directions)
      if (direction.from == from && direction.to == to) return &direction;
  return nullptr;
}

std::uint64_t BytesOf(const DirectionRecord& direction, Mover mover) {
  return direction.bytes[static_cast<std::size_t>(mover)];
}

class TrafficTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MachineOptions options;
    options.devices = 2;
    machine_ = MakeTestMachine(options);
    ASSERT_NE(machine_, nullptr);
    process_ = machine_->AddProcess(0, 0);
    for (int device = 0; device < 2; ++device) {
      ASSERT_EQ(machine_->Allocate(process_, device, kMega, &memory_[device]), Status::kSuccess);
    }
    ASSERT_EQ(machine_->EnablePeer(process_, 0, 1), Status::kSuccess);
  }

  // A kernel of one warp on device 0 with the address of device 1's memory in %rd1, or of `home`'s.
  void RunOnDevice0(const std::string& body, int home = 1) {
    const std::string text =
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n.reg .pred "
        "%p0;\n"
        "ld.param.u64 %rd0, [p];\nmov.u32 %r0, %tid.x;\nmul.wide.u32 %rd1, %r0, 4;\n"
        "add.u64 %rd1, %rd1, %rd0;\n" +
        body + "\nret;\n}\n";
    Status status = Status::kSuccess;
    auto module = machine_->LoadModule(process_, 0, std::as_bytes(std::span(text)), &status);
    ASSERT_TRUE(module) << module.error().message;
    KernelInfo info;
    ASSERT_EQ(machine_->GetKernel(*module, "k", &info), Status::kSuccess);
    LaunchRequest request;
    request.kernel = info.id;
    request.block.x = 32;
    request.params.resize(info.param_bytes);
    std::memcpy(request.params.data(), &memory_[home], 8);
    OpId op = 0;
    ASSERT_EQ(machine_->Launch(process_, machine_->DefaultStream(process_, 0), request,
                               machine_->now(), &op),
              Status::kSuccess);
    ASSERT_TRUE(WaitFor(*machine_, op));
  }

  std::unique_ptr<Machine> machine_;
  ProcessId process_ = 0;
  Address memory_[2] = {};
};

TEST_F(TrafficTest, NothingIsListedBeforeAnythingMoves) {
  EXPECT_TRUE(machine_->stats().links.empty());
  for (const MoverRecord& mover : machine_->stats().movers) EXPECT_EQ(mover.wire_bytes, 0u);
}

TEST_F(TrafficTest, ACopyPassesBothLinksOfItsWay) {
  auto copy = std::make_shared<CopyRequest>();
  copy->src = memory_[0];
  copy->dst = memory_[1];
  copy->size = kMega;
  OpId op = 0;
  ASSERT_EQ(
      machine_->Copy(process_, machine_->DefaultStream(process_, 0), copy, machine_->now(), &op),
      Status::kSuccess);
  ASSERT_TRUE(WaitFor(*machine_, op));
  const Stats& stats = machine_->stats();
  ASSERT_EQ(stats.links.size(), 2u);
  EXPECT_EQ(stats.links[0].name, "gpu0-nvswitch");
  EXPECT_EQ(stats.links[0].kind, "nvlink");
  EXPECT_EQ(stats.links[1].name, "gpu1-nvswitch");
  const DirectionRecord* out = Find(stats, "gpu0", "nvswitch");
  const DirectionRecord* in = Find(stats, "nvswitch", "gpu1");
  ASSERT_NE(out, nullptr);
  ASSERT_NE(in, nullptr);
  for (const DirectionRecord* direction : {out, in}) {
    EXPECT_EQ(BytesOf(*direction, Mover::kCopyEngine), kMega);
    EXPECT_EQ(BytesOf(*direction, Mover::kSm), 0u);
    EXPECT_GT(direction->wire_bytes, kMega);
    EXPECT_LT(direction->first, direction->last);
    EXPECT_LE(direction->last, machine_->now());
  }
  EXPECT_LT(out->first, in->first) << "the way takes its time";
  const MoverRecord& engine = stats.movers[static_cast<std::size_t>(Mover::kCopyEngine)];
  EXPECT_EQ(engine.bytes, kMega) << "moved once";
  EXPECT_EQ(engine.link_bytes, 2 * kMega) << "over two links";
  EXPECT_EQ(stats.movers[static_cast<std::size_t>(Mover::kSm)].wire_bytes, 0u);
}

// Lanes 0, 2, 4, ... load from one line, the others from another: whichever order lanes name them
// in, four sectors of 32 bytes are reached.
TEST_F(TrafficTest, SectorsThatLanesAlternateBetweenAreCountedOnce) {
  RunOnDevice0(
      "and.b32 %r1, %r0, 1;\nmul.wide.u32 %rd2, %r1, 128;\nshr.u32 %r2, %r0, 1;\n"
      "mul.wide.u32 %rd3, %r2, 4;\nadd.u64 %rd2, %rd2, %rd3;\nadd.u64 %rd2, %rd2, %rd0;\n"
      "ld.global.u32 %r3, [%rd2];");
  const DirectionRecord* in = Find(machine_->stats(), "nvswitch", "gpu0");
  ASSERT_NE(in, nullptr);
  EXPECT_EQ(BytesOf(*in, Mover::kSm), 128u);
}

TEST_F(TrafficTest, AStoreGoesOutAndALoadComesIn) {
  RunOnDevice0("st.global.u32 [%rd1], %r0;");
  {
    const Stats& stats = machine_->stats();
    const DirectionRecord* out = Find(stats, "gpu0", "nvswitch");
    ASSERT_NE(out, nullptr);
    EXPECT_EQ(BytesOf(*out, Mover::kSm), 128u);
    EXPECT_EQ(BytesOf(*Find(stats, "nvswitch", "gpu0"), Mover::kSm), 0u);
    EXPECT_EQ(stats.movers[0].bytes, 128u);
  }
  RunOnDevice0("ld.global.u32 %r1, [%rd1];\nst.global.u32 [%rd1], %r1;");
  const Stats& stats = machine_->stats();
  const DirectionRecord* in = Find(stats, "nvswitch", "gpu0");
  ASSERT_NE(in, nullptr);
  EXPECT_EQ(BytesOf(*in, Mover::kSm), 128u);
  EXPECT_EQ(BytesOf(*Find(stats, "gpu1", "nvswitch"), Mover::kSm), 128u);
  EXPECT_EQ(stats.movers[0].bytes, 3 * 128u);
}

// How much of the rates of links and HBM a kernel has used: by what it has moved, in time.
TEST_F(TrafficTest, AKernelKnowsWhatItHasUsedOfLinksAndHbm) {
  const auto& bandwidth = machine_->profile().bandwidth;
  const double hbm = bandwidth.hbm_gbs * bandwidth.hbm_efficiency;
  const auto time = [](double bytes, double gbs) { return static_cast<Time>(bytes * 1e3 / gbs); };
  // A line goes out and into the other device's memory, where nothing of it is in the L2 yet.
  RunOnDevice0("st.global.u32 [%rd1], %r0;");
  const double link = machine_->stats().links[0].gbs;
  EXPECT_EQ(machine_->stats().kernels[0].link_busy, time(128, link));
  EXPECT_EQ(machine_->stats().kernels[0].hbm_busy, time(128, hbm));
  // It comes back from there; half of it goes out again. The busier direction counts.
  RunOnDevice0(
      "ld.global.u32 %r1, [%rd1];\nsetp.lt.u32 %p0, %r0, 16;\n@%p0 st.global.u32 [%rd1], %r1;");
  EXPECT_EQ(machine_->stats().kernels[1].link_busy, time(128, link));
  EXPECT_EQ(machine_->stats().kernels[1].hbm_busy, 0) << "the line was in the L2";
  // Own memory: no link, two lines of HBM.
  RunOnDevice0("st.global.u32 [%rd1], %r0;\nst.global.u32 [%rd1+256], %r0;", 0);
  EXPECT_EQ(machine_->stats().kernels[2].link_busy, 0);
  EXPECT_EQ(machine_->stats().kernels[2].hbm_busy, time(256, hbm));
}

}  // namespace
}  // namespace allranks::node
