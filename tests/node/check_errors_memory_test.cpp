// Errors of memory that the checker reports, each beside a program that does the same without the
// error: reads of what nobody has written, accesses that fault, leaks. Expectations are of the PTX
// ISA and the CUDA programming guide; what counts is listed in node/check/errors.h.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "check_errors.h"
#include "node/virtual_memory.h"

namespace allranks::node {
namespace {

using Kind = Finding::Kind;

const std::string kInPlace = "mul.wide.u32 %rd1, %t, 4;\nadd.u64 %rd2, %in, %rd1;\n";
const std::string kOutPlace = "mul.wide.u32 %rd3, %t, 4;\nadd.u64 %rd4, %out, %rd3;\n";

// --- uninitialised reads -------------------------------------------------------------------------

TEST_F(CheckErrorsTest, LoadOfUnwrittenMemory) {
  const std::string body =
      kInPlace + "ld.global.u32 %r1, [%rd2];\n" + kOutPlace + "st.global.u32 [%rd4], %r1;\n";
  const auto findings = CheckUnwritten(body);
  ExpectOne(findings, Kind::kUninitialised, 1, "never written");
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
  ExpectOne(findings, Kind::kUninitialised, 1, "never written");
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
  ExpectOne(Take(), Kind::kUninitialised, 1, "never written");
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
  const std::string behind = place +
                             "st.shared.u32 [%r3], %t;\nbar.warp.sync -1;\n"
                             "ld.shared.u32 %r4, [%r3+4];\n";
  EXPECT_SILENT(Check(behind + "setp.ne.u32 %p1, %t, 31;\nselp.u32 %r4, %r4, 0, %p1;\n"
                               "st.global.u32 [%out], %r4;\n"));
  EXPECT_SILENT(Check(behind + "st.global.u32 [%out], %r4;\n"));  // may be padding
  const std::string use = "add.u32 %r4, %r4, 1;\n", store = "st.global.u32 [%out], %r4;\n";
  ExpectOne(Check(behind + use + store), Kind::kUninitialised, 2, "never written");
  // A result that goes through shared memory is followed; good elements beside it are good.
  const std::string through = "st.shared.u32 [%r3+256], %r4;\nld.shared.u32 %r4, [%r3+256];\n";
  ExpectOne(Check(behind + use + through + store), Kind::kUninitialised, 2, "never written");
  EXPECT_SILENT(Check(behind + through + store));
  EXPECT_SILENT(Check(behind + use +
                      "add.u32 %r6, %r3, %r1;\nst.shared.v2.u32 [%r6+512], {%t, %r4};\n"
                      "ld.shared.u32 %r5, [%r6+512];\n"
                      "add.u32 %r5, %r5, 1;\nst.global.u32 [%out], %r5;\n"));
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
  ExpectOne(findings, Kind::kOutOfBounds, 1, "16 bytes after device 0 allocation");
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
            "offset 8 of device 0 allocation #2 (4096 bytes), which was freed at");
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
  ExpectOne(Take(), Kind::kUninitialised, 1, "never written");
  // The other half of the reservation has no memory.
  RunAt<std::uint32_t>("st.global.u32 [%in+2097160], 1;\n", out, 1, {});
  ExpectOne(Take(), Kind::kNotMapped, 1, "8 bytes after");
  machine_->ResetDevice(process_, 0);
  ASSERT_EQ(machine_->Allocate(process_, 0, 1024, &out), Status::kSuccess);
  ASSERT_EQ(vmm.Unmap(process_, input_, kGranule), Status::kSuccess);
  RunAt<std::uint32_t>(body, out, 1, {});
  ExpectOne(Take(), Kind::kNotMapped, 1, "which was unmapped at");
}

// --- arrays in shared memory ---------------------------------------------------------------------

const std::string kArrays =
    ".shared .align 4 .b8 first[32];\n.shared .align 4 .b8 second[256];\n"
    ".reg .b32 %base, %at, %other;\n.reg .b64 %wide, %far;\n";

TEST_F(CheckErrorsTest, IndexThatLeavesAnArray) {
  const auto body = [](const std::string& count) {
    return kArrays +
           "mov.u32 %other, second;\nst.shared.u32 [%other+128], %t;\n"
           "setp.ge.u32 %p1, %t, " +
           count +
           ";\n@%p1 ret;\nmov.u32 %base, first;\nmad.lo.u32 %at, %t, 4, %base;\n"
           "st.shared.u32 [%at], %t;\n";
  };
  EXPECT_SILENT(Check(body("8")));
  ExpectOne(Check(body("9")), Kind::kOutOfBounds, 1,
            "reaches 4 bytes beyond the end of first (32 bytes) in shared memory, and into second");
}

TEST_F(CheckErrorsTest, GenericPointerThatLeavesAnArray) {
  const auto body = [](const std::string& offset) {
    return kArrays +
           "mov.u32 %base, first;\nmov.u64 %wide, second;\ncvta.shared.u64 %far, %wide;\nst.u32 "
           "[%far" +
           offset + "], %t;\n";
  };
  EXPECT_SILENT(Check(body("+252"), Block(1)));
  ExpectOne(Check(body("-4"), Block(1)), Kind::kOutOfBounds, 1,
            "reaches 4 bytes before the beginning of second in shared memory, and into first");
}

TEST_F(CheckErrorsTest, PointersOfSeveralArraysAreNotJudged) {
  EXPECT_SILENT(
      Check(kArrays + "setp.eq.u32 %p1, %t, 0;\nmov.u32 %base, first;\nmov.u32 %other, second;\n"
                      "selp.b32 %at, %base, %other, %p1;\nst.shared.u32 [%at+32], %t;\n",
            Block(1)));
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

}  // namespace
}  // namespace allranks::node
