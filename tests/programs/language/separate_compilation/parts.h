// What the two files of separate_compilation share.
#pragma once

using Operation = int (*)(int, int);

extern __device__ int shared_counter;  // defined in main.cu
extern __constant__ float factor;      // defined in parts.cu
extern __device__ Operation operations[2];

__device__ int Twice(int x);
__device__ int CallBack(int x);
__device__ int CalledBack(int x);  // defined in main.cu
void LaunchThere(int* out);
