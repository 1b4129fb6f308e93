// The 1F1B schedule of pipeline-parallel training: a stage warms up with some forward passes, then
// alternates one forward and one backward, then drains. Activations go right and gradients left,
// each through two slots with flags and credits. A stage keeps what it needs for the backward pass:
// never more than its distance from the end, which is what the schedule is for.
//
// The hosts launch one kernel per pass; a kernel waits for its input on the device. Stage s
// computes y = w x + b with w = s + 2 and adds x g to its weight's gradient, all modulo 2^32.
//
// run 2.threads: | 2 threads
// run 3.processes: | 3 processes
// run 4.mixed: | 4 mixed
// run 7.threads: | 7 threads
// run 8.processes: | 8 processes
#include "world.h"

namespace {

constexpr int kThreads = 64, kWidth = 150, kBatches = 11, kSlots = 2;

struct Line {  // one direction into one stage
  uint32_t arrived, credits;
  uint32_t slots[kSlots][kWidth];
};
struct Stage {
  Line forward;   // activations from the left; credits are from the right
  Line backward;  // gradients from the right; credits are from the left
};

__host__ __device__ uint32_t Input(uint32_t batch, int i) { return batch * 7919 + i * 31 + 1; }
__host__ __device__ uint32_t LossGradient(uint32_t y) { return y * 2 + 1; }
__host__ __device__ uint32_t Weight(int stage) { return stage + 2; }

// Message `number` is copied into `to`, from where the next stage takes it.
__device__ void WaitFree(const Line* own, uint32_t number) {
  if (threadIdx.x == 0) WaitAtLeast(&own->credits, number + 1 - kSlots);
  __syncthreads();
}

__global__ void Forward(Stage* mine, Stage* left, Stage* right, int stage, uint32_t batch,
                        uint32_t* stash, uint32_t* outputs) {
  if (left != nullptr && threadIdx.x == 0) WaitAtLeast(&mine->forward.arrived, batch + 1);
  if (threadIdx.x == 0) Stumble(stage, batch);
  if (right != nullptr) WaitFree(&mine->forward, batch);
  __syncthreads();
  for (int i = threadIdx.x; i < kWidth; i += kThreads) {
    const uint32_t x = left == nullptr ? Input(batch, i) : mine->forward.slots[batch % kSlots][i];
    const uint32_t y = Weight(stage) * x + stage;
    stash[i] = x;
    if (right == nullptr) {
      outputs[batch * kWidth + i] = y;
    } else {
      right->forward.slots[batch % kSlots][i] = y;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    if (right != nullptr) StoreReleaseSys(&right->forward.arrived, batch + 1);
    if (left != nullptr) StoreReleaseSys(&left->forward.credits, batch + 1);
  }
}

__global__ void Backward(Stage* mine, Stage* left, Stage* right, int stage, uint32_t batch,
                         const uint32_t* stash, const uint32_t* outputs, uint32_t* weight_gradient,
                         uint32_t* input_gradients) {
  if (right != nullptr && threadIdx.x == 0) WaitAtLeast(&mine->backward.arrived, batch + 1);
  if (threadIdx.x == 0) Stumble(stage, ~batch);
  if (left != nullptr) WaitFree(&mine->backward, batch);
  __syncthreads();
  for (int i = threadIdx.x; i < kWidth; i += kThreads) {
    const uint32_t g = right == nullptr ? LossGradient(outputs[batch * kWidth + i])
                                        : mine->backward.slots[batch % kSlots][i];
    atomicAdd(weight_gradient, stash[i] * g);
    const uint32_t dx = Weight(stage) * g;
    if (left == nullptr) {
      input_gradients[batch * kWidth + i] = dx;
    } else {
      left->backward.slots[batch % kSlots][i] = dx;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    if (left != nullptr) StoreReleaseSys(&left->backward.arrived, batch + 1);
    if (right != nullptr) StoreReleaseSys(&right->backward.credits, batch + 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return RunWorld(argc, argv, [](World& world) {
    const int stage = world.rank(), stages = world.ranks();
    const auto all = world.Share<Stage>();
    Stage* left = stage > 0 ? all[stage - 1] : nullptr;
    Stage* right = stage + 1 < stages ? all[stage + 1] : nullptr;
    const int depth = stages - stage;  // activations kept at most
    uint32_t* stash = world.Allocate<uint32_t>(depth * kWidth);
    uint32_t* outputs = world.Allocate<uint32_t>(kBatches * kWidth);
    uint32_t* input_gradients = world.Allocate<uint32_t>(kBatches * kWidth);
    uint32_t* weight_gradient = world.Allocate<uint32_t>();

    int forwards = 0, backwards = 0;
    const auto forward = [&] {
      REQUIRE(forwards - backwards < depth, "stage %d keeps too much", stage);
      Forward<<<1, kThreads, 0, world.stream()>>>(all[stage], left, right, stage, forwards,
                                                  stash + forwards % depth * kWidth, outputs);
      CUDA_CHECK_LAUNCH();
      ++forwards;
    };
    const auto backward = [&] {
      Backward<<<1, kThreads, 0, world.stream()>>>(all[stage], left, right, stage, backwards,
                                                   stash + backwards % depth * kWidth, outputs,
                                                   weight_gradient, input_gradients);
      CUDA_CHECK_LAUNCH();
      ++backwards;
    };
    const int warm_up = std::min(depth - 1, kBatches);
    for (int i = 0; i < warm_up; ++i) forward();
    for (int i = warm_up; i < kBatches; ++i) {
      forward();
      backward();
    }
    for (int i = 0; i < warm_up; ++i) backward();

    // The whole model on the host.
    uint32_t gradient = 0;
    std::vector<uint32_t> last_y(kBatches * kWidth), first_dx(kBatches * kWidth);
    for (int k = 0; k < kBatches * kWidth; ++k) {
      std::vector<uint32_t> x{Input(k / kWidth, k % kWidth)};
      for (int s = 0; s < stages; ++s) x.push_back(Weight(s) * x.back() + s);
      last_y[k] = x.back();
      uint32_t g = LossGradient(x.back());
      for (int s = stages - 1; s >= 0; --s) {
        if (s == stage) gradient += x[s] * g;
        g *= Weight(s);
      }
      first_dx[k] = g;
    }
    const uint32_t got = world.Result(weight_gradient, 1)[0];
    REQUIRE(got == gradient, "stage %d: weight gradient %u, expected %u", stage, got, gradient);
    RequireElements(world, "output", 0, world.Result(outputs, last_y.size()),
                    [&](int k) { return right == nullptr ? last_y[k] : 0; });
    RequireElements(world, "input gradient", 0, world.Result(input_gradients, first_dx.size()),
                    [&](int k) { return left == nullptr ? first_dx[k] : 0; });
  });
}
