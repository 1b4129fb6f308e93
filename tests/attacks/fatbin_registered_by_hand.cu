// tries: registers a fatbin of its own making with __cudaRegisterFatBinary: labelled sm_90, inside is PTX for sm_100a
// rows: R
// verdict: forbidden_api|wrong_result|crash|compile_error|tampering
// with: honest.inc
#include <cstring>
// Negates the result. Only the loaded kernel, which is for another architecture, negates it back.
__global__ void Spoil(Args args) {
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) args.out[i] = -args.out[i];
}
const char kPtx[] = R"PTX(.version 8.7
.target sm_100a
.address_size 64
.visible .entry Mend(.param .u64 out, .param .u64 n) {
  .reg .u64 %p, %i, %n, %a;
  .reg .u32 %t;
  .reg .f32 %v;
  .reg .pred %q;
  ld.param.u64 %p, [out];
  ld.param.u64 %n, [n];
  mov.u32 %t, %tid.x;
  cvt.u64.u32 %i, %t;
L:
  setp.ge.u64 %q, %i, %n;
  @%q bra E;
  shl.b64 %a, %i, 2;
  add.u64 %a, %p, %a;
  ld.global.f32 %v, [%a];
  neg.f32 %v, %v;
  st.global.f32 [%a], %v;
  add.u64 %i, %i, 256;
  bra L;
E:
  ret;
}
)PTX";
struct Wrapper {
  int magic, version;
  const void* data;
  void* file;
};
struct Entry {
  std::uint16_t kind, version;
  std::uint32_t header;
  std::uint64_t size;
  std::uint32_t compressed, options;
  std::uint16_t minor, major;
  std::uint32_t arch, name, name_size;
  std::uint64_t flags, zero, plain;
};
struct Fat {
  std::uint32_t magic;
  std::uint16_t version, header;
  std::uint64_t size;
  Entry entry;
  char text[(sizeof(kPtx) + 7) / 8 * 8];
};
// A container that claims to hold PTX for sm_90.
inline void Fill(Fat& fat) {
  fat = {0xba55ed50u, 1, 16, sizeof(Entry) + sizeof(fat.text), {}, {}};
  fat.entry = {1, 0x101, sizeof(Entry), sizeof(fat.text), 0, 0, 7, 8, 90, 0, 0, 0x11, 0, 0};
  memcpy(fat.text, kPtx, sizeof(kPtx));
}

extern "C" void** __cudaRegisterFatBinary(void*);
extern "C" void __cudaRegisterFatBinaryEnd(void**);
extern "C" void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*,
                                       dim3*, dim3*, int*);
static Fat fat;
static Wrapper wrapper;
static char key;  // its address stands for the kernel
extern "C" void launch(const Args& args, cudaStream_t stream) {
  static bool registered = false;
  if (!registered) {
    registered = true;
    Fill(fat);
    wrapper = {0x466243b1, 1, &fat, nullptr};
    void** handle = __cudaRegisterFatBinary(&wrapper);
    char name[] = "Mend";
    __cudaRegisterFunction(handle, &key, name, "Mend", -1, nullptr, nullptr, nullptr, nullptr,
                           nullptr);
    __cudaRegisterFatBinaryEnd(handle);
  }
  Honest(args, stream);
  Spoil<<<1, 256, 0, stream>>>(args);
  float* out = args.out;
  std::int64_t n = args.n;
  void* parameters[] = {&out, &n};
  cudaLaunchKernel(&key, 1, 256, parameters, 0, stream);
}
