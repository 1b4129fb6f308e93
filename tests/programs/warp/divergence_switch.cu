// Switches: dense (a jump table), sparse, with fall-through, with a default in the middle, and one
// that is the dispatch loop of a small interpreter where every lane runs another program.
#include "arrays.h"

namespace {

__host__ __device__ int Dense(int selector, int x) {
  switch (selector) {
    case 0:
      return x + 1;
    case 1:
      return x * x;
    case 2:
      return x - 100;
    case 3:
      return x ^ 0x5a5a;
    case 4:
      return x << 3;
    case 5:
      return -x;
    case 6:
      return x / 3;
    case 7:
      return x % 11;
    case 8:
      return x | 1;
    case 9:
      return x & ~7;
    case 10:
      return 2 * x + 17;
    case 11:
      return x >> 2;
    default:
      return 0;
  }
}

__host__ __device__ int Sparse(int selector) {
  int result = 0;
  switch (selector * selector) {
    case 0:
      result += 1;
      [[fallthrough]];
    case 1:
      result += 10;
      break;
    default:
      result -= 5;
      break;
    case 400:
      result += 1000;
      [[fallthrough]];
    case 900:
      result += 100;
      break;
    case 169:
      result = 13;
      break;
  }
  return result;
}

enum Code { kPush, kAdd, kMultiply, kDuplicate, kSwap, kJumpIfPositive, kStop };
struct Step {
  int code;
  int operand;
};

__host__ __device__ int Interpret(const Step* steps, int start) {
  int stack[8];
  int depth = 0;
  stack[depth++] = start;
  for (int at = 0;;) {
    const Step step = steps[at++];
    switch (step.code) {
      case kPush:
        stack[depth++] = step.operand;
        break;
      case kAdd:
        --depth;
        stack[depth - 1] += stack[depth];
        break;
      case kMultiply:
        --depth;
        stack[depth - 1] *= stack[depth];
        break;
      case kDuplicate:
        stack[depth] = stack[depth - 1];
        ++depth;
        break;
      case kSwap: {
        const int top = stack[depth - 1];
        stack[depth - 1] = stack[depth - 2];
        stack[depth - 2] = top;
        break;
      }
      case kJumpIfPositive:
        if (stack[depth - 1] > 0) at = step.operand;
        break;
      default:
        return stack[0];
    }
  }
}

__global__ void Switches(const Step* programs, int programs_count, int length, int* out) {
  const int thread = threadIdx.x;
  out[thread * 3] = Dense(thread % 13, thread * 31 - 700);
  out[thread * 3 + 1] = Sparse(thread % 32);
  out[thread * 3 + 2] = Interpret(programs + thread % programs_count * length, thread % 9);
}

}  // namespace

int main() {
  constexpr int kThreads = 128, kLength = 8;
  // start*start+3; (start+1)*2; and a count-down: the sum stays below, the counter on top.
  const std::vector<Step> programs = {
      {kDuplicate, 0}, {kMultiply, 0}, {kPush, 3}, {kAdd, 0},
      {kStop, 0},      {kStop, 0},     {kStop, 0}, {kStop, 0},
      {kPush, 1},      {kAdd, 0},      {kPush, 2}, {kMultiply, 0},
      {kStop, 0},      {kStop, 0},     {kStop, 0}, {kStop, 0},
      {kDuplicate, 0}, {kSwap, 0},     {kPush, 5}, {kAdd, 0},
      {kSwap, 0},      {kPush, -1},    {kAdd, 0},  {kJumpIfPositive, 1},
      {kStop, 0},      {kStop, 0},     {kStop, 0}, {kStop, 0},
      {kStop, 0},      {kStop, 0},     {kStop, 0}, {kStop, 0},
  };
  std::vector<int> expected;
  for (int thread = 0; thread < kThreads; ++thread) {
    expected.push_back(Dense(thread % 13, thread * 31 - 700));
    expected.push_back(Sparse(thread % 32));
    expected.push_back(Interpret(programs.data() + thread % 3 * kLength, thread % 9));
  }
  Step* device_programs = nullptr;
  CUDA_CHECK(cudaMalloc(&device_programs, programs.size() * sizeof(Step)));
  Upload(device_programs, programs.data(), programs.size());
  int* out = Unwritten<int>(expected.size());
  Switches<<<1, kThreads>>>(device_programs, 3, kLength, out);
  REQUIRE_SAME(ToHost(out, expected.size()), expected);
  std::printf("PASS divergence_switch: %d threads\n", kThreads);
}
