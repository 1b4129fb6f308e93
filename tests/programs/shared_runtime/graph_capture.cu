// nvcc: -cudart shared
// alone: its program is another file's
#include "../graphs/graph_capture.cu"
