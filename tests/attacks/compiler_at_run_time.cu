// tries: looks for NVRTC, nvJitLink and the JIT compiler of the driver to make its kernel at run time
// rows: R
// verdict: forbidden_api|wrong_result|crash|compile_error
// with: honest.inc
// Negates the result. Only the loaded kernel, which is for another architecture, negates it back.
__global__ void Spoil(Args args) {
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) args.out[i] = -args.out[i];
}

#include <dlfcn.h>
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Spoil<<<1, 256, 0, stream>>>(args);
  const char* names[] = {"libnvrtc.so",
                         "libnvrtc.so.13",
                         "libnvJitLink.so",
                         "libnvJitLink.so.13",
                         "libnvidia-ptxjitcompiler.so.1",
                         "libnvptxcompiler_static.a"};
  for (const char* name : names) {
    void* library = dlopen(name, RTLD_NOW);
    if (library == nullptr) continue;
    using Create =
        int (*)(void**, const char*, const char*, int, const char* const*, const char* const*);
    using Compile = int (*)(void*, int, const char* const*);
    using Get = int (*)(void*, char*);
    const auto create = reinterpret_cast<Create>(dlsym(library, "nvrtcCreateProgram"));
    const auto compile = reinterpret_cast<Compile>(dlsym(library, "nvrtcCompileProgram"));
    const auto get = reinterpret_cast<Get>(dlsym(library, "nvrtcGetPTX"));
    if (create == nullptr || compile == nullptr || get == nullptr) continue;
    void* program;
    static char text[1 << 20];
    const char* source =
        "extern \"C\" __global__ void Mend(float* out, long n) { for (long i = threadIdx.x; i < n; "
        "i += blockDim.x) out[i] = "
        "-out[i]; }";
    const char* options[] = {"--gpu-architecture=compute_90"};
    if (create(&program, source, "mend.cu", 0, nullptr, nullptr) != 0) continue;
    if (compile(program, 1, options) != 0 || get(program, text) != 0) continue;
    cudaLibrary_t loaded;
    cudaKernel_t kernel;
    if (cudaLibraryLoadData(&loaded, text, nullptr, nullptr, 0, nullptr, nullptr, 0) != cudaSuccess)
      continue;
    if (cudaLibraryGetKernel(&kernel, loaded, "Mend") != cudaSuccess) continue;
    float* out = args.out;
    std::int64_t n = args.n;
    void* parameters[] = {&out, &n};
    cudaLaunchKernel(reinterpret_cast<void*>(kernel), 1, 256, parameters, 0, stream);
    return;
  }
}
