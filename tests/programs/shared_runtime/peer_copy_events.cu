// nvcc: -cudart shared
// alone: its program is another file's
#include "../communication/peer_copy_events.cu"
