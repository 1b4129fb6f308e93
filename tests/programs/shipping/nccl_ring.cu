// NCCL's three ways of sending a message to the next rank of a ring. Every connection has eight
// steps of room: the sender's tail counts what it has filled, the receiver's head what it has
// taken. simple: data, then tail. ll: 16 bytes are two words of data and two flags. ll128: eight
// threads store a line of 128 bytes with one flag of 8 bytes; the readers of a warp vote whether to
// look again. Values go round the ring and are added up on the way.
//
// As shipped, simple polls head and tail with volatile loads and goes on behind a barrier of the
// block without any acquire (`acquire-pattern`). Its data is stored plainly and loaded volatile,
// for the cache's sake, which makes no order and no moral strength. The head is stored relaxed
// without a fence, the tail relaxed behind a fence of the same thread, which is a release. fixed:
// the polls acquire, data is loaded plainly, and the head has its fence too. ll and ll128 are told
// as `portability`: their data is volatile, so that nothing races, and their order is that of whole
// packets.
//
// finds: race
// run shipped.two: --devices 2 | 2 threads shipped
// run shipped.four: --devices 4 | 4 threads shipped
// run shipped.eight: --devices 8 | 8 threads shipped
// run fixed.two: --devices 2 | 2 threads fixed
// run fixed.four: --devices 4 | 4 threads fixed
// run fixed.eight: --devices 8 | 8 threads fixed
#include "sums.h"

