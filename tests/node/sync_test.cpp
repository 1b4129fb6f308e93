// Fences and barriers: which forms there are, what they cost relative to each other, and how
// barriers count threads when warps are partial, diverged or have exited.
#include <gtest/gtest.h>

#include "kernel_runner.h"
#include "node/decode/decode.h"
#include "ptx/parser.h"

namespace allranks::node {
namespace {

using u32 = std::uint32_t;

std::vector<std::string> Unsupported(const std::string& body) {
  auto module = ptx::Parse(KernelRunner::Text(body));
  EXPECT_TRUE(module) << module.error().message << "\n" << body;
  if (!module) return {"parse"};
  auto code = Decode(*module, *module->FindFunction("k"), nullptr);
  EXPECT_TRUE(code) << code.error().message;
  return code ? (*code)->unsupported : std::vector<std::string>{"decode"};
}

TEST(FenceTest, EveryFormIsKnown) {
  for (const char* form :
       {"fence.sc.cta;",
        "fence.sc.cluster;",
        "fence.sc.gpu;",
        "fence.sc.sys;",
        "fence.acq_rel.cta;",
        "fence.acq_rel.gpu;",
        "fence.acquire.gpu;",
        "fence.release.sys;",
        "fence.gpu;",
        "fence.mbarrier_init.release.cluster;",
        "fence.acquire.sync_restrict::shared::cluster.cluster;",
        "fence.release.sync_restrict::shared::cta.cluster;",
        "fence.proxy.alias;",
        "fence.proxy.async;",
        "fence.proxy.async.global;",
        "fence.proxy.async.shared::cta;",
        "fence.proxy.async.shared::cluster;",
        "fence.proxy.tensormap::generic.release.gpu;",
        "fence.proxy.tensormap::generic.acquire.sys [%rd0], 128;",
        "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;",
        "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;",
        "membar.cta;",
        "membar.gl;",
        "membar.sys;",
        "membar.proxy.alias;"}) {
    EXPECT_TRUE(Unsupported(form).empty()) << form;
  }
}

TEST(FenceTest, OtherWordsAreRefused) {
  for (const char* form :
       {"fence;", "fence.sc;", "fence.proxy;", "fence.alias;", "fence.weak.gpu;",
        "fence.proxy.tensormap::generic.acquire.sys;", "fence.proxy.tensormap::generic;",
        "fence.sc.gpu %r1;", "fence.global.gpu;", "membar;", "membar.gl.global;",
        "fence.proxy.async [%rd0], 128;"}) {
    EXPECT_EQ(Unsupported(form).size(), 1u) << form;
  }
}

// A fence at system scope waits for stores on their way; one between proxies does not.
TEST(FenceTest, ProxiesDoNotDrainStores) {
  const auto time = [](const std::string& fence) {
    KernelRunner runner;
    std::string body;
    for (int i = 0; i < 20; ++i) body += "st.global.u32 [%rd0], %r0; " + fence;
    runner.Run(KernelRunner::Text(body), std::vector<std::byte>(256), 32);
    EXPECT_EQ(runner.status, Status::kSuccess);
    return runner.took;
  };
  const Time none = time(""), cta = time("fence.sc.cta;"), gpu = time("fence.acq_rel.gpu;"),
             system = time("fence.sc.sys;"), proxy = time("fence.proxy.async.global;");
  EXPECT_LT(none, gpu);
  EXPECT_LE(proxy, cta);
  EXPECT_LT(cta, gpu);
  EXPECT_LT(gpu, system);
}

TEST(BarrierTest, EveryFormIsKnown) {
  for (const char* form :
       {"bar.sync 0;", "bar.sync %r1, 64;", "bar.cta.sync 1;", "bar.arrive 1, 64;",
        "bar.red.popc.u32 %r2, 0, %p1;", "bar.red.and.pred %p2, 0, 64, !%p1;",
        "bar.cta.red.or.pred %p2, %r1, %p1;", "barrier.sync 0;", "barrier.sync.aligned 0;",
        "barrier.cta.sync.aligned 0, 64;", "barrier.arrive.aligned 0, 64;",
        "barrier.cta.arrive 0, %r2;", "barrier.red.popc.aligned.u32 %r2, 0, 64, %p1;",
        "barrier.cta.red.and.pred %p2, 0, %p1;", "barrier.red.or.aligned.pred %p2, 0, %p1;"}) {
    EXPECT_TRUE(Unsupported(form).empty()) << form;
  }
  for (const char* form :
       {"bar.sync;", "bar.sync %rd0;", "bar.red.popc.u32 %r2, 0;", "bar.red.and.pred %r2, 0, %p1;",
        "bar.arrive 1;", "bar.wait 0;", "barrier.red.xor.pred %p2, 0, %p1;", "bar.sync 0, %rd1;"}) {
    EXPECT_EQ(Unsupported(form).size(), 1u) << form;
  }
}

// Thread 0 stores, everybody else reads behind the barrier.
TEST(BarrierTest, PartialWarpsCountAsWholeOnes) {
  for (const u32 threads : {1u, 33u, 48u, 100u}) {
    const u32 count = (threads + 31) / 32 * 32;
    KernelRunner runner;
    const std::string body =
        ".shared .b32 box;\n setp.eq.u32 %p1, %r0, 0; mov.b32 %r5, 123; @%p1 st.shared.b32 [box], "
        "%r5;\n barrier.sync 3, " +
        std::to_string(count) +
        ";\n ld.shared.b32 %r6, [box]; mul.wide.u32 %rd1, %r0, 4; add.s64 %rd1, %rd1, %rd0;\n"
        "st.global.b32 [%rd1], %r6;";
    const auto out = runner.RunOn(KernelRunner::Text(body), std::vector<u32>(128), threads);
    ASSERT_TRUE(runner.finished) << threads;
    for (u32 t = 0; t < threads; ++t) EXPECT_EQ(out[t], 123u);
  }
}

// Lanes of a warp that come one after the other are one arrival, not several.
TEST(BarrierTest, DivergedLanesArriveAsOneWarp) {
  KernelRunner runner;
  const std::string body =
      ".shared .b32 box;\n and.b32 %r2, %r0, 1; setp.eq.u32 %p1, %r2, 0;\n"
      "setp.lt.u32 %p3, %r0, 32;\n @%p1 bra EVEN;\n barrier.sync 1, 64;\n bra DONE;\n"
      "EVEN: barrier.sync 1, 64;\n"
      "DONE: mul.wide.u32 %rd1, %r0, 4; add.s64 %rd1, %rd1, %rd0; st.global.b32 [%rd1], %r0;";
  const auto out = runner.RunOn(KernelRunner::Text(body), std::vector<u32>(64, 99), 64);
  ASSERT_TRUE(runner.finished);
  for (u32 t = 0; t < 64; ++t) EXPECT_EQ(out[t], t);
}

TEST(BarrierTest, ExitedThreadsAreNotWaitedFor) {
  KernelRunner runner;
  // Odd threads of warp 0 and all of warp 2 leave; the vote is of those that stay.
  const std::string body =
      "setp.ge.u32 %p1, %r0, 64; @%p1 exit;\n and.b32 %r2, %r0, 1; setp.eq.u32 %p2, %r2, 1;\n"
      "setp.lt.and.u32 %p2, %r0, 32, %p2; @%p2 exit;\n setp.lt.u32 %p3, %r0, 40;\n"
      "bar.red.popc.u32 %r3, 0, %p3; bar.red.and.pred %p4, 0, %p3; bar.red.or.pred %p5, 0, !%p3;\n"
      "selp.b32 %r4, 100, 0, %p4; selp.b32 %r5, 1000, 0, %p5; add.s32 %r3, %r3, %r4;\n"
      "add.s32 %r3, %r3, %r5;\n"
      "mul.wide.u32 %rd1, %r0, 4; add.s64 %rd1, %rd1, %rd0; st.global.b32 [%rd1], %r3;";
  const auto out = runner.RunOn(KernelRunner::Text(body), std::vector<u32>(96), 96);
  ASSERT_TRUE(runner.finished);
  for (u32 t = 0; t < 96; ++t) {
    const bool stays = t < 32 ? t % 2 == 0 : t < 64;
    EXPECT_EQ(out[t], stays ? 16u + 8 + 1000 : 0u) << t;
  }
}

// Producer and consumer: one arrives and goes on, the other waits.
TEST(BarrierTest, ArriveDoesNotWait) {
  KernelRunner runner;
  const std::string body =
      ".shared .b32 box[4];\n setp.ge.u32 %p1, %r0, 32; mov.b32 %r4, 0; mov.b32 %r7, box;\n"
      "@%p1 bra CONSUME;\n"
      "PRODUCE: shl.b32 %r5, %r4, 2; add.s32 %r5, %r5, %r7; st.shared.b32 [%r5], %r4;\n"
      "add.s32 %r6, %r4, 1; barrier.arrive %r6, 64; add.s32 %r4, %r4, 1;\n"
      "setp.lt.u32 %p2, %r4, 4; @%p2 bra PRODUCE; ret;\n"
      "CONSUME: add.s32 %r6, %r4, 1; barrier.sync %r6, 64; shl.b32 %r5, %r4, 2;\n"
      "add.s32 %r5, %r5, %r7; ld.shared.b32 %r8, [%r5]; mul.wide.u32 %rd1, %r4, 4;\n"
      "add.s64 %rd1, %rd1, %rd0; st.global.b32 [%rd1], %r8; add.s32 %r4, %r4, 1;\n"
      "setp.lt.u32 %p2, %r4, 4; @%p2 bra CONSUME;";
  const auto out = runner.RunOn(KernelRunner::Text(body), std::vector<u32>(4, 77), 64);
  ASSERT_TRUE(runner.finished) << runner.message;
  EXPECT_EQ(out, (std::vector<u32>{0, 1, 2, 3}));
}

TEST(BarrierTest, ABarrierThatNeverCompletesIsAWaitForEver) {
  KernelRunner runner;
  runner.Run(KernelRunner::Text("bar.sync 0, 96;"), std::vector<std::byte>(8), 64);
  EXPECT_FALSE(runner.finished);
  KernelRunner bad;
  bad.Run(KernelRunner::Text("mov.b32 %r2, 16; bar.sync %r2;"), std::vector<std::byte>(8), 64);
  EXPECT_EQ(bad.status, Status::kIllegalInstruction);
}

}  // namespace
}  // namespace allranks::node
