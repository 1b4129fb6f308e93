// Errors of memory and synchronisation that the checker reports, each beside a program that does
// the same without the error. Expectations are of the PTX ISA and the CUDA programming guide; what
// counts is listed in node/check/errors.h.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "node/checking.h"
#include "node/finding.h"
#include "node/virtual_memory.h"
#include "ptx_machine.h"

namespace allranks::node {
namespace {

using Kind = Finding::Kind;

class CheckErrorsTest : public PtxMachineTest {
 protected:
  void SetUp() override {
    MachineOptions options;
    options.check = true;
    machine_ = MakeTestMachine(options);
    ASSERT_NE(machine_, nullptr);
    process_ = machine_->AddProcess(0, 0);
    dynamic_cast<Checking&>(*machine_).SetChecking(true);
  }

  // The input is `in` as it is, unless `bytes` says how much of it is left unwritten.
  std::vector<Finding> Check(const std::string& body, const Options& options = {}) {
    Run<std::uint32_t>(body, 256, std::vector<std::uint32_t>(256, 7), options);
    return Take();
  }
  std::vector<Finding> Take() { return dynamic_cast<Checking&>(*machine_).TakeFindings(); }

  // The output is cleared; the input is `bytes` of new memory.
  std::vector<Finding> CheckUnwritten(const std::string& body, std::uint64_t bytes = 1024,
                                      const Options& options = {}) {
    Address out = 0;
    EXPECT_EQ(machine_->Allocate(process_, 0, 1024, &out), Status::kSuccess);
    const std::vector<std::uint32_t> zero(256);
    Write(out, zero.data(), 1024);
    EXPECT_EQ(machine_->Allocate(process_, 0, bytes, &input_), Status::kSuccess);
    RunAt<std::uint32_t>(body, out, 256, options);
    return Take();
  }

