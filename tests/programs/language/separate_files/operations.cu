// A table of functions, defined where the functions of another file are not visible.
#include "shared.h"

static __device__ int Helper(int x) { return -x; }
static __device__ int Increment(int x) { return x + 1; }

__device__ Operation operations[3] = {Scale, Helper, Increment};
