// Functions of the program that streams call. One thread of the process runs them all, one after
// the other: it is started at first use, asks the node for the next one, and its next question says
// that the function has returned. The node sees it wait, so it never holds up virtual time.
#include <signal.h>

#include "shim/cuda/capture.h"
#include "shim/cuda/driver.h"

namespace allranks::shim {
namespace {

thread_local bool t_in_host_function = false;

using Trampoline = void (*)(void* argument, CUresult error);

void* Serve(void*) {
  wire::NextHostCall next;
  for (;;) {
    wire::NextHostCallReply reply;
    if (Call(next, &reply) != 0) return nullptr;
    const auto trampoline = reinterpret_cast<Trampoline>(reply.function.function);
    trampoline(reinterpret_cast<void*>(reply.function.argument), Result(reply.error));
    next.done = reply.call;
  }
}

// A function as it was given; freed when it has run.
struct OneCall {
  CUhostFn function = nullptr;
  CUstreamCallback callback = nullptr;
  CUstream stream = nullptr;
  void* data = nullptr;
};

void RunOneCall(void* argument, CUresult error) {
  auto* call = static_cast<OneCall*>(argument);
  t_in_host_function = true;
  if (call->callback != nullptr) {
    call->callback(call->stream, error, call->data);
  } else {
    call->function(call->data);
  }
  t_in_host_function = false;
  delete call;
}

CUresult Enqueue(bool per_thread, CUstream stream, OneCall* call, bool after_error) {
  if (Stream* capturing = Capturing(stream, per_thread)) {
    const CUhostFn function = call->function;
    void* data = call->data;
    delete call;
    // A callback says in its contract that it cannot be captured.
    if (function == nullptr) return CheckOrdinaryUse(capturing, capturing->device);
    return CaptureHost(capturing, function, data);
  }
  wire::CallHost request;
  CUresult result = ResolveStream(stream, per_thread, &request.stream);
  if (result == CUDA_SUCCESS) result = StartHostThread();
  if (result == CUDA_SUCCESS) {
    request.function.function = reinterpret_cast<std::uint64_t>(&RunOneCall);
    request.function.argument = reinterpret_cast<std::uint64_t>(call);
    request.function.after_error = after_error;
    result = Result(Call(request));
  }
  if (result != CUDA_SUCCESS) delete call;
  return result;
}

}  // namespace

bool InHostFunction() { return t_in_host_function; }

void RunHostFunction(CUhostFn function, void* data) {
  t_in_host_function = true;
  function(data);
  t_in_host_function = false;
}

CUresult StartHostThread() {
  static Mutex mutex;
  static bool started = false;
  Hold hold(mutex);
  if (started) return CUDA_SUCCESS;
  // The program's signals are for the program's threads; faults must still reach this one.
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGTRAP, SIGFPE, SIGILL}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  pthread_t thread;
  const int error = pthread_create(&thread, nullptr, Serve, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return CUDA_ERROR_OPERATING_SYSTEM;
  pthread_detach(thread);
  started = true;
  return CUDA_SUCCESS;
}

}  // namespace allranks::shim

using namespace allranks::shim;

namespace {

CUresult Do_cuLaunchHostFunc(bool per_thread, CUstream stream, CUhostFn function, void* data) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* call = new OneCall;
  call->function = function;
  call->data = data;
  return Enqueue(per_thread, stream, call, false);
}

CUresult Do_cuStreamAddCallback(bool per_thread, CUstream stream, CUstreamCallback callback,
                                void* data, unsigned flags) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  auto* call = new OneCall;
  call->callback = callback;
  call->stream = stream;
  call->data = data;
  return Enqueue(per_thread, stream, call, true);
}

}  // namespace

ALLRANKS_BOTH_STREAMS(cuLaunchHostFunc, _ptsz, (CUstream stream, CUhostFn function, void* data),
                      stream, function, data)
ALLRANKS_BOTH_STREAMS(cuStreamAddCallback, _ptsz,
                      (CUstream stream, CUstreamCallback callback, void* data, unsigned flags),
                      stream, callback, data, flags)
