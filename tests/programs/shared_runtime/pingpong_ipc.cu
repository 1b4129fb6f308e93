// nvcc: -cudart shared
// alone: its program is another file's
#include "../communication/pingpong_ipc.cu"