  static Options Block(std::uint32_t threads) {
    Options options;
    options.block = {threads, 1, 1};
    return options;
  }
};

std::string Show(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) text += Describe(finding);
  return text;
}

#define EXPECT_SILENT(expression)        \
  do {                                   \
    const auto findings_ = (expression); \
    EXPECT_EQ(Show(findings_), "");      \
  } while (false)

// Exactly one finding of that kind, with `accesses` accesses and `part` in its text.
void ExpectOne(const std::vector<Finding>& findings, Kind kind, std::size_t accesses,
               const std::string& part) {
  ASSERT_EQ(findings.size(), 1u) << Show(findings);
  EXPECT_EQ(findings[0].kind, kind) << Show(findings);
  EXPECT_EQ(findings[0].accesses.size(), accesses) << Show(findings);
  EXPECT_NE(findings[0].text.find(part), std::string::npos) << Show(findings);
}

const std::string kInPlace = "mul.wide.u32 %rd1, %t, 4;\nadd.u64 %rd2, %in, %rd1;\n";
const std::string kOutPlace = "mul.wide.u32 %rd3, %t, 4;\nadd.u64 %rd4, %out, %rd3;\n";

// --- uninitialised reads -------------------------------------------------------------------------

TEST_F(CheckErrorsTest, LoadOfUnwrittenMemory) {
  const std::string body =
      kInPlace + "ld.global.u32 %r1, [%rd2];\n" + kOutPlace + "st.global.u32 [%rd4], %r1;\n";
  const auto findings = CheckUnwritten(body);
  ExpectOne(findings, Kind::kUninitialised, 1, "nobody has written");
  EXPECT_EQ(findings[0].accesses[0].form, "ld.global.u32");
  EXPECT_EQ(findings[0].accesses[0].bytes, 4u);
  EXPECT_SILENT(Check(body));
}

TEST_F(CheckErrorsTest, WhatAKernelHasWrittenIsThere) {
  EXPECT_SILENT(
      CheckUnwritten(kInPlace + "st.global.u32 [%rd2], %t;\nld.global.u32 %r1, [%rd2];\n"));
  // The last four bytes of each vector are nobody's, but the vector is for the others.
  EXPECT_SILENT(CheckUnwritten(
      "mul.wide.u32 %rd1, %t, 16;\nadd.u64 %rd2, %in, %rd1;\nst.global.u32 [%rd2], %t;\n"
      "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd2];\n"));
}

TEST_F(CheckErrorsTest, AtomicsReadAndExchangesNeedNot) {
  ExpectOne(CheckUnwritten("red.global.add.u32 [%in], 1;\n"), Kind::kUninitialised, 1,
            "red.global");
  ExpectOne(CheckUnwritten("atom.global.exch.b32 %r1, [%in], 1;\nst.global.u32 [%out], %r1;\n"),
            Kind::kUninitialised, 1, "atom.global");
  EXPECT_SILENT(CheckUnwritten("atom.global.exch.b32 _, [%in], 1;\n"));
}

TEST_F(CheckErrorsTest, LanesOfAWarpCountOneByOne) {
  // Even lanes write; odd ones read what they have not written.
  const std::string write = kInPlace +
                            "and.b32 %r1, %t, 1;\nsetp.eq.u32 %p1, %r1, 0;\n"
                            "@%p1 st.global.u32 [%rd2], %t;\n";
  const auto findings = CheckUnwritten(write + "ld.global.u32 %r2, [%rd2];\n");
  ExpectOne(findings, Kind::kUninitialised, 1, "nobody has written");
  EXPECT_EQ(findings[0].accesses[0].thread, 1u);
  EXPECT_EQ(findings[0].accesses[0].offset, 4u);
  EXPECT_SILENT(CheckUnwritten(write + "@%p1 ld.global.u32 %r2, [%rd2];\n"));
}

TEST_F(CheckErrorsTest, CopiesCarryWhatTheyBring) {
  const std::string body = "ld.global.u32 %r1, [%in];\nst.global.u32 [%out], %r1;\n";
  Address from = 0, out = 0;
  ASSERT_EQ(machine_->Allocate(process_, 0, 64, &from), Status::kSuccess);
  ASSERT_EQ(machine_->Allocate(process_, 0, 64, &out), Status::kSuccess);
  ASSERT_EQ(machine_->Allocate(process_, 0, 64, &input_), Status::kSuccess);
  const auto copy = [&] {
    auto request = std::make_shared<CopyRequest>();
    request->dst = input_;
    request->src = from;
    request->size = 64;
    OpId op = 0;
    ASSERT_EQ(machine_->Copy(process_, machine_->DefaultStream(process_, 0), request,
                             machine_->now(), &op),
              Status::kSuccess);
    ASSERT_TRUE(Wait(op));
  };
  copy();
  RunAt<std::uint32_t>(body, out, 1, {});
  ExpectOne(Take(), Kind::kUninitialised, 1, "nobody has written");
  const std::vector<std::uint32_t> value(16, 3);
  Write(from, value.data(), 64);
  ASSERT_EQ(machine_->Allocate(process_, 0, 64, &input_), Status::kSuccess);
  copy();
  RunAt<std::uint32_t>(body, out, 1, {});
  EXPECT_SILENT(Take());
}

TEST_F(CheckErrorsTest, MemsetAndTheNodeWrite) {
  const std::string body = "ld.global.u32 %r1, [%in];\nst.global.u32 [%out], %r1;\n";
  Address out = 0;
  ASSERT_EQ(machine_->Allocate(process_, 0, 64, &out), Status::kSuccess);
  ASSERT_EQ(machine_->Allocate(process_, 0, 64, &input_), Status::kSuccess);
  MemsetRequest request;
  request.dst = input_;
  request.count = 64;
  OpId op = 0;
  ASSERT_EQ(machine_->Memset(process_, machine_->DefaultStream(process_, 0), request,
                             machine_->now(), &op),
            Status::kSuccess);
  ASSERT_TRUE(Wait(op));
  RunAt<std::uint32_t>(body, out, 1, {});
  EXPECT_SILENT(Take());
  ASSERT_EQ(machine_->Allocate(process_, 0, 64, &input_), Status::kSuccess);
  ASSERT_TRUE(machine_->Poke(process_, input_, std::vector<std::byte>(64)));
  RunAt<std::uint32_t>(body, out, 1, {});
  EXPECT_SILENT(Take());
}

TEST_F(CheckErrorsTest, SharedMemoryBeginsUnwritten) {
  const std::string place =
      ".shared .align 16 .b8 s[1024];\nmul.lo.u32 %r1, %t, 4;\n"
      "mov.u32 %r2, s;\nadd.u32 %r3, %r2, %r1;\n";
  const std::string load = "ld.shared.u32 %r4, [%r3];\nst.global.u32 [%out], %r4;\n";
  const auto findings = Check(place + load);
  ExpectOne(findings, Kind::kUninitialised, 1, "shared memory");
  EXPECT_SILENT(Check(place + "st.shared.u32 [%r3], %t;\n" + load));
  // One behind the last, beside others that are written: what libraries do, and do not use.
  EXPECT_SILENT(Check(place + "st.shared.u32 [%r3], %t;\nbar.warp.sync -1;\n"
                              "ld.shared.u32 %r4, [%r3+4];\nst.global.u32 [%out], %r4;\n"));
}

TEST_F(CheckErrorsTest, AsynchronousCopies) {
  const std::string shared =
      ".shared .align 16 .b8 s[512];\nmov.u32 %r1, s;\nshl.b32 %r2, %t, 4;\n"
      "add.u32 %r3, %r1, %r2;\nmul.wide.u32 %rd1, %t, 16;\n"
      "add.u64 %rd2, %in, %rd1;\n";
  const std::string copy =
      "cp.async.cg.shared.global [%r3], [%rd2], 16;\ncp.async.wait_all;\n"
      "ld.shared.u32 %r4, [%r3];\nst.global.u32 [%out], %r4;\n";
  EXPECT_SILENT(Check(shared + copy));
  ExpectOne(CheckUnwritten(shared + copy), Kind::kUninitialised, 1, "cp.async");
  const std::string bulk =
      ".shared .align 16 .b8 s[512];\n.shared .align 8 .b64 m;\nmov.u32 %r1, s;\nmov.u32 %r2, m;\n"
      "setp.ne.u32 %p1, %t, 0;\n@%p1 bra SYNC;\nmbarrier.init.shared.b64 [%r2], 1;\n"
      "mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 512;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%in], 512, "
      "[%r2];\n"
      "SYNC:\nbar.sync 0;\nWAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;\n"
      "@!%p2 bra WAIT;\nld.shared.u32 %r3, [%r1+256];\nst.global.u32 [%out], %r3;\n";
  EXPECT_SILENT(Check(bulk));
  ExpectOne(CheckUnwritten(bulk), Kind::kUninitialised, 1, "cp.async.bulk");
}

// --- faults --------------------------------------------------------------------------------------

TEST_F(CheckErrorsTest, OutOfBoundsNamesWhatIsNear) {
  auto findings = Check("st.global.u32 [%out+1040], 1;\n");
  ExpectOne(findings, Kind::kOutOfBounds, 1, "16 bytes after rank 0 device 0 allocation");
  EXPECT_FALSE(fault_.empty());
  EXPECT_TRUE(findings[0].accesses[0].write);
}

TEST_F(CheckErrorsTest, AccessAcrossTheEnd) {
  // The last element of the vector is beyond.
  const auto findings = CheckUnwritten("st.global.v4.u32 [%in+16], {%t, %t, %t, %t};\n", 24);
  ExpectOne(findings, Kind::kOutOfBounds, 1, "8 bytes beyond its end (24 bytes)");
  EXPECT_EQ(findings[0].accesses[0].offset, 16u);
}

TEST_F(CheckErrorsTest, SharedMemoryOverRun) {
  const std::string body =
      ".shared .align 4 .b8 s[64];\nmov.u32 %r1, s;\nshl.b32 %r2, %t, 2;\n"
      "add.u32 %r3, %r1, %r2;\nst.shared.u32 [%r3], %t;\n";
  ExpectOne(Check(body), Kind::kOutOfBounds, 1, "64 bytes beyond its end (64 bytes)");
  EXPECT_NE(fault_.find("shared memory"), std::string::npos);
}

TEST_F(CheckErrorsTest, Misaligned) {
  const auto findings = Check("st.global.u32 [%out+2], 1;\n");
  ExpectOne(findings, Kind::kMisaligned, 1, "not a multiple of 4");
  EXPECT_EQ(findings[0].accesses[0].offset, 2u);
}

TEST_F(CheckErrorsTest, UseAfterFree) {
  Address out = 0, other = 0;
  ASSERT_EQ(machine_->Allocate(process_, 0, 1024, &out), Status::kSuccess);
  ASSERT_EQ(machine_->Allocate(process_, 0, 4096, &input_), Status::kSuccess);
  ASSERT_EQ(machine_->Free(process_, input_), Status::kSuccess);
  // Somebody else's memory does not take its place.
  ASSERT_EQ(machine_->Allocate(process_, 0, 4096, &other), Status::kSuccess);
  EXPECT_NE(other, input_);
  RunAt<std::uint32_t>("st.global.u32 [%in+8], 1;\n", out, 1, {});
  ExpectOne(Take(), Kind::kUseAfterFree, 1,
            "offset 8 of rank 0 device 0 allocation #2 (4096 bytes), which was freed at");
  EXPECT_FALSE(fault_.empty());
}

TEST_F(CheckErrorsTest, HandleThatIsClosed) {
  const ProcessId peer = machine_->AddProcess(1, 0);
  Address there = 0, out = 0;
  ASSERT_EQ(machine_->Allocate(peer, 0, 4096, &there), Status::kSuccess);
  ASSERT_EQ(machine_->Allocate(process_, 0, 1024, &out), Status::kSuccess);
  IpcHandle handle;
  ASSERT_EQ(machine_->IpcExport(peer, there, &handle), Status::kSuccess);
  ASSERT_EQ(machine_->IpcOpen(process_, 0, handle, &input_), Status::kSuccess);
  const std::string body = "st.global.u32 [%in], 1;\n";
  RunAt<std::uint32_t>(body, out, 1, {});
  EXPECT_SILENT(Take());
  // The owner frees what is open elsewhere: no fault, but no memory of anybody, either.
  ASSERT_EQ(machine_->Free(peer, there), Status::kSuccess);
  RunAt<std::uint32_t>(body, out, 1, {});
  ExpectOne(Take(), Kind::kUseAfterFree, 1, "which its owner has freed");
  EXPECT_EQ(fault_, "");
  ASSERT_EQ(machine_->IpcClose(process_, input_), Status::kSuccess);
  RunAt<std::uint32_t>(body, out, 1, {});
  ExpectOne(Take(), Kind::kNotMapped, 1, "which was closed at");
}

TEST_F(CheckErrorsTest, NoPeerAccess) {
  Address out = 0;
  ASSERT_EQ(machine_->Allocate(process_, 0, 1024, &out), Status::kSuccess);
  ASSERT_EQ(machine_->Allocate(process_, 1, 1024, &input_), Status::kSuccess);
  const std::string body = "st.global.u32 [%in], 1;\n";
  ASSERT_EQ(machine_->EnablePeer(process_, 0, 1), Status::kSuccess);
  RunAt<std::uint32_t>(body, out, 1, {});
  EXPECT_SILENT(Take());
  ASSERT_EQ(machine_->DisablePeer(process_, 0, 1), Status::kSuccess);
  RunAt<std::uint32_t>(body, out, 1, {});
  ExpectOne(Take(), Kind::kNotMapped, 1, "without peer access");
}

TEST_F(CheckErrorsTest, MappingsByHandles) {
  constexpr std::uint64_t kGranule = std::uint64_t{2} << 20;
  VirtualMemory& vmm = machine_->virtual_memory();
  Address out = 0;
  HandleId memory = 0;
  ASSERT_EQ(machine_->Allocate(process_, 0, 1024, &out), Status::kSuccess);
  ASSERT_EQ(vmm.Reserve(process_, 2 * kGranule, 0, 0, &input_), Status::kSuccess);
  ASSERT_EQ(vmm.Create(process_, 0, kGranule, 0, &memory), Status::kSuccess);
  ASSERT_EQ(vmm.Map(process_, input_, kGranule, 0, memory), Status::kSuccess);
  ASSERT_EQ(vmm.SetAccess(process_, input_, kGranule, 0, AccessRight::kReadWrite),
            Status::kSuccess);
  const std::string body = "ld.global.u32 %r1, [%in];\nst.global.u32 [%out], %r1;\n";
  RunAt<std::uint32_t>(body, out, 1, {});
  ExpectOne(Take(), Kind::kUninitialised, 1, "nobody has written");
  // The other half of the reservation has no memory.
  RunAt<std::uint32_t>("st.global.u32 [%in+2097160], 1;\n", out, 1, {});
  ExpectOne(Take(), Kind::kNotMapped, 1, "8 bytes after");
  machine_->ResetDevice(process_, 0);
  ASSERT_EQ(machine_->Allocate(process_, 0, 1024, &out), Status::kSuccess);
  ASSERT_EQ(vmm.Unmap(process_, input_, kGranule), Status::kSuccess);
  RunAt<std::uint32_t>(body, out, 1, {});
  ExpectOne(Take(), Kind::kNotMapped, 1, "which was unmapped at");
}

TEST_F(CheckErrorsTest, LeaksOfAProcessThatEnds) {
  Address kept = 0, freed = 0;
  ASSERT_EQ(machine_->Allocate(process_, 0, 1000, &kept), Status::kSuccess);
  ASSERT_EQ(machine_->Allocate(process_, 0, 24, &kept), Status::kSuccess);
  ASSERT_EQ(machine_->Allocate(process_, 0, 4096, &freed), Status::kSuccess);
  ASSERT_EQ(machine_->Free(process_, freed), Status::kSuccess);
  machine_->RemoveProcess(process_);
  const auto findings = Take();
  ExpectOne(findings, Kind::kLeak, 1, "1024 bytes of device memory in 2 allocations");
  EXPECT_EQ(ClassOf(findings[0].kind), FindingClass::kLeak);
  const ProcessId tidy = machine_->AddProcess(1, 0);
  ASSERT_EQ(machine_->Allocate(tidy, 0, 4096, &freed), Status::kSuccess);
  ASSERT_EQ(machine_->Free(tidy, freed), Status::kSuccess);
  machine_->RemoveProcess(tidy);
  EXPECT_SILENT(Take());
}

// --- barriers ------------------------------------------------------------------------------------

TEST_F(CheckErrorsTest, BarrierInBothWaysOfABranch) {
  const auto body = [](const std::string& condition) {
    return condition + "@%p1 bra ODD;\nbar.sync 0;\nbra DONE;\nODD:\nbar.sync 0;\nDONE:\n";
  };
  // Lanes of one warp take different ways.
  ExpectOne(Check(body("and.b32 %r1, %t, 1;\nsetp.eq.u32 %p1, %r1, 1;\n"), Block(64)),
            Kind::kBarrier, 2, "at different places");
  // Whole warps do: bar counts warps wherever they come from.
  EXPECT_SILENT(Check(body("setp.ge.u32 %p1, %t, 32;\n"), Block(64)));
  // barrier.sync without .aligned may be executed so.
  EXPECT_SILENT(
      Check("and.b32 %r1, %t, 1;\nsetp.eq.u32 %p1, %r1, 1;\n@%p1 bra ODD;\nbarrier.sync 0;\n"
            "bra DONE;\nODD:\nbarrier.sync 0;\nDONE:\n",
            Block(64)));
}

TEST_F(CheckErrorsTest, ThreadsThatHaveReturnedAreNotWaitedFor) {
  EXPECT_SILENT(Check("setp.ge.u32 %p1, %t, 40;\n@%p1 ret;\nbar.sync 0;\n", Block(64)));
}

TEST_F(CheckErrorsTest, CountsOfABarrier) {
  EXPECT_SILENT(Check("bar.sync 1, 64;\n", Block(64)));
  const auto odd = Check("bar.sync 1, 48;\n", Block(64));
  ASSERT_FALSE(odd.empty());
  EXPECT_EQ(odd[0].kind, Kind::kBarrier);
  EXPECT_NE(odd[0].text.find("no multiple"), std::string::npos) << Show(odd);
  const std::string differ =
      "setp.lt.u32 %p1, %t, 32;\nmov.u32 %r1, 96;\n@%p1 mov.u32 %r1, 64;\n"
      "setp.ge.u32 %p2, %t, 64;\n@%p2 ret;\nbar.sync 1, %r1;\n";
  const auto findings = Check(differ, Block(96));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, Kind::kBarrier);
  EXPECT_NE(findings[0].text.find("by one participant"), std::string::npos) << Show(findings);
}

