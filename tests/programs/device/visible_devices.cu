// CUDA_VISIBLE_DEVICES: which devices a process sees, and in which order. Each case is a child
// process, because the variable counts when CUDA is initialised.
//
// finds: api_error
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "check.h"

namespace {

// What a child reports of a device: the last byte of its bus id tells which of the machine's it is.
struct Answer {
  cudaError_t error;
  int count;
  int bus[16];
  unsigned char uuid[16];  // of device 1
};

__global__ void Store(int* place, int value) { *place = value; }

Answer Look() {
  Answer answer = {};
  answer.error = cudaGetDeviceCount(&answer.count);
  for (int d = 0; d < answer.count && answer.error == cudaSuccess; ++d) {
    CUDA_CHECK(cudaDeviceGetAttribute(&answer.bus[d], cudaDevAttrPciBusId, d));
    // The device works, and says of its memory what the process calls it.
    int* place = ZeroedOn<int>(d);
    Store<<<1, 1>>>(place, d + 7);
    REQUIRE(Fetch(place) == d + 7, "device %d", d);
    cudaPointerAttributes attributes;
    CUDA_CHECK(cudaPointerGetAttributes(&attributes, place));
    REQUIRE(attributes.device == d, "memory of device %d is said to be on %d", d,
            attributes.device);
  }
  if (answer.count > 1) {
    cudaDeviceProp prop;
    CUDA_CHECK(cudaGetDeviceProperties(&prop, 1));
    std::memcpy(answer.uuid, prop.uuid.bytes, sizeof answer.uuid);
  }
  return answer;
}

Answer In(const char* visible) {
  int ends[2];
  REQUIRE(pipe(ends) == 0, "pipe");
  const pid_t child = fork();
  REQUIRE(child >= 0, "fork");
  if (child == 0) {
    if (visible != nullptr) {
      setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    } else {
      unsetenv("CUDA_VISIBLE_DEVICES");
    }
    const Answer answer = Look();
    const bool sent = write(ends[1], &answer, sizeof answer) == sizeof answer;
    std::_Exit(sent ? 0 : 1);
  }
  close(ends[1]);
  Answer answer = {};
  REQUIRE(read(ends[0], &answer, sizeof answer) == sizeof answer, "no answer for '%s'",
          visible != nullptr ? visible : "(unset)");
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return answer;
}

void Expect(const std::string& visible, const std::vector<int>& bus) {
  const Answer answer = In(visible.c_str());
  REQUIRE(answer.count == int(bus.size()), "'%s': %d devices, expected %zu", visible.c_str(),
          answer.count, bus.size());
  REQUIRE(answer.error == (bus.empty() ? cudaErrorNoDevice : cudaSuccess), "'%s': %s",
          visible.c_str(), cudaGetErrorName(answer.error));
  for (size_t i = 0; i < bus.size(); ++i)
    REQUIRE(answer.bus[i] == bus[i], "'%s': device %zu is at bus %d, expected %d", visible.c_str(),
            i, answer.bus[i], bus[i]);
}

}  // namespace

int main() {
  const Answer all = In(nullptr);
  REQUIRE(all.error == cudaSuccess && all.count >= 4, "%d devices", all.count);
  const int* bus = all.bus;
  Expect("2", {bus[2]});
  Expect("1,0", {bus[1], bus[0]});
  Expect("3, 1 ,2", {bus[3], bus[1], bus[2]});
  Expect("0,99,1", {bus[0]});  // what follows one that does not exist is not seen
  Expect("1,-1,2", {bus[1]});
  Expect("-1", {});
  Expect("", {});
  Expect("nonsense", {});

  // By UUID, and by the beginning of one.
  std::string name = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", all.uuid[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) name += '-';
    name += digits;
  }
  Expect(name, {bus[1]});
  Expect(name + ",0", {bus[1], bus[0]});
  Expect("GPU-00000000-0000-0000-0000-000000000000", {});
  std::printf("PASS visible_devices\n");
  return 0;
}
