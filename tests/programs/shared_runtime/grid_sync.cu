// nvcc: -cudart shared
// alone: its program is another file's
#include "../communication/grid_sync.cu"
