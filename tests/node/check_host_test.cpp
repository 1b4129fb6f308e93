// Accesses of hosts to memory that a kernel uses as well, each right and broken. Expectations are
// those of the PTX memory model at system scope and of C++'s atomics on the host's side.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <string>
#include <vector>

#include "node/checking.h"
#include "node/finding.h"
#include "ptx_machine.h"

namespace allranks::node {
namespace {

using Order = Checking::HostOrder;

// Of one thread.
const std::string kOne = "setp.ne.u32 %p1, %t, 0;\n@%p1 ret;\n";

// Data at 0, a flag at 128, an acknowledgement at 256: all in pinned memory, as %out.
class CheckHostTest : public PtxMachineTest {
 protected:
  void SetUp() override {
    MachineOptions options;
    options.check = true;
    ASSERT_NO_FATAL_FAILURE(Start(options));
    PinnedMemory pinned;
    ASSERT_EQ(machine_->AllocatePinned(process_, 4096, false, &pinned), Status::kSuccess);
    memory_ = pinned.address;
    words_ = static_cast<std::uint32_t*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, pinned.fd, 0));
    ASSERT_NE(static_cast<void*>(words_), MAP_FAILED);
    const std::vector<std::uint32_t> zero(1024);
    machine_->Poke(process_, memory_, std::as_bytes(std::span(zero)));
    checking().SetHostsSpeak(true);
    checking().HostsMeet();
  }
  void TearDown() override { munmap(words_, 4096); }
  Checking& checking() { return *machine_->checking(); }

  // Runs for a while; no host waits for its end.
  void Launch(const std::string& body, std::uint32_t threads = 1) {
    text_ = Kernel(body);
    Status status;
    auto module = machine_->LoadModule(process_, 0, std::as_bytes(std::span(text_)), &status);
    ASSERT_TRUE(module) << module.error().message;
    KernelInfo info;
    ASSERT_EQ(machine_->GetKernel(*module, "k", &info), Status::kSuccess);
    LaunchRequest request;
    request.kernel = info.id;
    request.block.x = threads;
    request.params.resize(info.param_bytes);
    std::memcpy(request.params.data() + info.param_offsets[0], &memory_, 8);
    OpId op = 0;
    ASSERT_EQ(machine_->Launch(process_, machine_->DefaultStream(process_, 0), request,
                               machine_->now(), &op),
              Status::kSuccess);
    machine_->RunUntil(machine_->now() + Us(100));
  }
  void Host(std::uint64_t offset, bool write, Order order, std::uint64_t size = 4) {
    checking().HostAccess(process_, memory_ + offset, size, write, order);
  }
  void Fence(Order order) { checking().HostAccess(process_, 0, 0, false, order); }
  // Kinds of what was found, one word each.
  std::string Found() {
    std::string kinds;
    for (const Finding& finding : checking().TakeFindings())
      kinds += std::string(kinds.empty() ? "" : " ") + NameOf(finding.kind);
    return kinds;
  }

  // While a kernel polls the word at 256, the host stores data and then that word.
  std::string Handed(Order order, const std::string& look) {
    Launch(kOne + "again:\n" + look + " %r1, [%out+256];\nsetp.eq.u32 %p2, %r1, 0;\n" +
           "@%p2 bra again;\nld.global.u32 %r2, [%out];\nst.global.u32 [%out+512], %r2;\n");
    Host(0, true, Order::kPlain);
    words_[0] = 7;
    Host(256, true, order);
    words_[64] = 1;
    machine_->HostWrote(process_, machine_->now());
    machine_->RunUntil(machine_->now() + Us(100));
    EXPECT_EQ(words_[128], 7u) << "it has seen the data";
    return Found();
  }

  Address memory_ = 0;
  std::uint32_t* words_ = nullptr;
};

