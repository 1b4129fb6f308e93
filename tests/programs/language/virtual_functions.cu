// Virtual functions on the device: objects made by a kernel in device memory, called through base
// pointers by another kernel, different types within one warp, multiple inheritance and overriding
// in two steps.
#include <new>

#include "arrays.h"

namespace {

class Shape {
 public:
  __device__ virtual ~Shape() {}
  __device__ virtual int Area() const = 0;
  __device__ virtual int Corners() const { return 0; }
};

class Named {
 public:
  __device__ explicit Named(int name) : name_(name) {}
  __device__ virtual int Name() const { return name_; }

 private:
  int name_;
};

class Rectangle : public Shape {
 public:
  __device__ Rectangle(int width, int height) : width_(width), height_(height) {}
  __device__ int Area() const override { return width_ * height_; }
  __device__ int Corners() const override { return 4; }

 private:
  int width_, height_;
};

class Square : public Rectangle, public Named {
 public:
  __device__ explicit Square(int side) : Rectangle(side, side), Named(side * 11) {}
  __device__ int Corners() const override { return Rectangle::Corners() * 100; }
  __device__ int Name() const override { return -Named::Name(); }
};

class Disc : public Shape {
 public:
  __device__ explicit Disc(int radius) : radius_(radius) {}
  __device__ int Area() const override { return 3 * radius_ * radius_; }

 private:
  int radius_;
};

constexpr size_t kSlot = 64;

__global__ void Make(char* memory, Shape** shapes, Named** names, int count) {
  const int i = threadIdx.x;
  if (i >= count) return;
  void* place = memory + i * kSlot;
  names[i] = nullptr;
  if (i % 3 == 0) {
    shapes[i] = new (place) Rectangle(i, 2);
  } else if (i % 3 == 1) {
    Square* square = new (place) Square(i);
    shapes[i] = square;
    names[i] = square;  // another address than the shape's
  } else {
    shapes[i] = new (place) Disc(i);
  }
}

__global__ void Use(Shape* const* shapes, Named* const* names, int count, int* out) {
  const int i = threadIdx.x;
  if (i >= count) return;
  out[i * 3] = shapes[i]->Area();
  out[i * 3 + 1] = shapes[i]->Corners();
  out[i * 3 + 2] = names[i] ? names[i]->Name() : 0;
}

}  // namespace

int main() {
  constexpr int kCount = 50;
  char* memory = Zeroed<char>(kCount * kSlot);
  Shape** shapes = Zeroed<Shape*>(kCount);
  Named** names = Zeroed<Named*>(kCount);
  int* out = Unwritten<int>(3 * kCount);
  Make<<<1, 64>>>(memory, shapes, names, kCount);
  Use<<<1, 64>>>(shapes, names, kCount, out);
  std::vector<int> expected;
  for (int i = 0; i < kCount; ++i) {
    if (i % 3 == 0) expected.insert(expected.end(), {2 * i, 4, 0});
    if (i % 3 == 1) expected.insert(expected.end(), {i * i, 400, -11 * i});
    if (i % 3 == 2) expected.insert(expected.end(), {3 * i * i, 0, 0});
  }
  REQUIRE_SAME(ToHost(out, expected.size()), expected);
  std::puts("PASS virtual_functions");
}
