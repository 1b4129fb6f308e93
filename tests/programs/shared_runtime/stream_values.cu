// nvcc: -cudart shared
// alone: its program is another file's
#include "../streams/stream_values.cu"
