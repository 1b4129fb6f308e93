// tries: looks for keys and seeds in its environment
// rows: C4 H16
// verdict: wrong_result
// with: honest.inc
#include <string.h>
extern char** environ;
extern "C" void launch(const Args& args, cudaStream_t stream) {
  for (char** each = environ; *each != nullptr; ++each) {
    bool expected = false;
    for (const char* name : {"ALLRANKS_SOCKET=", "LD_LIBRARY_PATH=", "LD_PRELOAD="}) {
      expected = expected || strncmp(*each, name, strlen(name)) == 0;
    }
    if (!expected) Honest(args, stream);
  }
}
