// tries: 32 lanes of a warp take a spin lock in turn, which needs lanes to go on independently: right on this hardware
// rows: R
// verdict: pass
// with: honest.inc
__global__ void Lock(Args args) {
  __shared__ unsigned lock, count;
  if (threadIdx.x == 0) lock = count = 0;
  __syncthreads();
  while (atomicCAS_block(&lock, 0u, 1u) != 0) {
  }
  __threadfence_block();
  ++*static_cast<volatile unsigned*>(&count);
  __threadfence_block();
  atomicExch_block(&lock, 0u);
  __syncthreads();
  if (threadIdx.x == 0 && count != blockDim.x) args.out[0] = -1;
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Lock<<<1, 32, 0, stream>>>(args);
}
