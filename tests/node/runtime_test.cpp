// Functions of the device runtime: printf's formats against the C library's, malloc and free, and
// what a failed assertion leaves behind.
#include <gtest/gtest.h>

#include <cstdarg>
#include <cstdio>

#include "kernel_runner.h"
#include "node/exec/device_printf.h"
#include "node/state/device_heap.h"

namespace allranks::node {
namespace {

// Arguments packed as nvcc does it.
class Arguments {
 public:
  template <class T>
  Arguments& Add(T value) {
    bytes_.resize((bytes_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(T));
    return *this;
  }
  PrintfResult Format(const std::string& format) const {
    PrintfSource source;
    source.argument = [&](std::uint64_t offset, int size) -> std::optional<std::uint64_t> {
      std::uint64_t value = 0;
      if (offset + static_cast<std::uint64_t>(size) > bytes_.size()) return std::nullopt;
      std::memcpy(&value, bytes_.data() + offset, static_cast<std::size_t>(size));
      return value;
    };
    source.string = [](std::uint64_t address) -> std::optional<std::string> {
      if (address < 4096) return std::nullopt;
      return std::string(reinterpret_cast<const char*>(address));
    };
    return FormatPrintf(format, source);
  }

 private:
  std::vector<std::byte> bytes_;
};

std::string Host(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string Host(const char* format, ...) {
  va_list list;
  va_start(list, format);
  char text[4096];
  std::vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return text;
}

TEST(PrintfTest, AgreesWithTheCLibrary) {
  EXPECT_EQ(Arguments().Format("no arguments, 100%%\n").text, "no arguments, 100%\n");
  for (const int value : {0, 1, -1, 42, 2147483647, -2147483647 - 1}) {
    EXPECT_EQ(Arguments().Add(value).Format("%d").text, Host("%d", value));
    EXPECT_EQ(Arguments().Add(value).Format("[%+8.3d]").text, Host("[%+8.3d]", value));
    EXPECT_EQ(Arguments().Add(value).Format("%-10i|").text, Host("%-10i|", value));
    EXPECT_EQ(Arguments().Add(value).Format("%010d").text, Host("%010d", value));
    EXPECT_EQ(Arguments().Add(value).Format("%#x %").text.substr(0, 4),
              Host("%#x %%", static_cast<unsigned>(value)).substr(0, 4));
    EXPECT_EQ(Arguments().Add(value).Format("%u").text, Host("%u", static_cast<unsigned>(value)));
    EXPECT_EQ(Arguments().Add(value).Format("%hhd").text,
              Host("%hhd", static_cast<signed char>(value)));
    EXPECT_EQ(Arguments().Add(value).Format("%hu").text,
              Host("%hu", static_cast<unsigned short>(value)));
    EXPECT_EQ(Arguments().Add(12).Add(value).Format("%*d").text, Host("%*d", 12, value));
    EXPECT_EQ(Arguments().Add(-12).Add(value).Format("%*d|").text, Host("%*d|", -12, value));
  }
  const long long big = -1234567890123456789;
  EXPECT_EQ(Arguments().Add(big).Format("%lld").text, Host("%lld", big));
  EXPECT_EQ(Arguments().Add(1).Add(big).Add(2).Format("%d %ld %d").text,
            Host("%d %ld %d", 1, static_cast<long>(big), 2));
  EXPECT_EQ(Arguments().Add(big).Format("%llX").text,
            Host("%llX", static_cast<unsigned long long>(big)));
  EXPECT_EQ(Arguments().Add(big).Format("%zu").text, Host("%zu", static_cast<std::size_t>(big)));
  for (const double value : {0.0, -0.0, 1.5, 3.14159265358979, 1e300, -1e-300, 1.0 / 0.0}) {
    EXPECT_EQ(Arguments().Add(value).Format("%f").text, Host("%f", value));
    EXPECT_EQ(Arguments().Add(value).Format("%12.4e").text, Host("%12.4e", value));
    EXPECT_EQ(Arguments().Add(value).Format("%g %%").text, Host("%g %%", value));
    EXPECT_EQ(Arguments().Add(value).Format("%+.0G").text, Host("%+.0G", value));
    EXPECT_EQ(Arguments().Add(value).Format("%a").text, Host("%a", value));
    EXPECT_EQ(Arguments().Add(9).Add(2).Add(value).Format("%*.*f").text,
              Host("%*.*f", 9, 2, value));
  }
  EXPECT_EQ(Arguments().Add(int{'x'}).Format("%c%5c").text.substr(0, 1), "x");
  const char* word = "hello";
  EXPECT_EQ(Arguments().Add(word).Format("%s").text, "hello");
  EXPECT_EQ(Arguments().Add(word).Format("%8.3s|").text, Host("%8.3s|", word));
  EXPECT_EQ(Arguments().Add(word).Format("%-8s|").text, Host("%-8s|", word));
  EXPECT_EQ(Arguments().Add(static_cast<const void*>(word)).Format("%p").text,
            Host("%p", static_cast<const void*>(word)));
  EXPECT_EQ(Arguments().Add(std::uint64_t{0}).Format("%p %%").text, "(nil) %");
}

TEST(PrintfTest, CountsArgumentsAndBoundsWhatItIsAskedFor) {
  EXPECT_EQ(Arguments().Add(1).Add(2.0).Add(3).Format("%d %f %d").arguments, 3);
  EXPECT_EQ(Arguments().Format("plain").arguments, 0);
  EXPECT_FALSE(Arguments().Format("%d").ok);
  EXPECT_FALSE(Arguments().Add(std::uint64_t{8}).Format("%s").ok);
  EXPECT_LE(Arguments().Add(5).Format("%2000000000d").text.size(), kMaxPrintf);
  EXPECT_LE(Arguments().Add(2147483647).Add(5).Format("%*d").text.size(), kMaxPrintf);
  EXPECT_LE(Arguments().Add(-2147483647 - 1).Add(5).Format("%*d").text.size(), kMaxPrintf);
  EXPECT_EQ(Arguments().Format("%y").text, "%y");
  EXPECT_EQ(Arguments().Format("100%").text, "100%");
  EXPECT_EQ(Arguments().Format("%-").text, "%-");
  EXPECT_TRUE(Arguments().Add(std::uint64_t{1}).Format("%n").text.empty());
}

TEST(DeviceHeapTest, FirstFitAndBackAgain) {
  DeviceHeap heap(1024);
  const std::uint64_t a = heap.Take(100), b = heap.Take(1), c = heap.Take(500);
  EXPECT_NE(a, 0u);
  EXPECT_EQ(b, a + 112);
  EXPECT_EQ(c, b + 16);
  EXPECT_EQ(heap.Take(500), 0u);
  EXPECT_EQ(heap.Take(~std::uint64_t{0}), 0u);
  EXPECT_FALSE(heap.Return(a + 16));
  EXPECT_TRUE(heap.Return(a));
  EXPECT_FALSE(heap.Return(a));
  EXPECT_EQ(heap.Take(112), a);
  EXPECT_TRUE(heap.Return(b));
  EXPECT_TRUE(heap.Return(c));
  EXPECT_TRUE(heap.Return(a));
  EXPECT_EQ(heap.Take(1008), a);
}

const char* const kBefore =
    ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
    ".extern .func (.param .b64 r) malloc (.param .b64 s);\n"
    ".extern .func free (.param .b64 a);\n"
    ".extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, "
    ".param .b64 c);\n"
    ".global .align 1 .b8 text[8] = {37, 100, 58, 37, 115, 10, 0};\n"  // "%d:%s\n"
    ".global .align 1 .b8 word[4] = {97, 98, 99, 0};\n";               // "abc"

TEST(RuntimeTest, PrintfOfLanesInOrder) {
  KernelRunner runner;
  const std::string body =
      ".local .align 8 .b8 args[16];\n"
      "mov.b64 %rd1, args; cvta.local.u64 %rd1, %rd1; mov.b64 %rd2, word; cvta.global.u64 %rd2, "
      "%rd2;\n st.b32 [%rd1], %r0; st.b64 [%rd1+8], %rd2; mov.b64 %rd3, text; cvta.global.u64 "
      "%rd3, %rd3;\n{ .param .b64 p0; .param .b64 p1; .param .b32 ret;\n"
      "st.param.b64 [p0], %rd3; st.param.b64 [p1], %rd1; call.uni (ret), vprintf, (p0, p1);\n"
      "ld.param.b32 %r5, [ret]; }\n"
      "mul.wide.u32 %rd4, %r0, 4; add.s64 %rd4, %rd4, %rd0; st.global.b32 [%rd4], %r5;";
  const auto out =
      runner.RunOn(KernelRunner::Text(body, kBefore), std::vector<std::uint32_t>(34), 34);
  ASSERT_EQ(runner.status, Status::kSuccess) << runner.message;
  std::string expected;
  for (int i = 0; i < 34; ++i) {
    expected += std::to_string(i) + ":abc\n";
    EXPECT_EQ(out[static_cast<std::size_t>(i)], 2u);
  }
  DeviceText text = runner.machine().TakeText(runner.process(), 8);
  EXPECT_EQ(text.out, "0:abc\n");
  text.out += runner.machine().TakeText(runner.process(), 1 << 20).out;
  EXPECT_EQ(text.out, expected);
  EXPECT_EQ(text.err, "");
  EXPECT_EQ(runner.machine().TakeText(runner.process(), 1 << 20).out, "");
}

std::string Malloc(const std::string& size) {
  return "{ .param .b64 p0; .param .b64 ret; st.param.b64 [p0], " + size +
         "; call.uni (ret), malloc, (p0); ld.param.b64 %rd5, [ret]; }\n";
}
const char* const kFree = "{ .param .b64 p0; st.param.b64 [p0], %rd5; call.uni free, (p0); }\n";

TEST(RuntimeTest, MemoryOutlivesTheKernelAndRunsOut) {
  KernelRunner runner;
  const std::string at = "mul.wide.u32 %rd4, %r0, 8; add.s64 %rd4, %rd4, %rd0;\n";
  auto out =
      runner.RunOn(KernelRunner::Text(at + "mov.b64 %rd1, 64;\n" + Malloc("%rd1") +
                                          "st.b32 [%rd5+60], %r0; st.global.b64 [%rd4], %rd5;",
                                      kBefore),
                   std::vector<std::uint64_t>(64), 64);
  ASSERT_EQ(runner.status, Status::kSuccess) << runner.message;
  for (std::size_t i = 1; i < 64; ++i) EXPECT_EQ(out[i], out[i - 1] + 64);
  // Another kernel reads and frees it.
  out =
      runner.RunOn(KernelRunner::Text(at + "ld.global.b64 %rd5, [%rd4]; ld.u32 %rd6, [%rd5+60];\n" +
                                          kFree + "st.global.b64 [%rd4], %rd6;",
                                      kBefore),
                   out, 64);
  ASSERT_EQ(runner.status, Status::kSuccess) << runner.message;
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], i);
  // 8 MB are there by default: three of four threads get two each.
  out = runner.RunOn(KernelRunner::Text(at + "mov.b64 %rd1, 2796000;\n" + Malloc("%rd1") +
                                            "st.global.b64 [%rd4], %rd5;",
                                        kBefore),
                     std::vector<std::uint64_t>(4), 4);
  EXPECT_NE(out[2], 0u);
  EXPECT_EQ(out[3], 0u);
  EXPECT_EQ(runner.machine().SetLimit(runner.process(), 0, DeviceLimit::kMallocHeap, 1 << 20),
            Status::kInvalidValue);
}

TEST(RuntimeTest, AFreeOfSomethingElseFaults) {
  for (const char* what : {"mov.b64 %rd5, 4096;\n", "mov.b64 %rd5, %rd0;\n"}) {
    KernelRunner runner;
    runner.Run(KernelRunner::Text(std::string(what) + kFree, kBefore), std::vector<std::byte>(8),
               1);
    EXPECT_EQ(runner.status, Status::kLaunchFailed) << runner.message;
  }
  KernelRunner runner;
  runner.Run(KernelRunner::Text(std::string("mov.b64 %rd5, 0;\n") + kFree, kBefore),
             std::vector<std::byte>(8), 1);
  EXPECT_EQ(runner.status, Status::kSuccess);
}

TEST(RuntimeTest, AFailedAssertionNamesTheThread) {
  KernelRunner runner;
  const std::string body =
      "setp.ne.u32 %p1, %r0, 5; @%p1 bra FINE;\n"
      "mov.b64 %rd2, word; cvta.global.u64 %rd2, %rd2; mov.b64 %rd3, 1; mov.b32 %r4, 17;\n"
      "{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;\n"
      "st.param.b64 [a], %rd2; st.param.b64 [b], %rd2; st.param.b32 [c], %r4;\n"
      "st.param.b64 [d], %rd2; st.param.b64 [e], %rd3; call.uni __assertfail, (a, b, c, d, e); }\n"
      "FINE:";
  runner.Run(KernelRunner::Text(body, kBefore), std::vector<std::byte>(8), 32);
  EXPECT_EQ(runner.status, Status::kAssert);
  const DeviceText text = runner.machine().TakeText(runner.process(), 1 << 20);
  EXPECT_EQ(text.err, "abc:17: abc: block: [0,0,0], thread: [5,0,0] Assertion `abc` failed.\n");
}

TEST(RuntimeTest, UnreadableFormatsFault) {
  KernelRunner runner;
  const std::string body =
      "mov.b64 %rd3, 64;\n{ .param .b64 p0; .param .b64 p1; .param .b32 ret;\n"
      "st.param.b64 [p0], %rd3; st.param.b64 [p1], %rd3; call.uni (ret), vprintf, (p0, p1); }\n";
  runner.Run(KernelRunner::Text(body, kBefore), std::vector<std::byte>(8), 1);
  EXPECT_EQ(runner.status, Status::kIllegalAddress);
}

}  // namespace
}  // namespace allranks::node
