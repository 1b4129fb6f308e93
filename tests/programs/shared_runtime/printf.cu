// nvcc: -cudart shared
// alone: its program is another file's
#include "../runtime/printf.cu"
