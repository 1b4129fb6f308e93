// cuLink: two PTX texts linked at run time, a link that fails and says why, and a module that lacks
// a function.
//
// finds: api_error
#include <cstring>
#include <string>

#include "driver.h"

namespace {

constexpr const char* kHeader = ".version 8.0\n.target sm_90\n.address_size 64\n";
constexpr const char* kExternals = R"(
.extern .func (.param .b32 result) triple(.param .b32 x);
.extern .global .align 4 .u32 base;
)";
constexpr const char* kUser = R"(
.visible .entry run(.param .u64 out, .param .u32 x) {
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [x];
  {
    .param .b32 argument;
    .param .b32 value;
    st.param.b32 [argument], %r1;
    call.uni (value), triple, (argument);
    ld.param.b32 %r2, [value];
  }
  ld.global.u32 %r3, [base];
  add.u32 %r2, %r2, %r3;
  cvta.to.global.u64 %rd1, %rd1;
  st.global.u32 [%rd1], %r2;
  ret;
}
)";
constexpr const char* kLibrary = R"(
.visible .global .align 4 .u32 base = 1000;
.visible .func (.param .b32 result) triple(.param .b32 x) {
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [x];
  mul.lo.u32 %r2, %r1, 3;
  st.param.b32 [result], %r2;
  ret;
}
)";

std::string Text(const std::string& body) { return kHeader + body; }
const std::string kKernel = std::string(kExternals) + kUser;

struct Link {
  CUlinkState state;
  char log[512] = "";
  CUjit_option options[2] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[2] = {log, reinterpret_cast<void*>(sizeof log)};

  Link() { DRIVER_CHECK(DRIVER(cuLinkCreate)(2, options, values, &state)); }
  ~Link() { DRIVER_CHECK(DRIVER(cuLinkDestroy)(state)); }
  void Add(const std::string& body, const char* name) {
    std::string text = Text(body);
    DRIVER_CHECK(DRIVER(cuLinkAddData)(state, CU_JIT_INPUT_PTX, text.data(), text.size() + 1, name,
                                       0, nullptr, nullptr));
  }
  CUresult Complete(void** image, size_t* size) {
    return DRIVER(cuLinkComplete)(state, image, size);
  }
};

}  // namespace

int main() {
  CUDA_CHECK(cudaFree(nullptr));
  unsigned* out = ZeroedOn<unsigned>(0);
  void* image = nullptr;
  size_t size = 0;
  {
    Link link;
    link.Add(kKernel, "kernel.ptx");
    link.Add(kLibrary, "library.ptx");
    DRIVER_CHECK(link.Complete(&image, &size));
    REQUIRE(size > 0, "an empty image");
    CUmodule module;
    DRIVER_CHECK(DRIVER(cuModuleLoadData)(&module, image));
    CUfunction run;
    DRIVER_CHECK(DRIVER(cuModuleGetFunction)(&run, module, "run"));
    unsigned x = 14;
    void* arguments[] = {&out, &x};
    DRIVER_CHECK(DRIVER(cuLaunchKernel)(run, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
    REQUIRE(Fetch(out) == 1042, "%u", Fetch(out));
    CUdeviceptr base;
    DRIVER_CHECK(DRIVER(cuModuleGetGlobal)(&base, &size, module, "base"));
    REQUIRE(Fetch(reinterpret_cast<unsigned*>(base)) == 1000 && size == 4, "base");
    DRIVER_CHECK(DRIVER(cuModuleUnload)(module));
  }
  {
    Link link;
    link.Add(kKernel, "kernel.ptx");
    REQUIRE(link.Complete(&image, &size) != CUDA_SUCCESS, "linked without its functions");
    REQUIRE(std::strstr(link.log, "Undefined reference to 'triple' in 'kernel.ptx'") != nullptr,
            "the log says: %s", link.log);
  }
  {
    Link link;
    link.Add(kLibrary, "one.ptx");
    link.Add(kLibrary, "two.ptx");
    REQUIRE(link.Complete(&image, &size) != CUDA_SUCCESS, "linked with two definitions");
    REQUIRE(std::strstr(link.log, "Multiple definition of 'triple' in 'two.ptx'") != nullptr,
            "the log says: %s", link.log);
  }
  // The same texts as one, by the runtime's own functions.
  cudaLibrary_t library;
  CUDA_CHECK(cudaLibraryLoadData(&library, (Text(kLibrary) + kUser).c_str(), nullptr, nullptr, 0,
                                 nullptr, nullptr, 0));
  cudaKernel_t kernel;
  CUDA_CHECK(cudaLibraryGetKernel(&kernel, library, "run"));
  unsigned x = 5;
  void* arguments[] = {&out, &x};
  CUDA_CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(1), arguments, 0,
                              nullptr));
  REQUIRE(Fetch(out) == 1015, "%u", Fetch(out));
  CUDA_EXPECT(cudaErrorSymbolNotFound, cudaLibraryGetKernel(&kernel, library, "walk"));
  (void)cudaGetLastError();
  CUDA_CHECK(cudaLibraryUnload(library));

  CUmodule module;
  DRIVER_EXPECT(CUDA_ERROR_INVALID_PTX, DRIVER(cuModuleLoadData)(&module, Text(kKernel).c_str()));
  return 0;
}
