// What host code is refused for, and that ordinary code is not.
#include "judge/host_rules.h"

#include <gtest/gtest.h>

#include <string>

namespace allranks::judge {
namespace {

// As cudafe++ writes it: headers before and behind the candidate's own lines.
std::string Around(const std::string& text) {
  return "# 1 \"/usr/include/x.h\"\nstatic inline void f() { __asm__(\"nop\"); }\n"
         "# 3 \"candidate.cu\"\n#pragma GCC diagnostic ignored \"-Wattributes\"\n"
         "# 4\n" +
         text +
         "\n#if 0\n__asm__ volatile(\"st.release.sys.global.u32 [%0], %1;\");\n#if 1\n#endif\n"
         "asm(\"x\");\n#endif\n# 9 \"/usr/include/y.h\"\n__attribute__((naked)) void g();\n";
}

TEST(HostRules, OrdinaryCodeIsTaken) {
  for (const char* text :
       {"extern \"C\" void host(const Args& args, int) { int a[3] = {}; a[a[0]] = 1; }",
        "__attribute__((unused)) inline int F(int target, int section) { return target; }",
        "[[nodiscard]] int F(); [[gnu::always_inline]] inline int G() { return 0; }",
        "const char* text = \"asm no_sanitize\"; /* asm */ // __asm__\n",
        "auto f = [](int x) { return x; }; int b = a[[] { return 1; }()];",
        "alignas(64) static std::atomic<int> flag; int assembly = 1, asmx = 2;",
        "char c = '\"'; const char* raw = R\"x(asm(\"\"))x\"; int big = 1'000'000;"})
    EXPECT_EQ(RefusedHostText(Around(text), "candidate.cu"), "") << text;
}

TEST(HostRules, CodeWithoutHooksIsRefused) {
  for (const char* text :
       {"void F() { asm volatile(\"\"); }", "void F() { __asm__ (\"\"); }", "__asm (\"x\");",
        "__attribute__((no_sanitize(\"thread\"))) void F();",
        "__attribute__((__no_sanitize__(\"thread\"))) void F();",
        "__attribute((noinline, no_sanitize_thread)) void F();",
        "[[gnu::no_sanitize(\"coverage\")]] void F();", "[[using gnu: naked]] void F();",
        "__attribute__((no_instrument_function)) void F();",
        "__attribute__((optimize(\"O0\"))) void F();",
        "__attribute__((target(\"avx2\"))) void F();",
        "__attribute__((section(\".text\"))) const unsigned char code[] = {0xc3};",
        "__attribute__((ifunc(\"pick\"))) void F();", "#pragma GCC optimize (\"O0\")\nvoid F();",
        "#pragma GCC push_options\nvoid F();", "void F() { __builtin_memcpy(a, b, 100); }",
        "void F() { _mm_stream_load_si128(p); }", "void F() { __tsan_func_exit(); }",
        "int value asm(\"__tsan_read4\");"})
    EXPECT_NE(RefusedHostText(Around(text), "candidate.cu"), "") << text;
}

TEST(HostRules, LinesKeepTheirFiles) {
  EXPECT_EQ(RefusedSource("#include <atomic>\n#define A 1\n#pragma unroll\nint x;\n"), "");
  EXPECT_EQ(RefusedSource("auto s = \"\\n#line 3\"; /*\n#line 4\n*/ auto r = R\"(\n#line 5\n)\";"),
            "");
  for (const char* text :
       {"#line 5 \"/usr/include/x.h\"\n", "# 5 \"/usr/include/x.h\"\n", "  # /* */ line 7\n",
        "/* */ #line 7\n", "#\\\nline 7\n", "%: line 7 \"x.h\"\n", "int a; \\\n\n#line 3\n"})
    EXPECT_NE(RefusedSource(text), "") << text;
}

TEST(HostRules, OnlyKnownFunctionsAreCalled) {
  EXPECT_EQ(RefusedSymbols("cudaLaunchKernel U         \nhost T 0 10\nmemcpy U         \n"
                           "__tsan_read4 U         \n_ZSt20__throw_length_errorPKc U         \n"
                           "cuStreamSynchronize U         \n"),
            "");
  for (const char* name : {"memchr", "strlen", "dlsym", "mremap", "pthread_create", "syscall",
                           "process_vm_readv", "sigaction", "_ZNSt6thread15_M_start_threadEv",
                           "_ZN8allranks4shim15EndInstrumentedEv", "custom"})
    EXPECT_NE(RefusedSymbols(std::string("host T 0 10\n") + name + " U         \n"), "") << name;
  EXPECT_NE(RefusedSymbols("__tsan_read4 T 0 10\n"), "");
  EXPECT_NE(RefusedSymbols("__wrap_memcpy t 0 10\n"), "");
  EXPECT_NE(RefusedSymbols("pick i 0 10\n"), "");
}

}  // namespace
}  // namespace allranks::judge
