// Mutation operators: for each the statement it makes of a tagged one.
#include <gtest/gtest.h>

#include "problem/source.h"

namespace allranks::problem {
namespace {

// `body` within a function; what the operator makes of it, without tags and trailing blanks.
std::string Mutated(const std::string& op, const std::string& body) {
  const std::string head = "void F() {\n", tail = "}\n";
  auto text = ApplyOperator(head + body + tail, "t", op);
  if (!text) return "refused: " + text.error().message;
  std::string clean;
  std::size_t at = 0;
  while (at < text->size()) {
    const std::size_t end = text->find('\n', at);
    std::string line = text->substr(at, end - at);
    line.erase(line.find_last_not_of(' ') + 1);
    clean += line + '\n';
    at = end + 1;
  }
  if (!clean.starts_with(head) || !clean.ends_with(tail)) return clean;
  return clean.substr(head.size(), clean.size() - head.size() - tail.size());
}

struct Sample {
  const char *op, *before, *after;
};

TEST(MutateTest, EachOperatorMakesItsBug) {
  const Sample samples[] = {
      {"drop", "  a();\n  b();  //@t\n  c();\n", "  a();\n  ;\n  c();\n"},
      {"drop", "  a();\n  while (x < y) {  //@t\n    b();\n  }\n  c();\n",
       "  a();\n  ;\n\n\n  c();\n"},
      {"drop", "  if (x) {  //@t\n    a();\n  } else {\n    b();\n  }\n", "  ;\n\n\n\n\n"},
      {"drop", "  do {  //@t\n    a();\n  } while (x);\n  b();\n", "  ;\n\n\n  b();\n"},
      {"drop",
       "  asm volatile(\"st.u32 [%0], %1; // {\" ::\"l\"(p),\n               \"r\"(v));  //@t\n  "
       "c();\n",
       "  ;\n\n  c();\n"},
      {"relax", "  asm(\"st.release.sys.u32\" : : \"r\"(v));  //@t\n",
       "  asm(\"st.relaxed.sys.u32\" : : \"r\"(v));\n"},
      {"relax", "  asm(\"atom.acq_rel.sys.add\");  //@t\n", "  asm(\"atom.relaxed.sys.add\");\n"},
      {"relax", "  asm volatile(\"fence.acq_rel.sys;\" ::: \"memory\");  //@t\n", "  ;\n"},
      {"relax", "  __threadfence_system();  //@t\n", "  (void)0;\n"},
      {"relax", "  StoreRelease(p, release);  //@t\n", "  StoreRelaxed(p, release);\n"},
      {"relax", "  load_acquire_sys(p);  //@t\n", "  load_relaxed_sys(p);\n"},
      {"relax", "  x.store(1, cuda::memory_order_release);  //@t\n",
       "  x.store(1, cuda::memory_order_relaxed);\n"},
      {"weak", "  asm(\"ld.acquire.sys.global.u32\");  //@t\n", "  asm(\"ld.global.u32\");\n"},
      {"weak", "  asm volatile(\"ld.volatile.global.u32\");  //@t\n",
       "  asm volatile(\"ld.global.u32\");\n"},
      {"narrow", "  asm(\"ld.acquire.sys.global.u32\");  //@t\n",
       "  asm(\"ld.acquire.gpu.global.u32\");\n"},
      {"narrow", "  asm(\"ld.acquire.gpu.global.u32\");  //@t\n",
       "  asm(\"ld.acquire.cta.global.u32\");\n"},
      {"narrow", "  __threadfence_system();  //@t\n", "  __threadfence();\n"},
      {"narrow", "  __threadfence();  //@t\n", "  __threadfence_block();\n"},
      {"narrow", "  atomicAdd_system(p, 1);  //@t\n", "  atomicAdd(p, 1);\n"},
      {"narrow", "  __syncthreads();  //@t\n", "  __syncwarp();\n"},
      {"equal", "  while (Load(p) < epoch) {  //@t\n  }\n", "  while (Load(p) != epoch) {\n  }\n"},
      {"equal", "  done = static_cast<int>(a - b) >= 0;  //@t\n",
       "  done = static_cast<int>(a - b) == 0;\n"},
      {"less", "  for (int i = 0; i < n; ++i) {  //@t\n  }\n",
       "  for (int i = 0; i < (n) - 1; ++i) {\n  }\n"},
      {"more", "  if (i + 1 < f(a, b) && c) d();  //@t\n",
       "  if (i + 1 < (f(a, b)) + 1 && c) d();\n"},
      {"less", "  const int x = a ? b : c;  //@t\n", "  const int x = (a ? b : c) - 1;\n"},
      {"more", "  Wait(p, epoch + g(1, 2));  //@t\n", "  Wait(p, (epoch + g(1, 2)) + 1);\n"},
      {"half", "  return n;  //@t\n", "  return (n) / 2;\n"},
      {"zero", "  offset += rank * n;  //@t\n", "  offset += 0;\n"},
      {"zero", "  if (lane == 0) p->x = step;  //@t\n", "  if (lane == 0) p->x = 0;\n"},
      {"less", "  if (lane == 0) Store(p, call);  //@t\n",
       "  if (lane == 0) Store(p, (call) - 1);\n"},
      {"more", "  while (a != b) {  //@t\n  }\n", "  while (a != (b) + 1) {\n  }\n"},
      {"stale", "  ++*epoch;  //@t\n", "  *epoch;\n"},
      {"stale", "  const unsigned e = *epoch + 1u;  //@t\n", "  const unsigned e = *epoch;\n"},
      {"stale", "  e += 1;  //@t\n", "  e += 0;\n"},
      {"swap", "  a();  //@t\n\n  // text\n  b();\n", "\n  // text\n  b();\n  a();\n"},
      {"late", "  a();  //@t\n  for (;;) {\n    b();\n  }\n  c();\n",
       "  for (;;) {\n    b();\n  }\n  a();\n  c();\n"},
      {"late", "  if (x) {\n    a();  //@t\n  }\n  b();\n", "  if (x) {\n  }\n    a();\n  b();\n"},
      {"early", "  a();\n  b(1,\n    2);\n  c();  //@t\n", "  a();\n  c();\n  b(1,\n    2);\n"},
      {"early", "  if (x) {\n    a();\n  } else {\n    b();\n  }\n  c();  //@t\n",
       "  c();\n  if (x) {\n    a();\n  } else {\n    b();\n  }\n"},
      {"early", "  if (x) {\n    a();  //@t\n  }\n", "    a();\n  if (x) {\n  }\n"},
      {"early", "  for (;;) {\n    for (;;) {\n    }\n  }\n  c();  //@t\n",
       "  c();\n  for (;;) {\n    for (;;) {\n    }\n  }\n"},
      {"twice", "  a();  //@t\n  b();\n", "  a();\n  a();\n  b();\n"},
      {"once", "  while (Load(p) < epoch) {  //@t\n  }\n", "  if (Load(p) < epoch) {\n  }\n"},
      {"once", "  do {\n    a();\n  } while (x < y);  //@t\n",
       "  do {\n    a();\n  } while (false);\n"},
      {"always", "  if (threadIdx.x == 0) a();  //@t\n", "  if (true) a();\n"},
      {"never", "  for (int i = 0; f(i); ++i) a();  //@t\n",
       "  for (int i = 0; false; ++i) a();\n"},
      {"invert", "  if (f(x)) a();  //@t\n", "  if (!(f(x))) a();\n"},
      // Two places of one tag change together; other tags and comments stay.
      {"relax", "  acquire();  //@t\n  b();  //@u\n  release();  // why //@t\n",
       "  relaxed();\n  b();  //@u\n  relaxed();  // why\n"},
      {"drop", "  a();  //@t\n  b();  //@t\n", "  ;\n  ;\n"},
  };
  for (const Sample& sample : samples)
    EXPECT_EQ(Mutated(sample.op, sample.before), sample.after) << sample.op << "\n"
                                                               << sample.before;
}

TEST(MutateTest, EveryOperatorIsSampledAbove) {
  EXPECT_EQ(Operators().size(), 18u) << "a new operator needs a sample";
}

TEST(MutateTest, WhatCannotBeDoneIsRefused) {
  const Sample refused[] = {
      {"relax", "  a();  //@t\n", "changes nothing"},
      {"narrow", "  asm(\"st.release.cta\");  //@t\n", "changes nothing"},
      {"equal", "  a<b>(c);  //@t\n", "changes nothing"},
      {"less", "  a();  //@t\n", "changes nothing"},
      {"stale", "  e = f;  //@t\n", "changes nothing"},
      {"once", "  a();  //@t\n", "changes nothing"},
      {"never", "  a();  //@t\n", "changes nothing"},
      {"late", "  a();  //@t\n", "cannot be applied"},
      {"early", "  a();  //@t\n", "cannot be applied"},
      {"drop", "  if (a) {\n  } else {  //@t\n  }\n", "cannot be applied"},
      {"drop", "  a();  //@tt\n  b();  //@other\n",
       "no line has the tag //@t; the tags are other, tt"},
  };
  for (const Sample& sample : refused) {
    const std::string text = Mutated(sample.op, sample.before);
    EXPECT_NE(text.find(sample.after), std::string::npos) << sample.op << sample.before << text;
  }
}

TEST(MutateTest, NothingLeavesTheRegion) {
  const std::string text = "// >>> edit\nint x = 1;  //@t\n// <<< edit\n";
  EXPECT_FALSE(ApplyOperator(text, "t", "early"));
  EXPECT_FALSE(ApplyOperator(text, "t", "late"));
}

}  // namespace
}  // namespace allranks::problem
