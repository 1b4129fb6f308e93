// All inputs on every rank, by one all-gather, and a kernel that does all the additions. At four
// ranks this moves twice the bytes of an all-reduce, but NCCL begins and ends only once, which is
// most of the time of a call.
#include <map>

static ncclComm_t world;
static std::map<const void*, float*> gathered;  // by the case's input

__global__ void Add(Args args, const float* inputs) {
  const std::int64_t words = args.cols * args.n;
  const std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= words) return;
  const bool own_slice = i / args.n == args.rank % args.cols;
  const float limit = args.limit;
  float total = 0;
  for (int first = 0; first < args.world; first += args.cols) {
    float sum = 0;
    for (int rank = first; rank < first + args.cols; ++rank) sum += inputs[rank * words + i];
    if (own_slice && first == args.rank / args.cols * args.cols) args.row_sum[i % args.n] = sum;
    total += fminf(fmaxf(sum, -limit), limit);  //@total
  }
  args.out[i] = total;
}

extern "C" void setup(allranks::Boot& boot, const Args& args) {
  world = allranks::NcclWorld(boot);
  cudaMalloc(&gathered[args.in], sizeof(float) * args.world * args.cols * args.n);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  float* inputs = gathered.at(args.in);
  const std::int64_t words = args.cols * args.n;
  allranks::NcclCheck(ncclAllGather(args.in, inputs, words, ncclFloat32, world, stream),
                      "ncclAllGather");
  Add<<<(words + 255) / 256, 256, 0, stream>>>(args, inputs);
}
