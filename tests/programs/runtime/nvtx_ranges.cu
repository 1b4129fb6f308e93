// Ranges, marks and names by NVTX, of all kinds that its C interface has. The program does the same
// whether anybody listens or not. tests/cli/nvtx_test.cpp knows how long each range takes.
// run: | 300
// run heard: --stats | 300
// Usage: nvtx_ranges [short ranges]
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "check.h"

namespace {

__global__ void Work(int* out) { *out = 1; }

nvtxEventAttributes_t Event() {
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  return event;
}

// 100 us of virtual time, and what a call takes.
void Sleep() { usleep(100); }

}  // namespace

int main(int argc, char** argv) {
  const uint32_t short_ranges = Argument(argc, argv, 1, 300);
  nvtxNameOsThreadA(static_cast<uint32_t>(syscall(SYS_gettid)), "driver");

  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  nvtxNameCudaStreamA(stream, "compute");
  int* memory;
  CUDA_CHECK(cudaMalloc(&memory, sizeof(int)));

  // Pushed ranges: by text, by wide text, by attributes; the levels count from 0.
  const int outer = nvtxRangePushA("outer");
  const int inner = nvtxRangePushW(L"inner \u00e9");
  Work<<<1, 1, 0, stream>>>(memory);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaStreamSynchronize(stream));
  const int popped = nvtxRangePop();
  Sleep();
  nvtxEventAttributes_t event = Event();
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = "by attributes";
  nvtxRangePushEx(&event);
  nvtxMarkA("tick");
  nvtxRangePop();
  const int last = nvtxRangePop();
  const int none = nvtxRangePop();  // nothing is open
  REQUIRE(none < 0, "a pop without a push returns %d", none);
  const bool heard = outer >= 0;
  REQUIRE(!heard || (outer == 0 && inner == 1 && popped == 1 && last == 0), "levels %d %d %d %d",
          outer, inner, popped, last);

  // A domain of its own, with a registered string; its ranges and those above know nothing of each
  // other.
  nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(domain, "phase");
  for (int i = 0; i < 3; ++i) {
    nvtxDomainRangePushEx(domain, &event);
    Sleep();
    nvtxDomainRangePop(domain);
  }

  // Started ranges overlap, and end in any thread.
  const nvtxRangeId_t first = nvtxRangeStartA("first");
  const nvtxRangeId_t second = nvtxDomainRangeStartEx(domain, &event);
  nvtxRangeEnd(first);
  std::thread([&] {
    Sleep();
    nvtxDomainRangeEnd(domain, second);
    nvtxRangePushA("left open");
  }).join();

  // Many between two calls of CUDA.
  for (uint32_t i = 0; i < short_ranges; ++i) {
    nvtxRangePushA("short");
    nvtxRangePop();
  }

  // Resources: the stream again, by another name.
  nvtxResourceAttributes_t resource{};
  resource.version = NVTX_VERSION;
  resource.size = NVTX_RESOURCE_ATTRIB_STRUCT_SIZE;
  resource.identifierType = NVTX_RESOURCE_TYPE_CUDART_STREAM;
  resource.identifier.pValue = stream;
  resource.messageType = NVTX_MESSAGE_TYPE_ASCII;
  resource.message.ascii = "compute 2";
  nvtxDomainResourceDestroy(nvtxDomainResourceCreate(domain, &resource));
  nvtxDomainDestroy(domain);

  CUDA_CHECK(cudaFree(memory));
  nvtxRangePushA("after the last call");
  nvtxRangePop();
  std::printf("PASS nvtx_ranges: %s\n", heard ? "heard" : "not heard");
  return 0;
}
