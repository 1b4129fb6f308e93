// Definitions for main.cu. `hidden`, `Helper` and a string without a name exist in main.cu as well.
#include "shared.h"

__device__ int counter = 11;
__device__ int squares[8] = {0, 1, 4, 9, 16, 25, 36, 49};
__constant__ float weights[4] = {0.5f, 1.5f, 2.5f, 3.5f};

static __device__ int hidden = 1000;
static __device__ __noinline__ int Helper(int x) { return x + hidden; }

__device__ int Scale(int x) { return 2 * Helper(Smallest(x, 50)); }
__device__ int CountCalls() { return atomicAdd(&hidden, 1); }
__device__ int Square::Area() const { return side * side; }

__device__ int LetterOfLibrary(int at) { return "library"[at]; }
__global__ void SetHidden(int value) { hidden = value; }
