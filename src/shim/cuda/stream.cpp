// Streams and events.
#include <string.h>

#include "shim/cuda/capture.h"
#include "shim/cuda/driver.h"

namespace allranks::shim {
namespace {

// The thread's own default streams, made at first use; the node keeps them until the process ends.
thread_local Stream* t_streams[kMaxDevices];

}  // namespace

CUresult LocateStream(CUstream handle, bool per_thread, wire::StreamRef* ref, Stream** found) {
  *found = nullptr;
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    Context* context;
    const CUresult ready = Current(&context);
    if (ready != CUDA_SUCCESS) return ready;
    ref->device = context->device;
    ref->stream = 0;
    if (handle == CU_STREAM_LEGACY || (handle == nullptr && !per_thread)) return CUDA_SUCCESS;
    Stream*& own = t_streams[context->device];
    if (own == nullptr) {
      wire::CreateStream create;
      create.device = context->device;
      wire::CreateStreamReply reply;
      const int status = Call(create, &reply);
      if (status != 0) return Result(status);
      own = new Stream;
      own->id = reply.stream;
      own->device = context->device;
    }
    *found = own;
  } else {
    *found = TheDriver().streams.Find(handle);
    if (*found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  }
  ref->device = (*found)->device;
  ref->stream = (*found)->id;
  return CUDA_SUCCESS;
}

CUresult ResolveStream(CUstream handle, bool per_thread, wire::StreamRef* ref) {
  Stream* found;
  const CUresult result = LocateStream(handle, per_thread, ref, &found);
  return result == CUDA_SUCCESS ? CheckOrdinaryUse(found, ref->device) : result;
}

}  // namespace allranks::shim

using namespace allranks::shim;
namespace wire = allranks::wire;

// Unlike ar_stream_number this makes no stream and disturbs no capture.
unsigned long long allranks::shim::ar_number_of_stream(void* handle) {
  const Stream* stream = TheDriver().streams.Find(static_cast<CUstream>(handle));
  return stream == nullptr ? 0 : stream->id;
}

CUresult cuStreamCreateWithPriority(CUstream* handle, unsigned flags, int priority) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  if (handle == nullptr || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  wire::CreateStream create;
  create.device = context->device;
  create.non_blocking = flags != 0;
  create.priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
  wire::CreateStreamReply reply;
  const int status = Call(create, &reply);
  if (status != 0) return Result(status);
  auto* stream = new Stream;
  stream->id = reply.stream;
  stream->device = context->device;
  stream->flags = flags;
  stream->priority = create.priority;
  *handle = reinterpret_cast<CUstream>(TheDriver().streams.Add(stream));
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamDestroy(CUstream handle) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  Stream* stream = TheDriver().streams.Find(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  TheDriver().streams.Remove(stream);
  LeaveCapture(stream);
  wire::DestroyStream destroy;
  destroy.stream = stream->id;
  delete stream;
  return Result(Call(destroy));
}

namespace {

template <class T>
CUresult AskStream(bool per_thread, CUstream stream) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  T request;
  const CUresult resolved = ResolveStream(stream, per_thread, &request.stream);
  return resolved == CUDA_SUCCESS ? Result(Call(request)) : resolved;
}

CUresult Do_cuStreamQuery(bool per_thread, CUstream stream) {
  return AskStream<wire::StreamQuery>(per_thread, stream);
}
CUresult Do_cuStreamSynchronize(bool per_thread, CUstream stream) {
  return AskStream<wire::StreamSync>(per_thread, stream);
}

CUresult Do_cuStreamWaitEvent(bool per_thread, CUstream stream, CUevent handle, unsigned flags) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (flags > CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  Event* event = TheDriver().events.Find(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUresult captured;
  if (CaptureWait(stream, per_thread, event, flags == CU_EVENT_WAIT_EXTERNAL, &captured))
    return captured;
  wire::WaitEvent request;
  const CUresult resolved = ResolveStream(stream, per_thread, &request.stream);
  if (resolved != CUDA_SUCCESS) return resolved;
  request.event = event->id;
  return Result(Call(request));
}

CUresult Do_cuStreamGetFlags(bool, CUstream handle, unsigned* flags) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  wire::StreamRef ref;
  Stream* stream;
  const CUresult resolved = LocateStream(handle, false, &ref, &stream);
  if (resolved != CUDA_SUCCESS) return resolved;
  *flags = stream != nullptr ? stream->flags : 0;
  return CUDA_SUCCESS;
}

CUresult Do_cuStreamGetPriority(bool, CUstream handle, int* priority) {
  unsigned flags;
  const CUresult result = Do_cuStreamGetFlags(false, handle, &flags);
  if (result != CUDA_SUCCESS) return result;
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Stream* stream = TheDriver().streams.Find(handle);
  *priority = stream != nullptr ? stream->priority : 0;
  return CUDA_SUCCESS;
}

CUresult Do_cuStreamGetId(bool per_thread, CUstream handle, unsigned long long* id) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  wire::StreamRef ref;
  Stream* stream;
  const CUresult resolved = LocateStream(handle, per_thread, &ref, &stream);
  if (resolved == CUDA_SUCCESS) {
    *id = ref.stream != 0 ? ref.stream : (1ull << 63) + static_cast<unsigned>(ref.device);
  }
  return resolved;
}

