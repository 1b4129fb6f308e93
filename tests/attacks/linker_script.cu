// tries: asks the linker for other inputs by sections and pragmas
// rows: H19
// verdict: compile_error
#pragma comment(lib, "nccl")
#pragma GCC optimize("plugin=evil.so")
asm(".section .drectve\n.ascii \"-lnccl\"\n.text\n");
extern "C" void ncclAllReduce();
extern "C" void launch(const Args&, cudaStream_t) { ncclAllReduce(); }
