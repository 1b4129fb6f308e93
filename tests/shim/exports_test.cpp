// The two CUDA libraries as a loader sees them: every name of the real ones is there, the runtime's
// under the real version, and without a node each call says so instead of failing in its own way.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace {

std::vector<std::string> Names(const std::string& list) {
  std::ifstream file(std::string(ALLRANKS_SOURCE_DIR "/src/shim/") + list);
  std::vector<std::string> names;
  for (std::string line; std::getline(file, line);) names.push_back(line.substr(0, line.find(' ')));
  return names;
}

TEST(Exports, DriverIsComplete) {
  void* library = dlopen(SHIM_DIR "/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto names = Names("cuda/entry_points.txt");
  EXPECT_GT(names.size(), 600u);
  for (const std::string& name : names) EXPECT_NE(dlsym(library, name.c_str()), nullptr) << name;
}

TEST(Exports, RuntimeIsCompleteAndVersioned) {
  void* library = dlopen(SHIM_DIR "/libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto names = Names("cudart/entry_points.txt");
  EXPECT_GT(names.size(), 400u);
  for (const std::string& name : names) {
    EXPECT_NE(dlvsym(library, name.c_str(), "libcudart.so.13"), nullptr) << name;
  }
}

TEST(Exports, WithoutANodeCallsFailAlike) {
  void* library = dlopen(SHIM_DIR "/libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto count = reinterpret_cast<int (*)(int*)>(dlsym(library, "cudaGetDeviceCount"));
  const auto allocate =
      reinterpret_cast<int (*)(void**, std::size_t)>(dlsym(library, "cudaMalloc"));
  const auto last = reinterpret_cast<int (*)()>(dlsym(library, "cudaGetLastError"));
  const auto name = reinterpret_cast<const char* (*)(int)>(dlsym(library, "cudaGetErrorName"));
  const auto graph = reinterpret_cast<int (*)(void*, unsigned)>(
      dlsym(library, "cudaGraphConditionalHandleCreate"));
  int devices = -1;
  EXPECT_EQ(count(&devices), 999);
  EXPECT_EQ(devices, 0);
  void* pointer = nullptr;
  EXPECT_EQ(allocate(&pointer, 16), 999);
  EXPECT_EQ(last(), 999);
  EXPECT_EQ(last(), 0);
  EXPECT_STREQ(name(700), "cudaErrorIllegalAddress");
  EXPECT_EQ(graph(nullptr, 0), 801);
}

TEST(Exports, ProcAddressFindsTheCurrentVersion) {
  void* library = dlopen(SHIM_DIR "/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto find = reinterpret_cast<int (*)(const char*, void**, int, unsigned long, int*)>(
      dlsym(library, "cuGetProcAddress_v2"));
  void* found = nullptr;
  int status = -1;
  EXPECT_EQ(find("cuMemAlloc", &found, 13000, 0, &status), 0);
  EXPECT_EQ(found, dlsym(library, "cuMemAlloc_v2"));
  EXPECT_EQ(find("cuLaunchKernel", &found, 13000, 2, &status), 0);
  EXPECT_EQ(found, dlsym(library, "cuLaunchKernel_ptsz"));
  EXPECT_EQ(find("cuNothing", &found, 13000, 0, &status), 0);
  EXPECT_EQ(found, nullptr);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(find("cuMulticastCreate", &found, 12000, 0, &status), 0);
  EXPECT_EQ(found, nullptr);
  EXPECT_EQ(status, 2);
  EXPECT_EQ(find("cuMemAlloc", &found, 13010, 0, &status), 1);  // newer than the driver
  EXPECT_EQ(find("cuMemAlloc", &found, 3000, 0, &status), 0);
  EXPECT_EQ(found, dlsym(library, "cuMemAlloc"));
  EXPECT_EQ(find("cuStreamGetCaptureInfo", &found, 11080, 0, &status), 0);
  EXPECT_EQ(found, dlsym(library, "cuStreamGetCaptureInfo_v2"));
  EXPECT_EQ(find("cuGraphInstantiate", &found, 11000, 0, &status), 0);
  EXPECT_EQ(found, dlsym(library, "cuGraphInstantiate_v2"));
  EXPECT_EQ(find("cuGraphInstantiate", &found, 12000, 0, &status), 0);
  EXPECT_EQ(found, dlsym(library, "cuGraphInstantiateWithFlags"));
}

}  // namespace