TEST_F(CheckHostTest, ReadsWhatAFlagSays) {
  Launch(kOne + "st.global.u32 [%out], 7;\nst.release.sys.global.u32 [%out+128], 1;\n");
  Host(128, false, Order::kAcquire);
  Host(0, false, Order::kPlain);
  EXPECT_EQ(Found(), "");
}

TEST_F(CheckHostTest, ARelaxedLookSaysNothingUntilAFence) {
  Launch(kOne + "st.global.u32 [%out], 7;\nst.release.sys.global.u32 [%out+128], 1;\n");
  Host(128, false, Order::kRelaxed);
  Host(0, false, Order::kPlain);
  EXPECT_EQ(Found(), "race");
}

TEST_F(CheckHostTest, AFenceAcquiresWhatWasRead) {
  Launch(kOne + "st.global.u32 [%out], 7;\nst.release.sys.global.u32 [%out+128], 1;\n");
  Host(128, false, Order::kRelaxed);
  Fence(Order::kAcquire);
  Host(0, false, Order::kPlain);
  EXPECT_EQ(Found(), "");
}

TEST_F(CheckHostTest, AFlagForTheDeviceOnlyLeavesTheHostOut) {
  Launch(kOne + "st.global.u32 [%out], 7;\nst.release.gpu.global.u32 [%out+128], 1;\n");
  Host(128, false, Order::kAcquire);
  EXPECT_EQ(Found(), "scope");
  Host(0, false, Order::kPlain);
  EXPECT_EQ(Found(), "race");
}

TEST_F(CheckHostTest, ARelaxedFlagSaysNothing) {
  Launch(kOne + "st.global.u32 [%out], 7;\nst.relaxed.sys.global.u32 [%out+128], 1;\n");
  Host(128, false, Order::kAcquire);
  Host(0, false, Order::kPlain);
  EXPECT_EQ(Found(), "race");
}

TEST_F(CheckHostTest, ALaunchComesAfterWhatItsHostHasDone) {
  Host(0, true, Order::kPlain);
  Launch(kOne + "ld.global.u32 %r2, [%out];\nst.global.u32 [%out+512], %r2;\n");
  EXPECT_EQ(Found(), "");
}

TEST_F(CheckHostTest, StoresAfterALaunchAreNotBeforeIt) {
  Launch(kOne + "ld.global.u32 %r2, [%out];\nst.global.u32 [%out+512], %r2;\n");
  Host(0, true, Order::kPlain);
  EXPECT_EQ(Found(), "race") << "the kernel may still read";
}

TEST_F(CheckHostTest, TellsAKernelThatPolls) {
  EXPECT_EQ(Handed(Order::kRelease, "ld.acquire.sys.global.u32"), "");
}

TEST_F(CheckHostTest, ARelaxedStoreTellsNothing) {
  EXPECT_EQ(Handed(Order::kRelaxed, "ld.acquire.sys.global.u32"), "race");
}

TEST_F(CheckHostTest, ARelaxedPollHearsNothing) {
  EXPECT_EQ(Handed(Order::kRelease, "ld.relaxed.sys.global.u32"), "race");
}

TEST_F(CheckHostTest, WhatIsReadMayBeOverwrittenOnceSaid) {
  Launch(kOne +
         "ld.global.u32 %r2, [%out];\nst.global.u32 [%out+512], %r2;\n"
         "st.release.sys.global.u32 [%out+128], 1;\n");
  Host(128, false, Order::kAcquire);
  Host(0, true, Order::kPlain);
  EXPECT_EQ(Found(), "");
}