namespace {

// A message of kQuads vectors is one step. LL128: 15 of the 16 pairs of words of a line are data.
constexpr int kThreads = 64, kQuads = 60, kSteps = 8, kCalls = 4, kLines = 4 * kQuads / 30;
static_assert(kLines * 30 == 4 * kQuads && kLines % (kThreads / 8) == 0, "whole warps vote");

struct Inbox {
  alignas(128) uint64_t tail;  // written by the left neighbour
  alignas(128) uint64_t head;  // written by the right neighbour
  alignas(128) float4 simple[kSteps][kQuads];
  alignas(128) uint4 ll[kSteps][2 * kQuads];
  alignas(128) uint4 ll128[kSteps][kLines][8];
};

struct Link {
  Inbox* mine;
  Inbox* right;
  Inbox* left;
  uint64_t step;  // as many messages have been sent, and received
};

template <bool kShipped>
__device__ void WaitFor(const uint64_t* counter, uint64_t value) {
  if (kShipped) {
    while (LoadVolatile(counter) < value) {
    }
  } else {
    while (LoadAcquireSys(counter) < value) {
    }
  }
}

// One thread waits and the same one posts; the others meet it at barriers.
template <bool kShipped>
struct Simple {
  static __device__ void Send(const Link& link, const float* data) {
    if (threadIdx.x == 0 && link.step >= kSteps)
      WaitFor<kShipped>(&link.mine->head, link.step - kSteps + 1);
    __syncthreads();
    auto* slot = reinterpret_cast<float*>(link.right->simple[link.step % kSteps]);
    for (int i = threadIdx.x; i < 4 * kQuads; i += kThreads) slot[i] = data[i];
    __syncthreads();
    if (threadIdx.x == 0) {
      FenceSys();
      StoreRelaxedSys(&link.right->tail, link.step + 1);
    }
  }
  static __device__ void Receive(const Link& link, float* data) {
    if (threadIdx.x == 0) WaitFor<kShipped>(&link.mine->tail, link.step + 1);
    __syncthreads();
    const auto* slot = reinterpret_cast<const float*>(link.mine->simple[link.step % kSteps]);
    for (int i = threadIdx.x; i < 4 * kQuads; i += kThreads) {
      data[i] = kShipped
                    ? __uint_as_float(LoadVolatile(reinterpret_cast<const uint32_t*>(slot + i)))
                    : slot[i];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      if (!kShipped) FenceSys();
      StoreRelaxedSys(&link.left->head, link.step + 1);
    }
  }
};

struct LowLatency {
  static __device__ void Send(const Link& link, const float* data) {
    if (threadIdx.x == 0 && link.step >= kSteps)
      WaitFor<true>(&link.mine->head, link.step - kSteps + 1);
    __syncthreads();
    const uint32_t flag = uint32_t(link.step) + 1;
    for (int i = threadIdx.x; i < 2 * kQuads; i += kThreads) {
      StoreVolatile(
          &link.right->ll[link.step % kSteps][i],
          make_uint4(__float_as_uint(data[2 * i]), flag, __float_as_uint(data[2 * i + 1]), flag));
    }
  }
  static __device__ void Receive(const Link& link, float* data) {
    const uint32_t flag = uint32_t(link.step) + 1;
    for (int i = threadIdx.x; i < 2 * kQuads; i += kThreads) {
      uint4 v;
      do {
        v = LoadVolatile(&link.mine->ll[link.step % kSteps][i]);
      } while (v.y != flag || v.w != flag);
      data[2 * i] = __uint_as_float(v.x);
      data[2 * i + 1] = __uint_as_float(v.z);
    }
    __syncthreads();
    if (threadIdx.x == 0) StoreVolatile(&link.left->head, link.step + 1);
  }
};

struct LowLatency128 {
  static __device__ void Send(const Link& link, const float* data) {
    if (threadIdx.x == 0 && link.step >= kSteps)
      WaitFor<true>(&link.mine->head, link.step - kSteps + 1);
    __syncthreads();
    const uint32_t flag = uint32_t(link.step) + 1;
    const int part = threadIdx.x % 8;
    for (int line = threadIdx.x / 8; line < kLines; line += kThreads / 8) {
      const float* from = data + line * 30 + part * 4;
      const uint4 v = make_uint4(__float_as_uint(from[0]), __float_as_uint(from[1]),
                                 part == 7 ? flag : __float_as_uint(from[2]),
                                 part == 7 ? 0 : __float_as_uint(from[3]));
      __syncwarp();
      StoreVolatile(&link.right->ll128[link.step % kSteps][line][part], v);
    }
  }
  static __device__ void Receive(const Link& link, float* data) {
    const uint32_t flag = uint32_t(link.step) + 1;
    const int part = threadIdx.x % 8;
    for (int line = threadIdx.x / 8; line < kLines; line += kThreads / 8) {
      uint4 v;
      bool again;
      do {
        v = LoadVolatile(&link.mine->ll128[link.step % kSteps][line][part]);
        again = part == 7 && v.z != flag;
      } while (__any_sync(~0u, again));
      float* to = data + line * 30 + part * 4;
      to[0] = __uint_as_float(v.x);
      to[1] = __uint_as_float(v.y);
      if (part < 7) {
        to[2] = __uint_as_float(v.z);
        to[3] = __uint_as_float(v.w);
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) StoreVolatile(&link.left->head, link.step + 1);
  }
};

// What this rank has received last goes on to its right; after ranks - 1 steps all inputs were
// here.
template <class Way>
__global__ void AllReduce(Peers<Inbox> inboxes, int rank, int ranks, uint64_t step,
                          const float4* input, float4* output) {
  __shared__ float moving[4 * kQuads];
  Link link{inboxes[rank], inboxes[(rank + 1) % ranks], inboxes[(rank + ranks - 1) % ranks], step};
  const auto* in = reinterpret_cast<const float*>(input);
  auto* out = reinterpret_cast<float*>(output);
  for (int i = threadIdx.x; i < 4 * kQuads; i += kThreads) out[i] = moving[i] = in[i];
  __syncthreads();
  for (int round = 1; round < ranks; ++round, ++link.step) {
    Way::Send(link, moving);
    __syncthreads();
    Way::Receive(link, moving);
    __syncthreads();
    for (int i = threadIdx.x; i < 4 * kQuads; i += kThreads) out[i] += moving[i];
  }
}

template <bool kShipped>
void Run(World& world) {
  for (const auto kernel :
       {AllReduce<Simple<kShipped>>, AllReduce<LowLatency>, AllReduce<LowLatency128>}) {
    const auto inboxes = world.Share<Inbox>();
    uint64_t step = 0;
    RunAllReduce(world, "sum", kQuads, kCalls, [&](int, const float4* input, float4* output) {
      kernel<<<1, kThreads, 0, world.stream()>>>(inboxes, world.rank(), world.ranks(), step, input,
                                                 output);
      step += world.ranks() - 1;
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  const bool shipped = Shipped(setup);
  return RunWorld(setup, [=](World& world) { shipped ? Run<true>(world) : Run<false>(world); });
}
