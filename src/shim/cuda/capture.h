// Stream capture: while a stream captures, work given to it becomes nodes of a graph. Every entry
// point that gives work to a stream asks Capturing() first and hands the work over here;
// ResolveStream, which all others use, refuses a stream that captures.
#pragma once

#include <unordered_set>
#include <vector>

#include "shim/cuda/driver.h"

namespace allranks::shim {

struct Graph;
struct GraphNode;
struct GraphExec;

struct Capture {
  Graph* graph = nullptr;
  bool own_graph = true;  // else the caller's (cuStreamBeginCaptureToGraph)
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  unsigned long long id = 0;
  pthread_t thread{};
  Stream* origin = nullptr;
  bool invalid = false;
  std::vector<Stream*> streams;
  std::unordered_set<GraphNode*> made;
};

// The stream if it captures, else nullptr.
Stream* Capturing(CUstream stream, bool per_thread);

CUresult CaptureLaunch(Stream* stream, const CUDA_KERNEL_NODE_PARAMS& params,
                       const CUlaunchAttribute* attributes, unsigned count);
CUresult CaptureCopy(Stream* stream, const Region& region);
CUresult CaptureMemset(Stream* stream, const wire::Memset& set);
CUresult CaptureHost(Stream* stream, CUhostFn function, void* data);
CUresult CaptureValues(Stream* stream, unsigned count, const CUstreamBatchMemOpParams* params);
CUresult CaptureGraph(Stream* stream, GraphExec* exec);
CUresult CaptureRecord(Stream* stream, Event* event, bool external);

// A wait for an event by a stream, if either of the two has to do with a capture: true, and
// *result. Else false.
bool CaptureWait(CUstream stream, bool per_thread, Event* event, bool external, CUresult* result);

// For ResolveStream: what an ordinary use of this stream (nullptr: the legacy one of `device`)
// means for captures under way.
CUresult CheckOrdinaryUse(Stream* stream, int device);
// For calls that synchronise implicitly or change the context (allocations, cuCtxSynchronize):
// refused while a capture is under way that the calling thread must respect.
CUresult CheckUnsafeCall();
CUresult CheckEventUse(const Event* event);
// For work of a whole context: refused while a stream of the device captures, or while the capture
// of number `captured` (0: none) is under way. Such captures become invalid.
CUresult CheckContextUse(int device, std::uint64_t captured);
// The stream is about to be destroyed.
void LeaveCapture(Stream* stream);

}  // namespace allranks::shim
