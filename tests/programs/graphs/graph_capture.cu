// Graphs by capture: one stream, forked streams joined by events, all kinds of work, replays, and
// what a capture must refuse.
//
// finds: api_error
#include "check.h"

namespace {

constexpr int kCount = 1000;

__global__ void Fill(int* data, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) data[i] = value + i;
}
__global__ void Sum(const int* a, const int* b, int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) out[i] = a[i] + b[i];
}
extern __shared__ int g_shared[];
__global__ void UseShared(int* counter) {
  g_shared[threadIdx.x] = 1;
  *counter += g_shared[threadIdx.x];
}
__global__ void Increment(int* counter) { ++*counter; }

int g_calls = 0;
void CUDART_CB Count(void*) { ++g_calls; }

size_t Nodes(cudaGraph_t graph) {
  size_t count = 0;
  CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  return count;
}

cudaStreamCaptureStatus StatusOf(cudaStream_t stream) {
  cudaStreamCaptureStatus status;
  CUDA_CHECK(cudaStreamIsCapturing(stream, &status));
  return status;
}

}  // namespace

int main() {
  cudaStream_t a, b;
  CUDA_CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  int *x, *y, *z, *pinned;
  CUDA_CHECK(cudaMalloc(&x, kCount * sizeof(int)));
  CUDA_CHECK(cudaMalloc(&y, kCount * sizeof(int)));
  CUDA_CHECK(cudaMalloc(&z, kCount * sizeof(int)));
  CUDA_CHECK(cudaMallocHost(&pinned, kCount * sizeof(int)));
  int* counter = ZeroedOn<int>(0);
  int pageable[4] = {1, 2, 3, 4};
  cudaEvent_t fork, join;
  CUDA_CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CUDA_CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));

  // A diamond over two streams, with a copy, a set and a host function.
  REQUIRE(StatusOf(a) == cudaStreamCaptureStatusNone, "captures already");
  CUDA_CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  REQUIRE(StatusOf(a) == cudaStreamCaptureStatusActive, "does not capture");
  CUDA_CHECK(cudaMemsetAsync(z, 0, kCount * sizeof(int), a));
  CUDA_CHECK(cudaEventRecord(fork, a));
  CUDA_CHECK(cudaStreamWaitEvent(b, fork, 0));
  REQUIRE(StatusOf(b) == cudaStreamCaptureStatusActive, "the fork does not capture");
  Fill<<<(kCount + 127) / 128, 128, 0, a>>>(x, 1);
  Fill<<<(kCount + 127) / 128, 128, 0, b>>>(y, 100);
  CUDA_CHECK(cudaEventRecord(join, b));
  CUDA_CHECK(cudaStreamWaitEvent(a, join, 0));
  Sum<<<(kCount + 127) / 128, 128, 0, a>>>(x, y, z);
  CUDA_CHECK(cudaMemcpyAsync(pinned, z, kCount * sizeof(int), cudaMemcpyDeviceToHost, a));
  CUDA_CHECK(cudaLaunchHostFunc(a, Count, nullptr));
  Increment<<<1, 1, 0, a>>>(counter);
  CUDA_CHECK(cudaMemcpyAsync(x, pageable, sizeof pageable, cudaMemcpyHostToDevice, a));
  cudaStreamCaptureStatus status;
  unsigned long long id = 0;
  cudaGraph_t graph;
  const cudaGraphNode_t* tail;
  size_t tails;
  CUDA_CHECK(cudaStreamGetCaptureInfo(a, &status, &id, &graph, &tail, nullptr, &tails));
  REQUIRE(status == cudaStreamCaptureStatusActive && id != 0 && tails == 1, "capture info");
  cudaGraphNodeType type;
  CUDA_CHECK(cudaGraphNodeGetType(tail[0], &type));
  REQUIRE(type == cudaGraphNodeTypeMemcpy, "the last node is of type %d", int(type));
  cudaGraph_t ended;
  CUDA_CHECK(cudaStreamEndCapture(a, &ended));
  REQUIRE(ended == graph && Nodes(graph) == 8, "%zu nodes", Nodes(graph));
  size_t edges = 0;
  CUDA_CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  REQUIRE(edges == 8, "%zu edges", edges);
  REQUIRE(StatusOf(a) == cudaStreamCaptureStatusNone && StatusOf(b) == cudaStreamCaptureStatusNone,
          "still captures");
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(g_calls == 0 && Fetch(counter) == 0, "a capture must not execute");

  cudaGraphExec_t exec;
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CUDA_CHECK(cudaGraphDestroy(graph));
  CUDA_CHECK(cudaGraphUpload(exec, a));
  for (int launch = 1; launch <= 3; ++launch) {
    pageable[0] = 10 * launch;
    CUDA_CHECK(cudaMemset(x, 0, kCount * sizeof(int)));
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaGraphLaunch(exec, launch % 2 != 0 ? a : nullptr));
    CUDA_CHECK(cudaDeviceSynchronize());
    REQUIRE(g_calls == launch && Fetch(counter) == launch, "launch %d: %d calls, counter %d",
            launch, g_calls, Fetch(counter));
    for (int i = 0; i < kCount; ++i)
      REQUIRE(pinned[i] == 101 + 2 * i, "launch %d: element %d is %d", launch, i, pinned[i]);
    REQUIRE(Fetch(x) == 10 * launch && Fetch(x + 3) == 4, "pageable memory is read at the launch");
  }
  // Launches of one graph do not overlap, even in different streams.
  for (int i = 0; i < 6; ++i) CUDA_CHECK(cudaGraphLaunch(exec, i % 2 == 0 ? a : b));
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(Fetch(counter) == 9, "counter %d", Fetch(counter));

  // A graph launched into a capture is a child graph.
  CUDA_CHECK(cudaStreamBeginCapture(b, cudaStreamCaptureModeThreadLocal));
  CUDA_CHECK(cudaGraphLaunch(exec, b));
  Increment<<<1, 1, 0, b>>>(counter);
  CUDA_CHECK(cudaStreamEndCapture(b, &graph));
  REQUIRE(Nodes(graph) == 2, "%zu nodes", Nodes(graph));
  cudaGraphExec_t outer;
  CUDA_CHECK(cudaGraphInstantiate(&outer, graph, 0));
  CUDA_CHECK(cudaGraphLaunch(outer, b));
  CUDA_CHECK(cudaStreamSynchronize(b));
  REQUIRE(Fetch(counter) == 11 && g_calls == 10, "counter %d, %d calls", Fetch(counter), g_calls);
  CUDA_CHECK(cudaGraphExecDestroy(outer));
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  CUDA_CHECK(cudaGraphDestroy(graph));

  // An event recorded inside a graph, for the outside.
  cudaEvent_t outside;
  CUDA_CHECK(cudaEventCreate(&outside));
  CUDA_CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  Increment<<<1, 1, 0, a>>>(counter);
  CUDA_CHECK(cudaEventRecordWithFlags(outside, a, cudaEventRecordExternal));
  CUDA_CHECK(cudaStreamEndCapture(a, &graph));
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CUDA_CHECK(cudaGraphLaunch(exec, a));
  CUDA_CHECK(cudaEventSynchronize(outside));
  REQUIRE(Fetch(counter) == 12, "counter %d", Fetch(counter));
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  CUDA_CHECK(cudaGraphDestroy(graph));

  // A stream that joined may be destroyed before the capture ends. What it did is part of the graph.
  cudaStream_t helper;
  CUDA_CHECK(cudaStreamCreateWithFlags(&helper, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
  CUDA_CHECK(cudaEventRecord(fork, a));
  CUDA_CHECK(cudaStreamWaitEvent(helper, fork, 0));
  Increment<<<1, 1, 0, helper>>>(counter);
  CUDA_CHECK(cudaEventRecord(join, helper));
  CUDA_CHECK(cudaStreamDestroy(helper));
  REQUIRE(StatusOf(a) == cudaStreamCaptureStatusActive, "the capture goes on");
  CUDA_CHECK(cudaStreamWaitEvent(a, join, 0));
  CUDA_CHECK(cudaStreamEndCapture(a, &graph));
  REQUIRE(Nodes(graph) == 1, "%zu nodes", Nodes(graph));
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CUDA_CHECK(cudaGraphLaunch(exec, a));
  CUDA_CHECK(cudaStreamSynchronize(a));
  REQUIRE(Fetch(counter) == 13, "counter %d", Fetch(counter));
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  CUDA_CHECK(cudaGraphDestroy(graph));

  // A graph keeps what the attributes of its kernels allowed when it was made.
  constexpr int kLarge = 64 << 10, kSmall = 56 << 10;
  CUDA_CHECK(cudaFuncSetAttribute(UseShared, cudaFuncAttributeMaxDynamicSharedMemorySize, kLarge));
  CUDA_CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
  UseShared<<<1, 1, kLarge, a>>>(counter);
  CUDA_CHECK(cudaStreamEndCapture(a, &graph));
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CUDA_CHECK(cudaFuncSetAttribute(UseShared, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmall));
  CUDA_CHECK(cudaGraphLaunch(exec, a));
  CUDA_CHECK(cudaStreamSynchronize(a));
  REQUIRE(Fetch(counter) == 14, "counter %d", Fetch(counter));
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  CUDA_CHECK(cudaGraphDestroy(graph));

  // --- what must fail ---
  UseShared<<<1, 1, kLarge, a>>>(counter);
  CUDA_EXPECT(cudaErrorInvalidValue, cudaGetLastError());
  // Work of a destroyed stream that was never joined.
  CUDA_CHECK(cudaStreamCreateWithFlags(&helper, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
  CUDA_CHECK(cudaEventRecord(fork, a));
  CUDA_CHECK(cudaStreamWaitEvent(helper, fork, 0));
  Increment<<<1, 1, 0, helper>>>(counter);
  CUDA_CHECK(cudaStreamDestroy(helper));
  CUDA_EXPECT(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(a, &graph));

  CUDA_EXPECT(cudaErrorStreamCaptureUnsupported,
              cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
  CUDA_EXPECT(cudaErrorIllegalState, cudaStreamEndCapture(a, &graph));

  // Waiting for a stream that captures, and what remains of it.
  CUDA_CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  CUDA_EXPECT(cudaErrorIllegalState, cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  CUDA_EXPECT(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(a));
  REQUIRE(StatusOf(a) == cudaStreamCaptureStatusInvalidated, "must be invalid");
  CUDA_EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(a, &graph));
  REQUIRE(graph == nullptr && StatusOf(a) == cudaStreamCaptureStatusNone, "must be over");

  // Not joined.
  CUDA_CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  CUDA_CHECK(cudaEventRecord(fork, a));
  CUDA_CHECK(cudaStreamWaitEvent(b, fork, 0));
  Increment<<<1, 1, 0, b>>>(counter);
  CUDA_EXPECT(cudaErrorStreamCaptureUnmatched, cudaStreamEndCapture(b, &graph));
  CUDA_EXPECT(cudaErrorCapturedEvent, cudaEventQuery(fork));
  CUDA_EXPECT(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(a, &graph));

  // Two captures cannot meet; a capture cannot wait for work outside of it.
  CUDA_CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  CUDA_CHECK(cudaStreamBeginCapture(b, cudaStreamCaptureModeGlobal));
  CUDA_CHECK(cudaEventRecord(fork, a));
  CUDA_EXPECT(cudaErrorStreamCaptureMerge, cudaStreamWaitEvent(b, fork, 0));
  CUDA_EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(a, &graph));
  CUDA_EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(b, &graph));
  CUDA_CHECK(cudaEventRecord(join, b));
  CUDA_CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  CUDA_EXPECT(cudaErrorStreamCaptureIsolation, cudaStreamWaitEvent(a, join, 0));
  CUDA_EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(a, &graph));

  // The legacy stream would wait for a capturing blocking stream.
  cudaStream_t blocking;
  CUDA_CHECK(cudaStreamCreate(&blocking));
  CUDA_CHECK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
  Increment<<<1, 1>>>(counter);
  CUDA_EXPECT(cudaErrorStreamCaptureImplicit, cudaGetLastError());
  CUDA_EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(blocking, &graph));

  // Calls that synchronise by themselves.
  CUDA_CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  CUDA_EXPECT(cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize());
  CUDA_EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(a, &graph));
  CUDA_CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
  void* more;
  CUDA_EXPECT(cudaErrorStreamCaptureUnsupported, cudaMalloc(&more, 16));
  CUDA_EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(a, &graph));
  CUDA_CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
  CUDA_CHECK(cudaMalloc(&more, 16));
  CUDA_CHECK(cudaStreamEndCapture(a, &graph));
  REQUIRE(Nodes(graph) == 0, "an empty capture is an empty graph");
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CUDA_CHECK(cudaGraphLaunch(exec, a));
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(Fetch(counter) == 14, "nothing that failed may have run: %d", Fetch(counter));
  std::printf("PASS graph_capture\n");
  return 0;
}