TEST_F(CheckErrorsTest, WarpsThatWaitAtDifferentBarriers) {
  const std::string body =
      "setp.lt.u32 %p1, %t, 32;\n@%p1 bra FIRST;\nbar.sync 2, 64;\nbra DONE;\n"
      "FIRST:\nbar.sync 1, 64;\nDONE:\n";
  const auto findings = Check(body, Block(64));
  EXPECT_FALSE(finished_);
  ASSERT_EQ(findings.size(), 2u) << Show(findings);
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.kind, Kind::kBarrier);
    EXPECT_EQ(finding.accesses.size(), 2u);
    EXPECT_NE(finding.text.find("all others of the block wait elsewhere"), std::string::npos);
  }
}

TEST_F(CheckErrorsTest, BarrierThatCountsThreadsWhichHaveLeft) {
  const auto findings = Check("setp.ge.u32 %p1, %t, 32;\n@%p1 ret;\nbar.sync 1, 64;\n", Block(64));
  EXPECT_FALSE(finished_);
  ExpectOne(findings, Kind::kBarrier, 1, "no thread of the block is left to come");
}

TEST_F(CheckErrorsTest, WarpThatArrivesTwice) {
  const std::string produce = "setp.ge.u32 %p1, %t, 32;\n@%p1 bra WAIT;\nbar.arrive 1, 64;\n";
  const std::string consume = "bra DONE;\nWAIT:\nnanosleep.u32 5000;\nbar.sync 1, 64;\n";
  EXPECT_SILENT(Check(produce + consume + "DONE:\n", Block(64)));
  const auto findings = Check(produce + "bar.arrive 1, 64;\n" + consume + "DONE:\n", Block(64));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, Kind::kBarrier);
  EXPECT_NE(findings[0].text.find("a second time"), std::string::npos) << Show(findings);
}

