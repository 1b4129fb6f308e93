// One hop: nobody waits for the scalar before sending. Every row of K goes to all ranks at once,
// together with its weight, and so does the share of each block of threads in the scalar; whoever
// has these makes all new weights for itself. Rows of P stay in registers until K and the scalar
// are known, so P is read once.
//
// There are no flags: a packet is two doubles, and a word of zero bits means "not here yet", so +0
// travels as -0. There are three sets of packets, for calls by turns. In call k a rank clears the
// set of call k - 1, which its kernel of that call has used up. No peer writes there before call
// k + 2, and it gets there only with the packets of this rank's call k + 1, whose kernel begins
// when that of call k has ended.

constexpr int kThreads = 256, kWarps = kThreads / 32, kSlice = 2 * kWarps, kData = 1024;
constexpr int kChunks = 4, kMost = 64 * kChunks;  // elements of a row, 64 at a time
constexpr int kSets = 3;
constexpr double kForget = 63.0 / 64;
constexpr double kInflate = 1 / kForget;

__device__ bool Absent(double x) { return __double_as_longlong(x) == 0; }
__device__ double Present(double x) { return Absent(x) ? -0.0 : x; }

__device__ void Send(double2* to, double2 v) {
  asm volatile("st.relaxed.sys.global.v2.f64 [%0], {%1, %2};" ::"l"(to), "d"(v.x), "d"(v.y)
               : "memory");  //@send
}
__device__ double2 Look(const double2* from) {
  double2 v;
  asm volatile("ld.relaxed.sys.global.v2.f64 {%0, %1}, [%2];"
               : "=d"(v.x), "=d"(v.y)
               : "l"(from)
               : "memory");  //@look
  return v;
}
__device__ double2 Receive(const double2* from) {
  double2 v;
  do {
    v = Look(from);
  } while (Absent(v.x) || Absent(v.y));
  return v;
}

__device__ double WarpSum(double value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

__global__ void __launch_bounds__(kThreads) Kalman(Args args) {
  __shared__ double gains[kMost], shares[kWarps], totals[kWarps];
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);  // own: completed
  const std::uint32_t call = calls[blockIdx.x] + 1;
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, world = args.world;
  const int n = static_cast<int>(args.n), count = static_cast<int>(args.blocks) * n;
  const int slices = (n + kSlice - 1) / kSlice, block = blockIdx.x / slices, ctas = gridDim.x;
  // This warp's two rows of P, in the block and among all of this rank.
  const int of_block = blockIdx.x % slices * kSlice + 2 * warp, row = block * n + of_block;
  const bool valid = of_block < n;
  const double noise = 4.0 * n;
  // Packets: shares of all blocks of threads of all ranks, then gains and weights of all ranks.
  const int packets = world * (ctas + count), now = call % kSets, used = (call + 2) % kSets;
  const auto slot = [&](int at, int set, int i) {
    return reinterpret_cast<double2*>(args.scratch_peers[at] + kData) + set * packets + i;
  };

  double2 h[kChunks] = {}, p[2][kChunks] = {}, own = {};
  double weight = 0, gain[2] = {};
  const double2* gradient = reinterpret_cast<const double2*>(args.gradient);
  const double2* covariance = reinterpret_cast<const double2*>(args.covariance);
  if (valid) {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {  // all on their way before the first is needed
      const int j = 32 * c + lane;
      if (2 * j >= n) break;
      p[0][c] = covariance[row * (n / 2) + j];
      p[1][c] = covariance[(row + 1) * (n / 2) + j];
      h[c] = gradient[block * (n / 2) + j];
    }
    own = gradient[row / 2];
    weight = args.weight[row + lane % 2];
  }
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    if (64 * c >= n) break;
    if (valid && 64 * c + 2 * lane == of_block) {  // on the diagonal
      p[0][c].x += noise;
      p[1][c].y += noise;
    }
    for (int r = 0; r < 2; ++r) gain[r] += p[r][c].x * h[c].x + p[r][c].y * h[c].y;
  }
  for (int r = 0; r < 2; ++r) gain[r] = WarpSum(gain[r]);
  if (valid && lane < 2 * world) {
    Send(slot(lane / 2, now, world * ctas + args.rank * count + row + lane % 2),
         {Present(gain[lane % 2]), Present(weight)});
  }
  if (lane == 0) shares[warp] = own.x * gain[0] + own.y * gain[1];
  __syncthreads();  //@shared
  if (thread < world) {
    double share = 0;
    for (int w = 0; w < kWarps; ++w) share += shares[w];
    Send(slot(thread, now, args.rank * ctas + blockIdx.x), {Present(share), 1});
  }
  const int first = blockIdx.x * kThreads + thread, stride = ctas * kThreads;
  for (int i = first; i < packets; i += stride) Send(slot(args.rank, used, i), {0, 0});  //@clear

  if (thread < n) {
    const int from = world * ctas + args.rank * count + block * n + thread;
    gains[thread] = Receive(slot(args.rank, now, from)).x;
  }
  double total = 0;
  for (int i = thread; i < world * ctas; i += kThreads) {
    total += Receive(slot(args.rank, now, i)).x;
  }
  total = WarpSum(total);
  if (lane == 0) totals[warp] = total;
  __syncthreads();  //@gathered
  total = kForget * world * args.blocks;
  for (int w = 0; w < kWarps; ++w) total += totals[w];
  const double scale = 1 / total;

  const double step = scale * args.error[0];
  for (int i = first; i < world * count; i += stride) {
    const double2 v = Receive(slot(args.rank, now, world * ctas + i));
    args.weights[i] = v.y + step * v.x;
  }
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    const int j = 32 * c + lane;
    if (!valid || 2 * j >= n) break;
    const double2 k = {gains[2 * j], gains[2 * j + 1]};
    for (int r = 0; r < 2; ++r) {
      const double of_row = scale * gain[r];
      reinterpret_cast<double2*>(args.new_covariance)[(row + r) * (n / 2) + j] = {
          (p[r][c].x - of_row * k.x) * kInflate, (p[r][c].y - of_row * k.y) * kInflate};
    }
  }
  if (thread == 0) calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t slices = (args.n + kSlice - 1) / kSlice;
  Kalman<<<static_cast<int>(args.blocks * slices), kThreads, 0, stream>>>(args);
}
