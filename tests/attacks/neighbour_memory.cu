// tries: reads and writes the tensors of a neighbour at guessed addresses
// rows: 17 18 H24
// verdict: memory_error|wrong_result
__global__ void Kernel(Args args) {
  const std::int64_t apart = args.scratch_peers[(args.rank + 1) % args.world] - args.scratch;
  T* theirs = reinterpret_cast<T*>(reinterpret_cast<char*>(args.out) + apart);
  if (threadIdx.x == 0) theirs[0] = 1;
}
extern "C" void launch(const Args& args, cudaStream_t stream) { Kernel<<<1, 256, 0, stream>>>(args); }