// --- mbarriers -----------------------------------------------------------------------------------

const std::string kMbarrier =
    ".shared .align 8 .b64 m;\nmov.u32 %r1, m;\n"
    "setp.ne.u32 %p1, %t, 0;\n"
    "@!%p1 mbarrier.init.shared.b64 [%r1], COUNT;\nbar.sync 0;\n";

std::string WithCount(const std::string& count) {
  std::string text = kMbarrier;
  return text.replace(text.find("COUNT"), 5, count);
}

TEST_F(CheckErrorsTest, MbarrierArrivals) {
  const std::string wait =
      "WAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0;\n"
      "@!%p2 bra WAIT;\n";
  const std::string arrive = "mbarrier.arrive.shared.b64 _, [%r1];\n";
  EXPECT_SILENT(Check(WithCount("32") + arrive + wait));
  // One arrival too few: the phase never ends.
  const auto few = Check(WithCount("33") + arrive + wait);
  EXPECT_FALSE(finished_);
  ExpectOne(few, Kind::kMbarrier, 1, "waits for 1 more arrivals");
}

TEST_F(CheckErrorsTest, MbarrierFaults) {
  const std::string count = "mov.u32 %r2, 2;\nmbarrier.arrive.shared.b64 _, [%r1], %r2;\n";
  ExpectOne(Check(WithCount("33") + count), Kind::kMbarrier, 1, "arrives 2 times");
}

