// The public symbols of the driver API: each calls the function that does the work and reports its
// error to the node, with its arguments. The node decides whether it is one of the program's: not
// if the runtime has called, which reports by itself, nor if a library has
// (server/error_calls.cpp).
#define __CUDA_API_VERSION_INTERNAL  // all versions of all functions
#include "shim/abi.h"
#include "shim/cuda/names.h"

namespace allranks::shim {

template <>
inline bool DescribeStruct(const CUlaunchConfig& config, ArgumentText* text,
                           std::string_view name) {
  AddName(text, name);
  text->Add("{grid %ux%ux%u, block %ux%ux%u, %u bytes of shared memory}", config.gridDimX,
            config.gridDimY, config.gridDimZ, config.blockDimX, config.blockDimY, config.blockDimZ,
            config.sharedMemBytes);
  return true;
}
template <>
inline bool DescribeStruct(const CUDA_MEMCPY2D& copy, ArgumentText* text, std::string_view name) {
  AddName(text, name);
  text->Add("{%zux%zu bytes, pitches %zu and %zu}", copy.WidthInBytes, copy.Height, copy.srcPitch,
            copy.dstPitch);
  return true;
}
template <>
inline bool DescribeStruct(const CUDA_MEMCPY3D& copy, ArgumentText* text, std::string_view name) {
  AddName(text, name);
  text->Add("{%zux%zux%zu bytes, pitches %zu and %zu}", copy.WidthInBytes, copy.Height, copy.Depth,
            copy.srcPitch, copy.dstPitch);
  return true;
}
template <>
inline bool DescribeStruct(const CUmemAllocationProp& properties, ArgumentText* text,
                           std::string_view name) {
  AddName(text, name);
  text->Add("{type %d, location type %d, id %d}", static_cast<int>(properties.type),
            static_cast<int>(properties.location.type), properties.location.id);
  return true;
}
template <>
inline bool DescribeStruct(const CUmemAccessDesc& access, ArgumentText* text,
                           std::string_view name) {
  AddName(text, name);
  text->Add("{location type %d, id %d, flags %d}", static_cast<int>(access.location.type),
            access.location.id, static_cast<int>(access.flags));
  return true;
}

namespace {

// Not ready is an answer. The node wants to know of errors where it wants stacks.
bool IsWanted(CUresult result) {
  std::uint64_t frame;
  return result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY && ar_stack(&frame, 1) != 0;
}

void Report(CUresult result, const char* arguments) {
  const char *name = nullptr, *text = nullptr;
  wire::ApiError message;
  message.error = static_cast<std::int32_t>(result);
  if (cuGetErrorName(result, &name) == CUDA_SUCCESS) message.name = name;
  if (cuGetErrorString(result, &text) == CUDA_SUCCESS) message.text = text;
  message.arguments = arguments;
  wire::Empty reply;
  Call(message, &reply);
}

}  // namespace
}  // namespace allranks::shim

// The stubs' answer is an error of the program's call, too.
extern "C" int ar_not_supported(const char* name, int error, std::atomic<bool>* said);
extern "C" __attribute__((visibility("hidden"))) int cuArNotSupported(const char* name, int error,
                                                                      std::atomic<bool>* said) {
  const int result = ar_not_supported(name, error, said);
  if (allranks::shim::IsWanted(static_cast<CUresult>(result)))
    allranks::shim::Report(static_cast<CUresult>(result), "");
  return result;
}

// Functions that CUDA has deprecated have public symbols, too.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define ALLRANKS_CALL(name, ...)                                                 \
  ALLRANKS_EXPORT CUresult Public_##name(                                        \
      ALLRANKS_PARAMETERS(name __VA_OPT__(, ) __VA_ARGS__)) __asm__(#name);      \
  CUresult Public_##name(ALLRANKS_PARAMETERS(name __VA_OPT__(, ) __VA_ARGS__)) { \
    const CUresult ar_result = name(__VA_ARGS__);                                \
    if (::allranks::shim::IsWanted(ar_result)) {                                 \
      char ar_text[256];                                                         \
      ::allranks::shim::WriteArguments(ar_text, sizeof ar_text,                  \
                                       #__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__); \
      ::allranks::shim::Report(ar_result, ar_text);                              \
    }                                                                            \
    return ar_result;                                                            \
  }
#include "shim/cuda/calls.def"
#undef ALLRANKS_CALL
