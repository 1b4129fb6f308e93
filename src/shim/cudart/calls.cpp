// The public symbols of the runtime API: each calls the function that does the work, and has its
// arguments at hand for the report of an error (Note in runtime.cpp).
#define __CUDA_API_VERSION_INTERNAL  // all versions of all functions
#include "shim/cudart/runtime.h"

namespace allranks::shim {

template <>
inline bool DescribeStruct(const dim3& size, ArgumentText* text, std::string_view name) {
  AddName(text, name);
  text->Add("%ux%ux%u", size.x, size.y, size.z);
  return true;
}
template <>
inline bool DescribeStruct(const cudaExtent& extent, ArgumentText* text, std::string_view name) {
  AddName(text, name);
  text->Add("%zux%zux%zu", extent.width, extent.height, extent.depth);
  return true;
}
template <>
inline bool DescribeStruct(const cudaPitchedPtr& memory, ArgumentText* text,
                           std::string_view name) {
  AddName(text, name);
  text->Add("{%p, pitch %zu, %zux%zu}", memory.ptr, memory.pitch, memory.xsize, memory.ysize);
  return true;
}
template <>
inline bool DescribeStruct(const cudaMemcpy3DParms& copy, ArgumentText* text,
                           std::string_view name) {
  AddName(text, name);
  text->Add("{%zux%zux%zu, kind %d}", copy.extent.width, copy.extent.height, copy.extent.depth,
            static_cast<int>(copy.kind));
  return true;
}
template <>
inline bool DescribeStruct(const cudaMemLocation& location, ArgumentText* text,
                           std::string_view name) {
  AddName(text, name);
  text->Add("{type %d, id %d}", static_cast<int>(location.type), location.id);
  return true;
}

}  // namespace allranks::shim

// Functions that CUDA has deprecated have public symbols, too.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define ALLRANKS_CALL(name, ...)                                                                   \
  ALLRANKS_EXPORT cudaError_t Public_##name(                                                       \
      ALLRANKS_PARAMETERS(name __VA_OPT__(, ) __VA_ARGS__)) __asm__(#name);                        \
  cudaError_t Public_##name(ALLRANKS_PARAMETERS(name __VA_OPT__(, ) __VA_ARGS__)) {                \
    const auto ar_write = [&](char* ar_text, std::size_t ar_size) {                                \
      ::allranks::shim::WriteArguments(ar_text, ar_size, #__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__); \
    };                                                                                             \
    const ::allranks::shim::Arguments ar_given(ar_write);                                          \
    return name(__VA_ARGS__);                                                                      \
  }
#include "shim/cudart/calls.def"
#undef ALLRANKS_CALL