TEST_F(CheckErrorsTest, MbarrierBeforeItsInit) {
  ExpectOne(
      Check(".shared .align 8 .b64 m;\nmov.u32 %r1, m;\nmbarrier.arrive.shared.b64 _, [%r1];\n"),
      Kind::kMbarrier, 1, "not initialised");
}

TEST_F(CheckErrorsTest, WaitThatMissesItsPhase) {
  // Warp 1 polls for the first phase, slowly; warp 0 goes through two phases meanwhile, or waits
  // for warp 1 in between.
  const auto body = [](const std::string& between) {
    return WithCount("1") +
           "setp.ge.u32 %p3, %t, 32;\n@%p3 bra POLL;\n@%p1 bra DONE;\nnanosleep.u32 3000;\n"
           "mbarrier.arrive.shared.b64 _, [%r1];\n" +
           between +
           "mbarrier.arrive.shared.b64 _, [%r1];\nbra DONE;\n"
           "POLL:\nsetp.ne.u32 %p4, %t, 32;\n@%p4 bra DONE;\n"
           "TRY:\nmbarrier.test_wait.parity.shared.b64 %p2, [%r1], 0;\n@%p2 bra SEEN;\n"
           "nanosleep.u32 2000;\nbra TRY;\nSEEN:\nred.global.add.u32 [%out], 1;\nDONE:\n";
  };
  const std::string wait =
      "SPIN:\nld.relaxed.gpu.global.u32 %r5, [%out];\nsetp.eq.u32 %p5, %r5, 0;\n"
      "@%p5 bra SPIN;\n";
  EXPECT_SILENT(Check(body(wait), Block(64)));
  const auto findings = Check(body(""), Block(64));
  EXPECT_FALSE(finished_);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, Kind::kMbarrier);
  EXPECT_NE(findings[0].text.find("two phases later"), std::string::npos) << Show(findings);
}

