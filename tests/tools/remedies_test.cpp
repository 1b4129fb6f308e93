// tools/remedies: where an edit's text goes in the source.
#include <gtest/gtest.h>

#include "remedies/apply.h"

namespace allranks::remedies {
namespace {

using Json = nlohmann::json;

Json Place(int line, const char* function) {
  return {{"file", "a.cu"}, {"line", line}, {"column", 3}, {"function", function}};
}

Json Edit(const char* action, const char* by, std::vector<Json> at, const char* text,
          const char* form, const char* from = "") {
  return {{"action", action}, {"by", by},     {"at", at},           {"text", text},
          {"form", form},     {"from", from}, {"to", Json::array()}};
}

std::string Applied(const Json& edit, const std::string& text) {
  const Result<std::string> made = Apply(Json::array({edit}), "a.cu", text);
  return made ? *made : "failed: " + made.error().message;
}

constexpr const char* kKernel =
    "__device__ void st_flag(int* p) { asm volatile(\"st.relaxed.sys.u32 [%0], 1;\" :: \"l\"(p)); "
    "}\n"
    "__global__ void Put(int* to, int* flag, volatile int* ack) {\n"
    "  for (int i = threadIdx.x; i < 100; i += 32) to[i] = i;\n"
    "  if (threadIdx.x == 0) st_flag(flag);\n"
    "  while (*ack == 0) {}\n"
    "  __threadfence(); atomicAdd(flag, 1);\n"
    "}\n";

std::string Line(const std::string& text, int number) {
  std::istringstream in(text);
  std::string line;
  for (int i = 0; i < number; ++i) std::getline(in, line);
  return line;
}

TEST(RemediesTest, AFenceStandsAtTheCallOfAFunctionThatOnlyStores) {
  const Json edit = Edit("insert_before", "thread", {Place(1, "st_flag(int*)"), Place(4, "Put")},
                         "__threadfence_system();", "st.relaxed.sys.u32");
  EXPECT_EQ(Line(Applied(edit, kKernel), 4),
            "  if (threadIdx.x == 0) { __threadfence_system(); st_flag(flag); }");
}

TEST(RemediesTest, ABarrierStandsWhereAllThreadsPass) {
  const Json store = Edit("insert_before", "block", {Place(1, "st_flag(int*)"), Place(4, "Put")},
                          "__syncthreads();", "st.relaxed.sys.u32");
  EXPECT_EQ(Line(Applied(store, kKernel), 4),
            "  __syncthreads(); if (threadIdx.x == 0) st_flag(flag);");
  const Json data =
      Edit("insert_before", "block", {Place(3, "Put")}, "__syncthreads();", "st.global.u32");
  EXPECT_TRUE(Line(Applied(data, kKernel), 3).starts_with("  __syncthreads(); for (int i"));
}

TEST(RemediesTest, AFenceStandsBehindTheLoopThatWaits) {
  const Json edit = Edit("insert_after", "thread", {Place(5, "Put")}, "__threadfence_system();",
                         "ld.volatile.u32");
  EXPECT_EQ(Line(Applied(edit, kKernel), 5), "  while (*ack == 0) {} __threadfence_system();");
}

TEST(RemediesTest, TheInstructionTellsStatementsOfALineApart) {
  const Json atomic = Edit("replace", "thread", {Place(6, "Put")}, "sys", "atom.add.u32", "gpu");
  EXPECT_EQ(Line(Applied(atomic, kKernel), 6), "  __threadfence(); atomicAdd_system(flag, 1);");
  const Json fence = Edit("replace", "thread", {Place(6, "Put")}, "sys", "membar.gl", "gpu");
  EXPECT_EQ(Line(Applied(fence, kKernel), 6), "  __threadfence_system(); atomicAdd(flag, 1);");
}

TEST(RemediesTest, AStoreMovesBehindWhatItTellsOf) {
  const std::string kernel =
      "__global__ void Put(int* to, volatile int* flag) {\n"
      "  if (threadIdx.x == 0) *flag = 1;\n"
      "  to[threadIdx.x] = 1;\n"
      "}\n";
  Json edit = Edit("move_after", "block", {Place(2, "Put")}, "__syncthreads();", "st.volatile.u32");
  edit["to"] = Json::array({Place(3, "Put")});
  const std::string made = Applied(edit, kernel);
  EXPECT_EQ(Line(made, 2), "  ;");
  EXPECT_EQ(Line(made, 3),
            "  to[threadIdx.x] = 1; __syncthreads(); if (threadIdx.x == 0) *flag = 1;");
}

TEST(RemediesTest, ABarrierLeavesWhatOnlySomeThreadsExecute) {
  const std::string kernel =
      "__global__ void Put(int* to) {\n"
      "  if (threadIdx.x != 1) __syncthreads();\n"
      "  __syncthreads();\n"
      "  if (threadIdx.x < 9) {\n"
      "    __syncthreads();\n"
      "  } else {\n"
      "    __syncthreads();\n"
      "  }\n"
      "}\n";
  Json edit = Edit("hoist", "block", {Place(2, "Put")}, "__syncthreads();", "bar.sync");
  edit["to"] = Json::array({Place(3, "Put")});
  EXPECT_EQ(Line(Applied(edit, kernel), 2), "  if (threadIdx.x != 1) ; __syncthreads();");
  EXPECT_EQ(Line(Applied(edit, kernel), 3), "  __syncthreads();");
  // Both branches have one: one stands behind them.
  edit["at"] = Json::array({Place(5, "Put")});
  edit["to"] = Json::array({Place(7, "Put")});
  const std::string made = Applied(edit, kernel);
  EXPECT_EQ(Line(made, 5), "    ;");
  EXPECT_EQ(Line(made, 7), "    ;");
  EXPECT_EQ(Line(made, 8), "  } __syncthreads();");
  edit["at"] = Json::array({Place(3, "Put")});
  edit["to"] = Json::array();
  EXPECT_TRUE(Applied(edit, kernel).starts_with("failed"));
}

TEST(RemediesTest, AnInstructionOfAHelperHasTheOrderItself) {
  const Json order = Edit("replace", "thread", {Place(1, "st_flag(int*)"), Place(4, "Put")},
                          "release", "st.relaxed.sys.u32", "relaxed");
  EXPECT_NE(Line(Applied(order, kKernel), 1).find("\"st.release.sys.u32"), std::string::npos);
  const std::string weak =
      "__global__ void Put(int* flag) {\n"
      "  if (threadIdx.x == 0) flag[1] = 1;\n"
      "}\n";
  Json store = Edit("replace", "thread", {Place(2, "Put")}, "release.sys", "st.global.u32", "weak");
  store["at"][0]["column"] = 25;
  EXPECT_EQ(Line(Applied(store, weak), 2),
            "  if (threadIdx.x == 0) { __threadfence_system(); "
            "*(volatile std::decay_t<decltype(flag[1])>*)&(flag[1]) = 1; }");
}

TEST(RemediesTest, AFenceMakesUpForAnOrderThatHasNoWordThere) {
  const std::string kernel =
      "__global__ void Put(Ref flag) {\n"
      "  flag.store(1, kNoOrder);\n"
      "  while (flag.load(kNoOrder) != 2) {}\n"
      "  if (flag.exchange(3, kNoOrder) == 2)\n"
      "    return;\n"
      "}\n";
  const auto order = [&](int line, const char* to, const char* form) {
    return Applied(Edit("replace", "thread", {Place(line, "Put")}, to, form, "relaxed"), kernel);
  };
  EXPECT_EQ(Line(order(2, "release", "st.relaxed.gpu.b32"), 2),
            "  __threadfence(); flag.store(1, kNoOrder);");
  EXPECT_EQ(Line(order(3, "acquire", "ld.relaxed.sys.b32"), 3),
            "  while (flag.load(kNoOrder) != 2) {} __threadfence_system();");
  const std::string both = order(4, "acq_rel", "atom.exch.relaxed.cta.b32");
  EXPECT_EQ(Line(both, 4), "  __threadfence_block(); if (flag.exchange(3, kNoOrder) == 2)");
  EXPECT_EQ(Line(both, 5), "    { __threadfence_block(); return; } __threadfence_block();");
}

TEST(RemediesTest, TheOrderOfAFailureStays) {
  const std::string kernel =
      "__global__ void Put(Ref a) {\n"
      "  a.compare_exchange_strong(x, 1, cuda::memory_order_relaxed, cuda::memory_order_relaxed);\n"
      "}\n";
  const Json edit = Edit("replace", "thread", {Place(2, "Put")}, "release", "atom.cas", "relaxed");
  EXPECT_EQ(Line(Applied(edit, kernel), 2),
            "  a.compare_exchange_strong(x, 1, cuda::memory_order_release, "
            "cuda::memory_order_relaxed);");
}

TEST(RemediesTest, AnElementIsLoadedStrongly) {
  const std::string kernel =
      "__global__ void Get(int* from, int* to) {\n"
      "  if (from[0] < 3) to[1] = from[2];\n"
      "}\n";
  const Json edit =
      Edit("replace", "thread", {Place(2, "Get")}, "relaxed.sys", "ld.global.u32", "weak");
  EXPECT_EQ(Line(Applied(edit, kernel), 2),
            "  if (from[0] < 3) to[1] = *(const volatile std::decay_t<decltype(from[2])>*)"
            "&(from[2]);");
}

// A function that waits is called several times: all of its callers need the barrier.
TEST(RemediesTest, ABarrierStandsBehindTheWaitOfAHelper) {
  const std::string kernel =
      "__device__ void Meet(volatile int* flag) {\n"
      "  if (threadIdx.x == 0) {\n"
      "    while (*flag == 0) {}\n"
      "  }\n"
      "}\n"
      "__global__ void Get(volatile int* flag, int* from, int* to) {\n"
      "  Meet(flag);\n"
      "  to[threadIdx.x] = from[threadIdx.x];\n"
      "}\n";
  const Json edit = Edit("insert_after", "block", {Place(3, "Meet"), Place(7, "Get")},
                         "__syncthreads();", "ld.volatile.u32");
  EXPECT_EQ(Line(Applied(edit, kernel), 4), "  } __syncthreads();");
}

TEST(RemediesTest, ABarrierFollowsTheFenceBehindTheSameWait) {
  const std::string kernel =
      "__global__ void Get(volatile int* flag, int* from, int* to) {\n"
      "  while (*flag == 0) {}\n"
      "  to[threadIdx.x] = from[threadIdx.x];\n"
      "}\n";
  const Json barrier =
      Edit("insert_after", "block", {Place(2, "Get")}, "__syncthreads();", "ld.volatile.u32");
  const Json fence =
      Edit("insert_after", "thread", {Place(2, "Get")}, "__threadfence();", "ld.volatile.u32");
  for (const Json& edits : {Json::array({barrier, fence}), Json::array({fence, barrier})}) {
    const Result<std::string> made = Apply(edits, "a.cu", kernel);
    ASSERT_TRUE(made);
    EXPECT_EQ(Line(*made, 2), "  while (*flag == 0) {} __threadfence(); __syncthreads();");
  }
}

TEST(RemediesTest, AFenceStaysInALoopThatAReturnLeaves) {
  const std::string kernel =
      "__device__ int Pop(int* head) {\n"
      "  while (true) {\n"
      "    int s = atomicCAS(head, 1, 2);\n"
      "    if (s == 1) return s;\n"
      "  }\n"
      "}\n";
  const Json edit =
      Edit("insert_after", "thread", {Place(3, "Pop")}, "__threadfence();", "atom.cas.b32");
  EXPECT_EQ(Line(Applied(edit, kernel), 3), "    int s = atomicCAS(head, 1, 2); __threadfence();");
}

TEST(RemediesTest, AnMbarrierIsInvalidatedByItsAddress) {
  const std::string kernel =
      "__device__ void init(void* b, int n) { asm volatile(\"mbarrier.init.shared::cta.b64 [%0], "
      "%1;\" ::\"r\"(sm(b)), \"r\"(n)); }\n"
      "__global__ void Run() {\n"
      "  if (threadIdx.x == 0) init(full + 1, 64);\n"
      "  asm volatile(\"mbarrier.init.shared::cta.b64 [%0], 1;\" ::\"r\"(sm(&bar)) : \"memory\");\n"
      "}\n";
  const Json call = Edit("insert_before", "thread", {Place(1, "init"), Place(3, "Run")},
                         "Inval($at.address);", "mbarrier.init.shared::cta.b64");
  EXPECT_EQ(Line(Applied(call, kernel), 3),
            "  if (threadIdx.x == 0) { Inval(full + 1); init(full + 1, 64); }");
  const Json here = Edit("insert_before", "thread", {Place(4, "Run")}, "Inval($at.address);",
                         "mbarrier.init.shared::cta.b64");
  EXPECT_TRUE(Line(Applied(here, kernel), 4).starts_with("  Inval(&bar); asm volatile"));
}

TEST(RemediesTest, AVectorIsStoredByAnInstruction) {
  const std::string kernel =
      "__global__ void Clear(float2* p, float2 none) {\n"
      "  *p = none;\n"
      "}\n";
  const Json edit =
      Edit("replace", "thread", {Place(2, "Clear")}, "relaxed.sys", "st.global.v2.f32", "weak");
  EXPECT_EQ(Line(Applied(edit, kernel), 2),
            "  { const auto v_ =  none; asm volatile(\"st.volatile.v2.f32 [%0], {%1, %2};\" :: "
            "\"l\"(&(*p)), \"f\"(v_.x), \"f\"(v_.y) : \"memory\"); }");
}

TEST(RemediesTest, TheScopeOfADeclarationIsChangedOnce) {
  const std::string kernel =
      "using Flag = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;\n"
      "__shared__ cuda::barrier<cuda::thread_scope_block> bar;\n"
      "__global__ void Put(Flag f) {\n"
      "  f.store(1, cuda::memory_order_release);\n"
      "  while (f.load(cuda::memory_order_acquire) != 2) {}\n"
      "}\n";
  const Json store =
      Edit("replace", "thread", {Place(4, "Put")}, "sys", "st.release.gpu.b32", "gpu");
  const Json load =
      Edit("replace", "thread", {Place(5, "Put")}, "sys", "ld.acquire.gpu.b32", "gpu");
  const Result<std::string> made = Apply(Json::array({store, load}), "a.cu", kernel);
  ASSERT_TRUE(made);
  EXPECT_EQ(Line(*made, 1), "using Flag = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;");
  EXPECT_EQ(Line(*made, 2), "__shared__ cuda::barrier<cuda::thread_scope_block> bar;");
}

TEST(RemediesTest, OrdersAreReplacedByStrongerOnes) {
  const std::string kernel =
      "__device__ void Fence() { asm volatile(\"fence.acq_rel.sys;\" ::: \"memory\"); }\n"
      "__device__ int Cas(int* p) { asm(\"atom.release.sys.cas.b32 %0, [%1], 1, 2;\"); }\n"
      "__global__ void Run(int* p) {\n"
      "  Fence();\n"
      "  Cas(p);\n"
      "}\n";
  const Json fence = Edit("replace", "thread", {Place(1, "Fence"), Place(4, "Run")}, "sc",
                          "fence.acq_rel.sys", "acq_rel");
  EXPECT_NE(Line(Applied(fence, kernel), 1).find("\"fence.sc.sys;"), std::string::npos);
  const Json atomic = Edit("replace", "thread", {Place(2, "Cas"), Place(5, "Run")}, "acq_rel",
                           "atom.release.sys.cas.b32", "release");
  EXPECT_NE(Line(Applied(atomic, kernel), 2).find("\"atom.acq_rel.sys.cas"), std::string::npos);
}

TEST(RemediesTest, NothingChangesOutsideOfTheRegion) {
  const std::string candidate =
      "__device__ void Store(int* p) { asm(\"st.relaxed.sys.u32 [%0], 1;\" :: \"l\"(p)); }\n"
      "// >>> edit\n"
      "__global__ void Put(int* flag) {\n"
      "  Store(flag);\n"
      "}\n"
      "// <<< edit\n";
  const Json edit = Edit("replace", "thread", {Place(1, "Store(int*)"), Place(4, "Put")}, "release",
                         "st.relaxed.sys.u32", "relaxed");
  EXPECT_EQ(Line(Applied(edit, candidate), 1), Line(candidate, 1));
  EXPECT_EQ(Line(Applied(edit, candidate), 4), "  __threadfence_system(); Store(flag);");
}

TEST(RemediesTest, ANameOfAnotherLoopIsAnotherName) {
  const std::string kernel =
      "__global__ void Put(int* to) {\n"
      "  for (int i = threadIdx.x; i < 9; i += 32) to[i] = 0;\n"
      "  for (int i = 0; i < 9; ++i) {\n"
      "    to[i] = 1;\n"
      "  }\n"
      "  if (blockIdx.x == 0) to[0] = 1;\n"
      "}\n";
  const Json block =
      Edit("insert_before", "block", {Place(4, "Put")}, "__syncthreads();", "st.global.u32");
  EXPECT_EQ(Line(Applied(block, kernel), 4), "    __syncthreads(); to[i] = 1;");
  Json grid = Edit("insert_before", "grid", {Place(6, "Put")}, "grid.sync();", "st.global.u32");
  grid["at"][0]["column"] = 24;
  EXPECT_EQ(Line(Applied(grid, kernel), 6), "  grid.sync(); if (blockIdx.x == 0) to[0] = 1;");
}

TEST(RemediesTest, AMoveSplitsWhatOnlySomeThreadsExecute) {
  const std::string kernel =
      "__global__ void Put(int* to, volatile int* flag) {\n"
      "  if (threadIdx.x == 0) {\n"
      "    *flag = 1;\n"
      "    to[0] = 1;\n"
      "  }\n"
      "}\n";
  Json edit = Edit("move_after", "block", {Place(3, "Put")}, "__syncthreads();", "st.volatile.u32");
  edit["to"] = Json::array({Place(4, "Put")});
  const std::string made = Applied(edit, kernel);
  EXPECT_EQ(Line(made, 3), "    ;");
  EXPECT_EQ(Line(made, 5), "  } __syncthreads(); if (threadIdx.x == 0) { *flag = 1; }");
}

TEST(RemediesTest, AMoveLeavesTheRestOfAConditionWhereItIs) {
  const std::string kernel =
      "__global__ void Put(int* to, volatile int* flag) {\n"
      "  if (threadIdx.x == 0) {\n"
      "    *flag = 1;\n"
      "    int* other = to + 1;\n"
      "    *other = 1;\n"
      "  }\n"
      "  to[threadIdx.x] = 1;\n"
      "}\n";
  Json edit = Edit("move_after", "block", {Place(3, "Put")}, "__syncthreads();", "st.volatile.u32");
  edit["to"] = Json::array({Place(7, "Put")});
  std::string made = Applied(edit, kernel);
  EXPECT_EQ(Line(made, 5), "    *other = 1;");
  EXPECT_EQ(Line(made, 7),
            "  to[threadIdx.x] = 1; __syncthreads(); if (threadIdx.x == 0) { *flag = 1; }");
  // It needs what is declared there: everything moves.
  edit["at"] = Json::array({Place(5, "Put")});
  made = Applied(edit, kernel);
  EXPECT_EQ(Line(made, 2), "  ;");
  EXPECT_EQ(Line(made, 6), "    *other = 1;");
}

TEST(RemediesTest, AHelperMovesBehindWhatItsCallerDoes) {
  const std::string kernel =
      "__device__ void Meet(int* flag) {\n"
      "  if (threadIdx.x == 0) flag[0] = 1;\n"
      "  __syncthreads();\n"
      "}\n"
      "__global__ void Put(int* to, int* flag) {\n"
      "  Meet(flag);\n"
      "  for (int i = threadIdx.x; i < 9; i += 32) to[i] = 1;\n"
      "}\n";
  Json edit = Edit("move_after", "block", {Place(2, "Meet"), Place(6, "Put")}, "__syncthreads();",
                   "st.global.u32");
  edit["to"] = Json::array({Place(7, "Put")});
  const std::string made = Applied(edit, kernel);
  EXPECT_EQ(Line(made, 6), "  ;");
  EXPECT_TRUE(Line(made, 7).ends_with("to[i] = 1; __syncthreads(); Meet(flag);"));
}

TEST(RemediesTest, AMaskNamesOtherLanes) {
  const std::string kernel =
      "__global__ void Put(int* to) {\n"
      "  to[0] = __shfl_sync(threadIdx.x < 8 ? f(1, 2) : ~0u, to[1], 0);\n"
      "  __syncwarp(0xffffu);\n"
      "  __syncwarp();\n"
      "}\n";
  const auto mask = [&](int line) {
    return Line(Applied(Edit("replace", "thread", {Place(line, "Put")}, "0xffffffffu",
                             "bar.warp.sync", "mask"),
                        kernel),
                line);
  };
  EXPECT_EQ(mask(2), "  to[0] = __shfl_sync(0xffffffffu, to[1], 0);");
  EXPECT_EQ(mask(3), "  __syncwarp(0xffffffffu);");
  EXPECT_EQ(mask(4), "  __syncwarp(0xffffffffu);");
}

TEST(RemediesTest, AKernelThatOverlapsWaitsAtItsBeginning) {
  Json edit = Edit("insert_before", "block", {Place(3, "Put(int*, int*, int volatile*)")},
                   "cudaGridDependencySynchronize();", "ld.u32");
  edit["at"][0]["line"] = nullptr;
  EXPECT_TRUE(Line(Applied(edit, kKernel), 2).ends_with("{ cudaGridDependencySynchronize();"));
}

// --- host code ---

constexpr const char* kHost =
    "void Send(int* to, int* from, cudaStream_t stream) {\n"
    "  CK(cudaMemcpyAsync(to, from, 128, cudaMemcpyDefault, stream));\n"
    "}\n"
    "int main() {\n"
    "  Send(b, a, copies);\n"
    "  for (int i = 0; i < 4; ++i) sum += pinned[i];\n"
    "  if (more) Use<<<1, 32, 0, work>>>(b);\n"
    "  auto add = [&](cudaGraphNode_t* node) {\n"
    "    CK(cudaGraphAddKernelNode(node, graph, nullptr, 0, &params));\n"
    "  };\n"
    "  add(&first);\n"
    "  add(&second);\n"
    "  CK(cudaMemsetAsync(flag + 1, 1, 4, work));\n"
    "  for (int r = 0; r < 4; ++r) Fill<<<1, 32, 0, streams[r]>>>(b);\n"
    "}\n";

Json HostEdit(const char* action, std::vector<Json> at, std::vector<Json> to, const char* text,
              const char* form, const char* from = "") {
  Json edit = Edit(action, "host", std::move(at), text, form, from);
  edit["to"] = to;
  return edit;
}

TEST(RemediesTest, StreamsAreReadFromTheCallsAndTheirCallers) {
  const Json edit = HostEdit("insert_before", {Place(7, "main")},
                             {Place(2, "Send(int*, int*, CUstream_st*)"), Place(5, "main")},
                             "wait($at.stream, $to.stream);", "Use(int*)");
  EXPECT_EQ(Line(Applied(edit, kHost), 7),
            "  if (more) { wait(work, copies); Use<<<1, 32, 0, work>>>(b); }");
}

TEST(RemediesTest, TheHostWaitsBeforeTheLoopThatReads) {
  const Json edit = HostEdit("insert_before", {Place(6, "main")},
                             {Place(2, "Send(int*, int*, CUstream_st*)"), Place(5, "main")},
                             "cudaStreamSynchronize($to.stream);", "");
  EXPECT_TRUE(
      Line(Applied(edit, kHost), 6).starts_with("  cudaStreamSynchronize(copies); for (int i"));
}

TEST(RemediesTest, NodesOfALambdaAreThoseOfItsCallers) {
  const std::vector<Json> at = {Place(9, "main::{lambda(CUgraphNode_st**)#1}::operator()"),
                                Place(12, "main")};
  const std::vector<Json> to = {at[0], Place(11, "main")};
  const Json edit = HostEdit("insert_after", at, to, "edge($to.graph, $to.node, $at.node);",
                             "cudaGraphAddKernelNode");
  EXPECT_EQ(Line(Applied(edit, kHost), 12), "  add(&second); edge(graph, &first, &second);");
}

TEST(RemediesTest, NodesThatAFunctionReturnsAreItsResults) {
  const std::string host =
      "cudaGraphNode_t Add(cudaGraph_t g) {\n"
      "  cudaGraphNode_t node;\n"
      "  CK(cudaGraphAddKernelNode(&node, g, nullptr, 0, &params));\n"
      "  return node;\n"
      "}\n"
      "int main() {\n"
      "  cudaGraphNode_t first = Add(graph);\n"
      "  Add(graph);\n"
      "}\n";
  const Json edit =
      HostEdit("insert_after", {Place(3, "Add"), Place(8, "main")},
               {Place(3, "Add"), Place(7, "main")}, "edge($to.graph, $to.node, $at.node);", "");
  EXPECT_EQ(Line(Applied(edit, host), 8),
            "  { cudaGraphNode_t result_ = Add(graph); edge(graph, &first, &result_); }");
}

TEST(RemediesTest, AStreamThatIsOutOfSightIsWaitedForOnAllDevices) {
  const std::string host =
      "void Fill(int* p) {\n"
      "  for (int i = 0; i < 4; ++i) p[i] = i;\n"
      "}\n"
      "void Book(void* p) {\n"
      "  *(int*)p = 1;\n"
      "}\n"
      "int main() {\n"
      "  Use<<<1, 32, 0, work>>>(p);\n"
      "  Fill(p);\n"
      "  cudaLaunchHostFunc(other, Book, p);\n"
      "}\n";
  const auto wait = [&](int line, const char* function) {
    return Applied(HostEdit("insert_before", {Place(line, function)}, {Place(8, "main")},
                            "cudaStreamSynchronize($to.stream);", ""),
                   host);
  };
  const std::string made = Line(wait(2, "Fill"), 2);
  EXPECT_NE(made.find("cudaDeviceSynchronize"), std::string::npos);
  EXPECT_TRUE(made.ends_with("} for (int i = 0; i < 4; ++i) p[i] = i;")) << made;
  // A host function must not call CUDA: its stream waits.
  const std::string called = wait(5, "Book");
  EXPECT_EQ(Line(called, 5), Line(host, 5));
  EXPECT_NE(Line(called, 10).find("cudaEventRecord(order_, work)"), std::string::npos);
  EXPECT_NE(Line(called, 10).find("cudaStreamWaitEvent(other, order_, 0)"), std::string::npos);
}

TEST(RemediesTest, AStreamThatIsDeclaredElsewhereIsNotUsed) {
  const std::string host =
      "int main() {\n"
      "  std::thread proxy([=] {\n"
      "    cudaMemcpyAsync(to, from, 4, cudaMemcpyDefault, copies);\n"
      "  });\n"
      "  cudaStream_t work;\n"
      "  Use<<<1, 32, 0, work>>>(p);\n"
      "}\n";
  const Json edit = HostEdit("insert_before", {Place(3, "")}, {Place(6, "main")},
                             "wait($at.stream, $to.stream);", "cudaMemcpyAsync");
  EXPECT_NE(Applied(edit, host).find("work is not declared there"), std::string::npos);
}

TEST(RemediesTest, AFreeMovesBehindTheHostsNextWait) {
  const std::string host =
      "int main() {\n"
      "  if (early) {\n"
      "    CK(cudaFree(p));\n"
      "  }\n"
      "  Use<<<1, 32, 0, work>>>(p);\n"
      "  Go<<<1, 32, 0, other>>>(p);\n"
      "  %s\n"
      "}\n";
  const Json edit = HostEdit("move_after", {Place(3, "main")}, {Place(5, "main")},
                             "cudaStreamSynchronize($to.stream);", "cudaFree");
  const auto with = [&](const char* last) {
    std::string text = host;
    return text.replace(text.find("%s"), 2, last);
  };
  std::string made = Applied(edit, with("sync_all(2);"));
  EXPECT_EQ(Line(made, 3), "    ;");
  EXPECT_EQ(Line(made, 7), "  sync_all(2); if (early) CK(cudaFree(p));");
  made = Applied(edit, with("cudaMemcpyAsync(a, b, 4, kind, work);"));
  EXPECT_EQ(Line(made, 5),
            "  Use<<<1, 32, 0, work>>>(p); cudaStreamSynchronize(work); if (early) "
            "CK(cudaFree(p));");
}

TEST(RemediesTest, CallsOfTheDriverBringTheirHeader) {
  const Json edit = HostEdit("replace", {Place(13, "main")}, {}, "cuStreamWriteValue32($at.stream)",
                             "", "cudaMemsetAsync");
  EXPECT_EQ(Line(Applied(edit, kHost), 1), "#include <cuda.h>");
  Json behind = edit;
  behind["at"][0]["line"] = 14;
  const std::string host = std::string("#include <cuda.h>\n") + kHost;
  EXPECT_EQ(Line(Applied(behind, host), 2), Line(kHost, 1));
}

TEST(RemediesTest, ACopyOfAGraphIsWaitedForInTheLoopThatLaunches) {
  const std::string host =
      "int main() {\n"
      "  cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, to, from, 4, kind);\n"
      "  for (int e = 0; e < 3; ++e) {\n"
      "    for (int i = 0; i < 4; ++i) from[i] = e;\n"
      "    cudaGraphLaunch(exec, stream);\n"
      "  }\n"
      "}\n";
  const Json edit = HostEdit("insert_before", {Place(4, "main")}, {Place(2, "main")},
                             "cudaStreamSynchronize($to.stream);", "");
  EXPECT_NE(Line(Applied(edit, host), 4).find("cudaDeviceSynchronize"), std::string::npos);
  EXPECT_EQ(Line(Applied(edit, host), 3), Line(host, 3));
}

TEST(RemediesTest, ACallIsReplacedWithItsArguments) {
  const Json edit = HostEdit("replace", {Place(13, "main")}, {}, "write($at.stream, $at.0, $at.1)",
                             "", "cudaMemsetAsync");
  EXPECT_EQ(Line(Applied(edit, kHost), 13), "  CK(write(work, flag + 1, 1));");
}

TEST(RemediesTest, AStreamOfAnotherPassIsWaitedForOnAllDevices) {
  const std::string host =
      "int main() {\n"
      "  for (int d = 0; d < 3; ++d) {\n"
      "    cudaStream_t copies = apart ? inner[d] : edge[d];\n"
      "    Use<<<1, 32, 0, edge[d]>>>(p[d]);\n"
      "    CK(cudaMemcpyAsync(p[d + 1], q, 4, kind, copies));\n"
      "    Fill<<<1, 32, 0, next[d]>>>(p[d]);\n"
      "  }\n"
      "}\n";
  const char* text = "{ cudaStreamGetDevice($to.stream, &device_); wait($at.stream, $to.stream); }";
  const auto with = [&](int at, int to) {
    return Line(
        Applied(HostEdit("insert_before", {Place(at, "main")}, {Place(to, "main")}, text, ""),
                host),
        at);
  };
  // Different devices, but one stream in a pass of the loop; and what is given in the pass before.
  EXPECT_NE(with(5, 4).find("cudaDeviceSynchronize"), std::string::npos);
  EXPECT_NE(with(4, 6).find("cudaDeviceSynchronize"), std::string::npos);
  EXPECT_NE(with(6, 4).find("wait(next[d], edge[d])"), std::string::npos);
}

TEST(RemediesTest, AStreamOfALoopIsNotReadOutsideOfIt) {
  const Json edit = HostEdit("insert_before", {Place(13, "main")}, {Place(14, "main")},
                             "wait($at.stream, $to.stream);", "cudaMemsetAsync");
  EXPECT_NE(Line(Applied(edit, kHost), 13).find("cudaDeviceSynchronize"), std::string::npos);
}

}  // namespace
}  // namespace allranks::remedies
