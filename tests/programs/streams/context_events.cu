// cuCtxRecordEvent and cuCtxWaitEvent: an event for the work of all streams of a context, and a
// wait of all its later work, with the errors that CUDA documents.
//
// finds: api_error
#include "driver.h"

namespace {

constexpr unsigned kCount = 1 << 14;

// Long enough that whoever does not wait is seen.
__global__ void Fill(unsigned* to, unsigned value) {
  for (unsigned i = 0; i < kCount; ++i) to[i] = value;
}
// The last word is the last that Fill writes.
__global__ void Add(const unsigned* a, const unsigned* b, unsigned* sum) {
  *sum = a[kCount - 1] + b[kCount - 1];
}

CUcontext PrimaryOf(int device) {
  CUcontext context;
  DRIVER_CHECK(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
  return context;
}

cudaStream_t StreamOn(int device) {
  cudaStream_t stream;
  CUDA_CHECK(cudaSetDevice(device));
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

}  // namespace

int main() {
  RequireDevices(2);
  EnablePeer(1, 0);
  const auto record = DRIVER(cuCtxRecordEvent);
  const auto wait = DRIVER(cuCtxWaitEvent);
  CUcontext contexts[2] = {PrimaryOf(0), PrimaryOf(1)};
  unsigned* a = ZeroedOn<unsigned>(0, kCount);
  unsigned* b = ZeroedOn<unsigned>(0, kCount);
  unsigned* sums = ZeroedOn<unsigned>(1, 4);
  cudaStream_t first = StreamOn(0), second = StreamOn(0), early = StreamOn(1);
  CUevent events[2];
  for (int device = 0; device < 2; ++device) {
    CUDA_CHECK(cudaSetDevice(device));
    DRIVER_CHECK(DRIVER(cuEventCreate)(&events[device], CU_EVENT_DEFAULT));
  }
  DRIVER_CHECK(wait(contexts[1], events[0]));  // not recorded yet: no effect

  // The streams of device 1, of which one is made later, wait for both of device 0.
  CUDA_CHECK(cudaSetDevice(0));
  Fill<<<1, 1, 0, first>>>(a, 40);
  Fill<<<1, 1, 0, second>>>(b, 2);
  DRIVER_CHECK(record(contexts[0], events[0]));
  DRIVER_EXPECT(CUDA_ERROR_NOT_READY, DRIVER(cuEventQuery)(events[0]));
  DRIVER_CHECK(wait(contexts[1], events[0]));
  CUDA_CHECK(cudaSetDevice(1));
  Add<<<1, 1, 0, early>>>(a, b, sums);
  cudaStream_t late = StreamOn(1);
  Add<<<1, 1, 0, late>>>(a, b, sums + 1);
  Add<<<1, 1>>>(a, b, sums + 2);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  DRIVER_CHECK(DRIVER(cuEventQuery)(events[0]));
  for (int i = 0; i < 3; ++i)
    REQUIRE(Fetch(sums + i) == 42, "stream %d has got %u", i, Fetch(sums + i));

  // Streams of one context; what is recorded is over when the event is.
  CUDA_CHECK(cudaSetDevice(0));
  Fill<<<1, 1, 0, first>>>(a, 100);
  DRIVER_CHECK(record(contexts[0], events[0]));
  DRIVER_CHECK(wait(contexts[0], events[0]));
  Add<<<1, 1, 0, second>>>(a, b, b);
  CUDA_CHECK_LAUNCH();
  DRIVER_CHECK(record(contexts[0], events[0]));
  DRIVER_CHECK(DRIVER(cuEventSynchronize)(events[0]));
  REQUIRE(Fetch(b) == 102, "got %u", Fetch(b));

  DRIVER_EXPECT(CUDA_ERROR_INVALID_CONTEXT, record(nullptr, events[0]));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_CONTEXT, wait(nullptr, events[0]));
  const auto none = reinterpret_cast<CUcontext>(&contexts);
  DRIVER_EXPECT(CUDA_ERROR_INVALID_CONTEXT, record(none, events[0]));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_CONTEXT, wait(none, events[0]));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_HANDLE, record(contexts[0], nullptr));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_HANDLE, wait(contexts[0], nullptr));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_HANDLE, record(contexts[0], events[1]));
  DRIVER_CHECK(wait(contexts[0], events[1]));  // may be of another device

  // A stream that captures refuses both for its context, and loses its capture.
  const auto capture = [&](CUcontext context, CUevent event, bool waits) {
    cudaGraph_t graph;
    CUDA_CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal));
    DRIVER_EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                  waits ? wait(context, event) : record(context, event));
    CUDA_EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(first, &graph));
    cudaGetLastError();
  };
  capture(contexts[0], events[0], false);
  capture(contexts[0], events[0], true);
  capture(contexts[0], events[1], true);
  // An event of the capture does the same to a wait of another context, which no capture concerns
  // else.
  cudaGraph_t graph;
  CUDA_CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal));
  DRIVER_CHECK(record(contexts[1], events[1]));
  DRIVER_CHECK(wait(contexts[1], events[1]));
  CUDA_CHECK(cudaEventRecord(events[0], first));
  DRIVER_EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, wait(contexts[1], events[0]));
  CUDA_EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(first, &graph));
  cudaGetLastError();
  DRIVER_CHECK(record(contexts[0], events[0]));
  DRIVER_CHECK(wait(contexts[1], events[0]));
  CUDA_CHECK(cudaDeviceSynchronize());

  for (const CUevent event : events) DRIVER_CHECK(DRIVER(cuEventDestroy)(event));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_HANDLE, record(contexts[0], events[0]));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_HANDLE, wait(contexts[0], events[0]));
  for (int device = 0; device < 2; ++device)
    DRIVER_CHECK(DRIVER(cuDevicePrimaryCtxRelease)(device));
  for (const cudaStream_t stream : {first, second, early, late})
    CUDA_CHECK(cudaStreamDestroy(stream));
  for (unsigned* memory : {a, b, sums}) CUDA_CHECK(cudaFree(memory));
  std::printf("PASS context_events\n");
  return 0;
}
