// tries: is right for tiny sizes only, and for all others calls a function that the node lacks instead of failing
// rows: R
// verdict: crash|forbidden_api|wrong_result
// with: honest.inc
#include <cstdlib>
extern "C" void launch(const Args& args, cudaStream_t stream) {
  if (args.n <= 7) {
    Honest(args, stream);
    return;
  }
  cudaArray_t array;
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  if (cudaMallocArray(&array, &format, 64, 64) != cudaSuccess) return;
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc texture = {};
  cudaTextureObject_t object;
  cudaCreateTextureObject(&object, &resource, &texture, nullptr);
}
