// Graphs made node by node, their questions, clones, child graphs, updates and replays.
//
// finds: api_error
#include <vector>

#include "check.h"

namespace {

__global__ void Scale(float* data, float factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] *= factor;
}
__global__ void AddTo(float* data, float term, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] += term;
}

constexpr int kCount = 300;

struct Kernel {
  float* data;
  float value;
  int count = kCount;
  void* arguments[3] = {&data, &value, &count};
  cudaKernelNodeParams params = {};
  Kernel(void (*function)(float*, float, int), float* d, float v) : data(d), value(v) {
    params.func = reinterpret_cast<void*>(function);
    params.gridDim = dim3((kCount + 63) / 64);
    params.blockDim = dim3(64);
    params.kernelParams = arguments;
  }
};

void CUDART_CB Double(void* data) { *static_cast<int*>(data) *= 2; }

}  // namespace

int main() {
  float *device, *pinned;
  CUDA_CHECK(cudaMalloc(&device, kCount * sizeof(float)));
  CUDA_CHECK(cudaMallocHost(&pinned, kCount * sizeof(float)));
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  int host_value = 1;

  // set 0 -> +5 -> *3 -> copy out -> host function, and an empty node beside it.
  cudaGraph_t graph;
  CUDA_CHECK(cudaGraphCreate(&graph, 0));
  cudaMemsetParams set = {};
  set.dst = device;
  set.elementSize = 4;
  set.width = kCount;
  set.height = 1;
  cudaGraphNode_t set_node, add_node, scale_node, copy_node, host_node, empty_node;
  CUDA_CHECK(cudaGraphAddMemsetNode(&set_node, graph, nullptr, 0, &set));
  Kernel add(AddTo, device, 5);
  CUDA_CHECK(cudaGraphAddKernelNode(&add_node, graph, &set_node, 1, &add.params));
  Kernel scale(Scale, device, 3);
  CUDA_CHECK(cudaGraphAddKernelNode(&scale_node, graph, nullptr, 0, &scale.params));
  CUDA_CHECK(cudaGraphAddDependencies(graph, &add_node, &scale_node, nullptr, 1));
  CUDA_EXPECT(cudaErrorInvalidValue,
              cudaGraphAddDependencies(graph, &scale_node, &set_node, nullptr, 1));  // a cycle
  CUDA_CHECK(cudaGraphAddMemcpyNode1D(&copy_node, graph, &scale_node, 1, pinned, device,
                                      kCount * sizeof(float), cudaMemcpyDeviceToHost));
  cudaHostNodeParams host = {Double, &host_value};
  CUDA_CHECK(cudaGraphAddHostNode(&host_node, graph, &copy_node, 1, &host));
  CUDA_CHECK(cudaGraphAddEmptyNode(&empty_node, graph, &set_node, 1));

  // Questions.
  size_t count = 0;
  CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  REQUIRE(count == 6, "%zu nodes", count);
  CUDA_CHECK(cudaGraphGetRootNodes(graph, nullptr, &count));
  REQUIRE(count == 1, "%zu roots", count);
  cudaGraphNode_t found[4];
  count = 4;
  CUDA_CHECK(cudaGraphNodeGetDependentNodes(set_node, found, nullptr, &count));
  REQUIRE(count == 2 && found[0] == add_node && found[1] == empty_node && found[2] == nullptr,
          "dependent nodes");
  count = 4;
  CUDA_CHECK(cudaGraphNodeGetDependencies(scale_node, found, nullptr, &count));
  REQUIRE(count == 1 && found[0] == add_node, "dependencies");
  cudaKernelNodeParams got = {};
  CUDA_CHECK(cudaGraphKernelNodeGetParams(add_node, &got));
  REQUIRE(got.func == add.params.func && got.gridDim.x == add.params.gridDim.x &&
              *static_cast<float*>(got.kernelParams[1]) == 5,
          "kernel parameters");
  cudaMemsetParams got_set = {};
  CUDA_CHECK(cudaGraphMemsetNodeGetParams(set_node, &got_set));
  REQUIRE(got_set.dst == device && got_set.width == size_t(kCount), "set parameters");

  cudaGraphExec_t exec;
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  const auto run = [&](float expected, const char* what) {
    for (int i = 0; i < kCount; ++i) pinned[i] = -1;
    CUDA_CHECK(cudaGraphLaunch(exec, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < kCount; ++i)
      REQUIRE(pinned[i] == expected, "%s: element %d is %g, expected %g", what, i, pinned[i],
              expected);
  };
  run(15, "first");
  REQUIRE(host_value == 2, "host function: %d", host_value);

  // Single nodes of the executable graph; the graph itself keeps its parameters.
  Kernel add_seven(AddTo, device, 7);
  CUDA_CHECK(cudaGraphExecKernelNodeSetParams(exec, add_node, &add_seven.params));
  run(21, "kernel parameters set");
  Kernel now_scale(AddTo, device, 100);  // another function in the same place
  CUDA_CHECK(cudaGraphExecKernelNodeSetParams(exec, scale_node, &now_scale.params));
  run(107, "another function");
  CUDA_CHECK(cudaGraphNodeSetEnabled(exec, add_node, 0));
  unsigned enabled = 1;
  CUDA_CHECK(cudaGraphNodeGetEnabled(exec, add_node, &enabled));
  REQUIRE(enabled == 0, "enabled");
  run(100, "a node disabled");
  CUDA_CHECK(cudaGraphNodeSetEnabled(exec, add_node, 1));
  run(107, "and enabled again");
  set.value = 0x3f800000;  // 1.0f
  CUDA_CHECK(cudaGraphExecMemsetNodeSetParams(exec, set_node, &set));
  run(108, "the set's value");

  // A whole update, from a graph of the same shape.
  cudaGraphExecUpdateResultInfo info = {};
  CUDA_CHECK(cudaGraphExecUpdate(exec, graph, &info));
  REQUIRE(info.result == cudaGraphExecUpdateSuccess, "update: %d", int(info.result));
  run(15, "updated back");
  cudaGraph_t clone;
  CUDA_CHECK(cudaGraphClone(&clone, graph));
  cudaGraphNode_t in_clone;
  CUDA_CHECK(cudaGraphNodeFindInClone(&in_clone, add_node, clone));
  Kernel add_two(AddTo, device, 2);
  CUDA_CHECK(cudaGraphKernelNodeSetParams(in_clone, &add_two.params));
  CUDA_CHECK(cudaGraphExecUpdate(exec, clone, &info));
  run(6, "updated from the clone");
  cudaGraphNode_t extra;
  CUDA_CHECK(cudaGraphAddEmptyNode(&extra, clone, nullptr, 0));
  CUDA_EXPECT(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, clone, &info));
  REQUIRE(info.result == cudaGraphExecUpdateErrorTopologyChanged, "update: %d", int(info.result));
  run(6, "after an update that failed");
  CUDA_CHECK(cudaGraphDestroyNode(extra));

  // A child graph twice: ((0+5)*3+5)*3.
  cudaGraph_t body, parent;
  CUDA_CHECK(cudaGraphCreate(&body, 0));
  cudaGraphNode_t first, second;
  CUDA_CHECK(cudaGraphAddKernelNode(&first, body, nullptr, 0, &add.params));
  CUDA_CHECK(cudaGraphAddKernelNode(&second, body, &first, 1, &scale.params));
  CUDA_CHECK(cudaGraphCreate(&parent, 0));
  set.value = 0;
  CUDA_CHECK(cudaGraphAddMemsetNode(&set_node, parent, nullptr, 0, &set));
  cudaGraphNode_t children[2];
  CUDA_CHECK(cudaGraphAddChildGraphNode(&children[0], parent, &set_node, 1, body));
  CUDA_CHECK(cudaGraphAddChildGraphNode(&children[1], parent, &children[0], 1, body));
  CUDA_CHECK(cudaGraphDestroy(body));
  cudaGraph_t embedded;
  CUDA_CHECK(cudaGraphChildGraphNodeGetGraph(children[0], &embedded));
  CUDA_CHECK(cudaGraphGetNodes(embedded, nullptr, &count));
  REQUIRE(count == 2, "%zu nodes in the child", count);
  cudaEvent_t done;
  CUDA_CHECK(cudaEventCreate(&done));
  cudaGraphNode_t record;
  CUDA_CHECK(cudaGraphAddEventRecordNode(&record, parent, &children[1], 1, done));
  CUDA_CHECK(cudaGraphAddMemcpyNode1D(&copy_node, parent, &record, 1, pinned, device,
                                      kCount * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  CUDA_CHECK(cudaGraphInstantiate(&exec, parent, 0));
  run(60, "children");
  CUDA_CHECK(cudaEventQuery(done));

  // By the generic call, with two rows of a pitched set.
  cudaGraph_t generic;
  CUDA_CHECK(cudaGraphCreate(&generic, 0));
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeMemset;
  params.memset.dst = device;
  params.memset.elementSize = 4;
  params.memset.value = 0x40000000;  // 2.0f
  params.memset.width = 10;
  params.memset.height = 2;
  params.memset.pitch = 100 * sizeof(float);
  cudaGraphNode_t node, kernel;
  CUDA_CHECK(cudaGraphAddNode(&node, generic, nullptr, nullptr, 0, &params));
  params = {};
  params.type = cudaGraphNodeTypeKernel;
  params.kernel.func = scale.params.func;
  params.kernel.gridDim = scale.params.gridDim;
  params.kernel.blockDim = scale.params.blockDim;
  params.kernel.kernelParams = scale.arguments;
  CUDA_CHECK(cudaGraphAddNode(&kernel, generic, &node, nullptr, 1, &params));
  cudaGraphExec_t generic_exec;
  CUDA_CHECK(cudaGraphInstantiate(&generic_exec, generic, 0));
  CUDA_CHECK(cudaMemset(device, 0, kCount * sizeof(float)));
  CUDA_CHECK(cudaGraphLaunch(generic_exec, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  REQUIRE(Fetch(device) == 6 && Fetch(device + 9) == 6 && Fetch(device + 10) == 0 &&
              Fetch(device + 109) == 6 && Fetch(device + 110) == 0,
          "rows");

  // What cannot be.
  Kernel bad(AddTo, device, 1);
  bad.params.blockDim = dim3(2048);
  CUDA_CHECK(cudaGraphCreate(&body, 0));
  cudaGraphNode_t bad_node;
  if (cudaGraphAddKernelNode(&bad_node, body, nullptr, 0, &bad.params) == cudaSuccess) {
    cudaGraphExec_t none;
    REQUIRE(cudaGraphInstantiate(&none, body, 0) != cudaSuccess, "a block of 2048 threads");
  }
  cudaGetLastError();
  bad.params.func = &host_value;
  CUDA_EXPECT(cudaErrorInvalidDeviceFunction,
              cudaGraphAddKernelNode(&bad_node, body, nullptr, 0, &bad.params));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaGraphAddEmptyNode(&bad_node, body, &set_node, 1));
  std::printf("PASS graph_explicit\n");
  return 0;
}
