// A kernel for each sum, in two branches of the graph. Both spin until words of peers are here, so
// they must be resident together: each has half of the blocks that may be. Then it does not matter
// which of them a rank starts first, and neighbours do it in different order.
//
// Words say for themselves that they are here: a word of zero bits means "not yet", and +0 travels
// as -0. Everyone sends its vectors to all members of its group. Three sets of slots take turns:
// call k clears the set of call k - 1, into which peers write again in call k + 2, when they have
// this rank's words of call k + 1. The branches share neither slots nor counters.
constexpr int kMaxBlocks = 8, kThreads = 512, kControl = 512;

// Whom a rank adds up with, and this rank's place among them.
struct Group {
  int first, stride, size, place;
};

// One sum: where it is, and how it lies in everybody's scratch.
struct Task {
  const float* in;
  float* out;
  int n, calls, slots;
  Group group;
};

__device__ void Send(float4* to, float4 v) {
  asm volatile("st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(v.x), "f"(v.y),
               "f"(v.z), "f"(v.w)
               : "memory");  //@send
}
__device__ float4 Look(const float4* from) {
  float4 v;
  asm volatile("ld.relaxed.sys.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from)
               : "memory");  //@look
  return v;
}
__device__ bool Absent(float x) { return __float_as_uint(x) == 0; }
__device__ bool Absent(float4 v) {  // sixteen bytes need not come together
  return Absent(v.x) || Absent(v.y) || Absent(v.z) || Absent(v.w);
}
__device__ float Present(float x) { return Absent(x) ? -0.0f : x; }

__device__ float4 Input(const Task& task, int i) {
  const float* in = task.in + 4 * i;
  const int left = task.n - 4 * i;
  float4 v = {in[0], 0, 0, 0};
  if (left >= 4) {
    v = *reinterpret_cast<const float4*>(in);
  } else {
    if (left > 1) v.y = in[1];
    if (left > 2) v.z = in[2];
  }
  return {Present(v.x), Present(v.y), Present(v.z), Present(v.w)};
}

__global__ void __launch_bounds__(kThreads) AllReduce(Args args, Task task) {
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch + task.calls) + blockIdx.x;
  const std::uint32_t call = *calls + 1;  //@epoch
  const Group group = task.group;
  const int vectors = (task.n + 3) / 4, stride = gridDim.x * kThreads;
  const auto set = [&](int member, std::uint32_t call) {
    std::uint8_t* scratch = args.scratch_peers[group.first + member * group.stride];
    return reinterpret_cast<float4*>(scratch + task.slots) + call % 3 * group.size * vectors;
  };
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < vectors; i += stride) {
    const float4 v = Input(task, i);
    for (int step = 1; step < group.size; ++step) {
      Send(set((group.place + step) % group.size, call) + group.place * vectors + i, v);
    }
    for (int member = 0; member < group.size; ++member) {  //@clear
      Send(set(group.place, call + 2) + member * vectors + i, {0, 0, 0, 0});
    }
  }
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < vectors; i += stride) {
    const float4* slots = set(group.place, call) + i;
    float4 v[kMaxRanks], sum = {0, 0, 0, 0};
#pragma unroll
    for (int m = 0; m < kMaxRanks; ++m) {  // all loads are on their way before one is looked at
      if (m < group.size) v[m] = m == group.place ? Input(task, i) : Look(slots + m * vectors);
    }
#pragma unroll
    for (int m = 0; m < kMaxRanks; ++m) {
      if (m >= group.size) break;                               //@members
      while (Absent(v[m])) v[m] = Look(slots + m * vectors);  //@wait
      sum = {sum.x + v[m].x, sum.y + v[m].y, sum.z + v[m].z, sum.w + v[m].w};
    }
    float* out = task.out + 4 * i;
    const int left = task.n - 4 * i;
    if (left >= 4) {
      *reinterpret_cast<float4*>(out) = sum;
    } else {
      out[0] = sum.x;
      if (left > 1) out[1] = sum.y;
      if (left > 2) out[2] = sum.z;  //@last
    }
  }
  __syncthreads();                       //@all_have_read
  if (threadIdx.x == 0) *calls = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int n = args.n, m = args.m, cols = args.cols, rank = args.rank, world = args.world;
  const int row = rank / cols * cols, column = rank % cols;
  const Group tp = {row, 1, world - row < cols ? world - row : cols, column};
  const Group dp = {column, cols, (world - column + cols - 1) / cols, rank / cols};
  const Task tasks[2] = {
      {args.act, args.act_sum, n, 0, kControl, tp},
      {args.grad, args.grad_sum, m, kControl / 2, kControl + 48 * world * ((n + 3) / 4), dp}};
  const auto start = [&](const Task& task, cudaStream_t branch) {
    const int needed = ((task.n + 3) / 4 + kThreads - 1) / kThreads;
    AllReduce<<<needed < kMaxBlocks ? needed : kMaxBlocks, kThreads, 0, branch>>>(args, task);
  };
  cudaStream_t side;
  cudaEvent_t fork, join;
  cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
  cudaEventRecord(fork, stream);
  cudaStreamWaitEvent(side, fork, 0);
  const int first = (rank / cols + column) % 2;
  start(tasks[first], stream);
  start(tasks[1 - first], side);
  cudaEventRecord(join, side);
  cudaStreamWaitEvent(stream, join, 0);
}