CUresult Do_cuStreamGetDevice(bool per_thread, CUstream handle, CUdevice* device) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  wire::StreamRef ref;
  Stream* stream;
  const CUresult resolved = LocateStream(handle, per_thread, &ref, &stream);
  if (resolved == CUDA_SUCCESS) *device = ref.device;
  return resolved;
}

CUresult Do_cuStreamGetCtx(bool per_thread, CUstream handle, CUcontext* context) {
  CUdevice device = 0;
  const CUresult result = Do_cuStreamGetDevice(per_thread, handle, &device);
  if (result == CUDA_SUCCESS && context != nullptr) {
    *context = reinterpret_cast<CUcontext>(&TheDriver().primary[device]);
  }
  return result;
}

CUresult Do_cuEventRecordWithFlags(bool per_thread, CUevent handle, CUstream stream,
                                   unsigned flags) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (flags > CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  Event* event = TheDriver().events.Find(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (Stream* capturing = Capturing(stream, per_thread)) {
    if (capturing->device != event->device && !event->imported) return CUDA_ERROR_INVALID_HANDLE;
    return CaptureRecord(capturing, event, flags == CU_EVENT_RECORD_EXTERNAL);
  }
  wire::RecordEvent request;
  const CUresult resolved = ResolveStream(stream, per_thread, &request.stream);
  if (resolved != CUDA_SUCCESS) return resolved;
  if (request.stream.device != event->device && !event->imported) return CUDA_ERROR_INVALID_HANDLE;
  request.event = event->id;
  event->capture = 0;
  event->tail.clear();
  return Result(Call(request));
}

CUresult Do_cuEventRecord(bool per_thread, CUevent event, CUstream stream) {
  return Do_cuEventRecordWithFlags(per_thread, event, stream, CU_EVENT_RECORD_DEFAULT);
}

}  // namespace

ALLRANKS_BOTH_STREAMS(cuStreamQuery, _ptsz, (CUstream stream), stream)
ALLRANKS_BOTH_STREAMS(cuStreamSynchronize, _ptsz, (CUstream stream), stream)
ALLRANKS_BOTH_STREAMS(cuStreamWaitEvent, _ptsz, (CUstream stream, CUevent event, unsigned flags),
                      stream, event, flags)
ALLRANKS_BOTH_STREAMS(cuStreamGetFlags, _ptsz, (CUstream stream, unsigned* flags), stream, flags)
ALLRANKS_BOTH_STREAMS(cuStreamGetPriority, _ptsz, (CUstream stream, int* priority), stream,
                      priority)
