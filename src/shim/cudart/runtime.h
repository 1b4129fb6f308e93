// The inside of libcudart.so.13: each thread's device and last error, what nvcc's code registered
// before main, and the translation of the driver's answers.
#pragma once

#include <cstddef>

#include "shim/cudart/names.h"

#define ALLRANKS_EXPORT extern "C" __attribute__((visibility("default")))

namespace allranks::shim {

// Notes an error as the thread's last one, unless it is none or only "not ready".
cudaError_t Note(cudaError_t error);
inline cudaError_t Note(CUresult result) { return Note(static_cast<cudaError_t>(result)); }

// What the function that the program has called was given, for a report of its error: while this
// lives, a function that writes it as text. Only an error calls it. calls.cpp has one for each
// public function.
class Arguments {
 public:
  template <class F>
  explicit Arguments(const F& format)
      : before_(current_),
        format_(&format),
        write_([](const void* f, char* text, std::size_t size) {
          (*static_cast<const F*>(f))(text, size);
        }) {
    if (before_ == nullptr) current_ = this;  // the outermost is the program's call
  }
  ~Arguments() { current_ = before_; }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // Empty: nothing is known.
  static void Write(char* text, std::size_t size) {
    text[0] = '\0';
    if (current_ != nullptr) current_->write_(current_->format_, text, size);
  }

 private:
  static thread_local Arguments* current_;
  Arguments* before_;
  const void* format_;
  void (*write_)(const void*, char*, std::size_t);
};

// Initialises the driver.
CUresult InitDriver();
// The same, and makes the primary context of the thread's device current if it has none.
CUresult Enter();
// The thread's device.
int CurrentDevice();

// The kernel behind a host function's address (or a cudaKernel_t passed as one); nullptr if
// unknown.
CUkernel FindKernel(const void* host_function);
// The other way round; the kernel itself if no host function is known for it.
const void* FindHostFunction(const void* kernel);
// A kernel that was not registered by nvcc's code but may be passed as one.
void RememberKernel(CUkernel kernel);
// The variable behind a host variable's address, on the current device.
cudaError_t FindVariable(const void* host_variable, CUdeviceptr* address, std::size_t* size);

// A failed look-up of a kernel is another error in this API.
cudaError_t KernelError(CUresult result);

inline CUdeviceptr Ptr(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

}  // namespace allranks::shim

// `return` with the error noted if a driver call fails.
#define ALLRANKS_ENTER()                                                 \
  do {                                                                   \
    const CUresult entered = ::allranks::shim::Enter();                  \
    if (entered != CUDA_SUCCESS) return ::allranks::shim::Note(entered); \
  } while (false)

// The function itself, and the flavour for which stream 0 is the thread's own.
#define ALLRANKS_STREAM_CALL(name, parameters, call, call_per_thread) \
  cudaError_t name parameters {                                       \
    ALLRANKS_ENTER();                                                 \
    return Note(call);                                                \
  }                                                                   \
  ALLRANKS_SYMBOL(cudaError_t, name##_ptsz, parameters) {             \
    ALLRANKS_ENTER();                                                 \
    return Note(call_per_thread);                                     \
  }