// --- masks ---------------------------------------------------------------------------------------

TEST_F(CheckErrorsTest, MaskThatLeavesOutItsLane) {
  EXPECT_SILENT(Check("bar.warp.sync 0xffffffff;\n"));
  const auto findings = Check("bar.warp.sync 0x7fffffff;\n");
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, Kind::kWarpMask);
  EXPECT_NE(findings[0].text.find("does not name it"), std::string::npos) << Show(findings);
}

TEST_F(CheckErrorsTest, MasksThatDiffer) {
  const auto body = [](const std::string& low, const std::string& high) {
    return "setp.lt.u32 %p1, %t, 16;\nmov.u32 %r1, " + high + ";\n@%p1 mov.u32 %r1, " + low +
           ";\nbar.warp.sync %r1;\n";
  };
  // Halves of a warp by themselves; then each names lanes of the other.
  EXPECT_SILENT(Check(body("0x0000ffff", "0xffff0000")));
  ExpectOne(Check(body("0x0001ffff", "0xffff8000")), Kind::kWarpMask, 2, "wait with the mask");
}

TEST_F(CheckErrorsTest, DifferentOperationsOfOneMask) {
  const std::string begin = "and.b32 %r1, %t, 1;\nsetp.eq.u32 %p1, %r1, 1;\n@%p1 bra ODD;\n";
  EXPECT_SILENT(Check(begin + "bar.warp.sync -1;\nbra DONE;\nODD:\nbar.warp.sync -1;\nDONE:\n"));
  ExpectOne(Check(begin + "bar.warp.sync -1;\nbra DONE;\n"
                          "ODD:\nshfl.sync.idx.b32 %r2, %r1, 0, 31, -1;\nDONE:\n"),
            Kind::kWarpMask, 2, "different operations");
}