ALLRANKS_BOTH_STREAMS(cuStreamGetId, _ptsz, (CUstream stream, unsigned long long* id), stream, id)
ALLRANKS_BOTH_STREAMS(cuStreamGetDevice, _ptsz, (CUstream stream, CUdevice* device), stream, device)
ALLRANKS_BOTH_STREAMS(cuStreamGetCtx, _ptsz, (CUstream stream, CUcontext* context), stream, context)
ALLRANKS_BOTH_STREAMS(cuEventRecord, _ptsz, (CUevent event, CUstream stream), event, stream)
ALLRANKS_BOTH_STREAMS(cuEventRecordWithFlags, _ptsz,
                      (CUevent event, CUstream stream, unsigned flags), event, stream, flags)

CUresult cuEventCreate(CUevent* handle, unsigned flags) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  if (handle == nullptr || flags > 7) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  wire::CreateEvent create;
  create.device = context->device;
  create.timing = (flags & CU_EVENT_DISABLE_TIMING) == 0;
  wire::CreateEventReply reply;
  const int status = Call(create, &reply);
  if (status != 0) return Result(status);
  auto* event = new Event;
  event->id = reply.event;
  event->device = context->device;
  event->flags = flags;
  *handle = reinterpret_cast<CUevent>(TheDriver().events.Add(event));
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent handle) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  Event* event = TheDriver().events.Find(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  TheDriver().events.Remove(event);
  wire::DestroyEvent destroy;
  destroy.event = event->id;
  delete event;
  return Result(Call(destroy));
}

CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event_handle) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  const Event* event = TheDriver().events.Find(event_handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (handle == nullptr || (event->flags & CU_EVENT_INTERPROCESS) == 0)
    return CUDA_ERROR_INVALID_VALUE;
  wire::ExportEvent request;
  request.event = event->id;
  wire::IpcExportReply reply;
  const int status = Call(request, &reply);
  static_assert(sizeof *handle == sizeof reply.handle);
  memcpy(handle, reply.handle.data(), sizeof *handle);
  return Result(status);
}

CUresult cuIpcOpenEventHandle(CUevent* event_handle, CUipcEventHandle handle) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  if (event_handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  wire::OpenEvent request;
  memcpy(request.handle.data(), &handle, sizeof handle);
  wire::OpenEventReply reply;
  const int status = Call(request, &reply);
  if (status != 0) return Result(status);
  auto* event = new Event;
  event->id = reply.event;
  event->device = reply.device;
  event->flags = CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  event->imported = true;
  *event_handle = reinterpret_cast<CUevent>(TheDriver().events.Add(event));
  return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent handle) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  const Event* event = TheDriver().events.Find(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult captured = CheckEventUse(event);
  if (captured != CUDA_SUCCESS) return captured;
  wire::EventQuery request;
  request.event = event->id;
  return Result(Call(request));
}

CUresult cuEventSynchronize(CUevent handle) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  const Event* event = TheDriver().events.Find(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult captured = CheckEventUse(event);
  if (captured != CUDA_SUCCESS) return captured;
  wire::EventSync request;
  request.event = event->id;
  return Result(Call(request));
}

namespace {

CUresult Elapsed(float* milliseconds, CUevent start_handle, CUevent end_handle) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Event* start = TheDriver().events.Find(start_handle);
  const Event* end = TheDriver().events.Find(end_handle);
  if (start == nullptr || end == nullptr ||
      ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  wire::EventElapsed request;
  request.start = start->id;
  request.end = end->id;
  wire::EventElapsedReply reply;
  const int status = Call(request, &reply);
  if (status == 0) *milliseconds = static_cast<float>(static_cast<double>(reply.ps) / 1e9);
  return Result(status);
}

}  // namespace

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return Elapsed(milliseconds, start, end);
}
#undef cuEventElapsedTime
ALLRANKS_SYMBOL(CUresult, cuEventElapsedTime, (float* milliseconds, CUevent start, CUevent end)) {
  return Elapsed(milliseconds, start, end);
}
