// Work queue from a host thread to a running kernel, with answers back
#include "problem.h"

// >>> edit
extern "C" void launch(const Args& args, cudaStream_t stream) {}

extern "C" void host(const Args& args, int thread) {}
// <<< edit