TEST_F(CheckErrorsTest, LanesThatHaveReturnedMayBeNamed) {
  EXPECT_SILENT(Check("setp.ge.u32 %p1, %t, 16;\n@%p1 ret;\nbar.warp.sync -1;\n"));
}

// --- spins ---------------------------------------------------------------------------------------

TEST_F(CheckErrorsTest, LoopThatWaitsByWeakLoads) {
  const auto body = [](const std::string& load) {
    return "setp.ge.u32 %p1, %t, 32;\n@%p1 bra WRITE;\n"
           "SPIN:\n" +
           load +
           " %r1, [%out];\nsetp.eq.u32 %p2, %r1, 0;\n@%p2 bra SPIN;\nbra DONE;\n"
           "WRITE:\nnanosleep.u32 20000;\nst.relaxed.gpu.global.u32 [%out], 1;\nDONE:\n";
  };
  EXPECT_SILENT(Check(body("ld.relaxed.gpu.global.u32"), Block(64)));
  EXPECT_SILENT(Check(body("ld.volatile.global.u32"), Block(64)));
  // The weak load may be a race as well.
  const auto findings = Check(body("ld.global.u32"), Block(64));
  ASSERT_FALSE(findings.empty());
  bool weak = false;
  for (const Finding& finding : findings) weak |= finding.kind == Kind::kWeakSpin;
  EXPECT_TRUE(weak) << Show(findings);
}

TEST_F(CheckErrorsTest, LoopThatHasLostItsLoad) {
  ExpectOne(Check("ld.global.u32 %r1, [%in];\nsetp.eq.u32 %p1, %r1, 7;\nSELF:\n@%p1 bra SELF;\n"),
            Kind::kWeakSpin, 1, "goes round for ever");
  EXPECT_FALSE(finished_);
}

TEST_F(CheckErrorsTest, LoopThatWaitsForTime) {
  EXPECT_SILENT(
      Check("mov.u64 %rd5, %globaltimer;\nadd.u64 %rd5, %rd5, 50000;\n"
            "SPIN:\nmov.u64 %rd6, %globaltimer;\nsetp.lt.u64 %p1, %rd6, %rd5;\n"
            "@%p1 bra SPIN;\n"));
}

}  // namespace
}  // namespace allranks::node