// What was released is heard by those that read an update of it, too: it goes on with the sequence.
TEST_F(CheckHostTest, AnUpdateHandsOnWhatItHasRead) {
  for (const bool updates : {true, false}) {
    words_[64] = 0;
    checking().HostsMeet();
    Launch(
        "setp.gt.u32 %p1, %t, 32;\n@%p1 ret;\nsetp.eq.u32 %p1, %t, 32;\n@%p1 bra other;\n"
        "setp.ne.u32 %p1, %t, 0;\n@%p1 ret;\nst.global.u32 [%out], 7;\n"
        "st.release.sys.global.u32 [%out+128], 1;\nret;\n"
        "other:\nld.relaxed.sys.global.u32 %r1, [%out+256];\nsetp.eq.u32 %p2, %r1, 0;\n"
        "@%p2 bra other;\nld.acquire.sys.global.u32 %r1, [%out+128];\n"
        "ld.global.u32 %r2, [%out];\nst.global.u32 [%out+512], %r2;\n",
        64);
    Host(128, true, updates ? Order::kAcquire : Order::kRelaxed);
    words_[32] = 2;
    Host(256, true, Order::kRelaxed);  // only now the other one looks
    words_[64] = 1;
    machine_->HostWrote(process_, machine_->now());
    machine_->RunUntil(machine_->now() + Us(100));
    EXPECT_EQ(Found(), updates ? "" : "race");
  }
}

// A device's relaxed write that the host has read is before what the host releases then (PTX:
// observation, then base causality).
TEST_F(CheckHostTest, WhatAHostHasSeenIsBeforeWhatItSays) {
  for (const bool looks : {true, false}) {
    words_[64] = 0;
    checking().HostsMeet();
    Launch(
        "setp.gt.u32 %p1, %t, 32;\n@%p1 ret;\nsetp.eq.u32 %p1, %t, 32;\n@%p1 bra other;\n"
        "setp.ne.u32 %p1, %t, 0;\n@%p1 ret;\nst.relaxed.sys.global.u32 [%out+128], 1;\nret;\n"
        "other:\nld.acquire.sys.global.u32 %r1, [%out+256];\nsetp.eq.u32 %p2, %r1, 0;\n"
        "@%p2 bra other;\nst.global.u32 [%out+128], 2;\n",
        64);
    if (looks) Host(128, false, Order::kRelaxed);
    Host(256, true, Order::kRelease);
    words_[64] = 1;
    machine_->HostWrote(process_, machine_->now());
    machine_->RunUntil(machine_->now() + Us(100));
    EXPECT_EQ(Found(), looks ? "" : "race");
  }
}

// --- host code whose accesses are seen, but not by which order ---

class CheckNativeHostTest : public CheckHostTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(CheckHostTest::SetUp());
    checking().SetHostsSpeak(false);
  }
  void Touch(std::uint64_t offset, bool write) {
    checking().HostTouches(process_, memory_ + offset, 4, write, 0);
  }
  std::string Advice() {
    const std::vector<Finding> findings = checking().TakeFindings();
    return findings.size() == 1 ? findings[0].advice : std::to_string(findings.size());
  }
};

TEST_F(CheckNativeHostTest, AFlagForTheHostIsReleased) {
  Launch(kOne + "st.global.u32 [%out], 7;\nst.relaxed.sys.global.u32 [%out+128], 1;\n" +
         "loop:\nld.relaxed.sys.global.u32 %r1, [%out+256];\nsetp.eq.u32 %p2, %r1, 0;\n" +
         "@%p2 bra loop;\n");
  Touch(0, false);
  EXPECT_NE(Advice().find("is not a release: use st.release.sys"), std::string::npos);
}

TEST_F(CheckNativeHostTest, AWeakPollOfTheHostsFlagBecomesAnAcquire) {
  Launch(kOne + "loop:\nld.global.u32 %r1, [%out+256];\nsetp.eq.u32 %p2, %r1, 0;\n" +
         "@%p2 bra loop;\n");
  Touch(256, true);
  const std::vector<Finding> findings = checking().TakeFindings();
  ASSERT_FALSE(findings.empty());
  EXPECT_NE(findings.back().advice.find("ld.acquire.sys"), std::string::npos)
      << findings.back().advice;
}

}  // namespace
}  // namespace allranks::node
