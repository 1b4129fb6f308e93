// tries: the host closes and opens calls itself, on the node's socket
// rows: 8 W
// verdict: tampering|crash|forbidden_api
// problem: fifo_gpu_to_cpu
#include <sys/socket.h>
#include <sys/stat.h>
struct Header {
  unsigned length;
  unsigned short op, version;
  unsigned long long sequence;
};
__global__ void Produce(Args) {}
extern "C" void launch(const Args& args, cudaStream_t stream) { Produce<<<1, 32, 0, stream>>>(args); }
extern "C" void host(const Args&, int) {
  for (int fd = 3; fd < 256; ++fd) {
    struct stat about;
    if (fstat(fd, &about) != 0 || !S_ISSOCK(about.st_mode)) continue;
    const char zeros[64] = {};
    for (unsigned short op = 90; op < 140; ++op) {
      const Header header = {sizeof zeros, op, 5, 77};
      send(fd, &header, sizeof header, MSG_NOSIGNAL | MSG_DONTWAIT);
      send(fd, zeros, sizeof zeros, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  }
}
