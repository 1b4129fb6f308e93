// What the files of this program know of each other.
#pragma once

extern __device__ int counter;
extern __device__ int squares[8];
extern __constant__ float weights[4];
__device__ int Scale(int x);
__device__ int CountCalls();
__device__ int LetterOfLibrary(int at);

// In every file that instantiates it, as a weak definition.
template <class T>
__device__ __noinline__ T Smallest(T a, T b) {
  return b < a ? b : a;
}

struct Shape {
  __device__ virtual int Area() const = 0;
  int side = 3;
};
struct Square : Shape {
  __device__ int Area() const override;
};

using Operation = int (*)(int);
extern __device__ Operation operations[3];
